"""A convolutional network that maps a text to a vector, and its training in ConvMF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.models.factorization.factor_tables import FactorTables
from recbias.models.ranking.fitted_models import FittedFactors
from recbias.models.ranking.tensors import Tensor, create_parameter, create_torch_generator
from recbias.models.training.layers import Dense, apply_dropout, collect_parameters
from recbias.models.training.samplers import EpochSampler

HIDDEN = 200  # Size of the layer between the pooled features and the vector
TEXT_BLOCK = 64  # Number of texts that the network encodes together


@dataclass(frozen=True, eq=False)
class TextCNN:
    """Word vectors, convolutions, max-pooling and two dense layers.

        c_t = relu(W_w [x_t ... x_(t+w-1)] + b_w),  f = max over t of c_t, for each window size w
        vector = tanh(W_2 tanh(W_1 [f ...] + b_1) + b_2)

    ``x_t`` is the vector of the t-th word. Windows lie within the text; a text shorter than a
    window is padded with zeros. A text without words has the vector 0.

    Args:
        words: The word vectors, ``(n_words + 1, e)``; row 0, the padding, is 0.
        windows: The window sizes in words.
        filters: The layer of each window size, with ``e w`` inputs.
        hidden: ``W_1`` and ``b_1``.
        last: ``W_2`` and ``b_2``.
    """

    words: Tensor
    windows: Sequence[int]
    filters: Sequence[Dense]
    hidden: Dense
    last: Dense

    @classmethod
    def initialize(
        cls,
        sizes: tuple[int, int, int, int],
        windows: Sequence[int],
        *,
        device: Any,
        rng: np.random.Generator,
    ) -> TextCNN:
        """Return a network with Glorot-uniform weights and word vectors from Normal(0, 1/e).

        ``sizes`` are the number of words, the size of a word vector, the number of filters per
        window size, and the size of the vector of a text.
        """
        n_words, word_size, n_filters, n_out = sizes
        words = rng.standard_normal((n_words + 1, word_size), dtype=np.float32)
        words[0] = 0
        return cls(
            create_parameter(words / np.sqrt(word_size), device),
            windows,
            [Dense.initialize(word_size * window, n_filters, device, rng) for window in windows],
            Dense.initialize(n_filters * len(windows), HIDDEN, device, rng),
            Dense.initialize(HIDDEN, n_out, device, rng),
        )

    def parameters(self) -> Sequence[Tensor]:
        """Return the trainable tensors."""
        return [self.words, *collect_parameters([*self.filters, self.hidden, self.last])]

    def __call__(self, codes: Tensor, *, dropout: float = 0.0, generator: Any = None) -> Tensor:
        """Return the vectors of texts, ``(b, n_out)``, with dropout of the hidden layer.

        The word codes, ``(b, width)``, are padded with 0; no window is larger than ``width``.
        """
        import torch
        from torch.nn.functional import embedding

        lengths = (codes > 0).sum(1, keepdim=True)
        longest = max(int(lengths.max()), *self.windows)
        vectors = embedding(codes[:, :longest], self.words, padding_idx=0)
        layers = zip(self.windows, self.filters, strict=True)
        features = torch.cat([_pool(vectors, lengths, *layer) for layer in layers], 1)
        hidden = apply_dropout(self.hidden(features).tanh(), dropout, generator)
        outputs: Tensor = self.last(hidden).tanh() * (lengths > 0)
        return outputs


def _pool(vectors: Tensor, lengths: Tensor, window: int, layer: Dense) -> Tensor:
    """Return the maximum of each filter over the windows of a text, ``(b, n_filters)``."""
    import torch

    windows = vectors.unfold(1, window, 1).flatten(2)  # (b, positions, e w), grouped by entry
    last = (lengths - window).clip(0)
    is_within = torch.arange(windows.shape[1], device=windows.device) <= last
    return (layer(windows).relu() * is_within.unsqueeze(2)).amax(1)


@dataclass(eq=False)
class ConvLearner:
    """Vectors and a network trained in alternation: a ``training.loop.Learner``.

    Args:
        reg_user: Weight of the squared user vectors.
        reg_item: Weight of the squared distances of item vectors from encodings.
        reg_network: Weight of the squared weights of the network.
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

    reg_user: float
    reg_item: float
    reg_network: float
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
        import torch

        samples = self.sampler(rng)
        self.n_samples = max(1, len(samples[0]))
        self.generator = create_torch_generator(rng, self.codes.device)
        with torch.no_grad():
            blocks = self.codes.split(TEXT_BLOCK)
            self.encodings = torch.cat([self.network(block) for block in blocks])
        return [*samples, _space_out(rng.permutation(self.items_with_text), len(samples[0]))]

    def loss(self, *batch: Tensor) -> Tensor:
        """Return the share of the objective that belongs to a batch."""
        users, items, values, texts = batch
        scores, _ = self.tables.score_pairs(users, items)
        share = len(users) / self.n_samples
        squares = self.reg_user * self.tables.users.square().sum()
        distances = (self.tables.items - self.encodings).square().sum()
        squares = squares + self.reg_item * distances
        error = (values - scores).square().sum() + share * squares
        texts = texts[texts >= 0]
        return error + self._network_loss(texts) if len(texts) else error

    def export(self) -> FittedFactors:
        """Return the vectors."""
        return self.tables.export()

    def _network_loss(self, texts: Tensor) -> Tensor:
        encodings = self.network(self.codes[texts], dropout=self.dropout, generator=self.generator)
        targets = self.tables.items.detach()[texts]
        squares = sum(tensor.square().sum() for tensor in self.network.parameters())
        share = len(texts) / len(self.items_with_text)
        distances = (targets - encodings).square().sum()
        return self.reg_item * distances + share * self.reg_network * squares


def _space_out(texts: AnyArray, n_samples: int) -> AnyArray:
    """Return texts in evenly spaced runs of ``TEXT_BLOCK``, else -1, ``int64[n_samples]``."""
    texts = texts[:n_samples]
    runs = np.arange(texts.size) // TEXT_BLOCK
    gap = (n_samples - texts.size) // (runs.max(initial=0) or 1)
    samples = np.full(n_samples, -1, dtype=np.int64)
    samples[np.arange(texts.size) + runs * gap] = texts
    return samples
