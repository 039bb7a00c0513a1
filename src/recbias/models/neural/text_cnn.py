"""A convolutional network that maps a text to a vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.models.ranking.tensors import Tensor, create_parameter
from recbias.models.training.layers import Dense, apply_dropout, collect_parameters

HIDDEN = 200
"""Size of the layer between the pooled features and the vector."""


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

        Args:
            sizes: Number of words, size of a word vector, number of filters per window size, and
                size of the vector of a text.
            windows: The window sizes in words.
            device: The device of the parameters.
            rng: Samples the weights.
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
        """Return the vectors of texts, ``(b, n_out)``.

        Args:
            codes: Word codes, padded with 0, ``(b, width)``; ``width`` is at least the largest
                window.
            dropout: Dropout rate of the hidden layer.
            generator: Samples the dropout mask.
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
