"""Sparse matrices with one row for each list, history or query."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray, Matrix

MAX_INT32 = 2**31 - 1


def build_rows(
    codes: AnyArray, included: BoolArray, n_columns: int, values: npt.ArrayLike = 1.0
) -> Matrix:
    """Return the included cells of rows of codes, CSR ``(n, n_columns)``.

    Args:
        codes: The column of each cell, ``int[n, k]``.
        included: Which cells the matrix holds, ``bool[n, k]``.
        n_columns: The number of columns.
        values: The entry of each of the k positions, or of all; it gives the type.

    >>> codes = np.array([[1, 0], [0, -1]])
    >>> build_rows(codes, codes >= 0, 2, [3.0, 5.0]).toarray().tolist()
    [[5.0, 3.0], [3.0, 0.0]]
    """
    from scipy.sparse import csr_array

    index = np.int32 if max(codes.size, n_columns) <= MAX_INT32 else np.int64
    starts = np.zeros(len(codes) + 1, dtype=index)
    np.cumsum(np.count_nonzero(included, axis=1), out=starts[1:])
    entries = np.broadcast_to(np.asarray(values), codes.shape)[included]
    columns = codes[included].astype(index, copy=False)
    return csr_array((entries, columns, starts), shape=(len(codes), n_columns))


def keep_columns(rows: Matrix, kept: BoolArray) -> Matrix:
    """Return the entries of a CSR matrix in some columns, as ones; itself if these are all.

    >>> from scipy.sparse import csr_array
    >>> keep_columns(csr_array([[5.0, 7.0]]), np.array([False, True])).toarray().tolist()
    [[0.0, 1.0]]
    """
    from scipy.sparse import csr_array

    stays = kept[rows.indices]
    if stays.all() and (rows.data == 1).all():
        return rows
    ends = np.zeros(stays.size + 1, dtype=rows.indptr.dtype)
    np.cumsum(stays, out=ends[1:])
    ones = np.ones(int(ends[-1]))
    return csr_array((ones, rows.indices[stays], ends[rows.indptr]), shape=rows.shape)


def split_rows(rows: Matrix, size: int) -> Iterator[Matrix]:
    """Yield blocks of ``size`` rows of a CSR matrix, which share its entries.

    >>> from scipy.sparse import csr_array
    >>> [block.shape for block in split_rows(csr_array((5, 3)), 2)]
    [(2, 3), (2, 3), (1, 3)]
    """
    from scipy.sparse import csr_array

    for start in range(0, rows.shape[0], size):
        ends = rows.indptr[start : start + size + 1]
        cells = slice(ends[0], ends[-1])
        arrays = (rows.data[cells], rows.indices[cells], ends - ends[0])
        yield csr_array(arrays, shape=(ends.size - 1, rows.shape[1]))
