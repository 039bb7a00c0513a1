"""Neural matrix factorization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Gt, Lt

from recbias.core.dataset.split import TrainingData
from recbias.core.models.devices import Device
from recbias.core.protocols import State
from recbias.models.neural.pair_network import (
    FittedPairNetwork,
    PairLearner,
    apply_layers,
    sum_pair_losses,
)
from recbias.models.ranking.tensors import Tensor, copy_to_array, initialize_glorot
from recbias.models.training.layers import (
    Dense,
    apply_dropout,
    collect_parameters,
    initialize_layers,
    store_layers,
)
from recbias.models.training.loop import TrainedModel
from recbias.models.training.samplers import Sampler
from recbias.numerics.devices import resolve_device

WIDTHS = (2, 4, 2, 1)
"""Sizes of the network's input and layers, in multiples of the embedding size."""


@dataclass(frozen=True, kw_only=True)
class NeuMF(TrainedModel):
    """Add a matrix factorization and a neural network on separate vectors (He et al. 2017).

        minimise  Σ_(u,i,y) -ln σ(s_ui) y - ln σ(-s_ui) (1 - y)
        s_ui = h · (p_u ⊙ q_i) + g · φ(m_u, n_i) + b

    ``p``, ``q`` are the vectors of the factorization (GMF) and ``m``, ``n`` those of the network
    (MLP), all of size ``embedding_size`` f. ``φ`` has ReLU layers of sizes 4f, 2f and f on the
    concatenation of ``m_u`` and ``n_i``. An epoch has every training pair with y = 1 and, per
    pair, ``negatives`` items with y = 0 that the user does not have. Both parts are trained
    together by Adam, without pre-training, from Glorot-uniform values. A user without training
    items has an empty list.

    The embeddings are ``h ⊙ p_u`` and ``q_i``; their product is the score of the factorization.

    Args:
        embedding_size: Size f of the vectors; the layer sizes are multiples of it.
        epochs: Maximum number of passes over the training pairs.
        batch_size: Pairs per step, including negatives.
        learning_rate: Learning rate of Adam.
        negatives: Negative items per training pair.
        dropout: Dropout rate of the inputs of the layers.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        OutOfRange: The training diverges.

    Source:
        He, Liao, Zhang, Nie, Hu and Chua, "Neural Collaborative Filtering", WWW 2017, equations 7
        and 12, section 3.4.
    """

    embedding_size: Annotated[int, Gt(0)] = 16
    epochs: Annotated[int, Gt(0)] = 7
    batch_size: Annotated[int, Gt(0)] = 2048
    learning_rate: Annotated[float, Gt(0)] = 0.001
    negatives: Annotated[int, Gt(0)] = 4
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.0
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedPairNetwork:
        """Train on the training pairs and sampled negatives."""
        n_rows, device = (data.train.n_users, data.train.n_items), resolve_device(self.device)
        tensors = _NeuMFTensors.initialize(n_rows, self.embedding_size, device, rng)
        sampler = Sampler.from_interactions(data.train)
        learner = PairLearner(
            tensors,
            lambda rng: sampler.sample_with_negatives(self.negatives, rng, unseen=True),
            partial(self._sum_losses, tensors),
            self.device,
        )
        return self.train("NeuMF", learner, data, rng)

    def restore(self, state: State) -> FittedPairNetwork:
        """Return the fitted recommender of a stored state."""
        return FittedPairNetwork(state, self.device)

    def _sum_losses(
        self, tensors: _NeuMFTensors, users: Tensor, items: Tensor, labels: Tensor, noise: Any
    ) -> Tensor:
        return sum_pair_losses(tensors.score(users, items, self.dropout, noise), labels)


@dataclass(frozen=True, eq=False)
class _NeuMFTensors:
    """The parameters of NeuMF."""

    gmf_users: Tensor  # ``p``, ``(n_users, f)``
    gmf_items: Tensor  # ``q``, ``(n_items, f)``
    mlp_users: Tensor  # ``m``, ``(n_users, f)``
    mlp_items: Tensor  # ``n``, ``(n_items, f)``
    layers: Sequence[Dense]  # The layers of ``φ``
    output: Dense  # The weights ``h`` and ``g``, stacked in one column, and the bias ``b``

    @classmethod
    def initialize(
        cls, n_rows: tuple[int, int], embedding_size: int, device: Any, rng: np.random.Generator
    ) -> _NeuMFTensors:
        p, q, m, n = (
            initialize_glorot((size, embedding_size), device, rng) for size in 2 * n_rows
        )
        layers = initialize_layers([embedding_size * width for width in WIDTHS], device, rng)
        return cls(p, q, m, n, layers, Dense.initialize(2 * embedding_size, 1, device, rng))

    def parameters(self) -> Sequence[Tensor]:
        tables = [self.gmf_users, self.gmf_items, self.mlp_users, self.mlp_items]
        return [*tables, *collect_parameters([*self.layers, self.output])]

    def score(
        self, users: Tensor, items: Tensor, dropout: float = 0.0, noise: Any = None
    ) -> Tensor:
        """Return the scores of pairs, ``(b,)``."""
        import torch

        products = self.gmf_users.index_select(0, users) * self.gmf_items.index_select(0, items)
        vectors = [self.mlp_users.index_select(0, users), self.mlp_items.index_select(0, items)]
        first, *upper_layers = self.layers
        lowest = first(apply_dropout(torch.cat(vectors, 1), dropout, noise))
        hidden = apply_layers(upper_layers, lowest, dropout, noise)
        return self.output(torch.cat([products, hidden.relu()], 1))[:, 0]

    def state(self) -> State:
        first, *upper_layers = self.layers
        f = self.gmf_items.shape[1]
        last = Dense(self.output.weight[f:], self.output.bias)
        return {
            "user_factors": copy_to_array(self.gmf_users * self.output.weight[:f, 0]),
            "item_factors": copy_to_array(self.gmf_items),
            "item_bias": np.zeros(len(self.gmf_items), dtype=np.float32),
            "user_hidden": copy_to_array(self.mlp_users @ first.weight[:f]),
            "item_hidden": copy_to_array(self.mlp_items @ first.weight[f:] + first.bias),
            **store_layers("deep", [*upper_layers, last]),
        }
