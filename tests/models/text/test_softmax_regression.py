from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from recbias.models.text_probes import SoftmaxRegression

FEATURES = np.random.default_rng(5).normal(size=(40, 3)).astype(np.float32)
CLASSES = np.digitize(FEATURES[:, 0] + 0.5 * FEATURES[:, 1], [-0.6, 0.6])


def test_fit_minimizes_the_penalized_loss() -> None:
    # a second minimiser of |W|²/2 + C Σ -log p, by the definition and numeric gradients
    def loss(flat: np.ndarray) -> float:
        weights, bias = flat[:9].reshape(3, 3), flat[9:]
        chances = log_softmax(FEATURES @ weights + bias, axis=1)
        return float((weights**2).sum() / 2 - 2.0 * chances[np.arange(40), CLASSES].sum())

    minimum = minimize(loss, np.zeros(12), tol=1e-10)
    regression = SoftmaxRegression.fit(FEATURES, CLASSES, 3, strength=2.0, iterations=500)
    np.testing.assert_allclose(regression.weights, minimum.x[:9].reshape(3, 3), atol=2e-3)
    expected = log_softmax(FEATURES @ minimum.x[:9].reshape(3, 3) + minimum.x[9:], axis=1)
    np.testing.assert_allclose(
        regression.log_probabilities(FEATURES), expected, rtol=2e-3, atol=1e-3
    )


@pytest.mark.parametrize("classes", [[0, 2] * 20, [2] * 40, [0, 1, 2, 3] * 10])
def test_classes_without_rows_have_probability_zero(classes: list[int]) -> None:
    regression = SoftmaxRegression.fit(
        FEATURES, np.array(classes), 4, strength=1.0, iterations=300
    ).log_probabilities(FEATURES)
    assert regression.dtype == np.float32
    present = np.isin(np.arange(4), classes)
    assert np.isneginf(regression[:, ~present]).all()
    assert np.isfinite(regression[:, present]).all()
    np.testing.assert_allclose(np.exp(regression).sum(axis=1), 1, atol=1e-5)
