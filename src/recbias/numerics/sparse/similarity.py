"""Nearest rows of a sparse matrix by similarities that are 0 without shared columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

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
    n, similarity = matrix.shape[0], Similarity(kind, alpha, shrink)
    left, right = similarity.weigh(matrix)
    if can_count(matrix, neighbors):
        divisor = {"jaccard": UNION, "dice": MEAN}.get(kind, RATIO)
        added = shrink / 2 if kind == "dice" else shrink
        return find_nearest_binary(matrix, neighbors, (left, right), added=added, kind=divisor)
    dots = create_product_blocks(matrix)
    size = min(block_size(20 * n + 4 * matrix.shape[1], memory_limit=memory_limit), 256)

    def compute_block(start: int, stop: int) -> Floats32:
        block: Floats32 = similarity.divide(dots(start, stop), left[start:stop, None], right)
        return block

    return select_neighbors(compute_block, n, neighbors, size=size)


@dataclass(frozen=True)
class Similarity:
    """A similarity of rows, of arrays or of tensors: see ``find_nearest``."""

    kind: Kind = "cosine"
    alpha: float = 0.5
    shrink: float = 0.0

    def weigh(self, matrix: Matrix) -> tuple[Floats32, Floats32]:
        """Return what the divisors of ``divide`` have of each row, as target and as other row."""
        squares: Floats32 = np.asarray((matrix * matrix).sum(axis=1), dtype=np.float32).ravel()
        squares[squares == 0] = 1  # empty rows have similarity 0 / 1
        if self.kind in {"jaccard", "dice"}:
            return squares, squares
        exponent = self.alpha if self.kind == "asymmetric" else 0.5
        left: Floats32 = squares ** (1 - exponent)
        right: Floats32 = squares**exponent
        return left, right

    def divide(self, products: Any, left: Any, right: Any) -> Any:
        """Return the similarities of rows with these products, which are overwritten."""
        if self.kind == "jaccard":
            divisors, added = left + right - products, self.shrink
        elif self.kind == "dice":
            divisors, added = (left + right) / 2, self.shrink / 2
        else:
            divisors, added = left * right, self.shrink
        if added:
            divisors += added
        products /= divisors
        return products
