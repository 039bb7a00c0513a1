"""Non-negative elastic net regression, by coordinate descent: of each column on all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recbias.core.dataset import AnyArray, Matrix
from recbias.kernels.sparse import block_size, map_blocks, n_workers
from recbias.kernels.topk import select_largest, take_symmetric

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


def _is_improvement(matrix: AnyArray, target: AnyArray, before: AnyArray, after: AnyArray) -> bool:
    """Return whether weights have an objective that is not above that of others.

    Where ``H`` is not negative, no weight of the best is above what it would be if all others were
    0. Weights above that come from steps along a direction in which ``H`` is flat: their objective
    has no digits left to be compared.

    >>> ones, target = np.ones((2, 2)), np.array([0.5, 0.5])
    >>> zeros, halves, large = np.zeros(2), np.array([0.25, 0.25]), np.array([9e9, -9e9])
    >>> _is_improvement(ones, target, zeros, halves), _is_improvement(ones, target, zeros, large)
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


_BLOCK_ROWS = 64
"""Number of coordinates whose residuals are computed by one matrix product."""

_WARM_UP = 4
"""Passes of coordinate descent before columns are solved; they find most of the candidates."""

_SOLVES = 20
"""Most solutions of a column before further passes. One to three suffice for usual penalties."""

_MARGIN = 0.02
"""Share of the largest weight by which a weight may miss 0 and be a candidate.

A column whose candidates include all weights of its solution is solved once.
"""

_MAX_CANDIDATES = 4096
"""Most candidates of a column that is solved: their products take 64 MiB of ``float32``."""

_SHARE = 0.3
"""Share of the tolerance to which the candidates are solved."""

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

    Cyclic coordinate descent over all columns j at once, from w = 0, for four passes. Then each
    column is solved on its candidates: the weights above 0, and those that would be if they alone
    were changed, or nearly. The gradient of all weights tells which columns miss candidates, and
    are solved again. Further passes are made for columns with thousands of candidates, and for
    those that a solution does not improve, because their candidates depend on each other and
    ``l2`` is small.

    Args:
        gram: ``XᵀX``, ``float (n, n)``; its precision is used throughout.
        penalty: The penalties.
        keep: Maximum number of weights per column, the largest.
        max_iter: Maximum number of passes over the coordinates.
        tolerance: A column has converged if no weight would change by more than this times the
            largest in a pass.
        allow_self: Whether a column may reconstruct itself, that is, ``w_j`` need not be 0.

    Returns:
        CSR ``float32 (n, n)``, whose row j holds the weights of column j; and the number of
        columns that have not converged after ``max_iter`` passes.

    Source:
        Friedman, Hastie and Tibshirani, "Regularization Paths for Generalized Linear Models via
        Coordinate Descent", J. Stat. Softw. 33(1), 2010, section 2.2 (covariance updates).
    """
    from scipy.sparse import csr_array, vstack

    diagonal = gram.diagonal() + gram.dtype.type(penalty.l2)
    gram = np.ascontiguousarray(gram)
    problem = _Problem(gram, penalty, np.where(diagonal > 0, diagonal, 1), tolerance)

    def solve_block(start: int, stop: int) -> tuple[Matrix, int]:
        targets = np.arange(start, stop, dtype=np.int32)
        products = np.take(gram, targets, axis=1)
        if not allow_self:
            products[targets, np.arange(targets.size)] = -np.sqrt(np.finfo(gram.dtype).max)
        weights, n_unconverged = _descend(problem, products, max_iter)
        return _select_weights(weights.T, keep), n_unconverged

    n = len(gram)
    size = min(block_size(6 * gram.itemsize * n), 1 + n // (2 * n_workers()))
    blocks = map_blocks(solve_block, n, size, label="elastic net")
    weights = [csr_array((0, n), dtype=np.float32), *(rows for rows, _ in blocks)]
    return vstack(weights, format="csr"), sum(count for _, count in blocks)


@dataclass(frozen=True, eq=False)
class _Problem:
    """What the problems of all columns share; the divisors are those of a coordinate's update."""

    gram: AnyArray
    penalty: Penalty
    divisors: AnyArray
    tolerance: float


def _descend(problem: _Problem, products: AnyArray, max_iter: int) -> tuple[AnyArray, int]:
    """Return the weights of target columns, ``(n, targets)``, and how many have not converged.

    ``products`` are the products of all columns with the targets, far below 0 where a
    weight must be 0.
    """
    solution = np.zeros_like(products)
    active = np.arange(products.shape[1])
    weights, is_solved = solution.copy(), np.zeros(active.size, dtype=bool)
    for n_passes in range(max_iter):
        if n_passes == _WARM_UP:
            _scale(problem, products, weights)
            is_solved[:] = True
        elif n_passes == _WARM_UP + _SOLVES:
            is_solved[:] = False
        change = _improve(problem, products, weights, is_solved)
        continues = change > problem.tolerance * weights.max(axis=0)
        if continues.mean() < 1 - _COMPACT or not continues.any():
            solution[:, active[~continues]] = weights[:, ~continues]
            active, is_solved = active[continues], is_solved[continues]
            products, weights = (np.compress(continues, x, axis=1) for x in (products, weights))
        if not active.size:
            break
    solution[:, active] = weights
    return solution, int(active.size)


def _improve(
    problem: _Problem, products: AnyArray, weights: AnyArray, is_solved: AnyArray
) -> AnyArray:
    """Solve some columns, and update the coordinates of the others, in place.

    Returns the largest change of each column. What a solution does not improve is not solved from
    then on.
    """
    if is_solved.all():
        return _solve_columns(problem, products, weights, is_solved)
    if not is_solved.any():
        return _update_coordinates(problem.gram, products, weights, problem.penalty)
    change, parts = np.empty(is_solved.size, dtype=weights.dtype), (is_solved, ~is_solved)
    for is_in_part in parts:
        of_part, still_solved = weights[:, is_in_part], is_solved[is_in_part]
        change[is_in_part] = _improve(problem, products[:, is_in_part], of_part, still_solved)
        weights[:, is_in_part], is_solved[is_in_part] = of_part, still_solved
    return change


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


def _scale(problem: _Problem, products: AnyArray, weights: AnyArray) -> None:
    """Multiply the weights of each column by the factor that minimises its objective, in place."""
    penalty, dtype = problem.penalty, problem.gram.dtype.type
    images = problem.gram @ weights
    images += dtype(penalty.l2) * weights
    curvatures = np.einsum("ij,ij->j", weights, images)
    slopes = np.einsum("ij,ij->j", weights, products) - dtype(penalty.l1) * weights.sum(axis=0)
    factors = np.divide(slopes, curvatures, out=np.ones_like(slopes), where=curvatures > 0)
    weights *= np.maximum(factors, 0)


def _solve_columns(
    problem: _Problem, products: AnyArray, weights: AnyArray, is_solved: AnyArray
) -> AnyArray:
    """Solve each column that has not converged on its candidates, in place.

    Returns the largest change of a weight of each column before, if it alone were changed; false
    is written to ``is_solved`` where a solution is no improvement.
    """
    dtype = problem.gram.dtype.type
    updated = problem.gram @ weights
    np.subtract(products, updated, out=updated)
    updated -= dtype(problem.penalty.l1)
    updated -= dtype(problem.penalty.l2) * weights
    updated /= problem.divisors[:, None]
    updated += weights
    least = -_MARGIN * weights.max(axis=0)
    is_candidate = np.ascontiguousarray(((updated > least) | (weights > 0)).T)
    np.maximum(updated, 0, out=updated)
    updated -= weights
    change: AnyArray = np.abs(updated, out=updated).max(axis=0)
    for column in np.flatnonzero(change > problem.tolerance * weights.max(axis=0)):
        candidates = np.flatnonzero(is_candidate[column])
        if candidates.size > _MAX_CANDIDATES:  # at first only those with a weight
            candidates = np.flatnonzero(weights[:, column])
        if 0 < candidates.size <= _MAX_CANDIDATES:
            of_column = candidates, products[candidates, column], weights[candidates, column]
            solution = _solve_column(problem, *of_column)
            if solution is None:
                is_solved[column] = False
            else:
                weights[candidates, column] = solution
    return change


def _solve_column(
    problem: _Problem, candidates: AnyArray, products: AnyArray, weights: AnyArray
) -> AnyArray | None:
    """Return the weights of a column that are best if all others are 0; None for worse ones."""
    gram, penalty = problem.gram, problem.penalty
    inner = take_symmetric(gram, candidates)
    inner[np.diag_indices(candidates.size)] = problem.divisors[candidates]
    target = products - gram.dtype.type(penalty.l1)
    solution = solve_nonnegative(inner, target, weights, _SHARE * problem.tolerance)
    return solution if _is_improvement(inner, target, weights, solution) else None


def _select_weights(weights: AnyArray, keep: int) -> Matrix:
    from scipy.sparse import csr_array

    columns, values = select_largest(weights, min(keep, weights.shape[1]))
    is_positive = values > 0
    indptr = np.append(0, np.cumsum(np.count_nonzero(is_positive, axis=1)))
    return csr_array((values[is_positive], columns[is_positive], indptr), shape=weights.shape)
