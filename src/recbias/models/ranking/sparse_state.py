"""A sparse matrix as named arrays and back, for models that learn one."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import Matrix
from recbias.core.protocols import State


def arrays_of(matrix: Matrix) -> State:
    """Return the arrays of a CSR matrix: ``data``, ``indices``, ``indptr`` and ``shape``."""
    return {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": np.array(matrix.shape, dtype=np.int64),
    }


def matrix_of(state: State) -> Matrix:
    """Return the CSR matrix of such arrays."""
    from scipy.sparse import csr_array

    n_rows, n_columns = (int(each) for each in state["shape"])
    arrays = (state["data"], state["indices"], state["indptr"])
    return csr_array(arrays, shape=(n_rows, n_columns))
