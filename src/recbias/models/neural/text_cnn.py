"""A convolutional network that turns a text into a vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.models.ranking.tensors import Tensor, create_parameter
from recbias.models.training.layers import Dense, apply_dropout, collect_parameters

HIDDEN = 200
"""Length of the layer between the pooled features and the vector."""


@dataclass(frozen=True, eq=False)
class TextCNN:
    """Words to features to a vector.

        c_t = relu(W_w [x_t ... x_(t+w-1)] + b_w),  f = max over t of c_t, for each window w
        vector = tanh(W_2 tanh(W_1 [f ...] + b_1) + b_2)

    ``x_t`` is the vector of the t-th word. Only windows within the text count; of a text that is
    shorter than a window the rest is zeros. A text without words has the vector 0.

    Args:
        words: The vectors of the words, ``(n_words + 1, e)``; that of code 0 is 0.
        windows: How many words each kind of filter sees.
        filters: The layer of each kind, from ``e w`` to features.
        hidden: ``W_1`` and ``b_1``.
        last: ``W_2`` and ``b_2``.
    """

    words: Tensor
    windows: Sequence[int]
    filters: Sequence[Dense]
    hidden: Dense
    last: Dense

    @classmethod
    def drawn(
        cls,
        sizes: tuple[int, int, int, int],
        windows: Sequence[int],
        *,
        device: Any,
        rng: np.random.Generator,
    ) -> TextCNN:
        """Return a network of Glorot's uniform weights; words are Normal(0, 1/e).

        Args:
            sizes: How many words there are, the lengths of their vectors, filters of a window,
                and the length of the vector of a text.
            windows: How many words each kind of filter sees.
            device: Where it lives.
            rng: Draws the weights.
        """
        n_words, word_size, n_filters, n_out = sizes
        words = rng.standard_normal((n_words + 1, word_size), dtype=np.float32)
        words[0] = 0
        return cls(
            create_parameter(words / np.sqrt(word_size), device),
            windows,
            [Dense.initialize(word_size * each, n_filters, device, rng) for each in windows],
            Dense.initialize(n_filters * len(windows), HIDDEN, device, rng),
            Dense.initialize(HIDDEN, n_out, device, rng),
        )

    def parameters(self) -> Sequence[Tensor]:
        """Return all that is learned."""
        return [self.words, *collect_parameters([*self.filters, self.hidden, self.last])]

    def __call__(self, codes: Tensor, *, dropout: float = 0.0, generator: Any = None) -> Tensor:
        """Return the vectors of texts, ``(b, n_out)``.

        Args:
            codes: Codes of the words, then 0 to the end, ``(b, width)`` with ``width`` at least
                the largest window.
            dropout: Share of the hidden layer that is left out.
            generator: Draws what is left out.
        """
        import torch
        from torch.nn.functional import embedding

        lengths = (codes > 0).sum(1, keepdim=True)
        longest = max(int(lengths.max()), *self.windows)
        vectors = embedding(codes[:, :longest], self.words, padding_idx=0)
        kinds = zip(self.windows, self.filters, strict=True)
        features = torch.cat([_pooled(vectors, lengths, *each) for each in kinds], 1)
        hidden = apply_dropout(self.hidden(features).tanh(), dropout, generator)
        found: Tensor = self.last(hidden).tanh() * (lengths > 0)
        return found


def _pooled(vectors: Tensor, lengths: Tensor, window: int, layer: Dense) -> Tensor:
    """Return the largest output of each filter over a text, ``(b, n_filters)``."""
    import torch

    seen = vectors.unfold(1, window, 1).flatten(2)  # (b, positions, e w), word vectors apart
    last = (lengths - window).clip(0)
    within = torch.arange(seen.shape[1], device=seen.device) <= last
    return (layer(seen).relu() * within.unsqueeze(2)).amax(1)
