"""Nearest rows of a sparse matrix by similarities that are 0 without shared columns."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import Matrix
from recbias.numerics.sparse.blocks import MEMORY_LIMIT, block_size
from recbias.numerics.sparse.distances import select_neighbors
from recbias.numerics.sparse.products import create_product_blocks

Floats32 = npt.NDArray[np.float32]

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

    Only similarities above 0 count; ties go to the lower row.

    Args:
        matrix: CSR ``(n, m)``, binary or weighted.
        neighbors: Maximum number of neighbours per row.
        kind: The similarity.
        alpha: 0.5 is cosine; 1 divides by the norm of the other row only, 0 by the target's.
        shrink: Added to the divisor; larger values shrink similarities of small overlap.
        memory_limit: Maximum number of bytes of the dense blocks.

    Returns:
        CSR ``float32 (n, n)``: row t holds the neighbours of target t, columns ascending.

    Source:
        Aiolli, "Efficient Top-N Recommendation for Very Large Scale Binary Rated Datasets",
        RecSys 2013, section 4 (asymmetric cosine).
    """
    matrix = matrix.astype(np.float32)
    n = matrix.shape[0]
    squares = np.asarray((matrix * matrix).sum(axis=1), dtype=np.float32).ravel()
    squares[squares == 0] = 1  # empty rows have similarity 0 / 1
    dots = create_product_blocks(matrix)
    size = min(block_size(20 * n + 4 * matrix.shape[1], memory_limit=memory_limit), 256)

    def compute_block(start: int, stop: int) -> Floats32:
        block = dots(start, stop)
        _convert_to_similarity(block, squares[start:stop, None], squares, kind, (alpha, shrink))
        return block

    return select_neighbors(compute_block, n, neighbors, size=size)


def _convert_to_similarity(
    dots: Floats32, a: Floats32, b: Floats32, kind: Kind, settings: tuple[float, float]
) -> None:
    """Convert products to similarities in place; those of empty rows become 0."""
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
