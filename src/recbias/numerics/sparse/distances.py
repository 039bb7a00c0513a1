"""Who is near whom: products and distances of the rows of a sparse matrix, and each row's nearest.

These count what rows have without saying of which they share: two rows that share nothing are
still at some distance. The similarities that need something shared are in ``similarity``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, Matrix
from recbias.numerics.sparse.blocks import MEMORY_LIMIT, block_size, map_blocks
from recbias.numerics.sparse.products import dot_blocks
from recbias.numerics.sparse.topk import largest

Floats32 = npt.NDArray[np.float32]

Blocks: TypeAlias = Callable[[int, int], Floats32]
"""Takes the first row of a block and the one after its last; returns its similarities, fresh."""

Nearness: TypeAlias = Literal["dot", "euclidean", "braycurtis", "chebyshev"]
"""The kinds of nearness there are."""

MOST_ROWS = 256
"""Rows of a block: more do not make it faster."""


def nearest_by(
    kind: Nearness, matrix: Matrix, neighbors: int, *, memory_limit: int = MEMORY_LIMIT
) -> Matrix:
    """Return each row's nearest other rows, with how near they are.

        dot         x · y
        euclidean   1 / (1 + |x - y|)
        braycurtis  1 / (1 + Σ |x_a - y_a| / Σ |x_a + y_a|)
        chebyshev   1 / (1 + max |x_a - y_a|)

    Rows of nothing have no neighbours and are nobody's. Only values above 0 are kept; of equal
    ones the lower rows. ``chebyshev`` looks at every pair of rows and every column: it is slow
    where there are thousands of columns.

    Args:
        kind: What near means.
        matrix: CSR ``(n, m)`` without negative entries.
        neighbors: How many others a row keeps.
        memory_limit: Bytes that the dense blocks may take.

    Returns:
        CSR ``float32 (n, n)``: row t holds the neighbours of row t, columns ascending.

    >>> from scipy.sparse import csr_array
    >>> rows = csr_array(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 3.0]]))
    >>> nearest_by("euclidean", rows, 1).toarray().tolist()
    [[0.0, 0.5, 0.0], [0.5, 0.0, 0.0], [0.0, 0.30901700258255005, 0.0]]

    Source:
        Bray and Curtis, "An Ordination of the Upland Forest Communities of Southern Wisconsin",
        Ecological Monographs 27, 1957.
    """
    matrix = matrix.astype(np.float32)
    n = matrix.shape[0]
    size = min(block_size(32 * n + 4 * matrix.shape[1], memory_limit=memory_limit), MOST_ROWS)
    values = _blocks(kind, matrix, memory_limit)
    nothing = np.asarray(abs(matrix).sum(axis=1)).ravel() == 0

    def without_nothing(start: int, stop: int) -> Floats32:
        block = values(start, stop)
        block[:, nothing] = -np.inf
        block[nothing[start:stop]] = -np.inf
        return block

    return kept_of_blocks(without_nothing, n, neighbors, size=size)


def kept_of_blocks(values: Blocks, n: int, neighbors: int, *, size: int) -> Matrix:
    """Return the ``neighbors`` largest positive values of each row but the one on its diagonal.

    Args:
        values: ``(start, stop) -> float32 (stop - start, n)``; overwritten.
        n: How many rows there are.
        neighbors: How many a row keeps; of equal ones the lower columns.
        size: Rows of a block.
    """
    from scipy.sparse import csr_array

    def kept(start: int, stop: int) -> tuple[AnyArray, AnyArray, AnyArray]:
        block = values(start, stop)
        block[np.arange(stop - start), np.arange(start, stop)] = -np.inf
        columns, best = largest(block, min(neighbors, n))
        real = best > 0
        return np.count_nonzero(real, axis=1), columns[real], best[real]

    empty = (np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    blocks = [empty, *map_blocks(kept, n, size, what="nearest neighbours")]
    counts, indices, data = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    indptr = np.cumsum(counts).astype(np.int32 if indices.size < 2**31 else np.int64)
    return csr_array((data, indices.astype(np.int32), indptr), shape=(n, n))


def _blocks(kind: Nearness, matrix: Matrix, memory_limit: int) -> Blocks:
    if kind == "dot":
        return dot_blocks(matrix)
    if kind == "euclidean":
        return _euclidean(matrix)
    if kind == "braycurtis":
        return _bray_curtis(matrix)
    return _chebyshev(matrix, memory_limit)


def _euclidean(matrix: Matrix) -> Blocks:
    dots = dot_blocks(matrix)
    squares = np.asarray((matrix * matrix).sum(axis=1), dtype=np.float32).ravel()

    def near(start: int, stop: int) -> Floats32:
        apart = squares[start:stop, None] + squares - 2 * dots(start, stop)
        near: Floats32 = 1 / (1 + np.sqrt(np.maximum(apart, 0)))
        return near

    return near


def _bray_curtis(matrix: Matrix) -> Blocks:
    """Return blocks of nearness, from what two rows share: Σ |x - y| = Σ (x + y) - 2 Σ min(x, y).

    A column costs the product of how many rows of the block and how many of all have it.
    """
    columns = matrix.tocsc()
    columns.sort_indices()
    sums = np.asarray(matrix.sum(axis=1), dtype=np.float32).ravel()

    def near(start: int, stop: int) -> Floats32:
        shared = np.zeros((stop - start, sums.size), dtype=np.float32)
        for column in np.unique(matrix[start:stop].indices):
            inside = slice(columns.indptr[column], columns.indptr[column + 1])
            rows, values = columns.indices[inside], columns.data[inside]
            own = slice(*np.searchsorted(rows, (start, stop)))
            shared[np.ix_(rows[own] - start, rows)] += np.minimum.outer(values[own], values)
        together = np.maximum(sums[start:stop, None] + sums, np.finfo(np.float32).tiny)
        near: Floats32 = 1 / (2 - 2 * shared / together)
        return near

    return near


def _chebyshev(matrix: Matrix, memory_limit: int) -> Blocks:
    """Return blocks of nearness, from some columns made dense at a time."""
    from scipy.spatial.distance import cdist

    n, m = matrix.shape
    columns = matrix.tocsc()
    width = block_size(8 * max(n, 1), memory_limit=memory_limit)

    def near(start: int, stop: int) -> Floats32:
        apart = np.zeros((stop - start, n))
        for first in range(0, m, width):
            part = columns[:, first : first + width].toarray()
            np.maximum(apart, cdist(part[start:stop], part, "chebyshev"), out=apart)
        return (1 / (1 + apart)).astype(np.float32)

    return near
