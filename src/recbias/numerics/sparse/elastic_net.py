"""Non-negative elastic net regression of each column on all others, by coordinate descent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from recbias.core.arrays import AnyArray, Matrix
from recbias.numerics.sparse.blocks import block_size, map_blocks, n_workers
from recbias.numerics.sparse.topk import select_largest

_BLOCK_ROWS = 64
"""Number of coordinates whose residuals are computed by one matrix product."""

_WARM_UP = 3
"""Passes before the supports are solved exactly; by then most final zeros have been reached."""

_SOLVE_COST = 32
"""Most operations of an exact solution, ``s³`` for a support of s, as a multiple of ``n²``.

A pass takes ``2 n²`` operations for a column and Cholesky's method ``s³ / 3``, so that a solution
costs about five passes at most. Of 19,550 books, some columns have a support of 10,000.
"""

_COMPACT = 0.05
"""Share of converged columns from which on they are removed from the work arrays."""


@dataclass(frozen=True)
class Penalty:
    """Weights of the sum, and of half the squared length, of ``w`` in the elastic net."""

    l1: float
    l2: float


def elastic_net(
    gram: AnyArray,
    penalty: Penalty,
    *,
    keep: int,
    max_iter: int,
    tolerance: float,
    allow_self: bool = False,
) -> tuple[Matrix, int]:
    """Return the weights that reconstruct each column of a matrix from the others.

        minimise over w >= 0, w_j = 0:   |x_j - X w|² / 2 + l1 |w|₁ + l2 |w|² / 2

    Cyclic coordinate descent over all columns j at once, from w = 0. Between the later passes,
    each column is solved exactly on its support (its weights above 0), unless that is large; the
    next pass checks it.

    Args:
        gram: ``XᵀX``, ``float (n, n)``; its precision is used throughout.
        penalty: The penalties.
        keep: Maximum number of weights per column, the largest.
        max_iter: Maximum number of passes over the coordinates.
        tolerance: A column has converged if no weight changed by more than this times its largest.
        allow_self: Whether a column may reconstruct itself, that is, ``w_j`` need not be 0.

    Returns:
        CSR ``float32 (n, n)``, whose row j holds the weights of column j; and the number of
        columns that have not converged after ``max_iter`` passes.

    Source:
        Friedman, Hastie and Tibshirani, "Regularization Paths for Generalized Linear Models via
        Coordinate Descent", J. Stat. Softw. 33(1), 2010, section 2.2 (covariance updates).
    """
    from scipy.linalg.lapack import get_lapack_funcs
    from scipy.sparse import csr_array, vstack

    # LAPACK must be loaded before map_blocks limits the loaded libraries to one core
    (posv,) = cast("Any", get_lapack_funcs(("posv",), (gram,)))
    problem = _Problem(gram, penalty, posv)

    def solve_block(start: int, stop: int) -> tuple[Matrix, int]:
        targets = np.arange(start, stop, dtype=np.int32)
        products = np.take(gram, targets, axis=1)
        if not allow_self:
            products[targets, np.arange(targets.size)] = -np.inf
        weights, n_unconverged = _descend(problem, products, max_iter, tolerance)
        return _select_weights(weights.T, keep), n_unconverged

    n = len(gram)
    size = min(block_size(4 * gram.itemsize * n), 1 + n // (2 * n_workers()))
    blocks = map_blocks(solve_block, n, size, label="elastic net")
    weights = [csr_array((0, n), dtype=np.float32), *(rows for rows, _ in blocks)]
    return vstack(weights, format="csr"), sum(count for _, count in blocks)


@dataclass(frozen=True, eq=False)
class _Problem:
    """What the problems of all columns share; ``solve`` is LAPACK's ``posv``."""

    gram: AnyArray
    penalty: Penalty
    solve: Callable[[AnyArray, AnyArray], tuple[AnyArray, AnyArray, int]]


def _descend(
    problem: _Problem, products: AnyArray, max_iter: int, tolerance: float
) -> tuple[AnyArray, int]:
    """Return the weights of target columns, ``(n, targets)``, and how many have not converged.

    ``products`` are the products of all columns with the targets, -inf where a weight must be 0.
    """
    solution = np.zeros_like(products)
    active = np.arange(products.shape[1])
    weights = solution.copy()
    for n_passes in range(max_iter):
        if n_passes >= _WARM_UP:
            _solve_supports(problem, products, weights)
        change = _update_coordinates(problem.gram, products, weights, problem.penalty)
        continues = change > tolerance * weights.max(axis=0)
        if continues.mean() < 1 - _COMPACT or not continues.any():
            solution[:, active[~continues]] = weights[:, ~continues]
            active = active[continues]
            products, weights = (np.compress(continues, x, axis=1) for x in (products, weights))
        if not active.size:
            break
    solution[:, active] = weights
    return solution, int(active.size)


def _update_coordinates(
    gram: AnyArray, products: AnyArray, weights: AnyArray, penalty: Penalty
) -> AnyArray:
    """Update each coordinate once, in place; return the largest change of each column."""
    largest_change = np.zeros(weights.shape[1], dtype=gram.dtype)
    for start in range(0, len(gram), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        residuals = products[rows] - gram[rows] @ weights
        inner = gram[rows, rows]
        for row, old in enumerate(weights[rows]):
            divisor = inner[row, row] + gram.dtype.type(penalty.l2)
            new = residuals[row] + inner[row, row] * old
            new -= gram.dtype.type(penalty.l1)
            np.maximum(new, 0, out=new)
            new /= divisor if divisor > 0 else 1
            step = new - old
            residuals[row + 1 :] -= np.multiply.outer(inner[row + 1 :, row], step)
            old[:] = new
            np.maximum(largest_change, np.abs(step), out=largest_change)
    return largest_change


def _solve_supports(problem: _Problem, products: AnyArray, weights: AnyArray) -> None:
    """Solve each column exactly on its support, in place, if that improves the objective.

    Columns with a large support, for which a few more passes are cheaper, stay as they are.
    """
    gram, penalty = problem.gram, problem.penalty
    sizes = np.count_nonzero(weights, axis=0).astype(np.float64)
    for column in np.flatnonzero((sizes > 0) & (sizes**3 <= _SOLVE_COST * len(gram) ** 2)):
        support = np.flatnonzero(weights[:, column])
        inner = gram[np.ix_(support, support)]
        inner[np.diag_indices(support.size)] += gram.dtype.type(penalty.l2)
        target = products[support, column] - gram.dtype.type(penalty.l1)
        _, new, error = problem.solve(inner, target)
        np.maximum(new, 0, out=new)
        if not error:
            candidates = (new, weights[support, column])
            changed, current = (float(w @ (inner @ w) / 2 - target @ w) for w in candidates)
            if changed <= current:
                weights[support, column] = new


def _select_weights(weights: AnyArray, keep: int) -> Matrix:
    from scipy.sparse import csr_array

    columns, values = select_largest(weights, min(keep, weights.shape[1]))
    is_positive = values > 0
    indptr = np.append(0, np.cumsum(np.count_nonzero(is_positive, axis=1)))
    return csr_array((values[is_positive], columns[is_positive], indptr), shape=weights.shape)
