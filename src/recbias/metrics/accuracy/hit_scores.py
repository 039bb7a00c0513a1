"""Accuracy of each list from where its hits are: pure functions of arrays, one value a query.

In all of them ``hits`` is ``bool[q, m]``, true where the item at that rank is a test item of the
query (a place without an item is false); ``n_relevant`` is ``int64[q]``, the test items of each
query; ``k`` is the list length that is measured, and lists may be shorter. The result is
``float64[q]``, NaN where a query has no test item. A list without a hit, and one without an item,
is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray

Counts = npt.NDArray[np.int64]


def ndcg(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return the discounted gain of each list over that of the ideal list.

    >>> ndcg(np.array([[True, False, True]]), np.array([2]), 3).round(4).tolist()
    [0.9197]
    """
    discounts = 1.0 / np.log2(np.arange(2, k + 2))
    ideal = np.cumsum(discounts)[_ideal_length(n_relevant, k) - 1]
    return _where_relevant(_summed(hits[:, :k], discounts) / ideal, n_relevant)


def hit_rate(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return 1 for each list with a hit.

    >>> hit_rate(np.array([[False, True], [False, False]]), np.array([1, 1]), 2).tolist()
    [1.0, 0.0]
    """
    return _where_relevant(hits[:, :k].any(axis=1).astype(np.float64), n_relevant)


def reciprocal_rank(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return 1 over the rank of the first hit of each list.

    >>> reciprocal_rank(np.array([[False, True], [False, False]]), np.array([1, 1]), 2).tolist()
    [0.5, 0.0]
    """
    cut = hits[:, :k]
    ranks = np.argmax(cut, axis=1) + 1 if cut.shape[1] else np.ones(len(cut))
    return _where_relevant(cut.any(axis=1) / ranks, n_relevant)


def average_precision(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return the sum of the precisions at the hits over the most hits there could be.

    >>> average_precision(np.array([[True, False, True]]), np.array([2]), 3).round(4).tolist()
    [0.8333]
    """
    cut = hits[:, :k]
    return _where_relevant(
        _summed(_precisions(cut), cut) / _ideal_length(n_relevant, k), n_relevant
    )


def mean_precision(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return the mean of the precisions at 1, 2, ..., k, hit or not.

    >>> mean_precision(np.array([[True, False]]), np.array([1]), 2).tolist()
    [0.75]
    """
    precisions = _precisions(_padded(hits, k))
    return _where_relevant(_summed(precisions, np.ones(k)) / k, n_relevant)


def precision(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return the hits of each list over ``k``, also where the list is shorter.

    >>> precision(np.array([[True, False]]), np.array([3]), 2).tolist()
    [0.5]
    """
    return _where_relevant(np.count_nonzero(hits[:, :k], axis=1) / k, n_relevant)


def recall(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return the hits of each list over the test items of its query.

    >>> recall(np.array([[True, False]]), np.array([4]), 2).tolist()
    [0.25]
    """
    found = np.count_nonzero(hits[:, :k], axis=1)
    return _where_relevant(found / np.maximum(n_relevant, 1), n_relevant)


def r_precision(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return the share of hits among the first R places, R being the query's test items.

    >>> r_precision(np.array([[True, False, True]]), np.array([2]), 3).tolist()
    [0.5]
    """
    cut = hits[:, :k]
    early = cut & (np.arange(cut.shape[1]) < n_relevant[:, None])
    return _where_relevant(np.count_nonzero(early, axis=1) / np.maximum(n_relevant, 1), n_relevant)


def f1(hits: BoolArray, n_relevant: Counts, k: int) -> FloatArray:
    """Return the harmonic mean of precision and recall: twice the hits over k + test items.

    >>> f1(np.array([[True, False]]), np.array([2]), 2).tolist()
    [0.5]
    """
    found = np.count_nonzero(hits[:, :k], axis=1)
    return _where_relevant(2.0 * found / (k + n_relevant), n_relevant)


def _ideal_length(n_relevant: Counts, k: int) -> Counts:
    """Return the hits of an ideal list; 1 where there is nothing to hit, which is NaN later."""
    return np.clip(n_relevant, 1, k)


def _where_relevant(values: Any, n_relevant: Counts) -> FloatArray:
    found: FloatArray = np.where(n_relevant > 0, values, np.nan)
    return found


def _precisions(hits: BoolArray) -> FloatArray:
    """Return the precision at each rank, ``float64[q, m]``."""
    ranks = np.arange(1, hits.shape[1] + 1)
    found: FloatArray = np.cumsum(hits, axis=1, dtype=np.int32) / ranks
    return found


def _padded(hits: BoolArray, k: int) -> BoolArray:
    missing = k - hits.shape[1]
    return np.pad(hits, ((0, 0), (0, missing))) if missing > 0 else hits[:, :k]


def _summed(values: AnyArray, weights: AnyArray) -> FloatArray:
    """Return the weighted sum over the ranks, best rank first, so that its last digit is stated.

    Args:
        values: ``(q, m)``.
        weights: ``[m]``, or ``(q, m)``.
    """
    total = np.zeros(len(values))
    for rank in range(values.shape[1]):
        total += values[:, rank] * weights[..., rank]
    return total
