"""The contract of a metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.docstrings import read_section
from recbias.core.errors import BrokenContract, MissingEvidence
from recbias.core.measurements.ranges import read_bounds
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import REMEDIES, Evidence
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.outputs.text_outputs import Predictions
from recbias.core.protocols import Metric, NeedsByParameters
from recbias.core.stage_context import collect_warnings
from recbias.testing.declared import check_dataclass, refuse
from recbias.testing.small_world import make_random_evidence

Measurements = Sequence[Measurement]


@collect_warnings()
def check_metric(metric: Metric, *, evidence: Evidence | None = None) -> None:
    """Check that a metric meets the contract of its kind.

    It is a documented frozen dataclass with ``needs``, ``direction`` and ``unit``. It returns the
    same values each time and for any order of the queries and reviews; its values lie within the
    ``Range:`` of its docstring, if there is one; a value is the mean of its per-unit scores, and
    counts them; without queries or reviews it is NaN, not 0; without the evidence that the metric
    needs it raises MissingEvidence.

    Args:
        metric: The metric with its settings.
        evidence: What it is computed on, by default ``make_random_evidence()``.

    Raises:
        BrokenContract: It violates a rule.
        MissingEvidence: ``evidence`` lacks what it needs.

    Example:
        check_metric(MyMetric(most=10))
    """
    name = type(metric).__name__
    check_dataclass(metric, ("needs", "direction", "unit", "measure"), name)
    refuse(metric.direction not in get_args(Direction), name, f"has direction {metric.direction}")
    refuse(set(metric.needs) - set(REMEDIES), name, "needs evidence of an unknown kind")
    evidence = replace(make_random_evidence() if evidence is None else evidence, metric=name)
    for need in _list_needs(metric):
        evidence.need(need)
    measurements = metric.measure(evidence)
    refuse(not measurements, name, "returns no value")
    for measurement in measurements:
        _check_measurement(measurement, metric, name)
    repeated = metric.measure(evidence)
    refuse(not _are_equal(measurements, repeated), name, "returns other values the second time")
    order = np.random.default_rng(2).permutation(len(evidence.queries))
    shuffled = metric.measure(_take_queries(evidence, order))
    refuse(not _are_equal(measurements, shuffled), name, "depends on the order of the queries")
    if "lists" in metric.needs:
        _check_undefined(metric.measure(_take_queries(evidence, order[:0])), "queries", name)
    if "predictions" in metric.needs:
        _check_reviews(metric, evidence, name)
    _check_missing_evidence(metric, evidence, name)


def _list_needs(metric: Metric) -> frozenset[str]:
    return metric.needs_now() if isinstance(metric, NeedsByParameters) else metric.needs


def _check_measurement(measurement: Measurement, metric: Metric, name: str) -> None:
    value, n, units = measurement.value, measurement.n, measurement.units
    refuse((n == 0) != np.isnan(value), name, f"is {value} over {n} units")
    needs_units = metric.unit in {"query", "review"}
    refuse(needs_units and units is None, name, f"has unit {metric.unit} but no per-unit scores")
    values = np.array([value]) if units is None else units.values
    if units is not None:
        _check_units(measurement, values, name)
    stated_range = read_section(type(metric), "Range")
    low, high = read_bounds(stated_range)
    outside = (values < low - 1e-9) | (values > high + 1e-9)
    refuse(outside.any(), name, f"has values outside its range, {stated_range}")


def _check_units(measurement: Measurement, values: AnyArray, name: str) -> None:
    defined = values[~np.isnan(values)]
    counts = (defined.size, values.size - defined.size)
    wrong = counts != (measurement.n, measurement.undefined)
    refuse(wrong, name, f"does not count (defined, undefined) units as {counts}")
    if defined.size:
        is_mean = np.isclose(defined.mean(), measurement.value, rtol=1e-9)
        refuse(not is_mean, name, "is not the mean of its units")


def _check_undefined(measurements: Measurements, unit: str, name: str) -> None:
    for measurement in measurements:
        value = measurement.value
        refuse(not np.isnan(value), name, f"is {value} without {unit}, not NaN")


def _check_reviews(metric: Metric, evidence: Evidence, name: str) -> None:
    n = 0 if evidence.predictions is None else len(evidence.predictions)
    order = np.random.default_rng(2).permutation(n)
    measurements = metric.measure(evidence)
    shuffled = metric.measure(_take_reviews(evidence, order))
    refuse(not _are_equal(measurements, shuffled), name, "depends on the order of the reviews")
    _check_undefined(metric.measure(_take_reviews(evidence, order[:0])), "reviews", name)


def _check_missing_evidence(metric: Metric, evidence: Evidence, name: str) -> None:
    for need in _list_needs(metric):
        missing: dict[str, Any] = {"relevant" if need == "test" else need: None}
        try:
            metric.measure(replace(evidence, **missing))
        except MissingEvidence:
            continue
        raise BrokenContract(f"{name} needs {need} but does not raise MissingEvidence without it")


def _are_equal(measurements: Measurements, expected: Measurements) -> bool:
    both = (measurements, expected)
    keys, expected_keys = ([(row.group, row.target) for row in rows] for rows in both)
    if keys != expected_keys:
        return False
    values = [np.array([(row.value, row.n, row.undefined) for row in rows]) for rows in both]
    return np.allclose(values[0], values[1], rtol=1e-9, equal_nan=True)


def _take_queries(evidence: Evidence, order: AnyArray) -> Evidence:
    lists, relevant = evidence.lists, evidence.relevant
    if lists is not None:
        lists = RankedLists(lists.items[order], lists.scores[order], lists.outside)
    if relevant is not None:
        relevant = relevant[order]
    queries = evidence.queries.take(order)
    return replace(evidence, queries=queries, lists=lists, relevant=relevant)


def _take_reviews(evidence: Evidence, order: AnyArray) -> Evidence:
    predictions = evidence.predictions
    if predictions is None:
        return evidence
    ids, items, ranked = predictions.ids, predictions.items, predictions.ranked
    return replace(evidence, predictions=Predictions(ids[order], items[order], ranked[order]))
