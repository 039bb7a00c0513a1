"""Sensitivity: how wrong an assumption must be for a conclusion to turn."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from recbias.core.dataset import FloatArray


def bound_ratio(weights: FloatArray, rewards: FloatArray, factor: float) -> tuple[float, float]:
    """Return the least and the largest self-normalised mean under wrong propensities.

        max and min of  Σ λ w r / Σ λ w   over all  1/Γ ≤ λ_i ≤ Γ

    where each true propensity is between p / Γ and p Γ. At the maximum λ is Γ for the rewards
    above a threshold and 1/Γ for the others, so that it is found exactly among the sorted rewards.

    Args:
        weights: w = π / p of each row, or their sum over the rows with the same reward.
        rewards: r.
        factor: Γ, 1 or more.

    >>> low, high = bound_ratio(np.array([1.0, 3.0]), np.array([1.0, 0.0]), 2.0)
    >>> round(low, 4), round(high, 4)  # (1/2) / (1/2 + 6) and 2 / (2 + 3/2)
    (0.0769, 0.5714)

    Undefined (NaN) without a positive weight.

    Source:
        Tan, "A distributional approach for causal inference using propensity scores", JASA 2006;
        Zhao, Small and Bhattacharya, "Sensitivity analysis for inverse probability weighting
        estimators via the percentile bootstrap", JRSS B 2019.
    """
    return -_find_largest(weights, -rewards, factor), _find_largest(weights, rewards, factor)


def _find_largest(weights: FloatArray, rewards: FloatArray, factor: float) -> float:
    order = np.argsort(-rewards, kind="stable")
    terms = np.stack([weights * rewards, weights])[:, order]
    above = np.concatenate([np.zeros((2, 1)), np.cumsum(terms, axis=1)], axis=1)
    numerators, denominators = factor * above + (above[:, -1:] - above) / factor
    if not denominators[0] > 0:
        return math.nan
    return float((numerators / denominators).max())


def weigh_worst(rewards: FloatArray, bound: float, factor: float, *, highest: bool) -> FloatArray:
    """Return the factors λ of the rows at a bound of ``bound_ratio``."""
    is_raised = rewards > bound if highest else rewards < bound
    return np.where(is_raised, factor, 1.0 / factor)


def find_turn(gap: Callable[[float], float], low: float, high: float) -> float:
    """Return the least x from ``low`` to ``high`` at which a gap has no longer its sign at low.

    The first change of sign on 200 steps is refined by bisection. NaN if there is none, or if the
    gap is 0 or undefined at ``low``.

    >>> round(find_turn(lambda x: 3.0 - x, 1.0, 10.0), 6)
    3.0
    """
    sign = np.sign(gap(low))
    if not sign * sign > 0:
        return math.nan
    left = low
    for right in np.linspace(low, high, 201)[1:].tolist():
        if not gap(right) * sign > 0:
            break
        left = right
    else:
        return math.nan
    while right - left > 1e-9 * max(abs(right), 1.0):
        middle = (left + right) / 2.0
        left, right = (middle, right) if gap(middle) * sign > 0 else (left, middle)
    return float(right)
