"""Recommenders of the library ``implicit``."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.context import report_progress
from recbias.core.dataset import TrainingData
from recbias.models.fitted import FactorModel, FittedFactors, FittedItemWeights, ItemWeightModel

_LIBRARIES = ("implicit",)


@dataclass(frozen=True, kw_only=True)
class ImplicitALS(FactorModel):
    """Factorize the user-item matrix by alternating least squares (implicit's iALS).

        minimise  Σ_ui c_ui (x_ui - p_u · q_i)² + reg (Σ_u |p_u|² + Σ_i |q_i|²)

    ``x_ui`` is 1 for a training pair and 0 otherwise; ``c_ui`` is alpha for a training pair and 1
    otherwise. The library solves each half by three steps of conjugate gradients. A seed gives
    the same result with any number of threads.

    Args:
        embedding_size: Size of the vectors.
        reg: Weight of the squared norms of the vectors.
        alpha: Confidence of a training pair.
        epochs: Passes over all users and items.

    Source:
        Hu, Koren and Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM
        2008, equation 3; Takács, Pilászy and Tikk, "Applications of the Conjugate Gradient Method
        for Implicit Feedback Collaborative Filtering", RecSys 2011.
    """

    libraries: ClassVar[tuple[str, ...]] = _LIBRARIES

    embedding_size: Annotated[int, Gt(0)] = 64
    reg: Annotated[float, Ge(0)] = 10.0
    alpha: Annotated[float, Gt(0)] = 1.0
    epochs: Annotated[int, Gt(0)] = 15

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Factorize the training matrix."""
        from implicit.cpu.als import AlternatingLeastSquares

        model = _fit_library_model(
            AlternatingLeastSquares,
            data,
            lambda epoch, *_: report_progress("ALS", epoch + 1, self.epochs),
            factors=self.embedding_size,
            regularization=self.reg,
            alpha=self.alpha,
            iterations=self.epochs,
            random_state=int(rng.integers(2**31)),
        )
        return FittedFactors(model.user_factors, model.item_factors)


@dataclass(frozen=True, kw_only=True)
class ImplicitItemKNN(ItemWeightModel):
    """Rank items by their similarity to the user's items (implicit's item neighbourhoods).

        score(u, i) = Σ_j∈I_u  s_ji   where i is among the neighbors of j

    ``I_u`` is the history of u and ``s`` the cosine. The neighbourhood is that of the item j
    in the history, and contains j itself. ``ItemKNN`` uses that of the item i to be ranked.

    Args:
        neighbors: Number of neighbours of an item.

    Source:
        Deshpande and Karypis, "Item-Based Top-N Recommendation Algorithms", TOIS 22(1), 2004.
    """

    libraries: ClassVar[tuple[str, ...]] = _LIBRARIES

    neighbors: Annotated[int, Gt(0)] = 20

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemWeights:
        """Find the neighbours of each item."""
        from implicit.nearest_neighbours import CosineRecommender

        model = _fit_library_model(CosineRecommender, data, None, K=self.neighbors)
        return FittedItemWeights.from_matrix(model.similarity)


def _fit_library_model(kind: Any, data: TrainingData, callback: Any, **settings: Any) -> Any:
    """Fit a model of the library, with one BLAS thread as the library requires."""
    from implicit.utils import ParameterWarning
    from scipy.sparse import csr_matrix
    from threadpoolctl import threadpool_limits

    with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="blas"):
        # its neighbourhood models warn of a conversion that they make themselves
        warnings.simplefilter("ignore", ParameterWarning)
        model = kind(**settings)
        model.fit(csr_matrix(data.train.binary), show_progress=False, callback=callback)
    return model
