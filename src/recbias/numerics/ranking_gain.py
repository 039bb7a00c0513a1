"""Discounted cumulative gain of ranked lists with binary relevance.

    DCG@k  = Σ_(r <= k) hit_r / log2(r + 1)
    nDCG@k = DCG@k / Σ_(r <= min(n, k)) 1 / log2(r + 1)

``hit_r`` is 1 if the item at rank r is one of the ``n`` relevant items. The sum over the ranks is
left to the caller, because its order determines the last digit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import FloatArray


def rank_discounts(k: int) -> FloatArray:
    """Return ``1 / log2(r + 1)`` for the ranks 1 to ``k``, ``float64[k]``.

    >>> rank_discounts(3).round(4).tolist()
    [1.0, 0.6309, 0.5]
    """
    discounts: FloatArray = 1.0 / np.log2(np.arange(2, k + 2))
    return discounts


def normalize_gain(gains: FloatArray, n_relevant: npt.NDArray[np.int64], k: int) -> FloatArray:
    """Divide the DCG@k of each list, ``float64[q]``, by that of the ideal list: its nDCG@k.

    NaN for a query without relevant items.

    >>> normalize_gain(np.array([1.5, 0.0]), np.array([2, 0]), 3).round(4).tolist()
    [0.9197, nan]
    """
    ideal = np.cumsum(rank_discounts(k))[np.clip(n_relevant, 1, k) - 1]
    ndcg: FloatArray = np.where(n_relevant > 0, gains / ideal, np.nan)
    return ndcg
