"""PureSVD: a truncated singular value decomposition of the interaction matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, Matrix
from recbias.core.dataset.split import TrainingData
from recbias.core.models.devices import Device
from recbias.models.device_algebra.decompositions import (
    find_right_singular_vectors,
)
from recbias.models.ranking.fitted_models import FactorModel, FittedFactors, Floats32
from recbias.numerics.devices import OnDevice, find_accelerator

MAX_DENSE_SVD = 2**20  # Number of cells of a matrix up to which the full decomposition is computed
RANK_TOLERANCE = 1e-6  # A singular value below this share of the largest one is 0 up to rounding


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
    is_nonzero = values[order] > RANK_TOLERANCE * values.max(initial=0.0)
    vectors: AnyArray = rows[order].T * is_nonzero
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], 0)
    return (vectors * np.where(largest < 0, -1, 1)).astype(np.float32)
