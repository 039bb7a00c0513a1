"""Multinomial logistic regression."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, Matrix
from recbias.core.protocols import State
from recbias.core.stage_context import warn


@dataclass(frozen=True, eq=False)
class SoftmaxRegression:
    """The classifier ``log softmax(x W + b)``.

    Args:
        weights: W, ``float32 (d, c)``.
        bias: b, ``float32[c]``; -inf for a class without training rows.
    """

    weights: AnyArray
    bias: AnyArray

    @classmethod
    def fit(
        cls,
        features: AnyArray | Matrix,
        classes: AnyArray,
        n_classes: int,
        *,
        strength: float,
        iterations: int,
    ) -> SoftmaxRegression:
        """Minimize the penalized cross-entropy by L-BFGS, where ``strength`` is C.

            |W|² / 2 + C Σ_n -log p(class_n | x_n)

        A class without training rows has probability 0. A warning reports a search that reached
        the maximum number of iterations. ``features`` is x, dense or CSR, ``float32 (n, d)``, and
        ``classes`` is ``int64[n]``.
        """
        present = np.unique(classes)
        weights = np.zeros((features.shape[1], n_classes), dtype=np.float32)
        bias = np.full(n_classes, -np.inf, dtype=np.float32)
        bias[present] = 0.0
        if present.size > 1:
            coefficients, intercepts = _minimize(features, classes, strength, iterations)
            # for two classes scikit-learn returns those of the second only
            weights[:, present[-len(coefficients) :]] = coefficients.T
            bias[present[-len(coefficients) :]] = intercepts
        return cls(weights, bias)

    @classmethod
    def from_state(cls, state: State) -> SoftmaxRegression:
        """Return the classifier of a stored state."""
        return cls(state["weights"], state["bias"])

    def state(self) -> State:
        """Return the arrays."""
        return {"weights": self.weights, "bias": self.bias}

    def log_probabilities(self, features: AnyArray | Matrix) -> AnyArray:
        """Return the log-probability of each class, ``float32 (b, c)``; features as in ``fit``."""
        from scipy.special import log_softmax

        log_probabilities: AnyArray = log_softmax(features @ self.weights + self.bias, axis=1)
        return log_probabilities


def _minimize(
    features: AnyArray | Matrix, classes: AnyArray, strength: float, iterations: int
) -> tuple[AnyArray, AnyArray]:
    """Return the coefficients ``(c, d)`` and intercepts of scikit-learn's regression."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    regression = LogisticRegression(C=strength, max_iter=iterations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        regression.fit(features, classes)
    if regression.n_iter_.max() >= iterations:
        warn(f"the logistic regression has not converged after {iterations:,} iterations")
    return regression.coef_, regression.intercept_
