"""What a metric must keep."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from recbias.config.docstrings import read_formula, read_section
from recbias.core.arrays import AnyArray
from recbias.core.errors import BrokenContract, MissingEvidence
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import REMEDIES, Evidence
from recbias.core.outputs.predictions import Predictions
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import Metric, NeedsByParameters
from recbias.core.stage_context import collect_warnings
from recbias.testing.declared import check_dataclass, refuse
from recbias.testing.small_world import random_evidence


@collect_warnings()
def check_metric(metric: Metric, *, evidence: Evidence | None = None) -> None:
    """Check that a metric keeps what its kind promises.

    It declares itself; it gives the same figures twice, and whatever the order of the queries and
    reviews; its figures are within the range that it states; the mean is that of the units and
    they are all counted; without queries, or reviews where it is of them, it is NaN and not 0;
    without the evidence that it needs it says so.

    Args:
        metric: The metric.
        evidence: What to measure; random lists on the checkerboard where it is None.

    Raises:
        BrokenContract: It does not.
    """
    who = type(metric).__name__
    _check_metric_declared(metric, who)
    world = random_evidence() if evidence is None else evidence
    world = replace(world, metric=who)
    for need in _needs(metric):
        world.need(need)
    figures = metric.measure(world)
    refuse(not figures, who, "gives no figure")
    for figure in figures:
        _check_figure(figure, metric, who)
    refuse(not _same_figures(figures, metric.measure(world)), who, "gives other figures twice")
    order = np.random.default_rng(2).permutation(len(world.queries))
    shuffled = metric.measure(_asked(world, order))
    refuse(not _same_figures(figures, shuffled), who, "depends on the order of the queries")
    if "lists" in metric.needs:
        _check_nothing(metric.measure(_asked(world, order[:0])), "queries", who)
    if "predictions" in metric.needs:
        _check_reviews(metric, world, who)
    _check_missing_evidence(metric, world, who)


def _check_nothing(figures: Sequence[Measurement], what: str, who: str) -> None:
    for figure in figures:
        refuse(not np.isnan(figure.value), who, f"is {figure.value} without {what}, not NaN")


def _check_reviews(metric: Metric, world: Evidence, who: str) -> None:
    """Check what a metric of named items makes of other orders of the reviews, and of none."""
    n = 0 if world.predictions is None else len(world.predictions)
    order = np.random.default_rng(2).permutation(n)
    figures, shuffled = (metric.measure(each) for each in (world, _reviewed(world, order)))
    refuse(not _same_figures(figures, shuffled), who, "depends on the order of the reviews")
    _check_nothing(metric.measure(_reviewed(world, order[:0])), "reviews", who)


def _check_metric_declared(metric: Metric, who: str) -> None:
    declared = ("needs", "direction", "unit")
    check_dataclass(metric, declared, who)
    refuse(metric.direction not in get_args(Direction), who, f"has direction {metric.direction}")
    refuse(set(metric.needs) - set(REMEDIES), who, "needs what no experiment makes")
    refuse(
        not read_formula(type(metric)), who, "has no formula (an indented block) in its docstring"
    )
    for title in ("Range", "Source"):
        refuse(
            not read_section(type(metric), title), who, f"has no {title}: section in its docstring"
        )


def _check_figure(figure: Measurement, metric: Metric, who: str) -> None:
    refuse((figure.n == 0) != np.isnan(figure.value), who, f"is {figure.value} of {figure.n}")
    values = np.array([figure.value])
    if metric.unit in {"query", "review"}:
        refuse(figure.units is None, who, f"has unit {metric.unit} but no value of each")
    if figure.units is not None:
        values = figure.units.values
        _check_units(figure, values, who)
    value_range = read_section(type(metric), "Range")
    low, high = stated_range(value_range)
    outside = (values < low - 1e-9) | (values > high + 1e-9)
    refuse(outside.any(), who, f"has values outside its range, {value_range}")


def _check_units(figure: Measurement, values: AnyArray, who: str) -> None:
    defined = values[~np.isnan(values)]
    counted = (defined.size, values.size - defined.size)
    refuse(counted != (figure.n, figure.undefined), who, f"counts other units than {counted}")
    if defined.size:
        same = np.isclose(defined.mean(), figure.value, rtol=1e-9)
        refuse(not same, who, "is not the mean of its units")


def _needs(metric: Metric) -> frozenset[str]:
    return metric.needs_now() if isinstance(metric, NeedsByParameters) else metric.needs


def stated_range(values: str) -> tuple[float, float]:
    """Return the range that the words of a metric begin with; all numbers where they give none.

    >>> stated_range("0 to 1; undefined for an empty list"), stated_range("-1 or more")
    ((0.0, 1.0), (-1.0, inf))
    """
    number = r"(-?\d+(?:\.\d+)?)"
    if found := re.match(rf"{number} to {number}\b", values):
        return float(found[1]), float(found[2])
    if found := re.match(rf"{number} or more", values):
        return float(found[1]), np.inf
    return -np.inf, np.inf


def _same_figures(first: Sequence[Measurement], second: Sequence[Measurement]) -> bool:
    if [(each.group, each.target) for each in first] != [
        (each.group, each.target) for each in second
    ]:
        return False
    return np.allclose(_numbers(first), _numbers(second), rtol=1e-9, equal_nan=True)


def _numbers(figures: Sequence[Measurement]) -> AnyArray:
    return np.array([(each.value, each.n, each.undefined) for each in figures])


def _asked(evidence: Evidence, order: AnyArray) -> Evidence:
    lists, relevant = evidence.lists, evidence.relevant
    if lists is not None:
        lists = RankedLists(lists.items[order], lists.scores[order], lists.outside)
    if relevant is not None:
        relevant = relevant[order]
    queries = evidence.queries.take(order)
    return replace(evidence, queries=queries, lists=lists, relevant=relevant)


def _reviewed(evidence: Evidence, order: AnyArray) -> Evidence:
    found = evidence.predictions
    if found is None:
        return evidence
    taken = Predictions(found.ids[order], found.items[order], found.ranked[order])
    return replace(evidence, predictions=taken)


def _check_missing_evidence(metric: Metric, evidence: Evidence, who: str) -> None:
    for need in _needs(metric):
        lacking: dict[str, Any] = {"relevant" if need == "test" else need: None}
        try:
            metric.measure(replace(evidence, **lacking))
        except MissingEvidence:
            continue
        raise BrokenContract(f"{who} needs {need} but does not say so where it is missing")
