"""The network on user and item ids that the framework Elliot calls ConvMF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.evidence import Embeddings
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import State
from recbias.core.queries.queries import Queries
from recbias.models.ranking.fitted_models import Floats32
from recbias.models.ranking.score_blocks import rank_by_scores
from recbias.models.ranking.tensors import (
    Tensor,
    copy_to_array,
    create_torch_generator,
    initialize_glorot,
)
from recbias.models.training.layers import (
    Dense,
    apply_dropout,
    collect_parameters,
    initialize_layers,
)
from recbias.models.training.row_adam import look_up
from recbias.models.training.samplers import EpochSampler

CHANNELS = 32  # Filters of each convolution, and the size of the dense layer

ENTRIES_PER_POSITION = 16
"""Receptive field of a position after two convolutions and poolings, each of 2 by 2."""

ITEM_BLOCK = 4096  # Number of items that are scored together


@dataclass(frozen=True, eq=False)
class IdNetwork:
    """Two convolutions over the concatenated user and item vectors, then two dense layers.

    A convolution has width 2 and stride 2; its ReLU is max-pooled by 2. Then the positions are
    summed. The dense layers are linear. If no position sees entries of both vectors, the score is
    therefore the sum of a term of the user and a term of the item.

    Args:
        users: ``float32 (n_users, d)``.
        items: ``float32 (n_items, d)``, ``d`` a multiple of 16.
        convolutions: Two layers over the entries of a window.
        dense: Two layers, the last with one output.
    """

    users: Tensor
    items: Tensor
    convolutions: Sequence[Dense]
    dense: Sequence[Dense]

    @classmethod
    def initialize(cls, train: Interactions, size: int, *, device: Any, rng: Any) -> IdNetwork:
        """Return a network with Glorot-uniform vectors and weights."""
        users, items = (
            initialize_glorot((n_rows, size), device, rng)
            for n_rows in (train.n_users, train.n_items)
        )
        convolutions = [
            Dense.initialize(2 * n_in, CHANNELS, device, rng) for n_in in (1, CHANNELS)
        ]
        dense = initialize_layers((CHANNELS, CHANNELS, 1), device, rng)
        return cls(users, items, convolutions, dense)

    def parameters(self) -> Sequence[Tensor]:
        """Return the vectors and the weights of the layers."""
        return [self.users, self.items, *collect_parameters([*self.convolutions, *self.dense])]

    def features(self, vectors: Tensor) -> Tensor:
        """Return the features of concatenated vectors, summed over positions, ``(b, 32)``."""
        hidden = vectors
        for layer in self.convolutions:
            left, right = hidden.reshape(-1, 2 * len(layer.weight)).chunk(2, 1)
            gain = (right - left) @ layer.weight
            hidden = (layer(left) + gain.relu()).relu()  # max(a, b) = a + relu(b - a): fastest
        return hidden.reshape(len(vectors), -1, CHANNELS).sum(1)

    def score(self, features: Tensor, dropout: float = 0.0, generator: Any = None) -> Tensor:
        """Return the scores of features, ``(b,)``."""
        for layer in self.dense:
            features = layer(apply_dropout(features, dropout, generator))
        return features.squeeze(1)


@dataclass(eq=False)
class IdLearner:
    """The network in training: a ``training.loop.Learner``."""

    network: IdNetwork  # The parameters
    sampler: EpochSampler  # Samples users, items and labels
    dropout: float  # Dropout rate of the inputs of the dense layers
    generator: Any = None  # Samples the dropout masks of the epoch

    def parameters(self) -> Sequence[Tensor]:
        """Return the parameters of the network."""
        return self.network.parameters()

    def row_tables(self) -> Sequence[Tensor]:
        """Return the vectors, of which a batch reads a few rows."""
        return [self.network.users, self.network.items]

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        """Return the samples of an epoch."""
        samples = self.sampler(rng)
        self.generator = create_torch_generator(rng, self.network.users.device)
        return samples

    def loss(self, *batch: Tensor) -> Tensor:
        """Return the sum of the squared errors."""
        import torch

        users, items, labels = batch
        pairs = look_up(self.network.users, users), look_up(self.network.items, items)
        features = self.network.features(torch.cat(pairs, 1))
        scores = self.network.score(features, self.dropout, self.generator)
        return (labels - scores).square().sum()

    def export(self) -> FittedSums:
        """Return the vectors and the score of each item."""
        import torch

        network = self.network
        with torch.no_grad():
            blocks = network.items.split(ITEM_BLOCK)
            scores = torch.cat([network.score(network.features(block)) for block in blocks])
        return FittedSums(
            copy_to_array(network.users), copy_to_array(network.items), copy_to_array(scores)
        )


@dataclass(frozen=True, eq=False)
class FittedSums:
    """Scores that are the sum of a user term and an item term: all users have the same ranking.

    Args:
        user_factors: ``float32 (n_users, d)``.
        item_factors: ``float32 (n_items, d)``.
        item_scores: The item terms, ``float32[n_items]``.
    """

    user_factors: Floats32
    item_factors: Floats32
    item_scores: Floats32

    def state(self) -> State:
        """Return the fields as named arrays."""
        return vars(self)

    def embeddings(self) -> Embeddings:
        """Return the vectors."""
        return Embeddings(self.user_factors, self.item_factors)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        scores = self.item_scores
        return rank_by_scores(lambda users: np.tile(scores, (users.size, 1)), queries, k, data)
