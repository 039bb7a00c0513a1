from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import log_softmax

from recbias.core.stage_context import collect_warnings
from recbias.models.text.softmax_regression import SoftmaxRegression

FEATURES = np.random.default_rng(5).normal(size=(40, 3)).astype(np.float32)
WANTED = np.digitize(FEATURES[:, 0] + 0.5 * FEATURES[:, 1], [-0.6, 0.6])


def test_the_loss_is_the_least() -> None:
    # a second minimiser of |W|²/2 + C Σ -log p, by the definition and numeric gradients
    def loss(flat: np.ndarray) -> float:
        weights, bias = flat[:9].reshape(3, 3), flat[9:]
        chances = log_softmax(FEATURES @ weights + bias, axis=1)
        return float((weights**2).sum() / 2 - 2.0 * chances[np.arange(40), WANTED].sum())

    best = minimize(loss, np.zeros(12), tol=1e-10)
    found = SoftmaxRegression.learned(FEATURES, WANTED, 3, strength=2.0, iterations=500)
    np.testing.assert_allclose(found.weights, best.x[:9].reshape(3, 3), atol=2e-3)
    expected = log_softmax(FEATURES @ best.x[:9].reshape(3, 3) + best.x[9:], axis=1)
    np.testing.assert_allclose(found.log_chances(FEATURES), expected, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("wanted", [[0, 2] * 20, [2] * 40, [0, 1, 2, 3] * 10])
def test_classes_that_nothing_is_of_have_no_chance(wanted: list[int]) -> None:
    found = SoftmaxRegression.learned(
        FEATURES, np.array(wanted), 4, strength=1.0, iterations=300
    ).log_chances(FEATURES)
    assert found.dtype == np.float32
    present = np.isin(np.arange(4), wanted)
    assert np.isneginf(found[:, ~present]).all()
    assert np.isfinite(found[:, present]).all()
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1, atol=1e-5)


def test_two_classes_are_told_apart_the_right_way_round() -> None:
    wanted = np.where(FEATURES[:, 0] > 0, 3, 1)
    found = SoftmaxRegression.learned(FEATURES, wanted, 5, strength=10.0, iterations=300)
    assert (found.log_chances(FEATURES).argmax(axis=1) == wanted).mean() > 0.9


def test_sparse_features_are_the_same_features() -> None:
    dense = SoftmaxRegression.learned(FEATURES, WANTED, 3, strength=1.0, iterations=300)
    sparse = csr_array(FEATURES)
    found = SoftmaxRegression.learned(sparse, WANTED, 3, strength=1.0, iterations=300)
    np.testing.assert_allclose(found.log_chances(sparse), dense.log_chances(FEATURES), atol=1e-3)


def test_it_is_stored() -> None:
    learned = SoftmaxRegression.learned(FEATURES, WANTED, 3, strength=1.0, iterations=300)
    again = SoftmaxRegression.restored(learned.state())
    np.testing.assert_array_equal(again.log_chances(FEATURES), learned.log_chances(FEATURES))


def test_a_search_that_was_stopped_is_noted() -> None:
    with collect_warnings() as notes:
        SoftmaxRegression.learned(FEATURES, WANTED, 3, strength=100.0, iterations=1)
    assert notes == ["the logistic regression was stopped after 1 iterations"]
