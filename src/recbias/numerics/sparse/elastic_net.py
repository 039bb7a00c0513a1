"""The non-negative elastic net of each column on all the others, by coordinate descent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from recbias.core.arrays import AnyArray, Matrix
from recbias.numerics.sparse.blocks import block_size, map_blocks, n_workers
from recbias.numerics.sparse.topk import largest

_ROWS = 64
"""Coordinates whose residual is worked out at once, by a matrix product."""

_WARM_UP = 3
"""Passes before columns are also solved exactly: by then most weights that end at 0 are there."""

_COMPACT = 0.05
"""Share of finished columns from which on they are put aside."""


@dataclass(frozen=True)
class Penalty:
    """What the objective of a column x_j adds to |x_j - X w|² / 2.

    Args:
        l1: Weight of the sum of ``w``.
        l2: Weight of half the squared length of ``w``.
    """

    l1: float
    l2: float


def elastic_net(
    gram: AnyArray,
    penalty: Penalty,
    *,
    keep: int,
    max_iter: int,
    tolerance: float,
    own: bool = False,
) -> tuple[Matrix, int]:
    """Return the weights with which the other columns of a matrix rebuild each column.

        minimise over w >= 0, w_j = 0:   |x_j - X w|² / 2 + l1 |w|₁ + l2 |w|² / 2

    Cyclic coordinate descent over all columns j at once, from w = 0. Between the later passes each
    column is solved exactly on its weights above 0, which the next pass then puts to the test.

    Args:
        gram: ``XᵀX``, ``float (n, n)``; its precision is that of the work.
        penalty: The penalties.
        keep: How many weights a column keeps, the largest.
        max_iter: Most passes over the coordinates.
        tolerance: A column is finished when no weight moved by more than this times the largest.
        own: Whether a column helps to rebuild itself: ``w_j`` need not be 0.

    Returns:
        CSR ``float32 (n, n)``, whose row j holds the weights of column j; and how many columns
        were not finished after ``max_iter`` passes.

    Source:
        Friedman, Hastie and Tibshirani, "Regularization Paths for Generalized Linear Models via
        Coordinate Descent", J. Stat. Softw. 33(1), 2010, section 2.2 (covariance updates).
    """
    from scipy.linalg.lapack import get_lapack_funcs
    from scipy.sparse import csr_array, vstack

    # loaded here: the blocks keep those libraries to one core each that are there when they start
    (posv,) = cast("Any", get_lapack_funcs(("posv",), (gram,)))
    work = _Work(gram, penalty, posv)

    def solved(start: int, stop: int) -> tuple[Matrix, int]:
        targets = np.arange(start, stop, dtype=np.int32)
        products = np.take(gram, targets, axis=1)
        if not own:
            products[targets, np.arange(targets.size)] = -np.inf
        weights, missed = _descend(work, products, max_iter=max_iter, tolerance=tolerance)
        return _largest(weights.T, keep), missed

    n = len(gram)
    size = min(block_size(4 * gram.itemsize * n), 1 + n // (2 * n_workers()))
    blocks = map_blocks(solved, n, size, what="elastic net")
    weights = [csr_array((0, n), dtype=np.float32), *(each for each, _ in blocks)]
    return vstack(weights, format="csr"), sum(missed for _, missed in blocks)


@dataclass(frozen=True, eq=False)
class _Work:
    """What all columns are solved with.

    Args:
        gram: ``XᵀX``, ``float (n, n)``.
        penalty: The penalties.
        solve: LAPACK's ``posv`` for numbers of that precision.
    """

    gram: AnyArray
    penalty: Penalty
    solve: Callable[[AnyArray, AnyArray], tuple[AnyArray, AnyArray, int]]


def _descend(
    work: _Work, products: AnyArray, *, max_iter: int, tolerance: float
) -> tuple[AnyArray, int]:
    """Return the weights of some target columns, ``(n, targets)``, and how many are unfinished.

    ``products`` are those of all columns with the targets, -inf where a weight must be 0.
    """
    found = np.zeros_like(products)
    left = np.arange(products.shape[1])
    weights = found.copy()
    for done in range(max_iter):
        if done >= _WARM_UP:
            _solve_supports(work, products, weights)
        moved = _pass(work.gram, products, weights, work.penalty)
        going = moved > tolerance * weights.max(axis=0)
        if going.mean() < 1 - _COMPACT or not going.any():
            found[:, left[~going]] = weights[:, ~going]
            left = left[going]
            products, weights = (np.compress(going, each, axis=1) for each in (products, weights))
        if not left.size:
            break
    found[:, left] = weights
    return found, int(left.size)


def _pass(gram: AnyArray, products: AnyArray, weights: AnyArray, penalty: Penalty) -> AnyArray:
    """Improve each coordinate once, in place; return how far the farthest moved, by column."""
    farthest = np.zeros(weights.shape[1], dtype=gram.dtype)
    for start in range(0, len(gram), _ROWS):
        rows = slice(start, start + _ROWS)
        residuals = products[rows] - gram[rows] @ weights
        inner = gram[rows, rows]
        for place, old in enumerate(weights[rows]):
            divisor = inner[place, place] + gram.dtype.type(penalty.l2)
            new = residuals[place] + inner[place, place] * old
            new -= gram.dtype.type(penalty.l1)
            np.maximum(new, 0, out=new)
            new /= divisor if divisor > 0 else 1
            step = new - old
            residuals[place + 1 :] -= np.multiply.outer(inner[place + 1 :, place], step)
            old[:] = new
            np.maximum(farthest, np.abs(step), out=farthest)
    return farthest


def _solve_supports(work: _Work, products: AnyArray, weights: AnyArray) -> None:
    """Solve each column exactly on its weights above 0, in place, where that is an improvement.

    One factorisation a column: the loop costs little beside it.
    """
    gram, penalty = work.gram, work.penalty
    for column in range(weights.shape[1]):
        support = np.flatnonzero(weights[:, column])
        if not support.size:
            continue
        inner = gram[np.ix_(support, support)]
        inner[np.diag_indices(support.size)] += gram.dtype.type(penalty.l2)
        target = products[support, column] - gram.dtype.type(penalty.l1)
        _, new, wrong = work.solve(inner, target)
        np.maximum(new, 0, out=new)
        old = weights[support, column]
        if not wrong and _objective(inner, target, new) <= _objective(inner, target, old):
            weights[support, column] = new


def _objective(inner: AnyArray, target: AnyArray, weights: AnyArray) -> float:
    return float(weights @ (inner @ weights) / 2 - target @ weights)


def _largest(weights: AnyArray, keep: int) -> Matrix:
    from scipy.sparse import csr_array

    columns, values = largest(weights, min(keep, weights.shape[1]))
    real = values > 0
    indptr = np.append(0, np.cumsum(np.count_nonzero(real, axis=1)))
    return csr_array((values[real], columns[real], indptr), shape=weights.shape)
