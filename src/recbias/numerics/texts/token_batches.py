"""Batches of texts of similar length, which need little padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from recbias.core.arrays import AnyArray


def batch_by_tokens(
    lengths: AnyArray, max_tokens: int, max_texts: int = 2**31
) -> Iterator[AnyArray]:
    """Yield batches of positions of texts of similar length, shortest first.

    Args:
        lengths: The number of tokens of each text, ``int64[n]``.
        max_tokens: The number of tokens of a batch, padding included; a longer text is a batch of
            its own.
        max_texts: The number of texts of a batch.

    >>> [batch.tolist() for batch in batch_by_tokens(np.array([3, 1, 2, 3]), 4)]
    [[1, 2], [0], [3]]
    """
    order = np.argsort(lengths, kind="stable")
    start = 0
    while start < order.size:
        candidates = order[start : start + min(max_tokens, max_texts)]
        n_tokens = lengths[candidates] * np.arange(1, candidates.size + 1)
        size = max(1, int(np.searchsorted(n_tokens, max_tokens, side="right")))
        yield order[start : start + size]
        start += size


def pad_tokens(texts: Sequence[Sequence[int]], padding: int) -> AnyArray:
    """Return texts of tokens as one array with padding at their ends, ``int64[n, longest]``."""
    padded = np.full((len(texts), max(map(len, texts))), padding, dtype=np.int64)
    for row, tokens in enumerate(texts):
        padded[row, : len(tokens)] = tokens
    return padded
