"""Lists that are fair to two groups of queries and two of items: one problem, two multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, Codes, FloatArray
from recbias.numerics.sparse.blocks import block_size, map_blocks

USERS, ITEMS = 0, 1
"""The places of both differences, and of their multipliers."""


@dataclass(frozen=True, eq=False)
class TwoSidedProblem:
    """The lists of all queries, their utility, and both differences between groups.

    Args:
        scores: Those of the candidates, ``float64[q, n]``; -inf in empty positions.
        is_tail: Which candidates are of the long tail, ``bool[q, n]``.
        signs: 1 / n of the group of each query, negative for those that are not active.
        k: The length of a list.
        target: The share of the positions that items of the tail should have.
        accuracy: The weight of the mean utility.
        user_limit: The weight of the difference of the users, which bounds its multiplier.
        item_limit: The weight of the difference of the items.
    """

    scores: FloatArray
    is_tail: BoolArray
    signs: FloatArray
    k: int
    target: float
    accuracy: float
    user_limit: float
    item_limit: float

    @cached_property
    def n_positions(self) -> int:
        """The number of positions of all lists that can be filled."""
        return int(np.minimum(np.isfinite(self.scores).sum(axis=1), self.k).sum())

    def select(self, user: float, item: float) -> Codes:
        """Return the best lists for multipliers of the differences, ``int32[q, k]``."""
        n = len(self.scores)
        weights = self.accuracy - user * self.signs * n
        # the objective of a query times n k
        cost = item * n * self.k / max(self.n_positions, 1)
        blocks = map_blocks(
            lambda start, stop: self._select_block(slice(start, stop), weights, cost),
            n,
            block_size(8 * 6 * self.scores.shape[1]),
        )
        return np.concatenate([np.empty((0, self.k), dtype=np.int32), *blocks])

    def _select_block(self, rows: slice, weights: FloatArray, cost: float) -> Codes:
        scores = self.scores[rows]
        filled = np.isfinite(scores)
        gains = weights[rows, None] * np.where(filled, scores, 0.0) - cost * self.is_tail[rows]
        order = np.argsort(np.where(filled, -gains, np.inf), axis=1, kind="stable")[:, : self.k]
        is_item = np.take_along_axis(filled, order, axis=1)
        positions = np.full((len(scores), self.k), -1, dtype=np.int32)
        positions[:, : order.shape[1]] = _sort_positions(np.where(is_item, order, -1))
        return positions

    def measure(self, positions: Codes) -> tuple[float, FloatArray]:
        """Return the objective of lists, and their differences of users and of items."""
        utilities = self._take(self.scores, positions).sum(axis=1) / self.k
        share = self._take(self.is_tail, positions).sum() / max(self.n_positions, 1)
        gaps = np.array([float(utilities @ self.signs), float(share) - self.target])
        utility = float(utilities.sum()) / max(len(utilities), 1)
        return self.accuracy * utility - self.penalize(gaps), gaps

    def penalize(self, gaps: FloatArray) -> float:
        """Return the weighted sum of the differences."""
        return self.user_limit * abs(float(gaps[USERS])) + self.item_limit * abs(
            float(gaps[ITEMS])
        )

    def mix(self, lower: Codes, upper: Codes, side: int) -> Codes:
        """Return lists with items of two lists of each query, whose difference is nearest to 0.

        Both lists of a query have as many items. The items that only one of them has are exchanged
        one by one, the last of ``lower`` for the first of ``upper``, one in every list before a
        second in any.
        """
        n = self.scores.shape[1]
        removed = -np.sort(-_keep_apart(lower, upper, n), axis=1)
        added = _sort_positions(_keep_apart(upper, lower, n))
        steps = self._weigh(added, side) - self._weigh(removed, side)
        path = np.concatenate([[self.measure(lower)[1][side]], steps.T.ravel()])
        n_rounds, rest = divmod(int(np.abs(np.cumsum(path)).argmin()), max(len(lower), 1))
        n_exchanged = n_rounds + (np.arange(len(lower)) < rest)
        is_exchanged = np.arange(self.k) < n_exchanged[:, None]
        kept = _keep_apart(lower, np.where(is_exchanged, removed, -1), n)
        mixed = np.concatenate([kept, np.where(is_exchanged, added, -1)], axis=1)
        return _sort_positions(mixed)[:, : self.k]

    def _weigh(self, positions: Codes, side: int) -> FloatArray:
        """Return what each item adds to a difference, ``float64[q, k]``."""
        if side == ITEMS:
            return self._take(self.is_tail, positions) / max(self.n_positions, 1)
        return self._take(self.scores, positions) * self.signs[:, None] / self.k

    def _take(self, values: AnyArray, positions: Codes) -> FloatArray:
        """Return the values of the candidates at positions, 0 where there is none."""
        taken = np.take_along_axis(values, np.maximum(positions, 0), axis=1)
        return np.where(positions >= 0, taken, 0.0)


def _sort_positions(positions: AnyArray) -> Codes:
    """Return each row in ascending order, with -1 at its end."""
    highest = np.iinfo(np.int32).max
    ordered = np.sort(np.where(positions < 0, highest, positions), axis=1)
    return np.where(ordered == highest, -1, ordered).astype(np.int32)


def _keep_apart(positions: Codes, without: Codes, n: int) -> Codes:
    """Return the positions, -1 where the same row of ``without`` has them too."""
    rows = np.arange(len(positions), dtype=np.int64)[:, None] * n
    is_shared = np.isin(rows + positions, (rows + without)[without >= 0])
    return np.where(is_shared, -1, positions)
