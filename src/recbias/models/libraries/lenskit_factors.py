"""LensKit's matrix factorizations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.models.libraries.lenskit_adapter import (
    LensKitFactorModel,
    train_scorer,
    warn_about_equal_ratings,
)
from recbias.models.ranking.factor_model import FittedFactors


@dataclass(frozen=True, kw_only=True)
class LensKitImplicitMF(LensKitFactorModel):
    """Factorize the user-item matrix by alternating least squares (LensKit's implicit ALS).

        minimise  Σ_ui c_ui (x_ui - p_u · q_i)² + reg (Σ_u |p_u|² + Σ_i |q_i|²)

    ``x_ui`` is 1 for a training pair and 0 otherwise; ``c_ui`` is 1 + weight for a training pair
    and 1 otherwise. Each half is solved exactly. LensKit can recompute the vector of a user from
    the history; here the vectors from training are used.

    Args:
        embedding_size: Size of the vectors.
        reg: Weight of the squared norms of the vectors.
        weight: Additional confidence of a training pair. LensKit's default is large: weight 1 with
            reg 10 is far better on MovieLens-1M.
        epochs: Passes over all users and items.
        use_ratings: Whether the weight is multiplied by the rating.

    Source:
        Hu, Koren and Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM
        2008, equation 3; Ekstrand, "LensKit for Python", CIKM 2020.
    """

    embedding_size: Annotated[int, Gt(0)] = 50
    reg: Annotated[float, Gt(0)] = 0.1
    weight: Annotated[float, Gt(0)] = 40.0
    epochs: Annotated[int, Gt(0)] = 10
    use_ratings: bool = False

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Factorize the training matrix."""
        from lenskit.als import ImplicitMFScorer

        scorer = ImplicitMFScorer(
            embedding_size=self.embedding_size,
            regularization=self.reg,
            weight=self.weight,
            epochs=self.epochs,
            use_ratings=self.use_ratings,
        )
        return _export_factors(train_scorer(scorer, data, rng), None)


@dataclass(frozen=True, kw_only=True)
class LensKitBiasedMF(LensKitFactorModel):
    """Factorize the deviations of ratings from their biases, by ALS (LensKit's BiasedMF).

        r_ui ≈ b + b_u + b_i + p_u · q_i

    The biases are damped means; the vectors are then fitted to the residuals of the observed
    ratings. The model predicts ratings, not which items a user chooses. ``b_u`` does not change
    the order of a list and is excluded from the scores.

    Args:
        embedding_size: Size of the vectors.
        reg: Weight of the squared norms, times the number of ratings of the user or item.
        damping: Number of additional average ratings assumed for each user and item.
        epochs: Passes over all users and items.

    Source:
        Zhou, Wilkinson, Schreiber and Pan, "Large-Scale Parallel Collaborative Filtering for the
        Netflix Prize", AAIM 2008, section 3; Ekstrand, "LensKit for Python", CIKM 2020.
    """

    embedding_size: Annotated[int, Gt(0)] = 50
    reg: Annotated[float, Gt(0)] = 0.1
    damping: Annotated[float, Ge(0)] = 5.0
    epochs: Annotated[int, Gt(0)] = 10

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Factorize the training ratings."""
        from lenskit.als import BiasedMFScorer

        warn_about_equal_ratings(data, "lenskit/BiasedMF")
        scorer = BiasedMFScorer(
            embedding_size=self.embedding_size,
            regularization=self.reg,
            damping=self.damping,
            epochs=self.epochs,
        )
        return _export_with_bias(train_scorer(scorer, data, rng))


@dataclass(frozen=True, kw_only=True)
class LensKitFunkSVD(LensKitFactorModel):
    """Factorize ratings by SGD, one dimension after the other (LensKit's FunkSVD).

        r_ui ≈ b + b_u + b_i + Σ_f p_uf q_if

    Each dimension is trained on the residuals of those before it. ``b_u`` does not change the
    order of a list and is excluded from the scores.

    Args:
        embedding_size: Number of dimensions.
        learning_rate: Learning rate.
        reg: Weight of the squared entries.
        damping: Number of additional average ratings assumed for each user and item.
        epochs: Passes over the ratings per dimension.

    Source:
        Funk, "Netflix Update: Try This at Home", 2006; Ekstrand, "LensKit for Python", CIKM 2020.
    """

    embedding_size: Annotated[int, Gt(0)] = 50
    learning_rate: Annotated[float, Gt(0)] = 0.001
    reg: Annotated[float, Ge(0)] = 0.015
    damping: Annotated[float, Ge(0)] = 5.0
    epochs: Annotated[int, Gt(0)] = 100

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Factorize the training ratings."""
        from lenskit.funksvd import FunkSVDScorer

        warn_about_equal_ratings(data, "lenskit/FunkSVD")
        scorer = FunkSVDScorer(
            embedding_size=self.embedding_size,
            learning_rate=self.learning_rate,
            regularization=self.reg,
            damping=self.damping,
            epochs=self.epochs,
        )
        return _export_with_bias(train_scorer(scorer, data, rng))


def _export_factors(scorer: Any, item_bias: AnyArray | None) -> FittedFactors:
    arrays = (scorer.user_embeddings, scorer.item_embeddings)
    users, items = (np.ascontiguousarray(array, dtype=np.float32) for array in arrays)
    return FittedFactors(users, items, item_bias)


def _export_with_bias(scorer: Any) -> FittedFactors:
    bias = (scorer.bias.global_bias + scorer.bias.item_biases).astype(np.float32)
    return _export_factors(scorer, bias)
