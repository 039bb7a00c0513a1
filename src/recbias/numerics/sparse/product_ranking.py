"""The best columns of the rows of a product, computed in tiles of columns that fit the cache.

The columns of a sparse right factor are ordered by the sum of their absolute values. No score of
a row is above the largest absolute value of its left factor times that sum, so that the later
tiles are left out for rows whose k-th score is above it.
"""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, Codes, Matrix
from recbias.numerics.compiled.loops import compile_loop
from recbias.numerics.compiled.product_kernels import (
    DENSE_PARTS,
    PARTS,
    rank_dense_products,
    rank_products,
    split_into_tiles,
)
from recbias.numerics.sparse.topk import Floats32

TILE_BITS, MAX_TILE_BITS = 13, 16
"""Logarithms of the size of a tile, whose scores fit the first cache, and of the largest one."""

MAX_TILES = 16
"""Number of tiles from which on they are larger: each has the place where every row starts."""

DENSE_TILE = 256
"""Number of columns of a tile of a dense right factor, of which many rows fit the second cache."""

SLACK = 1 + 1e-4
"""Factor of a bound, for the rounding of the scores, which are sums of ``float32``."""


class ProductRanking:
    """The best columns of rows of ``left @ right``, summed in the order of the left factor.

    The result is that of ``topk.top_k`` of the scores of a row without its excluded columns.

    Args:
        left: CSR ``(n, m)``.
        right: CSR ``(m, n_columns)``.
        candidates: The columns that may be selected, ``bool[n_columns]``.

    >>> from scipy.sparse import csr_array
    >>> left = csr_array(np.array([[1, 0], [2, 3]], dtype=np.float32))
    >>> right = csr_array(np.array([[0, 4, 1], [2, 1, 0]], dtype=np.float32))
    >>> ranking = ProductRanking(left, right, np.ones(3, dtype=bool))
    >>> columns, scores = ranking.rank(np.array([1]), csr_array([[0, 1, 0]]), 3)
    >>> columns.tolist(), scores.tolist()
    ([[0, 2, -1]], [[6.0, 2.0, nan]])
    """

    def __init__(self, left: Matrix, right: Matrix, candidates: BoolArray) -> None:
        self._left = _list_arrays(left)
        arrays = _list_arrays(right)
        columns = np.flatnonzero(candidates).astype(np.int32)
        sizes = np.bincount(arrays[1], np.abs(arrays[2]).astype(np.float64), right.shape[1])
        bounds = np.nan_to_num(SLACK * sizes, nan=np.inf)
        names = columns[np.argsort(-bounds[columns], kind="stable")]
        bits = _choose_bits(names.size)
        self._size = 1 << bits
        self._places = np.full(right.shape[1], -1, dtype=np.int32)
        self._places[names] = np.arange(names.size, dtype=np.int32)
        counts = np.bincount(arrays[1], minlength=right.shape[1])[names]
        counts = np.append(counts, np.zeros(-names.size % self._size, dtype=np.int64))
        ends = np.cumsum(counts.reshape(-1, self._size).sum(axis=1))
        n_entries = int(counts.sum())
        tiles = (
            np.empty((ends.size, right.shape[0] + 1), dtype=np.int64),
            np.empty(n_entries, dtype=np.uint16),
            np.empty(n_entries, dtype=np.float32),
        )
        free = np.append(np.int64(0), ends)[:-1].copy()
        compile_loop(split_into_tiles, exact=True)(arrays, self._places, bits, tiles, free)
        self._tiles = (*tiles, bounds[names[:: self._size]], names)

    def rank(self, rows: AnyArray, excluded: Matrix, k: int) -> tuple[Codes, Floats32]:
        """Return the columns and scores of the k largest scores of rows, best first.

        Args:
            rows: Rows of the left factor, ``int64[b]``.
            excluded: Columns that are excluded from each row, CSR ``(b, n_columns)``.
            k: Number of columns to select; rows with fewer are padded (column -1, score NaN).
        """
        columns = np.full((rows.size, k), -1, dtype=np.int32)
        scores = np.full((rows.size, k), np.nan, dtype=np.float32)
        if k:
            history = excluded.indptr.astype(np.int64), excluded.indices, self._places
            left, sums = (rows.astype(np.int64), *self._left), np.empty(self._size, np.float32)
            rank = compile_loop(rank_products, exact=True, parts=PARTS)
            rank(left, self._tiles, history, sums, (columns, scores))
        return columns, scores


class DenseProductRanking:
    """The results of ``ProductRanking`` for a dense right factor.

    Args:
        left: CSR ``(n, m)``.
        right: ``float32 (m, n_columns)``.
        candidates: The columns that may be selected, ``bool[n_columns]``.

    >>> from scipy.sparse import csr_array
    >>> left = csr_array(np.array([[1, 0], [2, 3]], dtype=np.float32))
    >>> right = np.array([[0, 4, 1], [2, 1, 0]], dtype=np.float32)
    >>> ranking = DenseProductRanking(left, right, np.ones(3, dtype=bool))
    >>> columns, scores = ranking.rank(np.array([1]), csr_array([[0, 1, 0]]), 3)
    >>> columns.tolist(), scores.tolist()
    ([[0, 2, -1]], [[6.0, 2.0, nan]])
    """

    def __init__(self, left: Matrix, right: AnyArray, candidates: BoolArray) -> None:
        self._left, self._right = _list_arrays(left), right
        self._excluded = np.flatnonzero(~candidates)

    def rank(self, rows: AnyArray, excluded: Matrix, k: int) -> tuple[Codes, Floats32]:
        """Return the columns and scores as ``ProductRanking.rank`` does.

        The columns of ``excluded`` are ascending within a row. A copy of each tile is made for
        all rows, so that thousands of rows at once are faster than a few.
        """
        columns = np.full((rows.size, k), -1, dtype=np.int32)
        scores = np.full((rows.size, k), np.nan, dtype=np.float32)
        if not k:
            return columns, scores
        history = excluded.indptr.astype(np.int64), excluded.indices
        left = (rows.astype(np.int64), *self._left)
        rank = compile_loop(rank_dense_products, exact=True, parts=DENSE_PARTS)
        for first in range(0, self._right.shape[1], DENSE_TILE):
            tile = np.ascontiguousarray(self._right[:, first : first + DENSE_TILE], np.float32)
            names = np.arange(first, first + tile.shape[1], dtype=np.int32)
            begin, end = np.searchsorted(self._excluded, [first, first + names.size])
            barred = self._excluded[begin:end]
            rank(left, tile, names, barred, history, (columns, scores))
        return columns, scores


def count_bytes(n_rows: float, n_columns: float, n_entries: float) -> float:
    """Return the bytes of the copy of a right factor, or of the sums before it, if those are more.

    An entry has its column and its value; each tile has the place where every row starts.

    >>> count_bytes(10, 2**14, 1000), count_bytes(10, 2**14, 10)
    (12000, 236)
    """
    n_tiles = -(-n_columns // (1 << _choose_bits(int(n_columns))))
    return max(12 * n_entries, 6 * n_entries + 8 * (n_rows + 1) * n_tiles)


def _choose_bits(n_columns: int) -> int:
    """Return the logarithm of the size of a tile."""
    bits = min(TILE_BITS, int(n_columns).bit_length())
    while bits < MAX_TILE_BITS and n_columns > MAX_TILES << bits:
        bits += 1
    return bits


def _list_arrays(matrix: Matrix) -> tuple[AnyArray, AnyArray, AnyArray]:
    values = np.ascontiguousarray(matrix.data, dtype=np.float32)
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False), values
