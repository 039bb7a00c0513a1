from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from recbias.core.errors import BrokenContract, MissingEvidence
from recbias.core.measurements.scores import Direction, Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.accuracy.ranking import NDCG
from recbias.testing import check_metric, random_evidence
from recbias.testing.metrics import stated_range

Figures = Sequence[Measurement]


def share_filled(evidence: Evidence) -> Figures:
    lists = evidence.ranked
    filled = lists.filled.sum(axis=1)
    values = np.where(filled > 0, filled / lists.k, np.nan)
    return [Measurement.from_units(UnitScores("query", evidence.queries.ids.ids, values))]


@dataclass(frozen=True, kw_only=True)
class Filled:
    """The share of the places that hold an item, or a spoiled form of it.

        filled / k

    Range:
        0 to 1; undefined for an empty list.

    Source:
        These tests.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists"})
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    work: Callable[[Evidence], Figures] = share_filled

    def measure(self, evidence: Evidence) -> Figures:
        return self.work(evidence)


@dataclass(frozen=True, kw_only=True)
class Unsourced(Filled):
    """One that does not say where it is from.

        filled / k

    Range:
        0 to 1.
    """


@dataclass(frozen=True, kw_only=True)
class Sideways(Filled):
    """One with no known direction."""

    direction: ClassVar[Direction] = "sideways"  # type: ignore[assignment]


def spoiled(**changes: object) -> Callable[[Evidence], Figures]:
    def work(evidence: Evidence) -> Figures:
        return [replace(each, **changes) for each in share_filled(evidence)]  # type: ignore[arg-type]

    return work


def doubled(evidence: Evidence) -> Figures:
    (figure,) = share_filled(evidence)
    assert figure.units is not None
    units = UnitScores("query", figure.units.ids, figure.units.values * 2)
    return [Measurement.from_units(units)]


def zero_of_none(evidence: Evidence) -> Figures:
    return share_filled(evidence) if len(evidence.queries) else [Measurement(0.0, 1, 0)]


def first_only(evidence: Evidence) -> Figures:
    (figure,) = share_filled(evidence)
    assert figure.units is not None
    values = figure.units.values * (np.arange(figure.units.values.size) < 5)
    return [Measurement.from_units(UnitScores("query", figure.units.ids, values))]


def careless(evidence: Evidence) -> Figures:
    if evidence.lists is None:
        return [Measurement(math.nan, 0, 0)]
    return share_filled(evidence)


COUNTER = iter(range(10_000))


def unsteady(evidence: Evidence) -> Figures:
    (figure,) = share_filled(evidence)
    assert figure.units is not None
    values = figure.units.values / (1 + next(COUNTER))
    return [Measurement.from_units(UnitScores("query", figure.units.ids, values))]


def test_a_good_metric_passes() -> None:
    check_metric(Filled())
    check_metric(NDCG())


@pytest.mark.parametrize(
    ("metric", "found"),
    [
        (Unsourced(), "has no Source: section"),
        (Sideways(), "has direction sideways"),
        (Filled(work=lambda _: []), "gives no figure"),
        (Filled(work=spoiled(value=0.1)), "is not the mean of its units"),
        (Filled(work=spoiled(value=math.nan)), "is nan of 41"),
        (Filled(work=spoiled(undefined=0)), "counts other units"),
        (Filled(work=spoiled(units=None)), "has unit query but no value of each"),
        (Filled(work=doubled), "has values outside its range, 0 to 1"),
        (Filled(work=unsteady), "gives other figures twice"),
        (Filled(work=first_only), "depends on the order of the queries"),
        (Filled(work=zero_of_none), "is 0.0 without queries, not NaN|has unit query"),
        (Filled(work=careless), "needs lists but does not say so"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_broken_promise_is_named(metric: Filled, found: str) -> None:
    with pytest.raises(BrokenContract, match=found):
        check_metric(metric)


def named_first(evidence: Evidence) -> Figures:
    evidence.need("predictions")
    found = evidence.predictions
    assert found is not None
    values = (found.ranked[:, 0] == found.items).astype(np.float64)
    return [Measurement.from_units(UnitScores("review", found.ids, values))]


@dataclass(frozen=True, kw_only=True)
class NamedFirst(Filled):
    """The share of reviews whose item is named first, or a spoiled form of it."""

    needs: ClassVar[frozenset[str]] = frozenset({"predictions"})
    unit: ClassVar[str] = "review"

    work: Callable[[Evidence], Figures] = named_first


def first_reviews(evidence: Evidence) -> Figures:
    (figure,) = named_first(evidence)
    assert figure.units is not None
    assert evidence.predictions is not None
    values = evidence.predictions.items / 100 * (np.arange(figure.units.values.size) < 5)
    return [Measurement.from_units(UnitScores("review", figure.units.ids, values))]


def zero_of_no_review(evidence: Evidence) -> Figures:
    found = named_first(evidence)
    return [replace(each, value=0.0, n=1) if math.isnan(each.value) else each for each in found]


def careless_of_reviews(evidence: Evidence) -> Figures:
    if evidence.predictions is None:
        return [Measurement(math.nan, 0, 0)]
    return named_first(evidence)


def whole(evidence: Evidence) -> Figures:
    return [replace(each, units=None) for each in named_first(evidence)]


def test_a_good_metric_of_reviews_passes() -> None:
    check_metric(NamedFirst())


@pytest.mark.parametrize(
    ("work", "found"),
    [
        (whole, "has unit review but no value of each"),
        (first_reviews, "depends on the order of the reviews"),
        (zero_of_no_review, "is 0.0 without reviews, not NaN"),
        (careless_of_reviews, "needs predictions but does not say so"),
    ],
)
def test_a_broken_promise_of_a_metric_of_reviews_is_named(work: Any, found: str) -> None:
    with pytest.raises(BrokenContract, match=found):
        check_metric(NamedFirst(work=work))


@pytest.mark.parametrize(
    ("words", "low", "high"),
    [
        ("0 to 1; undefined for an empty list", 0, 1),
        ("0 to 1 - 1/|C|", 0, 1),
        ("-1 to 1", -1, 1),
        ("-1 or more", -1, math.inf),
        ("0.5 to 10 bits", 0.5, 10),
        ("any number", -math.inf, math.inf),
        ("0 to log2 |C| bits", -math.inf, math.inf),
    ],
)
def test_the_range_is_read_from_the_words(words: str, low: float, high: float) -> None:
    assert stated_range(words) == (low, high)


def test_evidence_that_the_metric_needs_must_be_given() -> None:
    with pytest.raises(MissingEvidence):
        check_metric(NDCG(), evidence=replace(random_evidence(), relevant=None))
