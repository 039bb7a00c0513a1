"""Nearest rows of a sparse matrix by similarities that are 0 without shared columns."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from recbias.core.arrays import Matrix
from recbias.numerics.compiled.neighbour_kernel import MEAN, RATIO, UNION
from recbias.numerics.sparse.blocks import MEMORY_LIMIT, block_size
from recbias.numerics.sparse.distances import select_neighbors
from recbias.numerics.sparse.products import create_product_blocks
from recbias.numerics.sparse.shared_columns import can_count, find_nearest_binary
from recbias.numerics.sparse.topk import Floats32

Kind: TypeAlias = Literal["cosine", "asymmetric", "jaccard", "dice"]
"""Names of the similarities."""


def find_nearest(
    matrix: Matrix,
    neighbors: int,
    *,
    kind: Kind = "cosine",
    alpha: float = 0.5,
    shrink: float = 0.0,
    memory_limit: int = MEMORY_LIMIT,
) -> Matrix:
    """Find the most similar other rows of each row.

    With ``d = x_t · x_o`` the product of a target row and another row, ``a = |x_t|²`` and
    ``b = |x_o|²``, the similarity is

        cosine      d / (sqrt(a b) + shrink)
        asymmetric  d / (a^(1 - alpha) b^alpha + shrink)
        jaccard     d / (a + b - d + shrink)
        dice        2 d / (a + b + shrink)

    The matrix is CSR ``(n, m)``, binary or weighted; row t of the result, CSR ``float32 (n, n)``,
    holds the neighbours of target t, columns ascending. Only similarities above 0 count; ties go
    to the lower row. ``alpha`` 0.5 is cosine, 1 divides by the norm of the other row only, 0 by
    the target's. A larger ``shrink`` shrinks similarities of small overlap.

    Source:
        Aiolli, "Efficient Top-N Recommendation for Very Large Scale Binary Rated Datasets",
        RecSys 2013, section 4 (asymmetric cosine).
    """
    matrix = matrix.astype(np.float32)
    n = matrix.shape[0]
    squares = np.asarray((matrix * matrix).sum(axis=1), dtype=np.float32).ravel()
    squares[squares == 0] = 1  # empty rows have similarity 0 / 1
    if can_count(matrix, neighbors):
        return _find_nearest_binary(matrix, neighbors, squares, kind, alpha, shrink)
    dots = create_product_blocks(matrix)
    size = min(block_size(20 * n + 4 * matrix.shape[1], memory_limit=memory_limit), 256)

    exponent = alpha if kind == "asymmetric" else 0.5
    added = np.float32(shrink / 2 if kind == "dice" else shrink)

    def compute_block(start: int, stop: int) -> Floats32:
        block, a, b = dots(start, stop), squares[start:stop, None], squares
        if kind == "jaccard":
            divisors = a + b - block
        elif kind == "dice":
            divisors = (a + b) / 2
        else:
            divisors = a ** (1 - exponent) * b**exponent
        if shrink:
            divisors += added
        block /= divisors
        return block

    return select_neighbors(compute_block, n, neighbors, size=size)


def _find_nearest_binary(
    matrix: Matrix, neighbors: int, squares: Floats32, kind: Kind, alpha: float, shrink: float
) -> Matrix:
    if kind in {"jaccard", "dice"}:
        weights, divisor = (squares, squares), MEAN if kind == "dice" else UNION
        added = shrink / 2 if kind == "dice" else shrink
    else:
        exponent = alpha if kind == "asymmetric" else 0.5
        weights, divisor = (squares ** (1 - exponent), squares**exponent), RATIO
        added = shrink
    return find_nearest_binary(matrix, neighbors, weights, added=added, kind=divisor)
