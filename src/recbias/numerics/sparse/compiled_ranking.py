"""Scoring and ranking of many rows by compiled loops, with the results of array operations."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, Codes, Matrix
from recbias.core.packages import is_installed
from recbias.numerics.compiled.loops import compile_loop
from recbias.numerics.compiled.ranking_kernels import PARTS, select_best
from recbias.numerics.sparse.topk import Floats32

MIN_SCORES = 5e7
"""Number of scores from which on compiled code is faster, although numba must be imported."""


def can_compile(n_scores: float) -> bool:
    """Return whether compiled code can be used and is worth it for this number of scores."""
    return n_scores >= MIN_SCORES and is_installed("numba")


class BestColumns:
    """The columns with the k largest scores of each row, of columns that are added in order.

    The result is that of ``topk.top_k`` on all columns at once without the excluded ones.

    Args:
        k: Number of columns to select.
        excluded: Columns that are excluded from every row, ascending.
        history: Columns that are excluded from each row: CSR ``(b, n)`` with ascending columns,
            whose values are ignored.

    >>> from scipy.sparse import csr_array
    >>> best = BestColumns(2, np.array([3]), csr_array([[0, 1, 0, 0]]))
    >>> best.add(np.array([[3, 5]], np.float32), 0)
    >>> best.add(np.array([[5, 4]], np.float32), 2)
    >>> best.columns.tolist(), best.values.tolist()
    ([[2, 0]], [[5.0, 3.0]])
    """

    def __init__(self, k: int, excluded: AnyArray, history: Matrix) -> None:
        bounds = history.indptr.astype(np.int64)
        self._history = bounds[:-1].copy(), bounds[1:], history.indices.astype(np.int32)
        self._excluded = excluded.astype(np.int64)
        shape = (history.shape[0], k)
        self.columns: Codes = np.full(shape, -1, dtype=np.int32)
        self.values: Floats32 = np.full(shape, np.nan, dtype=np.float32)

    def add(self, scores: Floats32, first: int) -> None:
        """Add the scores of the columns from ``first`` on, ``(b, n)``, which are overwritten."""
        if not self.columns.shape[1]:
            return
        begin, end = np.searchsorted(self._excluded, [first, first + scores.shape[1]])
        compile_loop(select_best, exact=True, parts=PARTS)(
            scores, first, self._excluded[begin:end], self._history, (self.columns, self.values)
        )
