"""The network over user and item numbers that the framework Elliot calls ConvMF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.evidence import Embeddings
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import State
from recbias.core.queries.queries import Queries
from recbias.models.ranking.factor_model import Floats32
from recbias.models.ranking.score_blocks import rank_by_scores
from recbias.models.ranking.tensors import Tensor, array_of, drawn_glorot, torch_generator
from recbias.models.training.layers import Dense, drawn_layers, dropped, parameters_of
from recbias.models.training.rating_targets import Draw

CHANNELS = 32
"""Filters of each convolution, and the length of the dense layer."""

IN_A_POSITION = 16
"""Entries that a position sees after two convolutions and poolings, each of 2 by 2."""

ROWS_AT_ONCE = 4096
"""Items in a block of those that are scored."""


@dataclass(frozen=True, eq=False)
class IdNetwork:
    """Vectors of users and items end to end, two convolutions, and two dense layers.

    A convolution sees 2 entries and moves by 2, its relu is pooled by 2; then the positions are
    summed. Nothing that is not linear follows, so where no position sees entries of both vectors
    the score is a sum of what the user's and what the item's vector gives.

    Args:
        users: ``float32 (n_users, d)``.
        items: ``float32 (n_items, d)``, ``d`` a multiple of 16.
        convolutions: Two layers over the entries of a window.
        dense: Two layers, to one score.
    """

    users: Tensor
    items: Tensor
    convolutions: Sequence[Dense]
    dense: Sequence[Dense]

    @classmethod
    def drawn(cls, train: Interactions, size: int, *, device: Any, rng: Any) -> IdNetwork:
        """Return a network of Glorot's uniform vectors and weights."""
        users, items = (
            drawn_glorot((n, size), device, rng) for n in (train.n_users, train.n_items)
        )
        convolutions = [Dense.drawn(2 * n, CHANNELS, device, rng) for n in (1, CHANNELS)]
        dense = drawn_layers((CHANNELS, CHANNELS, 1), device, rng)
        return cls(users, items, convolutions, dense)

    def parameters(self) -> Sequence[Tensor]:
        """Return all that is learned."""
        return [self.users, self.items, *parameters_of([*self.convolutions, *self.dense])]

    def features(self, vectors: Tensor) -> Tensor:
        """Return the sums over positions of rows of entries, ``(b, 32)``."""
        seen = vectors
        for layer in self.convolutions:
            left, right = seen.reshape(-1, 2 * len(layer.weight)).chunk(2, 1)
            gain = (right - left) @ layer.weight
            seen = (layer(left) + gain.relu()).relu()  # max(a, b) = a + relu(b - a): fastest
        return seen.reshape(len(vectors), -1, CHANNELS).sum(1)

    def scored(self, features: Tensor, dropout: float = 0.0, generator: Any = None) -> Tensor:
        """Return the scores of summed positions, ``(b,)``."""
        for layer in self.dense:
            features = layer(dropped(features, dropout, generator))
        return features.squeeze(1)


@dataclass(eq=False)
class IdLearner:
    """The network under training: a ``torch_fit.Learner``.

    Args:
        network: What is learned.
        draw: Draws users, items and labels.
        dropout: Share of the inputs of a dense layer that is left out in a step.
        generator: Draws what is left out in the epoch.
    """

    network: IdNetwork
    draw: Draw
    dropout: float
    generator: Any = None

    def parameters(self) -> Sequence[Tensor]:
        """Return the network's."""
        return self.network.parameters()

    def epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        """Return the samples of an epoch."""
        samples = self.draw(rng)
        self.generator = torch_generator(rng, self.network.users.device)
        return samples

    def loss(self, *batch: Tensor) -> Tensor:
        """Return the sum of the squared errors."""
        import torch

        users, items, labels = batch
        pairs = (
            self.network.users.index_select(0, users),
            self.network.items.index_select(0, items),
        )
        features = self.network.features(torch.cat(pairs, 1))
        return (
            (labels - self.network.scored(features, self.dropout, self.generator)).square().sum()
        )

    def fitted(self) -> FittedSums:
        """Return the vectors and what each item's gives to a score."""
        import torch

        with torch.no_grad():
            blocks = self.network.items.split(ROWS_AT_ONCE)
            scores = [self.network.scored(self.network.features(each)) for each in blocks]
        return FittedSums(
            array_of(self.network.users), array_of(self.network.items), array_of(torch.cat(scores))
        )


@dataclass(frozen=True, eq=False)
class FittedSums:
    """Scores that are sums of a user's part and an item's, so that only the item's orders.

    Args:
        user_factors: ``float32 (n_users, d)``.
        item_factors: ``float32 (n_items, d)``.
        item_scores: ``float32[n_items]``.
    """

    user_factors: Floats32
    item_factors: Floats32
    item_scores: Floats32

    @classmethod
    def restored(cls, state: State) -> FittedSums:
        """Return what a stored state holds."""
        return cls(state["user_factors"], state["item_factors"], state["item_scores"])

    def state(self) -> State:
        """Return the arrays."""
        return vars(self)

    def embeddings(self) -> Embeddings:
        """Return the vectors."""
        return Embeddings(self.user_factors, self.item_factors)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return a list for each query, best first."""

        def score_block(users: Codes) -> AnyArray:
            return np.tile(self.item_scores, (users.size, 1))

        return rank_by_scores(score_block, queries, k, data)
