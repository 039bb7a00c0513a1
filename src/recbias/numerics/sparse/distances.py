"""Nearest rows of a sparse matrix by products or distances.

A distance also separates rows that share no column; ``similarity`` holds the measures that are 0
for such rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, Matrix
from recbias.numerics.sparse.blocks import MEMORY_LIMIT, block_size, map_blocks
from recbias.numerics.sparse.products import create_product_blocks
from recbias.numerics.sparse.topk import Floats32, select_largest

Blocks: TypeAlias = Callable[[int, int], Floats32]
"""Function of the first row of a block and the row after its last; returns a new array."""

Nearness: TypeAlias = Literal["dot", "euclidean", "braycurtis", "chebyshev"]
"""Names of the measures of nearness."""

MAX_BLOCK_ROWS = 256
"""Maximum number of rows of a block; larger blocks are not faster."""


def find_nearest_by(
    kind: Nearness, matrix: Matrix, neighbors: int, *, memory_limit: int = MEMORY_LIMIT
) -> Matrix:
    """Find the nearest other rows of each row.

        dot         x · y
        euclidean   1 / (1 + |x - y|)
        braycurtis  1 / (1 + Σ |x_a - y_a| / Σ |x_a + y_a|)
        chebyshev   1 / (1 + max |x_a - y_a|)

    The matrix is CSR ``(n, m)`` without negative entries; row t of the result, CSR ``float32
    (n, n)``, holds the neighbours of row t, columns ascending. Empty rows have no neighbours and
    are not neighbours. Only values above 0 count; ties go to the lower row. ``chebyshev`` compares
    all pairs of rows in all columns, which is slow for thousands of columns.

    >>> from scipy.sparse import csr_array
    >>> rows = csr_array(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 3.0]]))
    >>> find_nearest_by("euclidean", rows, 1).toarray().tolist()
    [[0.0, 0.5, 0.0], [0.5, 0.0, 0.0], [0.0, 0.30901700258255005, 0.0]]

    Source:
        Bray and Curtis, "An Ordination of the Upland Forest Communities of Southern Wisconsin",
        Ecological Monographs 27, 1957.
    """
    matrix = matrix.astype(np.float32)
    n = matrix.shape[0]
    size = min(block_size(32 * n + 4 * matrix.shape[1], memory_limit=memory_limit), MAX_BLOCK_ROWS)
    if kind == "chebyshev":
        values = _create_chebyshev(matrix, memory_limit)
    else:
        values = {
            "dot": create_product_blocks,
            "euclidean": _create_euclidean,
            "braycurtis": _create_bray_curtis,
        }[kind](matrix)
    is_empty = np.asarray(abs(matrix).sum(axis=1)).ravel() == 0

    def mask_empty_rows(start: int, stop: int) -> Floats32:
        block = values(start, stop)
        block[:, is_empty] = -np.inf
        block[is_empty[start:stop]] = -np.inf
        return block

    return select_neighbors(mask_empty_rows, n, neighbors, size=size)


def select_neighbors(values: Blocks, n: int, neighbors: int, *, size: int) -> Matrix:
    """Select the largest positive values of each of ``n`` rows, excluding the diagonal.

    Blocks of ``size`` rows are overwritten. Ties go to the lower column.
    """
    from scipy.sparse import csr_array

    def select_block(start: int, stop: int) -> tuple[AnyArray, AnyArray, AnyArray]:
        block = values(start, stop)
        block[np.arange(stop - start), np.arange(start, stop)] = -np.inf
        columns, best = select_largest(block, min(neighbors, n))
        is_positive = best > 0
        return np.count_nonzero(is_positive, axis=1), columns[is_positive], best[is_positive]

    empty = (np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    blocks = [empty, *map_blocks(select_block, n, size, label="nearest neighbours")]
    counts, indices, data = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    indptr = np.cumsum(counts).astype(np.int32 if indices.size < 2**31 else np.int64)
    return csr_array((data, indices.astype(np.int32), indptr), shape=(n, n))


def _create_euclidean(matrix: Matrix) -> Blocks:
    dots = create_product_blocks(matrix)
    squares = np.asarray((matrix * matrix).sum(axis=1), dtype=np.float32).ravel()

    def compute_block(start: int, stop: int) -> Floats32:
        squared = squares[start:stop, None] + squares - 2 * dots(start, stop)
        nearness: Floats32 = 1 / (1 + np.sqrt(np.maximum(squared, 0)))
        return nearness

    return compute_block


def _create_bray_curtis(matrix: Matrix) -> Blocks:
    """Use Σ |x - y| = Σ (x + y) - 2 Σ min(x, y), column by column."""
    columns = matrix.tocsc()
    columns.sort_indices()
    sums = np.asarray(matrix.sum(axis=1), dtype=np.float32).ravel()

    def compute_block(start: int, stop: int) -> Floats32:
        shared = np.zeros((stop - start, sums.size), dtype=np.float32)
        for column in np.unique(matrix[start:stop].indices):
            entries = slice(columns.indptr[column], columns.indptr[column + 1])
            rows, values = columns.indices[entries], columns.data[entries]
            block = slice(*np.searchsorted(rows, (start, stop)))
            shared[np.ix_(rows[block] - start, rows)] += np.minimum.outer(values[block], values)
        totals = np.maximum(sums[start:stop, None] + sums, np.finfo(np.float32).tiny)
        nearness: Floats32 = 1 / (2 - 2 * shared / totals)
        return nearness

    return compute_block


def _create_chebyshev(matrix: Matrix, memory_limit: int) -> Blocks:
    """Convert a few columns at a time to dense."""
    from scipy.spatial.distance import cdist

    n, m = matrix.shape
    columns = matrix.tocsc()
    width = block_size(8 * max(n, 1), memory_limit=memory_limit)

    def compute_block(start: int, stop: int) -> Floats32:
        distances = np.zeros((stop - start, n))
        for column in range(0, m, width):
            dense = columns[:, column : column + width].toarray()
            np.maximum(distances, cdist(dense[start:stop], dense, "chebyshev"), out=distances)
        return (1 / (1 + distances)).astype(np.float32)

    return compute_block
