"""DeepFM: a factorization machine and a deep network on the same vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, Lt

from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.core.models.devices import Device
from recbias.core.protocols import State
from recbias.models.neural.deepfm_tensors import DeepFMTensors
from recbias.models.neural.inputs import Columns, Fields, select_columns
from recbias.models.neural.pair_network import (
    FittedPairNetwork,
    PairLearner,
    sum_pair_losses,
)
from recbias.models.ranking.tensors import Tensor
from recbias.models.training.loop import TrainedModel
from recbias.models.training.samplers import Sampler
from recbias.numerics.devices import resolve_device

Variant: TypeAlias = Literal["paper", "elliot"]

Sizes: TypeAlias = tuple[Annotated[int, Gt(0)], ...]


@dataclass(frozen=True, kw_only=True)
class DeepFM(TrainedModel):
    """Add the scores of a factorization machine and a deep network on the same vectors.

        minimise  Σ_(u,i,y) -ln σ(s_ui) y - ln σ(-s_ui) (1 - y) + reg Σ_f |v_f|² / 2
        s_ui = b + Σ_f w_f + Σ_(f < g) v_f · v_g + deep(v_1, ..., v_F)

    The fields f of a pair are the user, the item, and attributes of both, such as the user's age
    and the item's genres. ``v_f`` is the vector and ``w_f`` the weight of the value of the field:
    the mean over several values (genres), 0 for a missing value. ``deep`` has ReLU layers of
    ``hidden_sizes`` and one linear output on the concatenated vectors. An epoch has every training
    pair with y = 1 and, per pair, ``negatives`` items with y = 0 that the user does not have. Adam
    trains from Glorot-uniform vectors. A user without training items has an empty list.

    The embeddings are the sums of the vectors of the user's and of the item's fields; their
    product is the user-item interaction term of the factorization machine.

    Args:
        embedding_size: Size of the vectors.
        hidden_sizes: Sizes of the hidden layers.
        epochs: Maximum number of passes over the training pairs.
        batch_size: Pairs per step, including negatives.
        learning_rate: Learning rate of Adam.
        reg: Weight of the squared norms of the vectors of a pair.
        negatives: Negative items per training pair.
        dropout: Dropout rate of the outputs of the hidden layers.
        user_features: User columns used as fields: names, ``none``, or ``auto`` for the columns
            whose values have at least ten rows on average.
        item_features: The same for item columns.
        variant: ``elliot`` follows that framework. It has no attributes and no ``reg``, samples
            users uniformly and tosses a coin between a seen and an unseen item, and applies a
            sigmoid to the deep output. Its loss combines the product of each pair of a batch with
            the biases and deep output of EVERY pair of the batch, which requires time and memory
            of ``batch_size`` squared.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        UnknownColumn: The users or items have no such column.
        MissingEvidence: Columns are named, but the dataset has no table of users or items.
        OutOfRange: The training diverges.

    Source:
        Guo, Tang, Ye, Li and He, "DeepFM: A Factorization-Machine based Neural Network for CTR
        Prediction", IJCAI 2017, equations 1 to 4.
    """

    libraries: ClassVar[tuple[str, ...]] = ("torch", "scipy")

    embedding_size: Annotated[int, Gt(0)] = 32
    hidden_sizes: Sizes = (64, 32)
    epochs: Annotated[int, Gt(0)] = 8
    batch_size: Annotated[int, Gt(0)] = 8192
    learning_rate: Annotated[float, Gt(0)] = 0.002
    reg: Annotated[float, Ge(0)] = 0.001
    negatives: Annotated[int, Gt(0)] = 4
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.0
    user_features: Columns = "auto"
    item_features: Columns = "auto"
    variant: Variant = "paper"
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def check_data(self, data: TrainingData) -> None:
        """Raise an error if the users or items lack a column."""
        self._select_columns(data)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedPairNetwork:
        """Train on the training pairs and sampled negatives."""
        device, sizes = resolve_device(self.device), (self.embedding_size, *self.hidden_sizes)
        tensors = DeepFMTensors.initialize(self._build_fields(data), sizes, device=device, rng=rng)
        learner = PairLearner(
            tensors,
            partial(self._sample, Sampler.from_interactions(data.train)),
            partial(self._sum_losses, tensors),
            self.device,
            sigmoid=self.variant == "elliot",
            crosses_batch=self.variant == "elliot",
        )
        return self.train("DeepFM", learner, data, rng)

    def restore(self, state: State) -> FittedPairNetwork:
        """Return the fitted recommender of a stored state."""
        return FittedPairNetwork(state, self.device, sigmoid=self.variant == "elliot")

    def _sample(self, sampler: Sampler, rng: np.random.Generator) -> Sequence[AnyArray]:
        if self.variant == "elliot":
            return sampler.sample_coin_pairs(sampler.users.size, rng)
        return sampler.sample_with_negatives(self.negatives, rng, unseen=True)

    def _sum_losses(
        self, tensors: DeepFMTensors, users: Tensor, items: Tensor, labels: Tensor, noise: Any
    ) -> Tensor:
        terms = tensors.compute_terms(users, items, self.dropout, noise)
        if self.variant == "elliot":
            return sum_crossed_losses(terms.products, terms.linear + terms.deep.sigmoid(), labels)
        return sum_pair_losses(terms.logits, labels) + self.reg / 2 * terms.squares.sum()

    def _build_fields(self, data: TrainingData) -> tuple[Fields, Fields]:
        user_columns, item_columns = self._select_columns(data)
        return (
            Fields.from_attributes(data.train.n_users, data.users, user_columns),
            Fields.from_attributes(data.train.n_items, data.items, item_columns),
        )

    def _select_columns(self, data: TrainingData) -> tuple[Sequence[str], Sequence[str]]:
        if self.variant == "elliot":
            return (), ()
        return (
            select_columns(data.users, self.user_features, "user_features"),
            select_columns(data.items, self.item_features, "item_features"),
        )


def sum_crossed_losses(products: Tensor, offsets: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of a batch that combines all products with the other terms of all pairs.

        1/B Σ_a Σ_b -ln σ(t_a + d_b) y_b - ln σ(-(t_a + d_b)) (1 - y_b)
        = 1/B Σ_a Σ_b ln(1 + exp(t_a + d_b)) - Σ_b y_b d_b - (Σ_a t_a) (Σ_b y_b) / B

    for products ``d``, offsets ``t`` (the other terms) and labels ``y``, each ``(B,)``.
    """
    from torch.nn.functional import softplus

    total = softplus(offsets[:, None] + products).sum() / len(labels)
    return total - (labels * products).sum() - offsets.mean() * labels.sum()
