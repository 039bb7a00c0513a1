from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import fbeta_score

from recbias.core.stage_context import collect_warnings
from recbias.metrics.accuracy.class_counts import class_counts, f_measure, say_unknown, weighted
from recbias.metrics.accuracy.named_items import named
from support.review_worlds import make_review_evidence, rank_items, sample_reviews


def test_a_review_counts_for_its_class_the_one_named_and_the_one_named_rightly() -> None:
    # classes 1 and 4 have reviews; the third review is told to be of 0, which has none
    of = make_review_evidence([1, 4, 4], [[1, 4, 0], [1, 4, 0], [0, 1, 4]])
    found = class_counts(named(of)).toarray()
    assert found.tolist() == [
        # class 1, 4 | named 1, 4 | rightly 1, 4
        [1, 0, 1, 0, 1, 0],
        [0, 1, 1, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
    ]


def test_a_class_behind_the_last_one_with_a_review_may_be_named() -> None:
    assert class_counts(named(make_review_evidence([0], [[4, 0]]))).toarray().tolist() == [
        [1, 0, 0]
    ]


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [
        # classes of 2 and 1 reviews, named 1 and 0 times, 1 and 0 rightly
        (1.0, 2 / 3),  # precisions 1 and 0 (never named)
        (0.0, 1 / 3),  # recalls 1/2 and 0
        (0.5, 4 / 9),  # F1 2/3 and 0
    ],
)
def test_worked_example_of_f(alpha: float, expected: float) -> None:
    found = f_measure(np.array([2, 1, 1, 0, 1, 0]), alpha)
    assert float(found) == pytest.approx(expected)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_alpha_is_one_over_one_and_beta_squared(beta: float) -> None:
    items, scores = sample_reviews(1, 200, 12)
    ranked = rank_items(scores)
    (found,) = weighted(make_review_evidence(items, ranked, n_items=12), alpha=1 / (1 + beta**2))
    other = fbeta_score(items, ranked[:, 0], beta=beta, average="weighted", zero_division=0)
    assert found.value == pytest.approx(other, rel=1e-12)


def test_samples_are_the_figure_of_resampled_reviews() -> None:
    items, scores = sample_reviews(2, 30, 6)
    ranked = rank_items(scores)
    world = make_review_evidence(items, ranked, n_items=6, n_bootstrap=40, bootstrap_seed=11)
    (found,) = weighted(world, alpha=0.5)
    draws, expected = np.random.default_rng(11), []
    for _ in range(40):
        sample = draws.integers(30, size=30)
        (each,) = weighted(
            make_review_evidence(items[sample], ranked[sample], n_items=6), alpha=0.5
        )
        expected.append(each.value)
    assert found.replicates == pytest.approx(np.array(expected), rel=1e-12)
    half = 1.959963984540054 * float(np.std(expected, ddof=1))
    assert found.ci_low == pytest.approx(found.value - half, rel=1e-9)
    assert found.ci_high == pytest.approx(found.value + half, rel=1e-9)
    assert (found.n, found.undefined, found.units) == (30, 0, None)


def test_no_review_is_undefined() -> None:
    (found,) = weighted(make_review_evidence([], np.empty((0, 3))), alpha=1.0)
    assert math.isnan(found.value)
    assert (found.n, found.undefined) == (0, 0)
    assert found.replicates is not None
    assert np.isnan(found.replicates).all()


def test_reviews_of_items_that_cannot_be_named_are_said() -> None:
    world = make_review_evidence([0, 4, 4], [[0, 1]] * 3)
    with collect_warnings() as notes:
        say_unknown(world, named(world))
        say_unknown(
            make_review_evidence([0], [[0, 1]]), named(make_review_evidence([0], [[0, 1]]))
        )
    what = "are of items without a training row, which no model can name, and are misses"
    assert notes == [f"the metric: 2 reviews {what}"]
