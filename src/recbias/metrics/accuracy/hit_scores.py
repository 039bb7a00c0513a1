"""Accuracy of each list from the ranks of its hits, as functions of arrays.

All functions take ``hits``, ``bool[q, m]``, true if the item at that rank is a test item of the
query (false for a rank without an item); ``n_relevant``, ``int64[q]``, the number of test items of
each query; and the cutoff ``k``, which may be larger than m. They return ``float64[q]``: NaN for a
query without test items, 0 for a list without a hit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.numerics.ranking_gain import normalize_gain, rank_discounts

Counts = npt.NDArray[np.int64]


def ndcg(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return nDCG@k of each list.

    >>> ndcg(np.array([[True, False, True]]), np.array([2]), 3).round(4).tolist()
    [0.9197]
    """
    gains = _sum_over_ranks(hits[:, :k], rank_discounts(k))
    return normalize_gain(gains, n_relevant, k)


def hit_rate(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return 1 for each list with a hit, else 0.

    >>> hit_rate(np.array([[False, True], [False, False]]), np.array([1, 1]), 2).tolist()
    [1.0, 0.0]
    """
    return _mask_undefined(hits[:, :k].any(axis=1).astype(np.float64), n_relevant)


def reciprocal_rank(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return the reciprocal rank of the first hit of each list, 0 without a hit.

    >>> reciprocal_rank(np.array([[False, True], [False, False]]), np.array([1, 1]), 2).tolist()
    [0.5, 0.0]
    """
    cut = hits[:, :k]
    ranks = np.argmax(cut, axis=1) + 1 if cut.shape[1] else np.ones(len(cut))
    return _mask_undefined(cut.any(axis=1) / ranks, n_relevant)


def average_precision(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return the sum of the precisions at the hits, divided by the most hits possible.

    >>> average_precision(np.array([[True, False, True]]), np.array([2]), 3).round(4).tolist()
    [0.8333]
    """
    cut = hits[:, :k]
    totals = _sum_over_ranks(_compute_precisions(cut), cut)
    return _mask_undefined(totals / np.clip(n_relevant, 1, k), n_relevant)


def mean_precision(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return the mean of the precisions at 1, 2, ..., k.

    >>> mean_precision(np.array([[True, False]]), np.array([1]), 2).tolist()
    [0.75]
    """
    padding = max(k - hits.shape[1], 0)
    precisions = _compute_precisions(np.pad(hits[:, :k], ((0, 0), (0, padding))))
    return _mask_undefined(_sum_over_ranks(precisions, np.ones(k)) / k, n_relevant)


def precision(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return the number of hits divided by ``k``, even if the list is shorter.

    >>> precision(np.array([[True, False]]), np.array([3]), 2).tolist()
    [0.5]
    """
    return _mask_undefined(np.count_nonzero(hits[:, :k], axis=1) / k, n_relevant)


def recall(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return the share of the test items among the first ``k``.

    >>> recall(np.array([[True, False]]), np.array([4]), 2).tolist()
    [0.25]
    """
    n_hits = np.count_nonzero(hits[:, :k], axis=1)
    return _mask_undefined(n_hits / np.maximum(n_relevant, 1), n_relevant)


def r_precision(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return the share of hits among the first R items, R being the number of test items.

    >>> r_precision(np.array([[True, False, True]]), np.array([2]), 3).tolist()
    [0.5]
    """
    cut = hits[:, :k]
    early = cut & (np.arange(cut.shape[1]) < n_relevant[:, None])
    return _mask_undefined(np.count_nonzero(early, axis=1) / np.maximum(n_relevant, 1), n_relevant)


def f1(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return the harmonic mean of precision and recall: 2 hits / (k + R).

    >>> f1(np.array([[True, False]]), np.array([2]), 2).tolist()
    [0.5]
    """
    n_hits = np.count_nonzero(hits[:, :k], axis=1)
    return _mask_undefined(2.0 * n_hits / (k + n_relevant), n_relevant)


def _mask_undefined(values: Any, n_relevant: Counts) -> FloatArray:
    """Return the values, NaN for queries without test items."""
    masked: FloatArray = np.where(n_relevant > 0, values, np.nan)
    return masked


def _compute_precisions(hits: BoolArray) -> FloatArray:
    """Return the precision at each rank, ``float64[q, m]``."""
    ranks = np.arange(1, hits.shape[1] + 1)
    precisions: FloatArray = np.cumsum(hits, axis=1, dtype=np.int32) / ranks
    return precisions


def _sum_over_ranks(values: AnyArray, weights: AnyArray) -> FloatArray:
    """Return the weighted sum over the ranks, in the order of the ranks on every machine."""
    total = np.zeros(len(values))
    for rank in range(values.shape[1]):
        total += values[:, rank] * weights[..., rank]
    return total
