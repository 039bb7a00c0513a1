"""Conversion of a sparse matrix to the named arrays of a stored state and back."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import Matrix
from recbias.core.protocols import State


def store_matrix(matrix: Matrix) -> State:
    """Return a CSR matrix as the arrays ``data``, ``indices``, ``indptr`` and ``shape``."""
    return {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": np.array(matrix.shape, dtype=np.int64),
    }


def restore_matrix(state: State) -> Matrix:
    """Return the CSR matrix that ``store_matrix`` stored."""
    from scipy.sparse import csr_array

    n_rows, n_columns = map(int, state["shape"])
    arrays = (state["data"], state["indices"], state["indptr"])
    return csr_array(arrays, shape=(n_rows, n_columns))
