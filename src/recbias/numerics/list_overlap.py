"""Overlap of two ranked lists: Jaccard, rank-biased overlap, and the measures of FaiRLLM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray

OverlapForm: TypeAlias = Literal["jaccard", "rbo", "serp", "prag"]
"""The measures of overlap."""

INVALID = -2
"""An entry that keeps its rank and equals no other; -1 is the end of a list."""

_BLOCK_CELLS = 2**23
"""The number of pairs of ranks that are compared at once."""


@dataclass(frozen=True, eq=False)
class RankedPairs:
    """Pairs of lists, as the rank in the second list of each entry of the first.

    Args:
        ranks: The rank in the second list, from 0, ``int[q, k]``; k if the entry is not there.
        n_first: The length of the first list, ``int[q]``.
        n_second: The length of the second list, ``int[q]``.
    """

    ranks: AnyArray
    n_first: AnyArray
    n_second: AnyArray

    @classmethod
    def from_lists(cls, first: AnyArray, second: AnyArray) -> RankedPairs:
        """Return the pairs of the rows of two tables of codes, ``int[q, k]`` both."""
        k = first.shape[1]
        is_same = (first[:, :, None] == second[:, None, :]) & (first >= 0)[:, :, None]
        ranks = np.where(is_same.any(axis=2), is_same.argmax(axis=2), k)
        return cls(ranks, (first != -1).sum(axis=1), (second != -1).sum(axis=1))

    @property
    def is_shared(self) -> BoolArray:
        """Which entries of the first list are in the second, ``bool[q, k]``."""
        return np.asarray(self.ranks < self.ranks.shape[1])

    @property
    def longest(self) -> AnyArray:
        """The length of the longer list, ``int[q]``."""
        return np.asarray(np.maximum(self.n_first, self.n_second))


def measure_overlap(
    first: AnyArray, second: AnyArray, form: OverlapForm, *, p: float = 0.9
) -> FloatArray:
    """Return the overlap of each pair of lists: 1 for identical lists, 0 for disjoint ones.

    NaN if both lists are empty. With n and m the lengths of the lists and K the larger one:

        jaccard = |A ∩ B| / |A ∪ B|
        rbo     = (1 - p) Σ_{d=1..K} p^(d-1) a_d + p^K a_K,    a_d: shared items to depth d, over d
        serp    = Σ_{i in A ∩ B} (K - rank_B(i) + 1) / (K (K + 1) / 2)
        prag    = #{i before j in A: i in B, and j after i in B or not in B} / (K (K - 1) / 2)

    ``rbo`` is the extrapolated form for lists of finite and different length (Webber et al. 2010,
    equation 32). ``serp`` and ``prag`` are SERP* and PRAG* of Zhang et al. 2023 divided by their
    value for identical lists; ``prag`` treats ranks beyond the end of A as items that are not in
    B, so that it is defined for lists of one item. Neither is symmetric: A is the list that
    is compared with.

    Args:
        first: The lists A, ``int[q, k]``: codes from 0; -1 is the end of a list, and ``INVALID``
            an entry that equals no other.
        second: The lists B, of the same shape.
        form: The measure.
        p: The weight of a rank of ``rbo`` relative to the one before it.

    >>> a, b = np.array([[1, 2, 3]]), np.array([[2, 1, 4]])
    >>> forms = ("jaccard", "serp", "prag")
    >>> [round(measure_overlap(a, b, form).item(), 3) for form in forms]  # 2/4, (2+3)/6, 2/3
    [0.5, 0.833, 0.667]
    """
    measures: dict[str, Callable[[RankedPairs], FloatArray]] = {
        "jaccard": _measure_jaccard,
        "rbo": partial(_measure_rbo, p=p),
        "serp": _measure_serp,
        "prag": _measure_prag,
    }
    size = max(1, _BLOCK_CELLS // max(first.shape[1] + 1, 1) ** 2)
    starts = range(0, len(first), size)
    blocks = [slice(start, start + size) for start in starts]
    pairs = [RankedPairs.from_lists(first[block], second[block]) for block in blocks]
    return np.concatenate([np.empty(0), *map(measures[form], pairs)])


def _divide(numerator: AnyArray, denominator: AnyArray, pairs: RankedPairs) -> FloatArray:
    """Return the quotient; NaN where both lists are empty."""
    undefined = np.full(pairs.longest.shape, np.nan)
    return np.asarray(np.divide(numerator, denominator, out=undefined, where=pairs.longest > 0))


def _measure_jaccard(pairs: RankedPairs) -> FloatArray:
    n_shared = pairs.is_shared.sum(axis=1)
    return _divide(n_shared, pairs.n_first + pairs.n_second - n_shared, pairs)


def _measure_serp(pairs: RankedPairs) -> FloatArray:
    longest = pairs.longest
    gains = np.where(pairs.is_shared, longest[:, None] - pairs.ranks, 0).sum(axis=1)
    return _divide(gains, longest * (longest + 1) / 2, pairs)


def _measure_prag(pairs: RankedPairs) -> FloatArray:
    k = pairs.ranks.shape[1]
    ranks = np.pad(pairs.ranks, ((0, 0), (0, 1)), constant_values=k)
    n_ranks = np.maximum(pairs.longest, 2)
    is_kept = np.triu(ranks[:, :, None] < ranks[:, None, :], 1)
    is_kept &= np.arange(k + 1) < n_ranks[:, None, None]
    return _divide(is_kept.sum(axis=(1, 2)), n_ranks * (n_ranks - 1) / 2, pairs)


def _measure_rbo(pairs: RankedPairs, p: float) -> FloatArray:
    k, longest = pairs.ranks.shape[1], pairs.longest
    shortest = np.minimum(pairs.n_first, pairs.n_second)
    depths = np.arange(1, k + 1)
    joined = np.where(pairs.is_shared, np.maximum(pairs.ranks, np.arange(k)), k)
    n_shared = (joined[:, :, None] < depths).sum(axis=1)
    at_end = np.take_along_axis(n_shared, np.maximum(shortest, 1)[:, None] - 1, axis=1)
    beyond = np.maximum(depths - shortest[:, None], 0)
    extrapolated = np.where(shortest > 0, 1 / np.maximum(shortest, 1), 0)[:, None] * at_end
    agreement = (n_shared + beyond * extrapolated) / depths
    weights = np.where(depths <= longest[:, None], (1 - p) * p ** (depths - 1.0), 0.0)
    weights[depths == longest[:, None]] += p ** longest[longest > 0]
    return _divide((weights * agreement).sum(axis=1), weights.sum(axis=1), pairs)


def measure_mean_jaccard(lists: AnyArray) -> FloatArray:
    """Return the mean Jaccard index of each list and all other lists, ``float64[q]``.

        J_u = 1 / (m - 1) Σ_{v ≠ u} |L_u ∩ L_v| / |L_u ∪ L_v|,    m: the number of lists

    Order and repetitions in a list do not count. NaN for an empty list, which is not among the
    others either, and if there is no other list. Pairs are formed in blocks: the time grows with
    the square of the number of lists.

    Args:
        lists: Codes from 0, ``int[q, k]``; -1 is an empty position.

    >>> lists = np.array([[0, 1], [1, 0], [1, 2], [-1, -1]])
    >>> measure_mean_jaccard(lists).round(4).tolist()  # (1 + 1/3) / 2 twice, (1/3 + 1/3) / 2
    [0.6667, 0.6667, 0.3333, nan]
    """
    from scipy.sparse import csr_array

    filled = lists >= 0
    rows = np.flatnonzero(filled.any(axis=1))
    means = np.full(len(lists), np.nan)
    if rows.size < 2:
        return means
    starts = np.concatenate([[0], np.cumsum(filled[rows].sum(axis=1))])
    codes = lists[rows][filled[rows]]
    shape = (rows.size, int(codes.max()) + 1)
    members = csr_array((np.ones(codes.size), codes, starts), shape=shape)
    members.sum_duplicates()
    members.data[:] = 1.0
    sizes, by_item = np.diff(members.indptr), members.T.tocsr()
    step = max(1, _BLOCK_CELLS // rows.size)
    for start in range(0, rows.size, step):
        block = slice(start, start + step)
        shared = (members[block] @ by_item).toarray()
        jaccard = shared / (sizes[block, None] + sizes - shared)
        means[rows[block]] = (jaccard.sum(axis=1) - 1.0) / (rows.size - 1)
    return means
