"""EASE: an item-to-item ridge regression in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, cast

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import OutOfRange
from recbias.models.ranking.item_weight_model import FittedItemWeights, ItemWeightModel
from recbias.numerics.sparse.products import compute_gram

MAX_SINGLE_PRECISION_NORM = 1e7
"""Maximum norm of a matrix, as a multiple of ``reg``, that is inverted in single precision."""


@dataclass(frozen=True, kw_only=True)
class EASE(ItemWeightModel):
    """Recommend by the item-to-item weights that best reconstruct the histories.

        B = I - P diag(1 / P_jj),    P = (XᵀX + reg I)⁻¹,    score(u, j) = x_u B_j

    ``X`` is the binary user-item matrix. ``B`` minimises |X - X B|² + reg |B|² subject to a zero
    diagonal, so that no item reconstructs itself. A user without training items has an empty list.
    The memory use is that of three dense item-item matrices.

    Args:
        reg: Weight of the L2 penalty.

    Raises:
        OutOfRange: ``reg`` is so small that the matrix cannot be inverted.

    Source:
        Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019, equation 8.
    """

    libraries: ClassVar[tuple[str, ...]] = ("scipy",)

    reg: Annotated[float, Gt(0)] = 500.0

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemWeights:
        """Invert the regularised item-item matrix."""
        products = compute_gram(data.train.binary.T.tocsr())
        norm = float(products.sum(axis=1).max(initial=0.0))
        needs_double = norm > MAX_SINGLE_PRECISION_NORM * self.reg
        products = products.astype(np.float64 if needs_double else np.float32, copy=False)
        np.fill_diagonal(products, products.diagonal() + self.reg)
        weights = _invert_in_place(products, self.reg)
        weights /= -weights.diagonal()
        np.fill_diagonal(weights, 0)
        return FittedItemWeights.from_matrix(weights)


def _invert_in_place(matrix: AnyArray, reg: float) -> AnyArray:
    """Return the inverse of a symmetric positive definite matrix, which is overwritten."""
    from scipy.linalg.lapack import get_lapack_funcs

    factorize, invert = cast("Any", get_lapack_funcs(("potrf", "potri"), (matrix,)))
    triangle, status = factorize(matrix.T, lower=False, overwrite_a=True)
    if status:
        problem = f"EASE cannot invert the item-item matrix with reg {reg:g}"
        raise OutOfRange(problem, remedy="choose a larger reg, 1 or more")
    triangle, _ = invert(triangle, lower=False, overwrite_c=True)
    inverse: AnyArray = np.triu(triangle)
    inverse += np.triu(triangle, 1).T
    return inverse
