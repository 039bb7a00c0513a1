"""A factorisation machine and a deep network on the same vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, Lt

from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.core.protocols import Output, State
from recbias.models.neural.deepfm_tensors import DeepFMTensors
from recbias.models.neural.feature_fields import Columns, Fields, chosen_columns
from recbias.models.neural.pair_network import FittedPairNetwork
from recbias.models.ranking.tensors import (
    Device,
    OnDevice,
    Tensor,
    create_torch_generator,
    resolve_device,
)
from recbias.models.training.loop import train
from recbias.models.training.samplers import Sampler
from recbias.models.training.schedule import Schedule

Variant: TypeAlias = Literal["paper", "elliot"]

Sizes: TypeAlias = tuple[Annotated[int, Gt(0)], ...]


@dataclass(frozen=True, kw_only=True)
class DeepFM(OnDevice):
    """Let a factorisation machine and a deep network on the same vectors score together.

        minimise  Σ_(u,i,y) -ln σ(s_ui) y - ln σ(-s_ui) (1 - y) + reg Σ_f |v_f|² / 2
        s_ui = b + Σ_f w_f + Σ_(f < g) v_f · v_g + deep(v_1, ..., v_F)

    The fields f of a pair are the user, the item, and what is known of each: the user's age,
    gender, the item's genres. ``v_f`` is the vector and ``w_f`` the weight of the value that the
    field has; of several values (genres) the mean, of a missing one 0. ``deep`` has ReLU layers of
    ``hidden_sizes`` and one linear output on the vectors end to end. An epoch is every training
    pair with y = 1 and, for each, ``negatives`` items with y = 0 that the user does not have.
    Steps are Adam's, first values Glorot's. A user without training items has an empty list.

    Its embeddings are the sums of the vectors of a user's and of an item's fields, whose product
    is all that the factorisation machine makes of both.

    Args:
        embedding_size: Length of the vectors.
        hidden_sizes: Sizes of the deep layers.
        epochs: Passes over the training pairs, at most.
        batch_size: Pairs in a step, drawn ones among them.
        learning_rate: Length of a step.
        reg: Weight of the squared vectors of a pair.
        negatives: Items drawn for each training pair.
        dropout: Share of the outputs of the hidden layers left out by chance in each step.
        user_features: Columns of the users that are fields: their names, ``none``, or ``auto`` for
            all of which a value stands in at least ten rows on the average.
        item_features: The same of the items.
        variant: ``elliot`` has only user and item for fields and no ``reg``, draws users alike and
            tosses a coin whether an item is the user's, sends the deep output through a sigmoid of
            its own, and lets the label of each pair of a step judge its product with the biases
            and deep output of EVERY pair of the step in turn, as that framework does. Its steps
            take time and memory of ``batch_size`` squared.
        patience: Epochs without a better nDCG@10 on the validation part, where there is one,
            before the best is taken; 0 does not look.
        device: Where it is trained.

    Raises:
        UnknownColumn: The users or items have no such column.
        MissingEvidence: Columns are named and nothing is known of the users or items.
        OutOfRange: It diverges.

    Source:
        Guo, Tang, Ye, Li and He, "DeepFM: A Factorization-Machine based Neural Network for CTR
        Prediction", IJCAI 2017, equations 1 to 4.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "embeddings"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
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
        """Look whether the users and items have the columns."""
        if self.variant == "paper":
            chosen_columns(data.users, self.user_features, "user_features")
            chosen_columns(data.items, self.item_features, "item_features")

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedPairNetwork:
        """Learn from the training pairs and drawn ones."""
        schedule = Schedule.from_model(self, "DeepFM")
        tensors = DeepFMTensors.drawn(
            self._fields(data),
            (self.embedding_size, *self.hidden_sizes),
            device=resolve_device(self.device),
            rng=rng,
        )
        return train(
            _Learner(self, tensors, Sampler.from_interactions(data.train)), schedule, data, rng
        )

    def restore(self, state: State) -> FittedPairNetwork:
        """Return the fitted recommender of a stored state."""
        return FittedPairNetwork(state, self.device, self.variant == "elliot")

    def _fields(self, data: TrainingData) -> tuple[Fields, Fields]:
        users, items = self.user_features, self.item_features
        if self.variant == "elliot":
            users = items = "none"
        return (
            Fields.of(
                data.train.n_users, data.users, chosen_columns(data.users, users, "user_features")
            ),
            Fields.of(
                data.train.n_items, data.items, chosen_columns(data.items, items, "item_features")
            ),
        )


@dataclass(eq=False)
class _Learner:
    model: DeepFM
    tensors: DeepFMTensors
    sampler: Sampler
    noise: Any = field(default=None, init=False)

    def parameters(self) -> Sequence[Tensor]:
        return self.tensors.parameters()

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        self.noise = create_torch_generator(rng, self.tensors.offset.device)
        if self.model.variant == "elliot":
            return self.sampler.sample_coin_pairs(self.sampler.users.size, rng)
        return self.sampler.sample_with_negatives(self.model.negatives, rng, unseen=True)

    def loss(self, *batch: Tensor) -> Tensor:
        users, items, labels = batch
        parts = self.tensors.parts(users, items, self.model.dropout, self.noise)
        if self.model.variant == "elliot":
            return crossed_loss(parts.products, parts.linear + parts.deep.sigmoid(), labels)
        return pair_loss(parts.logits, labels) + self.model.reg / 2 * parts.squares.sum()

    def export(self) -> FittedPairNetwork:
        squashed = self.model.variant == "elliot"
        return FittedPairNetwork(self.tensors.state(), self.model.device, squashed)


def pair_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the sum of the cross-entropies of pairs."""
    from torch.nn.functional import binary_cross_entropy_with_logits

    return binary_cross_entropy_with_logits(logits, labels, reduction="sum")


def crossed_loss(products: Tensor, others: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of a step where every pair's product meets every pair's other parts.

        1/B Σ_a Σ_b -ln σ(t_a + d_b) y_b - ln σ(-(t_a + d_b)) (1 - y_b)
        = 1/B Σ_a Σ_b ln(1 + exp(t_a + d_b)) - Σ_b y_b d_b - (Σ_a t_a) (Σ_b y_b) / B

    Args:
        products: ``d``, ``(B,)``.
        others: ``t``, ``(B,)``.
        labels: ``y``, ``(B,)``.
    """
    from torch.nn.functional import softplus

    every = softplus(others[:, None] + products).sum() / len(labels)
    return every - (labels * products).sum() - others.mean() * labels.sum()
