"""LensKit's matrix factorizations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Le

from recbias.core.dataset.split import TrainingData
from recbias.models.libraries.lenskit_adapter import (
    LIBRARIES,
    LensKitFactorModel,
    export_factors,
    warn_about_equal_ratings,
)
from recbias.models.ranking.fitted_models import FittedFactors


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

        scorer = self.train(ImplicitMFScorer, data, rng, reg="regularization")
        return export_factors(scorer.user_embeddings, scorer.item_embeddings)


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
        return _export_biased(self.train(BiasedMFScorer, data, rng, reg="regularization"))


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
        return _export_biased(self.train(FunkSVDScorer, data, rng, reg="regularization"))


@dataclass(frozen=True, kw_only=True)
class LensKitBiasedSVD(LensKitFactorModel):
    """Decompose the deviations of ratings from their biases (LensKit's BiasedSVD).

        r_ui - b - b_u - b_i ≈ (U Σ Vᵀ)_ui,    score(u, i) = b + b_i + (U Σ)_u · V_i

    A pair without a rating counts as 0. ``b_u`` does not change the order of a list and is
    excluded from the scores.

    Args:
        embedding_size: Number of singular vectors.
        damping: Number of additional average ratings assumed for each user and item.
        algorithm: ``randomized`` or ``arpack``.
        iterations: Power iterations of the randomized algorithm.

    Source:
        Koren, "Factorization Meets the Neighborhood", KDD 2008, section 2; Ekstrand, "LensKit for
        Python", CIKM 2020.
    """

    libraries: ClassVar[tuple[str, ...]] = (*LIBRARIES, "scikit-learn")

    embedding_size: Annotated[int, Gt(0)] = 50
    damping: Annotated[float, Ge(0)] = 5.0
    algorithm: Literal["randomized", "arpack"] = "randomized"
    iterations: Annotated[int, Gt(0)] = 5

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Decompose the training ratings."""
        from lenskit.sklearn.svd import BiasedSVDScorer

        warn_about_equal_ratings(data, "lenskit/BiasedSVD")
        with seed_global_numpy(rng):
            scorer = self.train(BiasedSVDScorer, data, rng, iterations="n_iter")
        bias = scorer.bias_.global_bias + scorer.bias_.item_biases
        return export_factors(scorer.user_components_, scorer.factorization_.components_.T, bias)


@dataclass(frozen=True, kw_only=True)
class LensKitNMF(LensKitFactorModel):
    """Factorize the user-item matrix into non-negative factors (LensKit's NMF).

        minimise  ½ |X - W H|² + reg (R(W) n_items + R(H) n_users),    W, H ≥ 0
        R(A) = l1_ratio |A|₁ + ½ (1 - l1_ratio) |A|²

    ``X`` is 1 for a training pair and 0 otherwise.

    Args:
        embedding_size: Number of factors.
        epochs: Maximum number of iterations.
        reg: Weight of the penalty.
        l1_ratio: Share of the L1 norm in the penalty.

    Source:
        Lee and Seung, "Learning the Parts of Objects by Non-Negative Matrix Factorization", Nature
        401, 1999; Ekstrand, "LensKit for Python", CIKM 2020.
    """

    libraries: ClassVar[tuple[str, ...]] = (*LIBRARIES, "scikit-learn")

    embedding_size: Annotated[int, Gt(0)] = 50
    epochs: Annotated[int, Gt(0)] = 200
    reg: Annotated[float, Ge(0)] = 0.0
    l1_ratio: Annotated[float, Ge(0), Le(1)] = 0.0

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Factorize the training matrix."""
        from lenskit.sklearn.nmf import NMFScorer

        with seed_global_numpy(rng):
            scorer = self.train(NMFScorer, data, rng, epochs="max_iter", reg="alpha_W")
        return export_factors(scorer.user_components, scorer.item_components)


@contextmanager
def seed_global_numpy(rng: np.random.Generator) -> Iterator[None]:
    """Seed numpy's global generator in a block: LensKit passes no other to scikit-learn."""
    previous = np.random.get_state()  # noqa: NPY002  the only generator that these scorers use
    np.random.set_state(np.random.RandomState(int(rng.integers(2**31))).get_state())  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(previous)  # noqa: NPY002


def _export_biased(scorer: Any) -> FittedFactors:
    bias = scorer.bias.global_bias + scorer.bias.item_biases
    return export_factors(scorer.user_embeddings, scorer.item_embeddings, bias)
