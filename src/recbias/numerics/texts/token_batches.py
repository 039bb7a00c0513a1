"""Batches of texts of similar length, which need little padding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recbias.core.arrays import AnyArray


def batch_by_tokens(lengths: AnyArray, max_tokens: int) -> Sequence[AnyArray]:
    """Return batches of positions of texts, shortest first, of at most ``max_tokens`` tokens.

    A longer text is a batch of its own.

    >>> [batch.tolist() for batch in batch_by_tokens(np.array([3, 1, 2, 3]), 4)]
    [[1, 2], [0], [3]]
    """
    order = np.argsort(lengths, kind="stable")
    batches, start = [], 0
    while start < order.size:
        candidates = order[start : start + max_tokens]
        batch_tokens = lengths[candidates] * np.arange(1, candidates.size + 1)
        size = max(1, int(np.searchsorted(batch_tokens, max_tokens, side="right")))
        batches.append(order[start : start + size])
        start += size
    return batches
