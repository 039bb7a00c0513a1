from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from recbias.core.errors import MissingEvidence, OutOfRange, UnknownColumn
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.accuracy.category_prediction import (
    CategoryMAP,
    CategoryMRR,
    CategoryNDCG,
    CategoryPrecision,
    CategoryRPrecision,
)
from support.review_worlds import make_review_evidence, rank_items, sample_reviews

METRICS = (CategoryPrecision, CategoryRPrecision, CategoryMAP, CategoryMRR, CategoryNDCG)
WHOLE = METRICS[1:]


def only(metric: Any, of: Evidence) -> Measurement:
    (found,) = metric.measure(of)
    assert isinstance(found, Measurement)
    return found


# 0 and 1 share B; the last review is of an item without categories
WORKED = make_review_evidence(
    [0, 2, 3],
    [[2, 1, 0, 3], [2, 0, 1, 3], [0, 1, 2, 3]],
    categories=("A|B", "B", "C", None),
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
def test_worked_example(metric: Any, first: float, second: float) -> None:
    found = only(metric, WORKED)
    assert found.units is not None
    assert found.units.values == pytest.approx([first, second, math.nan], abs=1e-6, nan_ok=True)
    assert found.value == pytest.approx((first + second) / 2, abs=1e-6)
    assert (found.n, found.undefined) == (2, 1)


def kinds(seed: int, n_items: int) -> list[str | None]:
    """One to three of five categories for each item, none for about one in six."""
    rng = np.random.default_rng(seed)
    held = rng.random((n_items, 5)) < 0.3
    names = ["|".join(f"k{place}" for place in np.flatnonzero(each)) for each in held]
    return [names[0] or "k0", *(each or None for each in names[1:])]


@pytest.mark.parametrize("seed", range(3))
def test_scikit_learn_says_the_same(seed: int) -> None:
    items, scores = sample_reviews(seed, 60, 25)
    categories = kinds(seed, 25)
    world = make_review_evidence(items, rank_items(scores), categories=categories)
    sets = [set((each or "").split("|")) - {""} for each in categories]
    relevant = np.array([[bool(sets[item] & other) for other in sets] for item in items])
    precision, gain = only(CategoryMAP(), world).units, only(CategoryNDCG(), world).units
    assert precision is not None
    assert gain is not None
    for review, wanted in enumerate(relevant):
        if wanted.any():
            mean = average_precision_score(wanted, scores[review])
            assert precision.values[review] == pytest.approx(mean, rel=1e-12)
            ideal = ndcg_score([wanted], [scores[review]])
            assert gain.values[review] == pytest.approx(ideal, rel=1e-12)
        else:
            assert math.isnan(precision.values[review])
            assert math.isnan(gain.values[review])


worlds = st.tuples(st.integers(0, 10**6), st.integers(1, 30), st.integers(2, 12))


@settings(max_examples=15, deadline=None)
@given(worlds)
def test_what_holds_of_every_model(world: tuple[int, int, int]) -> None:
    seed, n, n_items = world
    items, scores = sample_reviews(seed, n, n_items)
    of = make_review_evidence(items, rank_items(scores), categories=kinds(seed, n_items))
    found = {metric: only(metric(), of).units for metric in METRICS}
    values = {metric: each.values for metric, each in found.items() if each is not None}
    undefined = np.isnan(values[CategoryMAP])
    for each in values.values():
        assert (np.isnan(each) == undefined).all()
        assert (each[~undefined] <= 1 + 1e-12).all()
        assert (each[~undefined] >= 0).all()
    # the item reviewed is relevant, so no ranking is without one
    assert (values[CategoryMRR][~undefined] >= 1 / n_items).all()
    assert (values[CategoryNDCG][~undefined] > 0).all()


@settings(max_examples=15, deadline=None)
@given(worlds)
def test_a_ranking_that_begins_with_all_of_the_kind_is_perfect(
    world: tuple[int, int, int],
) -> None:
    seed, n, n_items = world
    items, scores = sample_reviews(seed, n, n_items)
    categories = kinds(seed, n_items)
    sets = [set((each or "").split("|")) - {""} for each in categories]
    relevant = np.array([[bool(sets[item] & other) for other in sets] for item in items])
    of = make_review_evidence(items, rank_items(scores + 100 * relevant), categories=categories)
    for metric in (*WHOLE, lambda: CategoryPrecision(k=1)):
        found = only(metric(), of)
        assert math.isnan(found.value) or found.value == pytest.approx(1.0, rel=1e-12)


def test_a_planted_model_that_knows_the_kind_but_not_the_item_is_perfect() -> None:
    rng = np.random.default_rng(5)
    items = rng.integers(20, size=2000)
    scores = rng.random((2000, 20)) + (np.arange(20) // 4 == items[:, None] // 4)
    of = make_review_evidence(
        items, rank_items(scores), categories=[f"k{each // 4}" for each in range(20)]
    )
    for metric in (*(each() for each in WHOLE), CategoryPrecision(k=4)):
        assert only(metric, of).value == pytest.approx(1.0, rel=1e-12)
    # 4 of the first 10 are of the kind
    assert only(CategoryPrecision(k=10), of).value == pytest.approx(0.4, rel=1e-12)


def test_a_model_that_guesses_has_the_share_of_the_kind() -> None:
    items, scores = sample_reviews(6, 20_000, 20, skill=0.0)
    of = make_review_evidence(
        items, rank_items(scores), categories=[f"k{each // 4}" for each in range(20)]
    )
    for metric in (CategoryPrecision(k=5), CategoryRPrecision()):
        found = only(metric, of)
        assert found.value == pytest.approx(4 / 20, abs=0.01)
        assert found.ci_low - 0.005 < 4 / 20 < found.ci_high + 0.005


@pytest.mark.parametrize("metric", METRICS)
def test_a_generic_label_can_be_left_out(metric: Any) -> None:
    rankings = [[2, 1, 0], [0, 1, 2], [1, 2, 0]]
    own = make_review_evidence([0, 1, 2], rankings, categories=("Bars", "Bars", None))
    with_food = make_review_evidence(
        [0, 1, 2], rankings, categories=("Food|Bars", "Bars|Food", "Food")
    )
    found = only(metric(without=("Food",)), with_food)
    assert found.units is not None
    other = only(metric(), own).units
    assert other is not None
    assert found.units.values == pytest.approx(other.values, nan_ok=True)
    assert (found.n, found.undefined) == (2, 1)


@pytest.mark.parametrize("metric", METRICS)
def test_no_review_is_undefined(metric: Any) -> None:
    of = make_review_evidence([], np.empty((0, 3)), categories=("A",))
    found = only(metric(), of)
    assert math.isnan(found.value)
    assert (found.n, found.undefined) == (0, 0)


@pytest.mark.parametrize("metric", METRICS)
def test_every_review_is_a_unit(metric: Any) -> None:
    units = only(metric(), WORKED).units
    assert metric.unit == "review"
    assert units is not None
    assert (units.unit, units.ids.tolist(), units.share) == ("review", ["r0", "r1", "r2"], False)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("lacking", ["predictions", "items"])
def test_items_and_predictions_are_needed(metric: Any, lacking: str) -> None:
    from dataclasses import replace

    changes: dict[str, Any] = {lacking: None}
    with pytest.raises(MissingEvidence, match=f"needs {lacking}"):
        metric().measure(replace(WORKED, **changes))


@pytest.mark.parametrize("metric", METRICS)
def test_a_typo_is_found_before_any_training(metric: Any) -> None:
    metric(attribute="categories", without=("B",)).check(WORKED)
    with pytest.raises(UnknownColumn) as caught:
        metric(attribute="category").check(WORKED)
    assert (caught.value.where, caught.value.remedy) == ("attribute", "did you mean categories?")
    with pytest.raises(UnknownColumn, match="no item has 'D'"):
        metric(without=("B", "D")).check(WORKED)


def test_more_items_than_there_are_cannot_be_named() -> None:
    from dataclasses import replace

    with pytest.raises(OutOfRange, match="only 4 items"):
        CategoryPrecision(k=5).measure(WORKED)
    with pytest.raises(OutOfRange, match="only 3 items"):
        CategoryPrecision(k=4).check(replace(WORKED, candidates=np.arange(4) < 3))
