"""The nearest rows of a sparse matrix, by dense products on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, Matrix
from recbias.models.device_algebra.sparse_rows import (
    DeviceRows,
    map_device_blocks,
    report_full_device,
)
from recbias.models.ranking.device_ranking import count_available_bytes
from recbias.models.ranking.tensors import copy_to_array, top_k
from recbias.numerics.sparse.similarity import Similarity

BYTES_PER_PRODUCT = 32
"""Maximum memory per product of two rows while its block is ranked."""

DENSE_COST = 1e-5
"""Cost of an operation of a dense product on a GPU, in counts of a shared column on a CPU.

An H200 took 2e-6 beside 16 cores; others have a fifth of its rate.
"""


def dense_is_faster(matrix: Matrix) -> bool:
    """Return whether dense products of all rows on a GPU are faster than counts on a CPU.

    A CPU counts each pair of rows of each column; a GPU multiplies whole rows, faster by
    ``1 / DENSE_COST``, but few rows of a large catalogue share a column.
    """
    n, m = matrix.shape
    sizes = np.bincount(matrix.indices, minlength=1).astype(np.float64)
    return bool(DENSE_COST * n * n * m < float(sizes @ sizes))


def find_nearest_on_device(
    matrix: Matrix,
    neighbors: int,
    similarity: Similarity,
    device: Any,
    *,
    memory_limit: int | None = None,
) -> Matrix:
    """Return the neighbours of ``numerics.sparse.similarity.find_nearest``, CSR ``(n, n)``.

    Args:
        matrix: CSR ``(n, m)``.
        neighbors: Number of neighbours of each row.
        similarity: The similarity.
        device: A ``torch.device``.
        memory_limit: Bytes of the blocks; None for those of ``count_available_bytes``.

    Raises:
        TooLittleMemory: The device cannot hold the products of one row.
    """
    import torch
    from scipy.sparse import csr_array

    matrix = matrix.astype(np.float32)
    n, m = matrix.shape
    limit = count_available_bytes(device) if memory_limit is None else memory_limit
    size = max(1, limit // (8 * m + BYTES_PER_PRODUCT * n + 1))

    with report_full_device("nearest neighbours"), torch.no_grad():
        rows = DeviceRows.copy(matrix, device)
        left, right = (
            torch.tensor(weights, device=device) for weights in similarity.weigh(matrix)
        )

        def select_block(start: int, stop: int) -> tuple[AnyArray, AnyArray, AnyArray]:
            products = rows.multiply(start, stop)
            block = similarity.divide(products, left[start:stop, None], right)
            targets = torch.arange(start, stop, device=device)
            block[targets - start, targets] = -float("inf")
            columns, values = top_k(block, min(neighbors, n))
            columns, order = columns.masked_fill(~(values > 0), n).sort(dim=1)
            is_neighbour = columns < n
            counts, best = is_neighbour.sum(dim=1), values.gather(1, order)[is_neighbour]
            codes = copy_to_array(columns[is_neighbour])
            return copy_to_array(counts), codes, copy_to_array(best)

        blocks = [*map_device_blocks(select_block, n, size)]
    empty = (np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    counts, indices, data = (np.concatenate(parts) for parts in zip(empty, *blocks, strict=True))
    indptr = np.cumsum(counts).astype(np.int32 if indices.size < 2**31 else np.int64)
    return csr_array((data, indices, indptr), shape=(n, n))
