"""LensKit's FlexMF: matrix factorization by stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.dataset.split import TrainingData
from recbias.core.errors import Contradiction
from recbias.models.libraries.lenskit_adapter import (
    LIBRARIES,
    LensKitFactorModel,
    warn_about_equal_ratings,
)
from recbias.models.ranking.fitted_models import FittedFactors
from recbias.models.ranking.tensors import copy_to_array

Regularization: TypeAlias = Literal["AdamW", "L2"]

NAMES = {"reg": "regularization", "regularization": "reg_method"}  # LensKit's names of settings


@dataclass(frozen=True, kw_only=True)
class LensKitFlexMFImplicit(LensKitFactorModel):
    """Factorize so that training pairs score above sampled ones (LensKit's implicit FlexMF).

        s_ui = p_u · q_i + b_i (+ b_u)
        logistic   maximise  Σ weight ln σ(s_ui) + Σ ln σ(-s_uj)
        pairwise   maximise  Σ ln σ(s_ui - s_uj)
        warp       as pairwise, weighted by the rank of i; j is sampled until s_uj > s_ui

    ``j`` is an item that u does not have in training. ``b_u`` does not change the order of a list
    and is excluded from the scores. Training uses the CPU, so that results are reproducible.

    Args:
        embedding_size: Size of the vectors.
        learning_rate: Learning rate of Adam.
        reg: Weight decay (``AdamW``), or weight of the squared norms of a batch (``L2``).
        regularization: How ``reg`` is applied.
        epochs: Passes over the training interactions.
        batch_size: Training interactions per step.
        loss: ``logistic``, ``pairwise`` (BPR) or ``warp``, which is many times slower.
        negatives: Items sampled per training interaction; 1 for ``warp``.
        positive_weight: Weight of the training pairs in the logistic loss.
        layers: Number of LightGCN layers between the vectors and the scores; 0 for none.

    Raises:
        Contradiction: ``warp`` with more than one sampled item.

    Source:
        Rendle et al., "BPR", UAI 2009; Johnson, "Logistic Matrix Factorization", NIPS workshop
        2014; Weston, Bengio and Usunier, "WSABIE", IJCAI 2011; He et al., "LightGCN", SIGIR 2020;
        Ekstrand, "LensKit for Python", CIKM 2020.
    """

    libraries: ClassVar[tuple[str, ...]] = (*LIBRARIES, "torch")

    embedding_size: Annotated[int, Gt(0)] = 64
    learning_rate: Annotated[float, Gt(0)] = 0.01
    reg: Annotated[float, Ge(0)] = 0.01
    regularization: Regularization = "AdamW"
    epochs: Annotated[int, Gt(0)] = 10
    batch_size: Annotated[int, Gt(0)] = 8192
    loss: Literal["logistic", "pairwise", "warp"] = "logistic"
    negatives: Annotated[int, Gt(0)] = 1
    positive_weight: Annotated[float, Gt(0)] = 1.0
    layers: Annotated[int, Ge(0)] = 0

    def __post_init__(self) -> None:
        """Refuse more than one negative for ``warp``, which samples until one scores higher."""
        if self.loss == "warp" and self.negatives > 1:
            message = "loss: warp samples one item per training interaction"
            raise Contradiction(message, where="negatives", remedy="remove negatives")

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Train on the training interactions."""
        from lenskit.flexmf import FlexMFImplicitScorer

        scorer = self.train(
            FlexMFImplicitScorer,
            data,
            rng,
            **NAMES,
            negatives="negative_count",
            layers="convolution_layers",
        )
        return _export_factors(scorer.model)


@dataclass(frozen=True, kw_only=True)
class LensKitFlexMFExplicit(LensKitFactorModel):
    """Factorise ratings by stochastic gradients (LensKit's FlexMF, explicit).

        r_ui ≈ b + b_u + b_i + p_u · q_i

    A model of ratings, not of choices: it ranks what a user would rate well. ``b`` and ``b_u`` do
    not change the order of a list and are left out of the scores. On the CPU, so that a seed gives
    the same lists.

    Args:
        embedding_size: Size of the vectors.
        learning_rate: Learning rate of Adam.
        reg: Weight of the norms in a batch (``L2``), or weight decay (``AdamW``).
        regularization: How ``reg`` is applied.
        epochs: Passes over the training interactions.
        batch_size: Training interactions per step.

    Source:
        Koren, Bell and Volinsky, "Matrix Factorization Techniques for Recommender Systems",
        Computer 42(8), 2009, equation 5; Ekstrand, "LensKit for Python", CIKM 2020.
    """

    libraries: ClassVar[tuple[str, ...]] = (*LIBRARIES, "torch")

    embedding_size: Annotated[int, Gt(0)] = 64
    learning_rate: Annotated[float, Gt(0)] = 0.01
    reg: Annotated[float, Ge(0)] = 0.1
    regularization: Regularization = "L2"
    epochs: Annotated[int, Gt(0)] = 10
    batch_size: Annotated[int, Gt(0)] = 8192

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Train on the training ratings."""
        from lenskit.flexmf import FlexMFExplicitScorer

        warn_about_equal_ratings(data, "lenskit/FlexMFExplicit")
        return _export_factors(self.train(FlexMFExplicitScorer, data, rng, **NAMES).model)


def _export_factors(model: Any) -> FittedFactors:
    users = model.u_embed.weight if model.u_layers is None else model.u_layers.mean(0)
    items = model.i_embed.weight if model.i_layers is None else model.i_layers.mean(0)
    bias = None if model.i_bias is None else copy_to_array(model.i_bias.weight).ravel()
    return FittedFactors(copy_to_array(users), copy_to_array(items), bias)
