"""ConvMF in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.models.factorization.factor_tables import FactorTables
from recbias.models.neural.text_cnn import TextCNN
from recbias.models.ranking.factor_model import FittedFactors
from recbias.models.ranking.tensors import Tensor, create_torch_generator
from recbias.models.training.rating_targets import EpochSampler

TEXT_BLOCK = 64
"""Number of texts that the network encodes together."""


@dataclass(frozen=True)
class LossWeights:
    """The weights of the penalties of ``ConvMF``."""

    reg_user: float
    reg_item: float
    reg_network: float


@dataclass(eq=False)
class ConvLearner:
    """Vectors and a network trained in alternation: a ``training.loop.Learner``.

    Args:
        weights: The weights of the penalties.
        dropout: Dropout rate of the network.
        tables: The vectors.
        network: The text encoder.
        codes: The word codes of all items, ``(n_items, width)``.
        items_with_text: The candidates that have a word.
        sampler: Samples users, items and values.
        n_samples: Number of samples of the epoch.
        encodings: The text encodings at the start of the epoch, ``(n_items, d)``.
        generator: Samples the dropout masks of the epoch.
    """

    weights: LossWeights
    dropout: float
    tables: FactorTables
    network: TextCNN
    codes: Tensor
    items_with_text: AnyArray
    sampler: EpochSampler
    n_samples: int = 1
    encodings: Tensor = None
    generator: Any = None

    def parameters(self) -> Sequence[Tensor]:
        """Return the vectors and the parameters of the network."""
        return [*self.tables.parameters(), *self.network.parameters()]

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        """Return users, items, values, and with some of them an item whose text is encoded."""
        samples = self.sampler(rng)
        self.n_samples = max(1, len(samples[0]))
        self.generator = create_torch_generator(rng, self.codes.device)
        self.encodings = self._encode_all()
        return [*samples, _space_out(rng.permutation(self.items_with_text), len(samples[0]))]

    def loss(self, *batch: Tensor) -> Tensor:
        """Return the share of the objective that belongs to a batch."""
        users, items, values, texts = batch
        scores, _ = self.tables.score_pairs(users, items)
        share = len(users) / self.n_samples
        squares = self.weights.reg_user * self.tables.users.square().sum()
        squares = (
            squares + self.weights.reg_item * (self.tables.items - self.encodings).square().sum()
        )
        error = (values - scores).square().sum() + share * squares
        texts = texts[texts >= 0]
        return error + self._network_loss(texts) if len(texts) else error

    def export(self) -> FittedFactors:
        """Return the vectors."""
        return self.tables.export()

    def _network_loss(self, texts: Tensor) -> Tensor:
        """Return the loss of the network on these items: squared distances and squared weights."""
        encodings = self.network(self.codes[texts], dropout=self.dropout, generator=self.generator)
        targets = self.tables.items.detach()[texts]
        squares = sum(tensor.square().sum() for tensor in self.network.parameters())
        share = len(texts) / len(self.items_with_text)
        return (
            self.weights.reg_item * (targets - encodings).square().sum()
            + share * self.weights.reg_network * squares
        )

    def _encode_all(self) -> Tensor:
        """Return the encodings of all texts, ``(n_items, d)``."""
        import torch

        with torch.no_grad():
            blocks = self.codes.split(TEXT_BLOCK)
            return torch.cat([self.network(block) for block in blocks])


def _space_out(texts: AnyArray, n_samples: int) -> AnyArray:
    """Return texts in evenly spaced runs of ``TEXT_BLOCK``, else -1, ``int64[n_samples]``."""
    texts = texts[:n_samples]
    runs = np.arange(texts.size) // TEXT_BLOCK
    gap = (n_samples - texts.size) // (runs.max(initial=0) or 1)
    samples = np.full(n_samples, -1, dtype=np.int64)
    samples[np.arange(texts.size) + runs * gap] = texts
    return samples
