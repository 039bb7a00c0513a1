"""Products of sparse matrices as dense blocks, by whichever of two ways is faster."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import Matrix
from recbias.numerics.sparse.blocks import MEMORY_LIMIT, block_size, map_blocks

Floats32 = npt.NDArray[np.float32]

_SPARSE_COST = 16
"""What one step of a sparse product costs, in steps of one with a dense factor (measured)."""


def sparse_is_faster(left: Matrix, right: Matrix) -> bool:
    """Return whether ``left @ right`` is faster with a sparse ``right`` than with a dense one.

    With a dense right factor each entry on the left meets a whole row, in cheap steps; with a
    sparse one it meets the entries of that row, in dear ones.
    """
    steps = float(np.diff(right.indptr)[left.indices].sum())
    return _SPARSE_COST * steps < float(left.nnz) * int(right.shape[1])


def dot_blocks(matrix: Matrix) -> Callable[[int, int], Floats32]:
    """Return the function that multiplies rows ``start`` to ``stop`` with all rows.

    Args:
        matrix: CSR ``(n, m)``, ``float32``. A block takes about ``8 n + 4 m`` bytes a row.

    Returns:
        ``(start, stop) -> float32 (stop - start, n)``, a fresh array each time.
    """
    transposed = matrix.T.tocsr()

    def dense(start: int, stop: int) -> Floats32:
        targets = np.ascontiguousarray(matrix[start:stop].toarray().T)
        return np.ascontiguousarray((matrix @ targets).T)

    def sparse(start: int, stop: int) -> Floats32:
        products: Floats32 = (matrix[start:stop] @ transposed).toarray()
        return products

    return sparse if sparse_is_faster(matrix, transposed) else dense


def gram(matrix: Matrix, *, memory_limit: int = MEMORY_LIMIT) -> Floats32:
    """Return the products of all pairs of rows, ``matrix @ matrix.T``, ``float32 (n, n)``.

    Args:
        matrix: CSR ``(n, m)``, ``float32``.
        memory_limit: Bytes that the blocks may take, besides the result.

    >>> from scipy.sparse import csr_array
    >>> gram(csr_array(np.array([[1, 1], [0, 1]], dtype=np.float32))).tolist()
    [[2.0, 1.0], [1.0, 1.0]]
    """
    n, m = matrix.shape
    products = np.empty((n, n), dtype=np.float32)
    dots = dot_blocks(matrix)

    def filled(start: int, stop: int) -> None:
        products[start:stop] = dots(start, stop)

    size = min(block_size(8 * n + 4 * m, memory_limit=memory_limit), 256)
    map_blocks(filled, n, size)
    return products
