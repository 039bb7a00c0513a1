from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import fbeta_score

from recbias.core.context import collect_warnings
from recbias.core.evidence import Evidence
from recbias.core.measures import Measurement
from recbias.metrics.accuracy import (
    ClassPrecision,
    count_classes,
    f_measure,
    require_predictions,
    warn_of_unknown_items,
)
from support.worlds.texts.review_worlds import make_review_evidence, rank_items, sample_reviews


def measure_weighted_f(evidence: Evidence, *, alpha: float) -> list[Measurement]:
    metric = type("WeightedF", (ClassPrecision,), {"alpha": alpha})()
    return list(metric.measure(evidence))


def test_each_review_counts_its_class_its_prediction_and_its_hit() -> None:
    # classes 1 and 4 have reviews; the third review is predicted as 0, which has none
    of = make_review_evidence([1, 4, 4], [[1, 4, 0], [1, 4, 0], [0, 1, 4]])
    counts = count_classes(require_predictions(of)).toarray()
    assert counts.tolist() == [
        # class 1, 4 | predicted 1, 4 | correct 1, 4
        [1, 0, 1, 0, 1, 0],
        [0, 1, 1, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
    ]


def test_the_predicted_class_may_follow_the_last_class_with_reviews() -> None:
    assert count_classes(
        require_predictions(make_review_evidence([0], [[4, 0]]))
    ).toarray().tolist() == [[1, 0, 0]]


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [
        # classes of 2 and 1 reviews, predicted 1 and 0 times, 1 and 0 correctly
        (1.0, 2 / 3),  # precisions 1 and 0 (never predicted)
        (0.0, 1 / 3),  # recalls 1/2 and 0
        (0.5, 4 / 9),  # F1 2/3 and 0
    ],
)
def test_f_measure_of_two_classes(alpha: float, expected: float) -> None:
    score = f_measure(np.array([2, 1, 1, 0, 1, 0]), alpha)
    assert float(score) == pytest.approx(expected)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_alpha_is_one_over_one_and_beta_squared(beta: float) -> None:
    items, scores = sample_reviews(1, 200, 12)
    ranked = rank_items(scores)
    (measurement,) = measure_weighted_f(
        make_review_evidence(items, ranked, n_items=12), alpha=1 / (1 + beta**2)
    )
    other = fbeta_score(items, ranked[:, 0], beta=beta, average="weighted", zero_division=0)
    assert measurement.value == pytest.approx(other, rel=1e-12)


def test_replicates_equal_the_measure_of_resampled_reviews() -> None:
    items, scores = sample_reviews(2, 30, 6)
    ranked = rank_items(scores)
    world = make_review_evidence(items, ranked, n_items=6, n_bootstrap=40, bootstrap_seed=11)
    (measurement,) = measure_weighted_f(world, alpha=0.5)
    rng, expected = np.random.default_rng(11), []
    for _ in range(40):
        sample = rng.integers(30, size=30)
        (estimate,) = measure_weighted_f(
            make_review_evidence(items[sample], ranked[sample], n_items=6), alpha=0.5
        )
        expected.append(estimate.value)
    assert measurement.replicates == pytest.approx(np.array(expected), rel=1e-12)
    half = 1.959963984540054 * float(np.std(expected, ddof=1))
    assert measurement.ci_low == pytest.approx(measurement.value - half, rel=1e-9)
    assert measurement.ci_high == pytest.approx(measurement.value + half, rel=1e-9)
    assert (measurement.n, measurement.undefined, measurement.units) == (30, 0, None)


def test_the_measure_without_reviews_is_undefined() -> None:
    (measurement,) = measure_weighted_f(make_review_evidence([], np.empty((0, 3))), alpha=1.0)
    assert math.isnan(measurement.value)
    assert (measurement.n, measurement.undefined) == (0, 0)
    assert measurement.replicates is not None
    assert np.isnan(measurement.replicates).all()


def test_a_warning_counts_reviews_of_items_without_training_rows() -> None:
    world = make_review_evidence([0, 4, 4], [[0, 1]] * 3)
    with collect_warnings() as messages:
        warn_of_unknown_items(world, require_predictions(world))
        warn_of_unknown_items(
            make_review_evidence([0], [[0, 1]]),
            require_predictions(make_review_evidence([0], [[0, 1]])),
        )
    reason = "no model can predict items without training rows"
    assert messages == [f"the metric: 2 reviews are misses, because {reason}"]
