from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from recbias.core.errors import BrokenContract, MissingEvidence
from recbias.core.evidence import Evidence
from recbias.core.measures import Direction, Measurement, UnitScores
from recbias.metrics.accuracy import NDCG
from recbias.testing import check_metric, make_random_evidence

Measurements = Sequence[Measurement]


def share_filled(evidence: Evidence) -> Measurements:
    lists = evidence.ranked
    filled = lists.filled.sum(axis=1)
    values = np.where(filled > 0, filled / lists.k, np.nan)
    return [Measurement.from_units(UnitScores("query", evidence.queries.ids.ids, values))]


@dataclass(frozen=True, kw_only=True)
class Filled:
    """The proportion of positions that hold an item, with a replaceable measurement.

        filled / k

    Range:
        0 to 1; undefined for an empty list.

    Source:
        These tests.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists"})
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    compute: Callable[[Evidence], Measurements] = share_filled

    def measure(self, evidence: Evidence) -> Measurements:
        return self.compute(evidence)


@dataclass(frozen=True, kw_only=True)
class Brief(Filled):
    """A metric without formula, range and source."""


@dataclass(frozen=True, kw_only=True)
class Undocumented(Filled):
    pass


@dataclass(frozen=True, kw_only=True)
class Sideways(Filled):
    """A metric with an unknown direction."""

    direction: ClassVar[Direction] = "sideways"  # type: ignore[assignment]


def change(**changes: object) -> Callable[[Evidence], Measurements]:
    def compute(evidence: Evidence) -> Measurements:
        return [replace(row, **changes) for row in share_filled(evidence)]  # type: ignore[arg-type]

    return compute


def double(evidence: Evidence) -> Measurements:
    (measurement,) = share_filled(evidence)
    units = UnitScores("query", measurement.units.ids, measurement.units.values * 2)
    return [Measurement.from_units(units)]


def return_zero_if_empty(evidence: Evidence) -> Measurements:
    return share_filled(evidence) if len(evidence.queries) else [Measurement(0.0, 1, 0)]


def count_first_queries_only(evidence: Evidence) -> Measurements:
    (measurement,) = share_filled(evidence)
    values = measurement.units.values * (np.arange(measurement.units.values.size) < 5)
    return [Measurement.from_units(UnitScores("query", measurement.units.ids, values))]


def ignore_missing_lists(evidence: Evidence) -> Measurements:
    if evidence.lists is None:
        return [Measurement(math.nan, 0, 0)]
    return share_filled(evidence)


COUNTER = iter(range(10_000))


def divide_by_calls(evidence: Evidence) -> Measurements:
    (measurement,) = share_filled(evidence)
    values = measurement.units.values / (1 + next(COUNTER))
    return [Measurement.from_units(UnitScores("query", measurement.units.ids, values))]


def test_a_correct_metric_passes() -> None:
    check_metric(Filled())
    check_metric(NDCG())


def test_a_metric_needs_no_formula_range_or_source() -> None:
    check_metric(Brief())


@pytest.mark.parametrize(
    ("metric", "violation"),
    [
        (Undocumented(), "has no docstring"),
        (Sideways(), "has direction sideways"),
        (Filled(compute=lambda _: []), "returns no value"),
        (Filled(compute=change(value=0.1)), "is not the mean of its units"),
        (Filled(compute=change(value=math.nan)), "is nan over 41 units"),
        (Filled(compute=change(undefined=0)), "does not count"),
        (Filled(compute=change(units=None)), "has unit query but no per-unit scores"),
        (Filled(compute=double), "has values outside its range, 0 to 1"),
        (Filled(compute=divide_by_calls), "returns other values the second time"),
        (Filled(compute=count_first_queries_only), "depends on the order of the queries"),
        (Filled(compute=return_zero_if_empty), "is 0.0 without queries, not NaN|has unit query"),
        (Filled(compute=ignore_missing_lists), "needs lists but does not raise MissingEvidence"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_a_violation_is_named(metric: Filled, violation: str) -> None:
    with pytest.raises(BrokenContract, match=violation):
        check_metric(metric)


def score_first_items(evidence: Evidence) -> Measurements:
    evidence.need("predictions")
    predictions = evidence.predictions
    values = (predictions.ranked[:, 0] == predictions.items).astype(np.float64)
    return [Measurement.from_units(UnitScores("review", predictions.ids, values))]


@dataclass(frozen=True, kw_only=True)
class FirstItem(Filled):
    """The proportion of reviews whose item is predicted first, with a replaceable measurement."""

    needs: ClassVar[frozenset[str]] = frozenset({"predictions"})
    unit: ClassVar[str] = "review"

    compute: Callable[[Evidence], Measurements] = score_first_items


def count_first_reviews_only(evidence: Evidence) -> Measurements:
    (measurement,) = score_first_items(evidence)
    values = evidence.predictions.items / 100 * (np.arange(measurement.units.values.size) < 5)
    return [Measurement.from_units(UnitScores("review", measurement.units.ids, values))]


def return_zero_without_reviews(evidence: Evidence) -> Measurements:
    return [
        replace(row, value=0.0, n=1) if math.isnan(row.value) else row
        for row in score_first_items(evidence)
    ]


def ignore_missing_predictions(evidence: Evidence) -> Measurements:
    if evidence.predictions is None:
        return [Measurement(math.nan, 0, 0)]
    return score_first_items(evidence)


def drop_units(evidence: Evidence) -> Measurements:
    return [replace(row, units=None) for row in score_first_items(evidence)]


def test_a_correct_metric_of_reviews_passes() -> None:
    check_metric(FirstItem())


@pytest.mark.parametrize(
    ("compute", "violation"),
    [
        (drop_units, "has unit review but no per-unit scores"),
        (count_first_reviews_only, "depends on the order of the reviews"),
        (return_zero_without_reviews, "is 0.0 without reviews, not NaN"),
        (ignore_missing_predictions, "needs predictions but does not raise MissingEvidence"),
    ],
)
def test_a_violation_of_a_metric_of_reviews_is_named(compute: Any, violation: str) -> None:
    with pytest.raises(BrokenContract, match=violation):
        check_metric(FirstItem(compute=compute))


def test_evidence_that_the_metric_needs_must_be_given() -> None:
    with pytest.raises(MissingEvidence):
        check_metric(NDCG(), evidence=replace(make_random_evidence(), relevant=None))


@dataclass
class Mutable:
    """A plug-in that can be changed."""


@dataclass(frozen=True)
class WithList:
    """A plug-in with a list."""

    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class WithoutDocstring:
    needs = ()


class Plain:
    """Not a dataclass."""

    needs = ()


@pytest.mark.parametrize(
    ("plugin", "violation"),
    [
        (Plain(), "is not a dataclass"),
        (Mutable(), "no frozen dataclass of plain fields"),
        (WithList(), "no frozen dataclass of plain fields"),
        (WithoutDocstring(), "has no docstring"),
    ],
    ids=type,
)
def test_other_classes_are_refused(plugin: Any, violation: str) -> None:
    with pytest.raises(BrokenContract, match=violation):
        check_metric(plugin)
