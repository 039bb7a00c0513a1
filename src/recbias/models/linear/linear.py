"""Linear recommenders: a low-rank or an item-to-item map of the user's history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Gt, Le

from recbias.core.arrays import AnyArray, Matrix
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import OutOfRange
from recbias.core.protocols import Output, State
from recbias.core.stage_context import warn
from recbias.models.ranking.factor_model import FittedFactors
from recbias.models.ranking.item_weight_model import FittedItemWeights
from recbias.numerics.sparse.elastic_net import Penalty, elastic_net
from recbias.numerics.sparse.products import gram

Floats32 = npt.NDArray[np.float32]

LARGEST_DENSE_SVD = 2**20
"""Cells of a matrix up to which all singular vectors are worked out, not just the first."""

LEAST_SINGULAR = 1e-6
"""A singular value that is less than this times the first is 0 but for rounding."""

LARGEST_SINGLE = 1e7
"""Largest norm of a matrix, in units of ``reg``, that is inverted in single precision."""


@dataclass(frozen=True, kw_only=True)
class PureSVD:
    """Recommend by the low-rank matrix nearest to who has what.

        score(u, i) = x_u V V_iᵀ,    X ≈ U S Vᵀ

    ``X`` is the binary user-item matrix, ``V`` its ``factors`` first right singular vectors, each
    with its largest entry positive. User vectors are ``x_u V``, item vectors ``V_i``. A matrix of
    lower rank has vectors of 0 for what is missing. A user without training items has an empty
    list.

    Args:
        factors: Number of singular vectors.

    Source:
        Cremonesi, Koren and Turrin, "Performance of Recommender Algorithms on Top-N Recommendation
        Tasks", RecSys 2010, section 3.2, equation 8.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "embeddings"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ("scipy",)

    factors: Annotated[int, Gt(0)] = 22

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Find the singular vectors."""
        matrix = data.train.binary
        vectors = np.zeros((matrix.shape[1], self.factors), dtype=np.float32)
        found = _right_singular_vectors(matrix, self.factors)
        vectors[:, : found.shape[1]] = found
        return FittedFactors(matrix @ vectors, vectors)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.restored(state)


@dataclass(frozen=True, kw_only=True)
class EASE:
    """Recommend by the item-to-item weights that best rebuild each history from its other items.

        B = I - P diag(1 / P_jj),    P = (XᵀX + reg I)⁻¹,    score(u, j) = x_u B_j

    ``X`` is the binary user-item matrix. ``B`` minimises |X - X B|² + reg |B|² where its diagonal
    is 0. A user without training items has an empty list. The memory is that of three dense
    item-item matrices.

    Args:
        reg: Weight of the squared weights.

    Raises:
        OutOfRange: ``reg`` is so small that the matrix cannot be inverted.

    Source:
        Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019, equation 8.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ("scipy",)

    reg: Annotated[float, Gt(0)] = 500.0

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemWeights:
        """Invert the regularised item-item matrix."""
        products = gram(data.train.binary.T.tocsr())
        norm = float(products.sum(axis=1).max(initial=0.0))
        precise = norm > LARGEST_SINGLE * self.reg
        products = products.astype(np.float64 if precise else np.float32, copy=False)
        np.fill_diagonal(products, products.diagonal() + self.reg)
        weights = _inverse(products, self.reg)
        weights /= -weights.diagonal()
        np.fill_diagonal(weights, 0)
        return FittedItemWeights.of(weights)

    def restore(self, state: State) -> FittedItemWeights:
        """Return the fitted recommender of a stored state."""
        return FittedItemWeights.restored(state)


@dataclass(frozen=True, kw_only=True)
class SLIM:
    """Recommend by few, positive item-to-item weights that rebuild each history.

        minimise over w >= 0, w_j = 0:
        |x_j - X w|² / (2 n_users) + alpha l1_ratio |w|₁ + alpha (1 - l1_ratio) |w|² / 2

    for each column ``x_j`` of the binary user-item matrix ``X``; ``score(u, j) = x_u w``. The
    objective is that of scikit-learn's ElasticNet. An item keeps its ``neighbors`` largest
    weights. A user without training items has an empty list.

    Args:
        alpha: Weight of both penalties.
        l1_ratio: Share of the penalty that is on the sum of the weights, which makes them few.
        neighbors: How many weights an item keeps.
        max_iter: Most passes over the items; a warning says when they did not do.
        tolerance: Stop when no weight of an item moved by more than this times its largest.
        variant: ``elliot`` lets an item rebuild itself (the ``w_j`` that should be 0 is not, and
            takes from the others' weights) and drops the smallest weight of each item, as that
            framework does.

    Source:
        Ning and Karypis, "SLIM: Sparse Linear Methods for Top-N Recommender Systems", ICDM 2011,
        equation 4; Friedman, Hastie and Tibshirani, "Regularization Paths for Generalized Linear
        Models via Coordinate Descent", J. Stat. Softw. 33(1), 2010, section 2.2.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ("scipy",)

    alpha: Annotated[float, Gt(0)] = 0.03
    l1_ratio: Annotated[float, Ge(0), Le(1)] = 0.003
    neighbors: Annotated[int, Gt(0)] = 500
    max_iter: Annotated[int, Gt(0)] = 100
    tolerance: Annotated[float, Gt(0)] = 1e-4
    variant: Literal["paper", "elliot"] = "paper"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemWeights:
        """Descend over the items, for all items at once."""
        matrix = data.train.binary
        total = self.alpha * max(matrix.shape[0], 1)
        as_elliot = self.variant == "elliot"
        weights, unfinished = elastic_net(
            gram(matrix.T.tocsr()),
            Penalty(total * self.l1_ratio, total * (1 - self.l1_ratio)),
            keep=self.neighbors + as_elliot,
            max_iter=self.max_iter,
            tolerance=self.tolerance,
            own=as_elliot,
        )
        if unfinished:
            warn(f"SLIM: {unfinished:,} items were not finished after {self.max_iter} passes")
        if as_elliot:
            weights = _without_smallest(weights)
        return FittedItemWeights.of(weights.T.tocsr())

    def restore(self, state: State) -> FittedItemWeights:
        """Return the fitted recommender of a stored state."""
        return FittedItemWeights.restored(state)


def _without_smallest(weights: Matrix) -> Matrix:
    """Return a CSR matrix without the smallest entry of each row."""
    lengths = np.diff(weights.indptr)
    rows = np.repeat(np.arange(lengths.size), lengths)
    ascending = np.lexsort((weights.data, rows))
    left = weights.copy()
    left.data[ascending[weights.indptr[:-1][lengths > 0]]] = 0
    left.eliminate_zeros()
    return left


def _right_singular_vectors(matrix: Matrix, factors: int) -> Floats32:
    """Return the first right singular vectors as columns, those of singular value 0 as zeros.

    A start that is always the same, and signs by the largest entry, make them the same each time.
    """
    from scipy.sparse.linalg import svds

    shorter = min(matrix.shape)
    if matrix.shape[0] * matrix.shape[1] <= LARGEST_DENSE_SVD or factors >= shorter:
        _, values, rows = np.linalg.svd(matrix.toarray().astype(np.float64), full_matrices=False)
    else:
        start = np.ones(shorter)
        _, values, rows = svds(matrix.astype(np.float64), k=factors, v0=start)
    order = np.argsort(-values, kind="stable")[:factors]
    present = values[order] > LEAST_SINGULAR * values.max(initial=0.0)
    vectors: AnyArray = rows[order].T * present
    biggest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], 0)
    return (vectors * np.where(biggest < 0, -1, 1)).astype(np.float32)


def _inverse(matrix: AnyArray, reg: float) -> AnyArray:
    """Return the inverse of a symmetric positive definite matrix, in its own place."""
    from scipy.linalg.lapack import get_lapack_funcs

    factorise, invert = cast("Any", get_lapack_funcs(("potrf", "potri"), (matrix,)))
    triangle, wrong = factorise(matrix.T, lower=False, overwrite_a=True)
    if wrong:
        found = f"EASE cannot invert the item-item matrix with reg {reg:g}"
        raise OutOfRange(found, remedy="choose a larger reg, 1 or more")
    triangle, _ = invert(triangle, lower=False, overwrite_c=True)
    upper: AnyArray = np.triu(triangle)
    upper += np.triu(triangle, 1).T
    return upper
