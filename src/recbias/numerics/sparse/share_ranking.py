"""The best of each row, with every group at its share of the places all the way down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, Codes, FloatArray

SLACK = 1e-9
"""A share times a rank that is this near to a whole number is that number."""


def rank_to_shares(
    scores: AnyArray, groups: Codes, shares: FloatArray, k: int
) -> tuple[Codes, npt.NDArray[np.float32]]:
    """Return the columns and scores of a list of ``k`` for each row, its groups near their shares.

    Rank by rank, the best column is taken of the groups that have fewer than ``floor(p_a r)``
    places so far; where no group is short, of those with fewer than ``ceil(p_a r)``; where those
    have no column left, of all. ``p_a`` is the share of group a and r the rank, from 1. This is
    the algorithm DetGreedy. With up to three groups every group then has at least
    ``floor(p_a r)`` of the first r places, as long as its columns last; with more it may be short
    at some ranks.

    Scores are compared as ``float32``; ties go to the lower column. A score of -inf or NaN is
    nobody's: a row with fewer than ``k`` others is padded with column -1 and score NaN.

    Args:
        scores: ``(b, n)``; not changed.
        groups: The group of each column, ``int32[n]``.
        shares: The share of each group, ``float64[g]``, which sum to 1.
        k: The length of the lists.

    Returns:
        Columns ``int32[b, k]`` in the order of the list, and their scores ``float32[b, k]``.

    Source:
        Geyik, Ambler and Kenthapadi, "Fairness-aware ranking in search and recommendation systems
        with application to LinkedIn talent search", KDD 2019, algorithm 1 (DetGreedy).

    >>> scores, groups = np.array([[9.0, 8.0, 7.0, 2.0, 1.0]]), np.array([0, 0, 0, 1, 1])
    >>> columns, _ = rank_to_shares(scores, groups, np.array([0.5, 0.5]), 4)
    >>> columns.tolist()
    [[0, 3, 1, 4]]
    """
    queues = _Queues.of(scores, groups, shares.size)
    found = np.full((len(scores), k), -1, dtype=np.int32)
    values = np.full((len(scores), k), np.nan, dtype=np.float32)
    taken = np.zeros((len(scores), shares.size), dtype=np.int64)
    rows = np.arange(len(scores))
    for rank in range(1, k + 1):
        columns, best = queues.heads(taken)
        fewest, most = np.floor(shares * rank + SLACK), np.ceil(shares * rank - SLACK)
        wanted = 1 + (taken < most) + (taken < fewest)
        group = _first(np.where(np.isneginf(best), 0, wanted), best, columns)
        some = rows[best[rows, group] > -np.inf]
        found[some, rank - 1] = columns[some, group[some]]
        values[some, rank - 1] = best[some, group[some]]
        taken[some, group[some]] += 1
    return found, values


def _first(wanted: AnyArray, best: AnyArray, columns: AnyArray) -> AnyArray:
    """Return the group that is wanted most in each row; of several the best, the lower column."""
    return np.lexsort((columns, -best, -wanted), axis=-1)[:, 0]


@dataclass(frozen=True, eq=False)
class _Queues:
    """The columns of each group, best first, row by row.

    Args:
        columns: ``int64[b, n]``, group after group.
        scores: Their scores, ``float32[b, n]``.
        starts: Where each group starts, ``int64[g]``.
        sizes: How many columns each group has, ``int64[g]``.
    """

    columns: AnyArray
    scores: AnyArray
    starts: AnyArray
    sizes: AnyArray

    @classmethod
    def of(cls, scores: AnyArray, groups: Codes, n_groups: int) -> _Queues:
        known = np.asarray(scores, dtype=np.float32)
        known = np.where(np.isnan(known), np.float32(-np.inf), known)
        order = np.lexsort((-known, np.broadcast_to(groups, known.shape)), axis=-1)
        sizes = np.bincount(groups, minlength=n_groups)
        ordered = np.take_along_axis(known, order, 1)
        return cls(order, ordered, np.cumsum(sizes) - sizes, sizes)

    def heads(self, taken: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return each group's next column and its score; -inf where none is left."""
        places = np.minimum(self.starts + taken, self.scores.shape[1] - 1)
        best = np.take_along_axis(self.scores, places, 1)
        left = np.where(taken < self.sizes, best, np.float32(-np.inf))
        return np.take_along_axis(self.columns, places, 1), left
