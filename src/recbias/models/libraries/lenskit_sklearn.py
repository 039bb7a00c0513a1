"""LensKit's factorizations by scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Le

from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.models.libraries.lenskit_adapter import (
    LIBRARIES,
    LensKitFactorModel,
    train_scorer,
    warn_about_equal_ratings,
)
from recbias.models.ranking.factor_model import FittedFactors


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
        scorer = BiasedSVDScorer(
            embedding_size=self.embedding_size,
            damping=self.damping,
            algorithm=self.algorithm,
            n_iter=self.iterations,
        )
        with seed_global_numpy(rng):
            train_scorer(scorer, data, rng)
        bias = scorer.bias_.global_bias + scorer.bias_.item_biases
        items = scorer.factorization_.components_.T
        return FittedFactors(
            _to_float32(scorer.user_components_), _to_float32(items), _to_float32(bias)
        )


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

        scorer = NMFScorer(
            embedding_size=self.embedding_size,
            max_iter=self.epochs,
            alpha_W=self.reg,
            l1_ratio=self.l1_ratio,
        )
        with seed_global_numpy(rng):
            train_scorer(scorer, data, rng)
        return FittedFactors(
            _to_float32(scorer.user_components), _to_float32(scorer.item_components)
        )


@contextmanager
def seed_global_numpy(rng: np.random.Generator) -> Iterator[None]:
    """Seed numpy's global generator in a block: LensKit passes no other to scikit-learn."""
    previous = np.random.get_state()  # noqa: NPY002  the only generator that these scorers use
    np.random.set_state(np.random.RandomState(int(rng.integers(2**31))).get_state())  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(previous)  # noqa: NPY002


def _to_float32(values: Any) -> AnyArray:
    array: AnyArray = np.ascontiguousarray(values, dtype=np.float32)
    return array
