from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

from recbias.core.errors import UnknownColumn
from recbias.core.evidence import Evidence
from recbias.core.measures import Measurement
from recbias.metrics.accuracy import (
    CategoryMAP,
    CategoryMRR,
    CategoryNDCG,
    CategoryPrecision,
    CategoryRPrecision,
)
from support.worlds.texts.review_worlds import make_review_evidence, rank_items, sample_reviews

pytestmark = pytest.mark.usefixtures("stage_warnings")

METRICS = (CategoryPrecision, CategoryRPrecision, CategoryMAP, CategoryMRR, CategoryNDCG)
WHOLE = METRICS[1:]


def measure(metric: Any, evidence: Evidence) -> Measurement:
    (measurement,) = metric.measure(evidence)
    assert isinstance(measurement, Measurement)
    return measurement


# 0 and 1 share B; the last review is of an item without categories
WORKED = make_review_evidence(
    [0, 2, 3], [[2, 1, 0, 3], [2, 0, 1, 3], [0, 1, 2, 3]], categories=("A|B", "B", "C", None)
)


@pytest.mark.parametrize(
    ("metric", "first", "second"),
    [
        # the first ranking is - + + -, R = 2; the second + - - -, R = 1
        (CategoryPrecision(k=1), 0.0, 1.0),
        (CategoryPrecision(k=2), 1 / 2, 1 / 2),
        (CategoryPrecision(k=3), 2 / 3, 1 / 3),
        (CategoryRPrecision(), 1 / 2, 1.0),
        # (1/2 + 2/3) / 2
        (CategoryMAP(), 7 / 12, 1.0),
        (CategoryMRR(), 1 / 2, 1.0),
        # (1/log2(3) + 1/log2(4)) / (1 + 1/log2(3)) = 1.130930 / 1.630930
        (CategoryNDCG(), 0.693426, 1.0),
        # without B only 0 itself is left: - - + -
        (CategoryPrecision(k=3, without=("B",)), 1 / 3, 1 / 3),
        (CategoryRPrecision(without=("B",)), 0.0, 1.0),
        (CategoryMAP(without=("B",)), 1 / 3, 1.0),
        (CategoryMRR(without=("B",)), 1 / 3, 1.0),
        (CategoryNDCG(without=("B",)), 1 / 2, 1.0),
    ],
)
def test_values_equal_those_worked_by_hand(metric: Any, first: float, second: float) -> None:
    measurement = measure(metric, WORKED)
    assert measurement.units is not None
    assert measurement.units.values == pytest.approx(
        [first, second, math.nan], abs=1e-6, nan_ok=True
    )
    assert measurement.value == pytest.approx((first + second) / 2, abs=1e-6)
    assert (measurement.n, measurement.undefined) == (2, 1)


def sample_categories(seed: int, n_items: int) -> list[str | None]:
    """One to three of five categories for each item, none for about one in six."""
    rng = np.random.default_rng(seed)
    membership = rng.random((n_items, 5)) < 0.3
    names = ["|".join(f"k{kind}" for kind in np.flatnonzero(row)) for row in membership]
    return [names[0] or "k0", *(name or None for name in names[1:])]


@pytest.mark.parametrize("seed", range(3))
def test_values_equal_scikit_learn(seed: int) -> None:
    items, scores = sample_reviews(seed, 60, 25)
    categories = sample_categories(seed, 25)
    world = make_review_evidence(items, rank_items(scores), categories=categories)
    sets = [set((labels or "").split("|")) - {""} for labels in categories]
    relevant = np.array([[bool(sets[item] & other) for other in sets] for item in items])
    precision, gain = measure(CategoryMAP(), world).units, measure(CategoryNDCG(), world).units
    assert precision is not None
    assert gain is not None
    for review, row in enumerate(relevant):
        if row.any():
            mean = average_precision_score(row, scores[review])
            assert precision.values[review] == pytest.approx(mean, rel=1e-12)
            ideal = ndcg_score([row], [scores[review]])
            assert gain.values[review] == pytest.approx(ideal, rel=1e-12)
        else:
            assert math.isnan(precision.values[review])
            assert math.isnan(gain.values[review])


def test_a_model_that_knows_the_category_but_not_the_item_is_perfect() -> None:
    rng = np.random.default_rng(5)
    items = rng.integers(20, size=2000)
    scores = rng.random((2000, 20)) + (np.arange(20) // 4 == items[:, None] // 4)
    evidence = make_review_evidence(
        items, rank_items(scores), categories=[f"k{item // 4}" for item in range(20)]
    )
    for metric in (*(metric_type() for metric_type in WHOLE), CategoryPrecision(k=4)):
        assert measure(metric, evidence).value == pytest.approx(1.0, rel=1e-12)
    # 4 of the first 10 are of the kind
    assert measure(CategoryPrecision(k=10), evidence).value == pytest.approx(0.4, rel=1e-12)


def test_a_random_model_has_the_share_of_the_category() -> None:
    items, scores = sample_reviews(6, 20_000, 20, skill=0.0)
    evidence = make_review_evidence(
        items, rank_items(scores), categories=[f"k{item // 4}" for item in range(20)]
    )
    for metric in (CategoryPrecision(k=5), CategoryRPrecision()):
        measurement = measure(metric, evidence)
        assert measurement.value == pytest.approx(4 / 20, abs=0.01)
        assert measurement.ci_low - 0.005 < 4 / 20 < measurement.ci_high + 0.005


@pytest.mark.parametrize("metric", METRICS)
def test_an_excluded_category_does_not_count(metric: Any) -> None:
    rankings = [[2, 1, 0], [0, 1, 2], [1, 2, 0]]
    expected = make_review_evidence([0, 1, 2], rankings, categories=("Bars", "Bars", None))
    with_food = make_review_evidence(
        [0, 1, 2], rankings, categories=("Food|Bars", "Bars|Food", "Food")
    )
    measurement = measure(metric(without=("Food",)), with_food)
    assert measurement.units is not None
    reference = measure(metric(), expected).units
    assert reference is not None
    assert measurement.units.values == pytest.approx(reference.values, nan_ok=True)
    assert (measurement.n, measurement.undefined) == (2, 1)


@pytest.mark.parametrize("metric", METRICS)
def test_an_unknown_column_or_category_is_an_error_before_training(metric: Any) -> None:
    metric(attribute="categories", without=("B",)).check(WORKED)
    with pytest.raises(UnknownColumn) as caught:
        metric(attribute="category").check(WORKED)
    assert (caught.value.where, caught.value.remedy) == ("attribute", "did you mean categories?")
    with pytest.raises(UnknownColumn, match="no item has 'D'"):
        metric(without=("B", "D")).check(WORKED)
