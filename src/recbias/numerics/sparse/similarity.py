"""Who is like whom: similarities of the rows of a sparse matrix, and each row's nearest."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, Matrix
from recbias.numerics.sparse.blocks import MEMORY_LIMIT, block_size, map_blocks
from recbias.numerics.sparse.products import dot_blocks
from recbias.numerics.sparse.topk import largest

Floats32 = npt.NDArray[np.float32]

Kind: TypeAlias = Literal["cosine", "asymmetric", "jaccard", "dice"]
"""The similarities there are."""


def nearest(
    matrix: Matrix,
    neighbors: int,
    *,
    kind: Kind = "cosine",
    alpha: float = 0.5,
    shrink: float = 0.0,
    memory_limit: int = MEMORY_LIMIT,
) -> Matrix:
    """Return each row's most similar other rows, with their similarities.

    With ``d = x_t · x_o`` the product of a target row and another row, ``a = |x_t|²`` and
    ``b = |x_o|²``, the similarity of the other to the target is

        cosine      d / (sqrt(a b) + shrink)
        asymmetric  d / (a^(1 - alpha) b^alpha + shrink)
        jaccard     d / (a + b - d + shrink)
        dice        2 d / (a + b + shrink)

    Only similarities above 0 are kept; of equal ones the lower rows.

    Args:
        matrix: CSR ``(n, m)``: what is compared are the rows; binary or weighted.
        neighbors: How many others a target keeps.
        kind: The similarity.
        alpha: 0.5 is cosine; 1 divides by the other's size alone, 0 by the target's.
        shrink: Added to the divisor: larger values trust small overlaps less.
        memory_limit: Bytes that the dense blocks may take.

    Returns:
        CSR ``float32 (n, n)``: row t holds the neighbours of target t, columns ascending.

    Source:
        Aiolli, "Efficient Top-N Recommendation for Very Large Scale Binary Rated Datasets",
        RecSys 2013, section 4 (asymmetric cosine).
    """
    from scipy.sparse import csr_array

    matrix = matrix.astype(np.float32)
    n = matrix.shape[0]
    squares = np.asarray((matrix * matrix).sum(axis=1), dtype=np.float32).ravel()
    squares[squares == 0] = 1  # rows of nothing: 0 / 1
    dots = dot_blocks(matrix)
    size = min(block_size(20 * n + 4 * matrix.shape[1], memory_limit=memory_limit), 256)

    def kept(start: int, stop: int) -> tuple[AnyArray, AnyArray, AnyArray]:
        block = dots(start, stop)
        _to_similarity(block, squares[start:stop, None], squares, kind, (alpha, shrink))
        block[np.arange(stop - start), np.arange(start, stop)] = -np.inf
        columns, values = largest(block, min(neighbors, n))
        real = values > 0
        return np.count_nonzero(real, axis=1), columns[real], values[real]

    empty = (np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32), squares[:0])
    blocks = [empty, *map_blocks(kept, n, size)]
    counts, indices, data = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    indptr = np.cumsum(counts).astype(np.int32 if indices.size < 2**31 else np.int64)
    return csr_array((data, indices.astype(np.int32), indptr), shape=(n, n))


def _to_similarity(
    dots: Floats32, a: Floats32, b: Floats32, kind: Kind, settings: tuple[float, float]
) -> None:
    """Turn products into similarities, in place; rows of nothing become 0."""
    alpha, shrink = settings
    if kind == "jaccard":
        divisors = a + b - dots
    elif kind == "dice":
        divisors = (a + b) / 2
        shrink /= 2
    else:
        exponent = alpha if kind == "asymmetric" else 0.5
        divisors = a ** (1 - exponent) * b**exponent
    if shrink:
        divisors += np.float32(shrink)
    dots /= divisors
