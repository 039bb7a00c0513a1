"""Multinomial logistic regression, also as a linear probe of the states of an encoder."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, Matrix
from recbias.core.protocols import State
from recbias.core.stage_context import warn
from recbias.models.text.text_ranking import Blocks

MIN_RELATIVE_STD = 1e-5
"""Columns with a standard deviation below this share of the largest are taken as constant."""


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

    def state(self) -> State:
        """Return the arrays."""
        return {"weights": self.weights, "bias": self.bias}

    def log_probabilities(self, features: AnyArray | Matrix) -> AnyArray:
        """Return the log-probability of each class, ``float32 (b, c)``; features as in ``fit``."""
        from scipy.special import log_softmax

        return np.asarray(log_softmax(features @ self.weights + self.bias, axis=1))


def _minimize(
    features: AnyArray | Matrix, classes: AnyArray, strength: float, iterations: int
) -> tuple[AnyArray, AnyArray]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    regression = LogisticRegression(C=strength, max_iter=iterations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        regression.fit(features, classes)
    if regression.n_iter_.max() >= iterations:
        warn(f"the logistic regression has not converged after {iterations:,} iterations")
    return regression.coef_, regression.intercept_


def fit_probe(
    blocks: Blocks, classes: AnyArray, n_classes: int, *, strength: float, iterations: int
) -> SoftmaxRegression:
    """Fit a softmax regression on standardized states; return it for states that are not.

        p(class | h) = softmax(z W' + b'),    z = (h - mean) / std

    equals ``softmax(h W + b)`` with ``W = W' / std`` and ``b = b' - mean W``. Columns that are
    constant up to rounding are not divided by their standard deviation. The blocks hold positions
    of texts and their states ``h``, ``float32 (b, d)``; ``strength`` is that of
    ``SoftmaxRegression.fit``.

    Source:
        Alain and Bengio, "Understanding intermediate layers using linear classifier probes", ICLR
        2017 (workshop).
    """
    states = np.empty((classes.size, 0), dtype=np.float32)
    for rows, block in blocks:
        if not states.shape[1]:
            states = np.empty((classes.size, block.shape[1]), dtype=np.float32)
        states[rows] = block
    mean, std = states.mean(axis=0), states.std(axis=0)
    std[std <= MIN_RELATIVE_STD * std.max(initial=0.0)] = 1.0
    standardized = (states - mean) / std
    probe = SoftmaxRegression.fit(
        standardized, classes, n_classes, strength=strength, iterations=iterations
    )
    weights = probe.weights / std[:, None]
    return SoftmaxRegression(weights, probe.bias - mean @ weights)
