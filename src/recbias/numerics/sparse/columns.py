"""Columns of CSR matrices: selected, and beside those of another matrix."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, Matrix


def select_columns(matrix: Matrix, codes: AnyArray) -> Matrix:
    """Return some columns of a CSR matrix in ascending order; the matrix itself if these are all.

    >>> from scipy.sparse import csr_array
    >>> select_columns(csr_array([[1, 2, 3]]), np.array([0, 2])).toarray().tolist()
    [[1, 3]]
    """
    return matrix if codes.size == matrix.shape[1] else matrix[:, codes]


def join_columns(left: Matrix, right: Matrix) -> Matrix:
    """Return two CSR matrices with as many rows beside each other, as ``scipy.sparse.hstack``.

    >>> from scipy.sparse import csr_array
    >>> join_columns(csr_array([[1], [0]]), csr_array([[2], [3]])).toarray().tolist()
    [[1, 2], [0, 3]]
    """
    from scipy.sparse import csr_array

    n, m = left.nnz + right.nnz, left.shape[1]
    is_left = np.zeros(n, dtype=bool)
    starts = np.repeat(right.indptr[:-1], np.diff(left.indptr))
    is_left[np.arange(left.nnz) + starts] = True
    data = np.empty(n, dtype=np.result_type(left.dtype, right.dtype))
    indices = np.empty(n, dtype=np.result_type(left.indices.dtype, right.indices.dtype))
    data[is_left], indices[is_left] = left.data, left.indices
    is_right = ~is_left
    data[is_right], indices[is_right] = right.data, right.indices + m
    shape = (left.shape[0], m + right.shape[1])
    return csr_array((data, indices, left.indptr + right.indptr), shape=shape)
