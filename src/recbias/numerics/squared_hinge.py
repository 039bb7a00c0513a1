"""The minimum of the squared hinge loss of a linear classifier, by Newton's method."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.numerics.directions import NOTHING

TOLERANCE = 1e-9
"""The minimum is reached where the next step is shorter than this share of the weights."""

_SHALLOW = 1e-10
"""Below this share of the curvature that of |w|²/2 is lost where squares are added up."""


def minimise_squared_hinge(
    rows: AnyArray, signs: AnyArray, cost: float, *, max_steps: int = 200
) -> tuple[FloatArray, bool]:
    """Return the weights of the least squared hinge loss, and whether the minimum was reached.

        minimise  |w|²/2 + C Σ_i max(0, 1 - y_i w · x_i)²

    The objective is a quadratic between the places where a row joins or leaves those of loss above
    0. Each step goes to the least point of the line towards the minimum of the present quadratic;
    where that lies in it, it is the minimum, whatever the scale of the rows. Where there are more
    dimensions than rows, all is done in the space that the rows span.

    Args:
        rows: x, ``(n, d)``; a constant column is an intercept, which counts in |w|².
        signs: y, 1 or -1, ``[n]``.
        cost: C.
        max_steps: After how many steps it is stopped.

    Returns:
        ``float64[d]``; 0 where the sum of all y_i x_i is.

    Source:
        Keerthi and DeCoste, "A modified finite Newton method for fast solution of large scale
        linear SVMs", JMLR 6, 2005, sections 2 and 3.

    >>> rows, signs = np.array([[1.0], [-1.0]]), np.array([1, -1])
    >>> weights, is_minimum = minimise_squared_hinge(rows, signs, 1.0)
    >>> round(float(weights[0]), 12), is_minimum  # w - 4 (1 - w) = 0
    (0.8, True)
    """
    signed = np.asarray(rows, dtype=np.float64) * np.asarray(signs, dtype=np.float64)[:, None]
    scale = np.abs(signed).max(initial=0.0)
    if np.abs(signed.mean(axis=0)).max(initial=0.0) <= NOTHING * scale:
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
        weights = weights + _best_length(slack, signed @ step, slope, curvature) * step
        slack = 1.0 - signed @ weights
    return weights, False


def _newton_step(
    signed: FloatArray, slack: FloatArray, weights: FloatArray, ridge: float
) -> FloatArray:
    """Return the way to the minimum of the quadratic that holds at these weights."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

    lossy: BoolArray = slack > 0
    active = signed[lossy]
    d = weights.size
    curvature = active.T @ active
    if ridge > _SHALLOW * float(np.trace(curvature)):
        curvature[np.diag_indices(d)] += ridge
        try:
            factor = cho_factor(curvature, check_finite=False)
        except LinAlgError:
            pass
        else:
            downhill = active.T @ slack[lossy] - ridge * weights
            return np.asarray(cho_solve(factor, downhill, check_finite=False))
    root = np.sqrt(ridge)  # the squares that would be lost are not formed
    stacked = np.concatenate([active, root * np.eye(d)])
    wanted = np.concatenate([slack[lossy], -root * weights])
    return np.asarray(lstsq(stacked, wanted, check_finite=False)[0])


def _best_length(slack: FloatArray, moved: FloatArray, slope: float, curvature: float) -> float:
    """Return the t >= 0 of least ``slope t + curvature t²/2 + Σ max(0, slack - t moved)²/2``.

    Its derivative rises along straight pieces, which meet where a row's loss becomes 0 or begins.
    """
    lossy = slack > 0
    crosses = np.flatnonzero(np.where(lossy, moved > 0, moved < 0))
    ends = slack[crosses] / moved[crosses]
    order = np.argsort(ends, kind="stable")
    crosses, ends = crosses[order], ends[order]
    joins = np.where(lossy[crosses], -1.0, 1.0)
    at_0 = slope - float(moved[lossy] @ slack[lossy])
    bend = curvature + float(moved[lossy] @ moved[lossy])
    starts = np.append(0.0, ends)
    levels = np.append(at_0, at_0 - np.cumsum(joins * moved[crosses] * slack[crosses]))
    bends = np.append(bend, bend + np.cumsum(joins * moved[crosses] ** 2))
    rising = levels[:-1] + bends[:-1] * ends >= 0
    piece = int(np.argmax(rising)) if rising.any() else ends.size
    length = -levels[piece] / max(bends[piece], curvature)
    return float(np.clip(length, starts[piece], np.append(ends, np.inf)[piece]))
