"""Scoring and ranking of many rows by compiled loops, with the results of array operations."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, Codes, Matrix
from recbias.core.packages import is_installed
from recbias.numerics.compiled.loops import compile_loop
from recbias.numerics.compiled.ranking_kernels import PARTS, add_products, select_best
from recbias.numerics.sparse.topk import Floats32

MIN_SCORES = 5e7
"""Number of scores from which on compiled code is faster, although numba must be imported."""


def can_compile(n_scores: float) -> bool:
    """Return whether compiled code can be used and is worth it for this number of scores."""
    return n_scores >= MIN_SCORES and is_installed("numba")


def multiply_rows(rows: AnyArray, left: Matrix, right: Matrix) -> Floats32:
    """Return ``left[rows] @ right``, ``float32 (b, n)``, of CSR matrices.

    >>> from scipy.sparse import csr_array
    >>> factor = csr_array(np.array([[1, 0], [2, 3]], dtype=np.float32))
    >>> multiply_rows(np.array([1]), factor, factor).tolist()
    [[8.0, 9.0]]
    """
    scores = np.empty((rows.size, right.shape[1]), dtype=np.float32)
    compile_loop(add_products, exact=True)(
        np.ascontiguousarray(rows, dtype=np.int64), _list_arrays(left), _list_arrays(right), scores
    )
    return scores


def rank_scores(
    scores: Floats32, k: int, excluded: AnyArray, history: Matrix
) -> tuple[Codes, Floats32]:
    """Return the result of ``topk.top_k`` without the excluded columns; ``scores`` is overwritten.

    Args:
        scores: ``(b, n)``, C-contiguous.
        k: Number of columns to select.
        excluded: Columns that are excluded from every row.
        history: Columns that are excluded from each row: CSR ``(b, n)``, whose values are ignored.

    >>> from scipy.sparse import csr_array
    >>> scores, seen = np.array([[3, 5, 5, 4]], np.float32), csr_array([[0, 1, 0, 0]])
    >>> rank_scores(scores, 2, np.array([3]), seen)[0].tolist()
    [[2, 0]]
    """
    columns = np.full((len(scores), k), -1, dtype=np.int32)
    values = np.full((len(scores), k), np.nan, dtype=np.float32)
    if k:
        starts, seen = history.indptr.astype(np.int64), history.indices.astype(np.int32)
        compile_loop(select_best, exact=True, parts=PARTS)(
            scores, excluded.astype(np.int64), (starts, seen), (columns, values)
        )
    return columns, values


def _list_arrays(matrix: Matrix) -> tuple[AnyArray, AnyArray, AnyArray]:
    values = np.ascontiguousarray(matrix.data, dtype=np.float32)
    return matrix.indptr, matrix.indices, values
