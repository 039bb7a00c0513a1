"""LensKit's FlexMF: matrix factorisation by stochastic gradients, under its own names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import Contradiction
from recbias.core.protocols import Output, State
from recbias.models.libraries.lenskit_adapter import LIBRARIES, note_equal_ratings, trained
from recbias.models.ranking.factor_model import FittedFactors

FACTORS = frozenset[Output]({"lists", "embeddings"})
Regularisation: TypeAlias = Literal["AdamW", "L2"]


@dataclass(frozen=True, kw_only=True)
class LensKitFlexMFImplicit:
    """Factorise so that training pairs score above drawn ones (LensKit's FlexMF, implicit).

        s_ui = p_u · q_i + b_i (+ b_u)
        logistic   maximise  Σ weight ln σ(s_ui) + Σ ln σ(-s_uj)
        pairwise   maximise  Σ ln σ(s_ui - s_uj)
        warp       as pairwise, j drawn until it scores above i, weighted by the rank that tells

    ``j`` is an item that u does not have in training. ``b_u`` does not change the order of a list
    and is left out of the scores. On the CPU, so that a seed gives the same lists.

    Args:
        embedding_size: Length of the vectors.
        learning_rate: Length of a step of Adam.
        reg: Weight decay (``AdamW``), or weight of the norms in a batch (``L2``).
        regularization: How ``reg`` is applied.
        epochs: Passes over the training rows.
        batch_size: Training rows in a step.
        loss: ``logistic``, ``pairwise`` (BPR) or ``warp``, which takes many times longer.
        negatives: Items drawn for each training row; ``warp`` takes 1.
        positive_weight: Weight of the training pairs in the logistic loss.
        layers: Layers of LightGCN between the vectors and the scores; 0 for none.

    Raises:
        Contradiction: ``warp`` with more than one item drawn.

    Source:
        Rendle et al., "BPR", UAI 2009; Johnson, "Logistic Matrix Factorization", NIPS workshop
        2014; Weston, Bengio and Usunier, "WSABIE", IJCAI 2011; He et al., "LightGCN", SIGIR 2020;
        Ekstrand, "LensKit for Python", CIKM 2020.
    """

    provides: ClassVar[frozenset[Output]] = FACTORS
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = (*LIBRARIES, "torch")

    embedding_size: Annotated[int, Gt(0)] = 64
    learning_rate: Annotated[float, Gt(0)] = 0.01
    reg: Annotated[float, Ge(0)] = 0.01
    regularization: Regularisation = "AdamW"
    epochs: Annotated[int, Gt(0)] = 10
    batch_size: Annotated[int, Gt(0)] = 8192
    loss: Literal["logistic", "pairwise", "warp"] = "logistic"
    negatives: Annotated[int, Gt(0)] = 1
    positive_weight: Annotated[float, Gt(0)] = 1.0
    layers: Annotated[int, Ge(0)] = 0

    def __post_init__(self) -> None:
        """Refuse several draws for ``warp``, which draws until an item scores too high."""
        if self.loss == "warp" and self.negatives > 1:
            found = "loss: warp draws one item for each training row"
            raise Contradiction(found, where="negatives", remedy="leave out negatives")

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Learn from the training rows."""
        from lenskit.flexmf import FlexMFImplicitScorer

        scorer = FlexMFImplicitScorer(
            embedding_size=self.embedding_size,
            learning_rate=self.learning_rate,
            regularization=self.reg,
            reg_method=self.regularization,
            epochs=self.epochs,
            batch_size=self.batch_size,
            loss=self.loss,
            negative_count=self.negatives,
            positive_weight=self.positive_weight,
            convolution_layers=self.layers,
        )
        return _factors(trained(scorer, data, rng).model)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.from_state(state)


@dataclass(frozen=True, kw_only=True)
class LensKitFlexMFExplicit:
    """Factorise ratings by stochastic gradients (LensKit's FlexMF, explicit).

        r_ui ≈ b + b_u + b_i + p_u · q_i

    A model of ratings, not of choices: it ranks what a user would rate well. ``b`` and ``b_u`` do
    not change the order of a list and are left out of the scores. On the CPU, so that a seed gives
    the same lists.

    Args:
        embedding_size: Length of the vectors.
        learning_rate: Length of a step of Adam.
        reg: Weight of the norms in a batch (``L2``), or weight decay (``AdamW``).
        regularization: How ``reg`` is applied.
        epochs: Passes over the training rows.
        batch_size: Training rows in a step.

    Source:
        Koren, Bell and Volinsky, "Matrix Factorization Techniques for Recommender Systems",
        Computer 42(8), 2009, equation 5; Ekstrand, "LensKit for Python", CIKM 2020.
    """

    provides: ClassVar[frozenset[Output]] = FACTORS
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = (*LIBRARIES, "torch")

    embedding_size: Annotated[int, Gt(0)] = 64
    learning_rate: Annotated[float, Gt(0)] = 0.01
    reg: Annotated[float, Ge(0)] = 0.1
    regularization: Regularisation = "L2"
    epochs: Annotated[int, Gt(0)] = 10
    batch_size: Annotated[int, Gt(0)] = 8192

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Learn from the training ratings."""
        from lenskit.flexmf import FlexMFExplicitScorer

        note_equal_ratings(data, "lenskit/FlexMFExplicit")
        scorer = FlexMFExplicitScorer(
            embedding_size=self.embedding_size,
            learning_rate=self.learning_rate,
            regularization=self.reg,
            reg_method=self.regularization,
            epochs=self.epochs,
            batch_size=self.batch_size,
        )
        return _factors(trained(scorer, data, rng).model)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.from_state(state)


def _factors(model: Any) -> FittedFactors:
    users = model.u_embed.weight if model.u_layers is None else model.u_layers.mean(0)
    items = model.i_embed.weight if model.i_layers is None else model.i_layers.mean(0)
    bias = None if model.i_bias is None else _array(model.i_bias.weight).ravel()
    return FittedFactors(_array(users), _array(items), bias)


def _array(tensor: Any) -> AnyArray:
    array: AnyArray = tensor.detach().numpy().astype(np.float32)
    return array
