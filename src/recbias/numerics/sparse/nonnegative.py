"""Quadratic programs over non-negative weights, of a few thousand weights at most."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray

_MAX_PIVOTS = 20
"""Most changes of the set of free weights; about four suffice."""

_MAX_STEPS = 100
"""Most steps of conjugate gradients between them; 10 to 20 suffice for usual penalties."""

_SLACK = 1e-5
"""Share of the objective by which rounding may raise it."""

_ALONE = 1.02
"""Factor of the largest weight that a solution may have, for one that is not quite exact."""

_ROUGH = 100
"""Factor of the tolerance before the free weights are known."""


def solve_nonnegative(
    matrix: AnyArray, target: AnyArray, weights: AnyArray, tolerance: float
) -> AnyArray:
    """Return the weights that minimise a convex quadratic function.

        minimise over w >= 0:   wᵀ H w / 2 - t · w

    Block pivoting: the weights that are not free are 0; the free ones are solved by conjugate
    gradients, those below 0 are then fixed at 0, and those that would increase are free again. The
    weights may be less exact if ``H`` is nearly singular, so the caller checks them.

    Args:
        matrix: ``H``, symmetric with a diagonal above 0, ``float (n, n)``.
        target: ``t``, ``float[n]``.
        weights: Weights to start from, 0 or more, ``float[n]``.
        tolerance: Stop when no weight would change by more than this times the largest one if it
            alone were changed.

    Source:
        Portugal, Júdice and Vicente, "A Comparison of Block Pivoting and Interior-Point Algorithms
        for Linear Least Squares Problems with Nonnegative Variables", Math. Comp. 63(208), 1994.

    >>> solve_nonnegative(np.array([[2.0, 1], [1, 2]]), np.array([3.0, 1]), np.zeros(2), 1e-9)
    array([1.5, 0. ])
    """
    divisors = matrix.diagonal()
    residual, is_rough = target - matrix @ weights, True
    is_free = (weights > 0) | (residual > 0)
    for _ in range(_MAX_PIVOTS):
        largest = weights.max() if weights.any() else (residual / divisors).max(initial=0)
        limit = tolerance * largest
        length = limit * divisors.min() * (_ROUGH if is_rough else 1)
        weights = weights + _solve_free(matrix, residual, is_free, length)
        is_negative = weights < 0
        weights[is_negative] = 0
        residual = target - matrix @ weights
        enters = ~is_free & (residual > limit * divisors)
        is_known = not (is_negative.any() or enters.any())
        if is_known and not is_rough:
            break
        is_rough = not is_known
        is_free = (is_free & ~is_negative) | enters
    return weights


def is_improvement(matrix: AnyArray, target: AnyArray, before: AnyArray, after: AnyArray) -> bool:
    """Return whether weights have an objective that is not above that of others.

    Where ``H`` is not negative, no weight of the best is above what it would be if all others were
    0. Weights above that come from steps along a direction in which ``H`` is flat: their objective
    has no digits left to be compared.

    >>> ones, target = np.ones((2, 2)), np.array([0.5, 0.5])
    >>> zeros, halves, large = np.zeros(2), np.array([0.25, 0.25]), np.array([9e9, -9e9])
    >>> is_improvement(ones, target, zeros, halves), is_improvement(ones, target, zeros, large)
    (True, False)
    """
    if matrix.min() >= 0 and (after * matrix.diagonal() > _ALONE * np.maximum(target, 0)).any():
        return False
    old, new = ((matrix @ weights / 2 - target) @ weights for weights in (before, after))
    return bool(new <= old + _SLACK * abs(old))


def _solve_free(
    matrix: AnyArray, residual: AnyArray, is_free: AnyArray, length: float
) -> AnyArray:
    """Return the step of the free weights that shortens their residual to a length."""
    mask, flat = is_free.astype(matrix.dtype), np.finfo(matrix.dtype).eps * matrix.diagonal().max()
    residual = residual * mask
    step, direction, square = np.zeros_like(residual), residual.copy(), residual @ residual
    for _ in range(_MAX_STEPS):
        if square <= length**2:
            break
        product = matrix @ direction
        product *= mask
        curvature = direction @ product
        if curvature <= flat * (direction @ direction):  # or it is all rounding errors
            break
        step += square / curvature * direction
        product *= square / curvature
        residual -= product
        previous, square = square, residual @ residual
        direction *= square / previous
        direction += residual
    return step
