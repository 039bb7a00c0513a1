"""EASE and SLIM: linear regressions of each item on all other items.

PureSVD: a truncated singular value decomposition of the interaction matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
from annotated_types import Ge, Gt, Le

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, Matrix, TrainingData
from recbias.core.errors import OutOfRange
from recbias.core.plugins import Device, is_cuda
from recbias.kernels.devices import OnDevice, find_accelerator
from recbias.kernels.linear import Penalty, elastic_net
from recbias.kernels.topk import compute_gram
from recbias.models.fitted import (
    FactorModel,
    FittedFactors,
    FittedItemWeights,
    Floats32,
    ItemWeightModel,
)
from recbias.models.gpu import find_right_singular_vectors, regress_items

MAX_SINGLE_PRECISION_NORM = 1e7
"""Maximum norm of a matrix, as a multiple of ``reg``, that is inverted in single precision."""


@dataclass(frozen=True, kw_only=True)
class EASE(ItemWeightModel, OnDevice):
    """Recommend by the item-to-item weights that best reconstruct the histories.

        B = I - P diag(1 / P_jj),    P = (XᵀX + reg I)⁻¹,    score(u, j) = x_u B_j

    ``X`` is the binary user-item matrix. ``B`` minimises |X - X B|² + reg |B|² subject to a zero
    diagonal, so that no item reconstructs itself. A user without training items has an empty list.
    The memory use is that of three dense item-item matrices.

    Args:
        reg: Weight of the L2 penalty.
        device: Where the matrix is inverted (on CUDA, else the CPU) and the lists are ranked.

    Raises:
        OutOfRange: ``reg`` is so small that the matrix cannot be inverted.
        TooLittleMemory: A GPU cannot hold the matrices.

    Source:
        Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019, equation 8.
    """

    libraries: ClassVar[tuple[str, ...]] = ("scipy",)

    reg: Annotated[float, Gt(0)] = 500.0
    device: Device = "auto"

    def least_memory(self, n_users: int, n_items: int) -> float:
        """Return the bytes of three dense item-item matrices, on a GPU those of the result."""
        del n_users
        return (1 if is_cuda(self.device) else 3) * 4.0 * n_items**2

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemWeights:
        """Invert the regularised item-item matrix."""
        matrix, gpu = data.train.binary.T.tocsr(), find_accelerator(self.device, double=True)
        if gpu is not None:
            weights = regress_items(matrix, self.reg, gpu, max_norm=MAX_SINGLE_PRECISION_NORM)
        else:
            weights = _regress_items(matrix, self.reg)
        if weights is None:
            problem = f"EASE cannot invert the item-item matrix with reg {self.reg:g}"
            raise OutOfRange(problem, remedy="choose a larger reg, 1 or more")
        return FittedItemWeights.from_matrix(weights, self.device)


@dataclass(frozen=True, kw_only=True)
class SLIM(ItemWeightModel):
    """Recommend by sparse, non-negative item-to-item weights that reconstruct the histories.

        minimise over w >= 0, w_j = 0:
        |x_j - X w|² / (2 n_users) + alpha l1_ratio |w|₁ + alpha (1 - l1_ratio) |w|² / 2

    for each column ``x_j`` of the binary user-item matrix ``X``; ``score(u, j) = x_u w``. The
    objective is that of scikit-learn's ElasticNet. Each item keeps its ``neighbors`` largest
    weights. A user without training items has an empty list.

    Args:
        alpha: Weight of the penalty.
        l1_ratio: Share of the L1 penalty, which makes the weights sparse.
        neighbors: Maximum number of weights per item.
        max_iter: Maximum number of passes over all weights; a warning reports items that have not
            converged.
        tolerance: Stop when no weight of an item would change by more than this share of its
            largest in a pass.
        variant: ``elliot`` lets an item reconstruct itself (``w_j`` is not restricted to 0) and
            drops the smallest weight of each item, as that framework does.

    Source:
        Ning and Karypis, "SLIM: Sparse Linear Methods for Top-N Recommender Systems", ICDM 2011,
        equation 4; Friedman, Hastie and Tibshirani, "Regularization Paths for Generalized Linear
        Models via Coordinate Descent", J. Stat. Softw. 33(1), 2010, section 2.2.
    """

    libraries: ClassVar[tuple[str, ...]] = ("scipy",)

    alpha: Annotated[float, Gt(0)] = 0.03
    l1_ratio: Annotated[float, Ge(0), Le(1)] = 0.003
    neighbors: Annotated[int, Gt(0)] = 500
    max_iter: Annotated[int, Gt(0)] = 100
    tolerance: Annotated[float, Gt(0)] = 1e-4
    variant: Literal["paper", "elliot"] = "paper"

    def least_memory(self, n_users: int, n_items: int) -> float:
        """Return the bytes of the dense item-item matrix."""
        del n_users
        return 4.0 * n_items**2

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemWeights:
        """Solve the regressions of all items."""
        matrix = data.train.binary
        total = self.alpha * max(matrix.shape[0], 1)
        is_elliot = self.variant == "elliot"
        weights, n_unconverged = elastic_net(
            compute_gram(matrix.T.tocsr()),
            Penalty(total * self.l1_ratio, total * (1 - self.l1_ratio)),
            keep=self.neighbors + is_elliot,
            max_iter=self.max_iter,
            tolerance=self.tolerance,
            allow_self=is_elliot,
        )
        if n_unconverged:
            warn(f"SLIM: {n_unconverged:,} items have not converged after {self.max_iter} passes")
        if is_elliot:
            weights = _drop_smallest_per_row(weights)
        return FittedItemWeights.from_matrix(weights.T.tocsr())


def _regress_items(matrix: Matrix, reg: float) -> AnyArray | None:
    """Return the weights of ``regress_items``, computed by arrays."""
    products = compute_gram(matrix)
    norm = float(products.sum(axis=1).max(initial=0.0))
    needs_double = norm > MAX_SINGLE_PRECISION_NORM * reg
    products = products.astype(np.float64 if needs_double else np.float32, copy=False)
    np.fill_diagonal(products, products.diagonal() + reg)
    weights = _invert_in_place(products)
    if weights is not None:
        weights /= -weights.diagonal()
        np.fill_diagonal(weights, 0)
    return weights


def _invert_in_place(matrix: AnyArray) -> AnyArray | None:
    """Return the inverse of a symmetric matrix, which is overwritten.

    It is None if the matrix is not positive definite.
    """
    from scipy.linalg.lapack import get_lapack_funcs

    factorize, invert = cast("Any", get_lapack_funcs(("potrf", "potri"), (matrix,)))
    triangle, status = factorize(matrix.T, lower=False, overwrite_a=True)
    if status:
        return None
    triangle, _ = invert(triangle, lower=False, overwrite_c=True)
    inverse: AnyArray = np.triu(triangle)
    inverse += np.triu(triangle, 1).T
    return inverse


def _drop_smallest_per_row(weights: Matrix) -> Matrix:
    counts = np.diff(weights.indptr)
    rows = np.repeat(np.arange(counts.size), counts)
    ascending = np.lexsort((weights.data, rows))
    remaining = weights.copy()
    remaining.data[ascending[weights.indptr[:-1][counts > 0]]] = 0
    remaining.eliminate_zeros()
    return remaining


MAX_DENSE_SVD = 2**20  # Number of cells of a matrix up to which the full decomposition is computed
_RANK_TOLERANCE = 1e-6  # A singular value below this share of the largest one is 0 up to rounding


@dataclass(frozen=True, kw_only=True)
class PureSVD(FactorModel, OnDevice):
    """Recommend by a low-rank approximation of the binary interaction matrix.

        score(u, i) = x_u V V_iᵀ,    X ≈ U S Vᵀ

    ``X`` is the binary user-item matrix and ``V`` its ``factors`` first right singular vectors,
    with signs chosen so that the largest entry of each is positive. User vectors are ``x_u V``,
    item vectors ``V_i``. If the rank of ``X`` is lower than ``factors``, the remaining factors are
    0. A user without training items has an empty list.

    Args:
        factors: Number of singular vectors.
        device: Where the vectors are computed (on CUDA, else the CPU) and the lists are ranked.

    Raises:
        TooLittleMemory: A GPU cannot hold the matrix.

    Source:
        Cremonesi, Koren and Turrin, "Performance of Recommender Algorithms on Top-N Recommendation
        Tasks", RecSys 2010, section 3.2, equation 8.
    """

    libraries: ClassVar[tuple[str, ...]] = ("scipy",)

    factors: Annotated[int, Gt(0)] = 22
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Compute the singular vectors."""
        matrix = data.train.binary
        vectors = np.zeros((matrix.shape[1], self.factors), dtype=np.float32)
        gpu = find_accelerator(self.device, double=True)
        singular = _compute_right_singular_vectors(matrix, self.factors, gpu)
        vectors[:, : singular.shape[1]] = singular
        return FittedFactors(matrix @ vectors, vectors, device=self.device)


def _compute_right_singular_vectors(matrix: Matrix, factors: int, gpu: Any = None) -> Floats32:
    """Return the first right singular vectors as columns; those of singular value 0 are zero.

    A fixed start vector and fixed signs make the result reproducible. A large matrix is decomposed
    on ``gpu``, a ``torch.device``, if there is one.
    """
    from scipy.sparse.linalg import svds

    max_rank = min(matrix.shape)
    if matrix.shape[0] * matrix.shape[1] <= MAX_DENSE_SVD or factors >= max_rank:
        _, values, rows = np.linalg.svd(matrix.toarray().astype(np.float64), full_matrices=False)
    elif gpu is not None:
        values, rows = find_right_singular_vectors(matrix, factors, gpu)
    else:
        start = np.ones(max_rank)
        _, values, rows = svds(matrix.astype(np.float64), k=factors, v0=start)
    order = np.argsort(-values, kind="stable")[:factors]
    is_nonzero = values[order] > _RANK_TOLERANCE * values.max(initial=0.0)
    vectors: AnyArray = rows[order].T * is_nonzero
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], 0)
    return (vectors * np.where(largest < 0, -1, 1)).astype(np.float32)
