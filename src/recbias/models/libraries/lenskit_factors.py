"""LensKit's matrix factorisations, under their own names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.core.protocols import Output, State
from recbias.models.libraries.lenskit_adapter import LIBRARIES, note_equal_ratings, trained
from recbias.models.ranking.factor_model import FittedFactors

FACTORS = frozenset[Output]({"lists", "embeddings"})


@dataclass(frozen=True, kw_only=True)
class LensKitImplicitMF:
    """Factorise the user-item matrix by alternating least squares (LensKit's implicit ALS).

        minimise  Σ_ui c_ui (x_ui - p_u · q_i)² + reg (Σ_u |p_u|² + Σ_i |q_i|²)

    ``x_ui`` is 1 for a training pair and 0 otherwise; ``c_ui`` is 1 + weight for a training pair
    and 1 otherwise. Each half is solved exactly. LensKit can work a user's vector out anew from
    the history; here the vectors of the training are used.

    Args:
        embedding_size: Length of the vectors.
        reg: Weight of the squared lengths of the vectors.
        weight: What a training pair adds to the confidence of 1. LensKit's default is large:
            weight 1 with reg 10 is far better on MovieLens-1M.
        epochs: Passes over the users and the items.
        use_ratings: Multiply the weight by the rating.

    Source:
        Hu, Koren and Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM
        2008, equation 3; Ekstrand, "LensKit for Python", CIKM 2020.
    """

    provides: ClassVar[frozenset[Output]] = FACTORS
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = LIBRARIES

    embedding_size: Annotated[int, Gt(0)] = 50
    reg: Annotated[float, Gt(0)] = 0.1
    weight: Annotated[float, Gt(0)] = 40.0
    epochs: Annotated[int, Gt(0)] = 10
    use_ratings: bool = False

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Factorise the training rows."""
        from lenskit.als import ImplicitMFScorer

        scorer = ImplicitMFScorer(
            embedding_size=self.embedding_size,
            regularization=self.reg,
            weight=self.weight,
            epochs=self.epochs,
            use_ratings=self.use_ratings,
        )
        return _factors(trained(scorer, data, rng), None)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.from_state(state)


@dataclass(frozen=True, kw_only=True)
class LensKitBiasedMF:
    """Factorise what ratings are above or below their averages, by ALS (LensKit's BiasedMF).

        r_ui ≈ b + b_u + b_i + p_u · q_i

    The offsets are damped means; the vectors are then fitted to what is left of the ratings that
    are there. A model of ratings, not of choices: it ranks what a user would rate well. ``b_u``
    does not change the order of a list and is left out of the scores.

    Args:
        embedding_size: Length of the vectors.
        reg: Weight of the squared lengths of the vectors, times the ratings of the user or item.
        damping: How many average ratings each user and item is taken to have before its own.
        epochs: Passes over the users and the items.

    Source:
        Zhou, Wilkinson, Schreiber and Pan, "Large-Scale Parallel Collaborative Filtering for the
        Netflix Prize", AAIM 2008, section 3; Ekstrand, "LensKit for Python", CIKM 2020.
    """

    provides: ClassVar[frozenset[Output]] = FACTORS
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = LIBRARIES

    embedding_size: Annotated[int, Gt(0)] = 50
    reg: Annotated[float, Gt(0)] = 0.1
    damping: Annotated[float, Ge(0)] = 5.0
    epochs: Annotated[int, Gt(0)] = 10

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Factorise the training ratings."""
        from lenskit.als import BiasedMFScorer

        note_equal_ratings(data, "lenskit/BiasedMF")
        scorer = BiasedMFScorer(
            embedding_size=self.embedding_size,
            regularization=self.reg,
            damping=self.damping,
            epochs=self.epochs,
        )
        return _biased(trained(scorer, data, rng))

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.from_state(state)


@dataclass(frozen=True, kw_only=True)
class LensKitFunkSVD:
    """Factorise ratings one dimension after the other, by gradient steps (LensKit's FunkSVD).

        r_ui ≈ b + b_u + b_i + Σ_f p_uf q_if

    Each dimension is trained on what the ones before it leave. ``b_u`` does not change the order
    of a list and is left out of the scores.

    Args:
        embedding_size: Number of dimensions.
        learning_rate: Length of a step.
        reg: Weight of the squared entries.
        damping: How many average ratings each user and item is taken to have before its own.
        epochs: Passes over the ratings for each dimension.

    Source:
        Funk, "Netflix Update: Try This at Home", 2006; Ekstrand, "LensKit for Python", CIKM 2020.
    """

    provides: ClassVar[frozenset[Output]] = FACTORS
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = LIBRARIES

    embedding_size: Annotated[int, Gt(0)] = 50
    learning_rate: Annotated[float, Gt(0)] = 0.001
    reg: Annotated[float, Ge(0)] = 0.015
    damping: Annotated[float, Ge(0)] = 5.0
    epochs: Annotated[int, Gt(0)] = 100

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Factorise the training ratings."""
        from lenskit.funksvd import FunkSVDScorer

        note_equal_ratings(data, "lenskit/FunkSVD")
        scorer = FunkSVDScorer(
            embedding_size=self.embedding_size,
            learning_rate=self.learning_rate,
            regularization=self.reg,
            damping=self.damping,
            epochs=self.epochs,
        )
        return _biased(trained(scorer, data, rng))

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.from_state(state)


def _factors(scorer: Any, item_bias: AnyArray | None) -> FittedFactors:
    arrays = (scorer.user_embeddings, scorer.item_embeddings)
    users, items = (np.ascontiguousarray(each, dtype=np.float32) for each in arrays)
    return FittedFactors(users, items, item_bias)


def _biased(scorer: Any) -> FittedFactors:
    bias = (scorer.bias.global_bias + scorer.bias.item_biases).astype(np.float32)
    return _factors(scorer, bias)
