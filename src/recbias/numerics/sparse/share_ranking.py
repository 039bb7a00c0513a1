"""Greedy ranking in which every prefix of a list respects target shares of groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, Codes, FloatArray

SLACK = 1e-9
"""Tolerance with which the product of a share and a rank counts as an integer."""


def rank_to_shares(
    scores: AnyArray, groups: Codes, shares: FloatArray, k: int
) -> tuple[Codes, npt.NDArray[np.float32]]:
    """Return a list of ``k`` columns for each row whose prefixes match the shares of the groups.

    At each rank r, from 1, the algorithm DetGreedy takes the best column of the groups with fewer
    than ``floor(p_a r)`` ranks so far, where ``p_a`` is the share of group a. If there is none, it
    considers the groups with fewer than ``ceil(p_a r)``; if these have no column left, all groups.
    With up to three groups, every group then has at least ``floor(p_a r)`` of the first r ranks
    until its columns run out; with more groups it may fall short at some ranks.

    Scores are compared as ``float32``; ties go to the lower column. Scores of -inf and NaN are
    never selected: a row with fewer than ``k`` other scores is padded (column -1, score NaN).

    Args:
        scores: ``(b, n)``; not changed.
        groups: Group of each column, ``int32[n]``, or of each cell, ``int32[b, n]``.
        shares: Share of each group, ``float64[g]``, with sum 1.
        k: Length of the lists.

    Source:
        Geyik, Ambler and Kenthapadi, "Fairness-aware ranking in search and recommendation systems
        with application to LinkedIn talent search", KDD 2019, algorithm 1 (DetGreedy).

    >>> scores, groups = np.array([[9.0, 8.0, 7.0, 2.0, 1.0]]), np.array([0, 0, 0, 1, 1])
    >>> columns, _ = rank_to_shares(scores, groups, np.array([0.5, 0.5]), 4)
    >>> columns.tolist()
    [[0, 3, 1, 4]]
    """
    queues = _GroupQueues.from_scores(scores, groups, shares.size)
    lists = np.full((len(scores), k), -1, dtype=np.int32)
    values = np.full((len(scores), k), np.nan, dtype=np.float32)
    counts = np.zeros((len(scores), shares.size), dtype=np.int64)
    rows = np.arange(len(scores))
    for rank in range(1, k + 1):
        columns, best = queues.get_heads(counts)
        fewest, most = np.floor(shares * rank + SLACK), np.ceil(shares * rank - SLACK)
        urgency = np.where(np.isneginf(best), 0, 1 + (counts < most) + (counts < fewest))
        group = np.lexsort((columns, -best, -urgency), axis=-1)[:, 0]
        filled = rows[best[rows, group] > -np.inf]
        lists[filled, rank - 1] = columns[filled, group[filled]]
        values[filled, rank - 1] = best[filled, group[filled]]
        counts[filled, group[filled]] += 1
    return lists, values


@dataclass(frozen=True, eq=False)
class _GroupQueues:
    """The columns of each group, best first, row by row: ``[b, n]``, group after group."""

    columns: AnyArray
    scores: AnyArray
    starts: AnyArray
    sizes: AnyArray

    @classmethod
    def from_scores(cls, scores: AnyArray, groups: Codes, n_groups: int) -> _GroupQueues:
        values = np.asarray(scores, dtype=np.float32)
        values = np.where(np.isnan(values), np.float32(-np.inf), values)
        cells = np.broadcast_to(groups, values.shape)
        order = np.lexsort((-values, cells), axis=-1)
        rows = np.broadcast_to(np.arange(len(values))[:, None], values.shape)
        sizes = np.zeros((len(values), n_groups), dtype=np.int64)
        np.add.at(sizes, (rows, cells), 1)
        starts = np.cumsum(sizes, axis=1) - sizes
        return cls(order, np.take_along_axis(values, order, 1), starts, sizes)

    def get_heads(self, counts: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return each group's next column and its score; -inf for an empty queue."""
        positions = np.minimum(self.starts + counts, self.scores.shape[1] - 1)
        best = np.take_along_axis(self.scores, positions, 1)
        best = np.where(counts < self.sizes, best, np.float32(-np.inf))
        return np.take_along_axis(self.columns, positions, 1), best
