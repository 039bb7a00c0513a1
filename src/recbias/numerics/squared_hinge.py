"""Linear classification by the squared hinge loss, fitted by Newton's method."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.numerics.directions import ZERO_TOLERANCE

TOLERANCE = 1e-9
"""Converged when the length of a step, relative to the weights, is at most this."""

_MIN_RELATIVE_RIDGE = 1e-10
"""A ridge below this share of the curvature is lost to rounding in the normal equations."""


def minimize_squared_hinge(
    rows: AnyArray, signs: AnyArray, cost: float, *, max_steps: int = 200
) -> tuple[FloatArray, bool]:
    """Return the weights that minimise the squared hinge loss, and whether they converged.

        minimise  |w|²/2 + C Σ_i max(0, 1 - y_i w · x_i)²

    The objective is piecewise quadratic: the pieces differ in the rows that have a positive loss.
    Each Newton step minimises the current quadratic and is followed by an exact line search. With
    more dimensions than rows the problem is solved in the span of the rows. The weights,
    ``float64[d]``, are 0 if the sum of all y_i x_i is 0.

    Args:
        rows: x, ``(n, d)``; a constant column is an intercept, which |w|² penalises too.
        signs: y, 1 or -1, ``[n]``.
        cost: C.
        max_steps: Maximum number of Newton steps.

    Source:
        Keerthi and DeCoste, "A modified finite Newton method for fast solution of large scale
        linear SVMs", JMLR 6, 2005, sections 2 and 3.

    >>> rows, signs = np.array([[1.0], [-1.0]]), np.array([1, -1])
    >>> weights, is_minimum = minimize_squared_hinge(rows, signs, 1.0)
    >>> round(float(weights[0]), 12), is_minimum  # w - 4 (1 - w) = 0
    (0.8, True)
    """
    signed = np.asarray(rows, dtype=np.float64) * np.asarray(signs, dtype=np.float64)[:, None]
    scale = np.abs(signed).max(initial=0.0)
    if np.abs(signed.mean(axis=0)).max(initial=0.0) <= ZERO_TOLERANCE * scale:
        return np.zeros(signed.shape[1]), True
    signed /= scale
    ridge = 1.0 / scale / scale / (2.0 * cost)
    if signed.shape[0] >= signed.shape[1]:
        weights, is_minimum = _descend(signed, ridge, max_steps)
    else:
        basis, coordinates = np.linalg.qr(signed.T)
        inner, is_minimum = _descend(coordinates.T, ridge, max_steps)
        weights = basis @ inner
    return np.asarray(weights / scale), is_minimum


def _descend(signed: FloatArray, ridge: float, max_steps: int) -> tuple[FloatArray, bool]:
    """Minimise ``ridge |v|²/2 + Σ_i max(0, 1 - v · s_i)²/2`` over the rows ``s_i``."""
    weights, slack = np.zeros(signed.shape[1]), np.ones(len(signed))
    for _ in range(max_steps):
        step = _newton_step(signed, slack, weights, ridge)
        if np.linalg.norm(step) <= TOLERANCE * np.linalg.norm(weights):
            return weights, True
        slope, curvature = ridge * float(weights @ step), ridge * float(step @ step)
        weights = weights + _search_line(slack, signed @ step, slope, curvature) * step
        slack = 1.0 - signed @ weights
    return weights, False


def _newton_step(
    signed: FloatArray, slack: FloatArray, weights: FloatArray, ridge: float
) -> FloatArray:
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

    active: BoolArray = slack > 0
    rows = signed[active]
    d = weights.size
    curvature = rows.T @ rows
    if ridge > _MIN_RELATIVE_RIDGE * float(np.trace(curvature)):
        curvature[np.diag_indices(d)] += ridge
        try:
            factor = cho_factor(curvature, check_finite=False)
        except LinAlgError:
            pass
        else:
            negative_gradient = rows.T @ slack[active] - ridge * weights
            return np.asarray(cho_solve(factor, negative_gradient, check_finite=False))
    # least squares on stacked rows: the normal equations would lose the ridge to rounding
    root = np.sqrt(ridge)
    stacked = np.concatenate([rows, root * np.eye(d)])
    targets = np.concatenate([slack[active], -root * weights])
    return np.asarray(lstsq(stacked, targets, check_finite=False)[0])


def _search_line(slack: FloatArray, change: FloatArray, slope: float, curvature: float) -> float:
    """Return the t >= 0 of least ``slope t + curvature t²/2 + Σ max(0, slack - t change)²/2``.

    The pieces of the derivative, increasing and linear, meet where a loss becomes 0 or positive.
    """
    active = slack > 0
    crossing = np.flatnonzero(np.where(active, change > 0, change < 0))
    stops = slack[crossing] / change[crossing]
    order = np.argsort(stops, kind="stable")
    crossing, stops = crossing[order], stops[order]
    signs = np.where(active[crossing], -1.0, 1.0)
    slope_at_0 = slope - float(change[active] @ slack[active])
    curvature_at_0 = curvature + float(change[active] @ change[active])
    starts = np.append(0.0, stops)
    slope_steps = np.cumsum(signs * change[crossing] * slack[crossing])
    slopes = np.append(slope_at_0, slope_at_0 - slope_steps)
    curvature_steps = np.cumsum(signs * change[crossing] ** 2)
    curvatures = np.append(curvature_at_0, curvature_at_0 + curvature_steps)
    reaches_0 = slopes[:-1] + curvatures[:-1] * stops >= 0
    piece = int(np.argmax(reaches_0)) if reaches_0.any() else stops.size
    length = -slopes[piece] / max(curvatures[piece], curvature)
    return float(np.clip(length, starts[piece], np.append(stops, np.inf)[piece]))
