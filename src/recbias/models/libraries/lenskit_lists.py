"""LensKit's neighbourhoods, EASE and SLIM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Gt

from recbias.core.dataset.split import TrainingData
from recbias.models.libraries.lenskit_adapter import (
    LIBRARIES,
    FittedScorer,
    LensKitModel,
    warn_about_equal_ratings,
)
from recbias.models.ranking.fitted_models import FittedItemWeights, ItemWeightModel

Feedback = Literal["implicit", "explicit"]
NAMES = {  # LensKit's names of settings
    "neighbors": "max_nbrs",
    "min_neighbors": "min_nbrs",
    "min_similarity": "min_sim",
    "saved_neighbors": "save_nbrs",
}


class _KNN(LensKitModel):
    feedback: Feedback

    def _fit_knn(self, kind: Any, data: TrainingData, rng: np.random.Generator) -> FittedScorer:
        if self.feedback == "explicit":
            warn_about_equal_ratings(data, kind.__name__)
        return FittedScorer.from_training(self.train(kind, data, rng, **NAMES), data)


class _ItemWeightModel(ItemWeightModel, LensKitModel):
    def _fit_weights(
        self, kind: Any, data: TrainingData, rng: np.random.Generator, **names: str
    ) -> FittedItemWeights:
        return FittedItemWeights.from_matrix(self.train(kind, data, rng, **names).weights)


@dataclass(frozen=True, kw_only=True)
class LensKitItemKNN(_KNN):
    """Rank items by the user's most similar items (LensKit's item neighbourhoods).

        score(u, i) = Σ_{j in N(i; u)} s_ij                                    implicit
        score(u, i) = m_i + Σ_{j in N(i; u)} s_ij (r_uj - m_j) / Σ |s_ij|      explicit

    ``N(i; u)`` are the ``neighbors`` items of u's history that are most similar to i by cosine,
    ``m`` the mean ratings. LensKit scores one user at a time, which takes minutes for thousands of
    users, and the fitted model is not stored between runs.

    Args:
        neighbors: Maximum number of neighbours that a score uses.
        min_neighbors: Items with fewer neighbours have no score.
        min_similarity: Minimum similarity of a neighbour.
        saved_neighbors: Number of neighbours stored per item; null for all.
        feedback: ``implicit`` replaces ratings by 1; ``explicit`` (LensKit's default) uses them.

    Source:
        Deshpande and Karypis, "Item-Based Top-N Recommendation Algorithms", TOIS 22(1), 2004;
        Ekstrand, "LensKit for Python", CIKM 2020.
    """

    neighbors: Annotated[int, Gt(0)] = 20
    min_neighbors: Annotated[int, Gt(0)] = 1
    min_similarity: Annotated[float, Gt(0)] = 1e-6
    saved_neighbors: Annotated[int, Gt(0)] | None = None
    feedback: Feedback = "implicit"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedScorer:
        """Find the neighbours of each item."""
        from lenskit.knn import ItemKNNScorer

        return self._fit_knn(ItemKNNScorer, data, rng)


@dataclass(frozen=True, kw_only=True)
class LensKitUserKNN(_KNN):
    """Rank items by the most similar users who have them (LensKit's user neighbourhoods).

        score(u, i) = Σ_{v in N(u; i)} s_uv                                    implicit
        score(u, i) = m_u + Σ_{v in N(u; i)} s_uv (r_vi - m_v) / Σ |s_uv|      explicit

    ``N(u; i)`` are the ``neighbors`` users most similar to u by cosine among those who have i,
    ``m`` the mean ratings. LensKit scores one user at a time, which takes minutes for thousands of
    users, and the fitted model is not stored between runs.

    Args:
        neighbors: Maximum number of neighbours that a score uses.
        min_neighbors: Items with fewer neighbours have no score.
        min_similarity: Minimum similarity of a neighbour.
        feedback: ``implicit`` replaces ratings by 1; ``explicit`` (LensKit's default) uses them.

    Source:
        Herlocker, Konstan and Riedl, "An Empirical Analysis of Design Choices in
        Neighborhood-Based Collaborative Filtering Algorithms", Information Retrieval 5, 2002;
        Ekstrand, "LensKit for Python", CIKM 2020.
    """

    neighbors: Annotated[int, Gt(0)] = 20
    min_neighbors: Annotated[int, Gt(0)] = 1
    min_similarity: Annotated[float, Gt(0)] = 1e-6
    feedback: Feedback = "implicit"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedScorer:
        """Store the users' rows; neighbours are searched at recommendation time."""
        from lenskit.knn import UserKNNScorer

        return self._fit_knn(UserKNNScorer, data, rng)


@dataclass(frozen=True, kw_only=True)
class LensKitEASE(_ItemWeightModel):
    """Rank items by a linear regression of each item on all others (LensKit's EASE).

        W = I - P / diag(P),   P = (Xᵀ X + reg I)⁻¹,   score(u, i) = (x_u W)_i

    Args:
        reg: Weight of the squared entries of W. LensKit's default is small; 500 is far better on
            MovieLens-1M.

    Source:
        Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019, equation 8.
    """

    libraries: ClassVar[tuple[str, ...]] = (*LIBRARIES, "torch")
    reg: Annotated[float, Gt(0)] = 1.0

    def least_memory(self, n_users: int, n_items: int) -> float:
        """Return the bytes of two dense item-item matrices."""
        del n_users
        return 8.0 * n_items**2

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemWeights:
        """Solve for the weights."""
        from lenskit.knn import EASEScorer

        return self._fit_weights(EASEScorer, data, rng, reg="regularization")


@dataclass(frozen=True, kw_only=True)
class LensKitSLIM(_ItemWeightModel):
    """Rank items by a sparse regression of each item on all others (LensKit's SLIM).

        minimise  ½ |x_i - X w_i|² + l1_reg |w_i|₁ + ½ l2_reg |w_i|²,   w_i ≥ 0, w_ii = 0

    Args:
        l1_reg: Weight of the L1 norm.
        l2_reg: Weight of the squared L2 norm.
        iterations: Maximum number of passes of coordinate descent per item.
        neighbors: Number of similar items in the regression of an item (fsSLIM); null for all.

    Source:
        Ning and Karypis, "SLIM: Sparse Linear Methods for Top-N Recommender Systems", ICDM 2011,
        equation 4.
    """

    l1_reg: Annotated[float, Gt(0)] = 1.0
    l2_reg: Annotated[float, Gt(0)] = 1.0
    iterations: Annotated[int, Gt(0)] = 100
    neighbors: Annotated[int, Gt(0)] | None = None

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemWeights:
        """Solve for the weights of each item."""
        from lenskit.knn.slim import SLIMScorer

        return self._fit_weights(
            SLIMScorer, data, rng, iterations="max_iters", neighbors="max_nbrs"
        )
