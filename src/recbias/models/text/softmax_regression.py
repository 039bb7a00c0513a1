"""Multinomial logistic regression: log-chances of classes that are linear in features."""

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
        bias: b, ``float32[c]``; -inf for a class that nothing was learned of.
    """

    weights: AnyArray
    bias: AnyArray

    @classmethod
    def learned(
        cls,
        features: AnyArray | Matrix,
        wanted: AnyArray,
        n_classes: int,
        *,
        strength: float,
        iterations: int,
    ) -> SoftmaxRegression:
        """Return the classifier with the least loss, by L-BFGS.

            |W|² / 2 + C Σ_n -log p(wanted_n | x_n)

        A class that nothing is of has no chance. A search that was stopped is a warning.

        Args:
            features: x, dense or CSR, ``float32 (n, d)``.
            wanted: The class of each row, ``int64[n]``.
            n_classes: How many classes there are.
            strength: C, how much a row weighs beside the size of the weights.
            iterations: Steps of L-BFGS, at most.
        """
        present = np.unique(wanted)
        weights = np.zeros((features.shape[1], n_classes), dtype=np.float32)
        bias = np.full(n_classes, -np.inf, dtype=np.float32)
        bias[present] = 0.0
        if present.size > 1:
            found, level = _minimised(features, wanted, strength, iterations)
            weights[:, present[-len(found) :]] = found.T
            bias[present[-len(found) :]] = level
        return cls(weights, bias)

    @classmethod
    def restored(cls, state: State) -> SoftmaxRegression:
        """Return the classifier of a stored state."""
        return cls(state["weights"], state["bias"])

    def state(self) -> State:
        """Return the arrays."""
        return {"weights": self.weights, "bias": self.bias}

    def log_chances(self, features: AnyArray | Matrix) -> AnyArray:
        """Return the log-chance of each class, ``float32 (b, c)``.

        Args:
            features: x, dense or CSR, ``float32 (b, d)``.
        """
        from scipy.special import log_softmax

        found: AnyArray = log_softmax(features @ self.weights + self.bias, axis=1)
        return found


def _minimised(
    features: AnyArray | Matrix, wanted: AnyArray, strength: float, iterations: int
) -> tuple[AnyArray, AnyArray]:
    """Return weights ``(c, d)`` and bias of each class; of two classes those of the second."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=strength, max_iter=iterations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(features, wanted)
    if model.n_iter_.max() >= iterations:
        warn(f"the logistic regression was stopped after {iterations:,} iterations")
    return model.coef_, model.intercept_
