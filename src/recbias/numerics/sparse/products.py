"""Products of sparse matrices as dense blocks, by the faster of two methods."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recbias.core.arrays import AnyArray, Matrix
from recbias.numerics.sparse.blocks import MEMORY_LIMIT, block_size, map_blocks
from recbias.numerics.sparse.topk import Floats32

_SPARSE_COST = 16
"""Cost of an operation of a sparse product, in operations of a dense one (measured)."""

_TAKEN_ROWS = 64
"""Number of rows whose places are there at once in ``take_symmetric``."""


def sparse_is_faster(left: Matrix, right: Matrix) -> bool:
    """Return whether ``left @ right`` is faster with a sparse ``right`` than with a dense one.

    With a dense right factor, each entry of ``left`` is multiplied by a whole row, in vectorised
    operations; with a sparse one only by the entries of that row, in slower operations.
    """
    operations = float(np.diff(right.indptr)[left.indices].sum())
    return _SPARSE_COST * operations < float(left.nnz) * int(right.shape[1])


def create_product_blocks(matrix: Matrix) -> Callable[[int, int], Floats32]:
    """Return a function that multiplies rows ``start`` to ``stop`` by all rows, as a new array.

    The matrix is CSR ``(n, m)``, ``float32``; a block needs about ``8 n + 4 m`` bytes per row.
    """
    transposed = matrix.T.tocsr()

    def multiply_dense(start: int, stop: int) -> Floats32:
        targets = np.ascontiguousarray(matrix[start:stop].toarray().T)
        return np.ascontiguousarray((matrix @ targets).T)

    def multiply_sparse(start: int, stop: int) -> Floats32:
        products: Floats32 = (matrix[start:stop] @ transposed).toarray()
        return products

    return multiply_sparse if sparse_is_faster(matrix, transposed) else multiply_dense


def compute_gram(matrix: Matrix, *, memory_limit: int = MEMORY_LIMIT) -> Floats32:
    """Return the products of all pairs of rows, ``matrix @ matrix.T``, ``float32 (n, n)``.

    The matrix is CSR ``float32 (n, m)``; ``memory_limit`` is that of the blocks, in bytes.

    >>> from scipy.sparse import csr_array
    >>> compute_gram(csr_array(np.array([[1, 1], [0, 1]], dtype=np.float32))).tolist()
    [[2.0, 1.0], [1.0, 1.0]]
    """
    n, m = matrix.shape
    products = np.empty((n, n), dtype=np.float32)
    dots = create_product_blocks(matrix)

    def fill_block(start: int, stop: int) -> None:
        products[start:stop] = dots(start, stop)

    size = min(block_size(8 * n + 4 * m, memory_limit=memory_limit), 256)
    map_blocks(fill_block, n, size)
    return products


def take_symmetric(matrix: AnyArray, codes: AnyArray) -> AnyArray:
    """Return the rows and columns of these codes, without a copy of whole rows.

    >>> take_symmetric(np.arange(9).reshape(3, 3), np.array([0, 2])).tolist()
    [[0, 2], [6, 8]]
    """
    entries, taken = matrix.reshape(-1), np.empty((codes.size, codes.size), dtype=matrix.dtype)
    for start in range(0, codes.size, _TAKEN_ROWS):
        rows = slice(start, start + _TAKEN_ROWS)
        places = codes[rows, None] * len(matrix) + codes
        np.take(entries, places, out=taken[rows], mode="clip")
    return taken
