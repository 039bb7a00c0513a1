"""What gradient models learn from, drawn for a whole epoch at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.interactions import Interactions
from recbias.models.training.compiled import compiled

Labels: TypeAlias = npt.NDArray[np.float32]
"""1 for a pair that is a positive, 0 for a negative."""

Integers: TypeAlias = npt.NDArray[np.int64]

LARGEST_TOTAL = 2**31
"""What popularity weights are made to add up to about; as integers they are drawn exactly."""


@dataclass(frozen=True, eq=False)
class Sampler:
    """The positive pairs of a training part, and the chances of the items as negatives.

    A negative that a user does not have is found without a second try: the weights of all items
    are laid end to end, those of the user's own items are cut out, and a point is drawn on what is
    left; a binary search tells how many cuts lie before it.

    Args:
        users: The user of each distinct positive pair, ascending, ``int32[p]``.
        items: The item of each, ascending within a user, ``int32[p]``.
        starts: Where each user's pairs start in ``items``, ``int64[n_users + 1]``.
        ends: Sum of the weights of the items up to each, ``int64[n_items]``.
    """

    users: Codes
    items: Codes
    starts: Integers
    ends: Integers

    @classmethod
    def of(cls, train: Interactions, *, popularity: float = 0.0) -> Sampler:
        """Return the sampler of a training part.

        Args:
            train: The rows; a pair that is repeated counts once.
            popularity: Power of an item's number of rows that its chance as a negative is in
                proportion to: 0 for all items alike.
        """
        matrix = train.binary
        starts = matrix.indptr.astype(np.int64)
        users = np.repeat(np.arange(train.n_users, dtype=np.int32), np.diff(starts))
        weights = _weights(train.item_counts(), popularity)
        return cls(users, matrix.indices.astype(np.int32), starts, np.cumsum(weights))

    def positives(self, n: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
        """Return ``n`` pairs, all pairs alike."""
        rows = rng.integers(self.users.size, size=n)
        return self.users[rows], self.items[rows]

    def items_of(self, users: Codes, rng: np.random.Generator) -> Codes:
        """Return one of the items of each user, all alike; each must have one."""
        counts = self.starts[users + 1] - self.starts[users]
        items: Codes = self.items[self.starts[users] + rng.integers(counts)]
        return items

    def any_items(self, n: int, rng: np.random.Generator) -> Codes:
        """Return ``n`` items by their weights, whoever has them, ``int32[n]``."""
        return self._at(rng.integers(self.ends[-1], size=n))

    def unseen(self, users: Codes, rng: np.random.Generator) -> Codes:
        """Return an item that each user does not have, by the weights; each must lack one."""
        return self._lacked(users, rng.integers(self._left[users]))

    def triples(
        self, n: int, rng: np.random.Generator, *, by_user: bool = False
    ) -> tuple[Codes, Codes, Codes]:
        """Return ``n`` of (user, item it has, item it does not have), as BPR learns from.

        Users who have every item are in none.

        Args:
            n: How many.
            rng: The generator.
            by_user: Draw users alike, then one of their items; otherwise draw pairs alike.
        """
        users, items = self.positives(n, rng)
        if by_user:
            users = self._some_users(n, rng)
            items = self.items_of(users, rng)
        kept = self._left[users] > 0
        users, items = users[kept], items[kept]
        return users, items, self.unseen(users, rng)

    def coin_pairs(self, n: int, rng: np.random.Generator) -> tuple[Codes, Codes, Labels]:
        """Return ``n`` of (user, item, label): users alike, a fair coin, an item it has or not.

        A user who has every item gets one that it has.
        """
        users = self._some_users(n, rng)
        labels = rng.integers(2, size=n).astype(bool) | (self._left[users] <= 0)
        items = np.empty(n, dtype=np.int32)
        items[labels] = self.items_of(users[labels], rng)
        items[~labels] = self.unseen(users[~labels], rng)
        return users, items, labels.astype(np.float32)

    def with_negatives(
        self, negatives: int, rng: np.random.Generator, *, unseen: bool = False
    ) -> tuple[Codes, Codes, Labels]:
        """Return every positive pair once, in random order, each before its negatives.

        Args:
            negatives: How many items are drawn for each pair.
            rng: The generator.
            unseen: Draw items that the user does not have; users who have every item are left
                out. Otherwise any item, a positive of the user by chance.

        Returns:
            Users, items and labels, each of ``(1 + negatives)`` entries a pair.
        """
        order = rng.permutation(self.users.size)
        if unseen:
            order = order[self._left[self.users[order]] > 0]
        users = np.repeat(self.users[order], 1 + negatives).reshape(-1, 1 + negatives)
        items, labels = np.empty_like(users), np.zeros(users.shape, dtype=np.float32)
        items[:, 0], labels[:, 0] = self.items[order], 1.0
        if unseen:
            drawn = self.unseen(np.repeat(self.users[order], negatives), rng)
        else:
            drawn = self.any_items(order.size * negatives, rng)
        items[:, 1:] = drawn.reshape(order.size, negatives)
        return users.ravel(), items.ravel(), labels.ravel()

    @cached_property
    def _active(self) -> AnyArray:
        """The users who have an item."""
        return np.flatnonzero(np.diff(self.starts)).astype(np.int32)

    @cached_property
    def _own(self) -> Integers:
        """Sum of the items' weights of all pairs before each, and of all, ``int64[p + 1]``."""
        weights = np.diff(self.ends, prepend=0)
        return np.append(np.zeros(1, np.int64), np.cumsum(weights[self.items]))

    @cached_property
    def _left(self) -> Integers:
        """Sum of the weights of the items that each user does not have, ``int64[n_users]``."""
        left: Integers = self.ends[-1] - np.diff(self._own[self.starts])
        return left

    @cached_property
    def _cuts(self) -> Integers:
        """Where each pair's item is cut out of its user's line, ``int64[p]``."""
        before = np.append(0, self.ends)[self.items]
        cuts: Integers = before - self._own[:-1] + self._own[self.starts[self.users]]
        return cuts

    @cached_property
    def _are_alike(self) -> bool:
        """Whether all items have weight 1, so that a point is its item."""
        return bool((np.diff(self.ends, prepend=0) == 1).all())

    def _lacked(self, users: Codes, points: Integers) -> Codes:
        """Return the item at each point of the line of what a user does not have."""
        return self._at(compiled(_past_cuts)(users, points, self.starts, self._cuts, self._own))

    def _at(self, points: Integers) -> Codes:
        """Return the item whose weight lies over each point of the line of all weights."""
        if self._are_alike:
            return points.astype(np.int32)
        return np.searchsorted(self.ends, points, side="right").astype(np.int32)

    def _some_users(self, n: int, rng: np.random.Generator) -> Codes:
        users: Codes = self._active[rng.integers(self._active.size, size=n)]
        return users


def shuffled(
    users: Codes, items: Codes, values: AnyArray, rng: np.random.Generator
) -> tuple[Codes, Codes, AnyArray]:
    """Return rows in random order, ``n`` of them; all orders alike, to n parts in 2³²."""
    keys = rng.integers(2**32, size=users.size, dtype=np.uint32)
    rows: tuple[Codes, Codes, AnyArray] = compiled(_shuffle)(keys, users, items, values)
    return rows


def _shuffle(
    keys: AnyArray, users: Codes, items: Codes, values: AnyArray
) -> tuple[Codes, Codes, AnyArray]:
    """Put each row in at a place among those before it, which its key draws."""
    a, b, c = np.empty_like(users), np.empty_like(items), np.empty_like(values)
    for last in range(keys.size):
        place = (np.uint64(keys[last]) * np.uint64(last + 1)) >> np.uint64(32)
        a[last], b[last], c[last] = a[place], b[place], c[place]
        a[place], b[place], c[place] = users[last], items[last], values[last]
    return a, b, c


def _past_cuts(
    users: Codes, points: Integers, starts: Integers, cuts: Integers, own: Integers
) -> Integers:
    """Return points of the line of what a user does not have as those of the line of all items."""
    moved = np.empty_like(points)
    for s in range(users.size):
        first = low = starts[users[s]]
        high = starts[users[s] + 1]
        while low < high:
            middle = (low + high) // 2
            if cuts[middle] <= points[s]:
                low = middle + 1
            else:
                high = middle
        moved[s] = points[s] + own[low] - own[first]
    return moved


def _weights(counts: Integers, popularity: float) -> Integers:
    """Return whole weights in proportion to ``counts ** popularity``; an item of 0 rows has 0."""
    if popularity == 0:
        return np.ones(counts.size, dtype=np.int64)
    # of the most popular item's weight, so that no power is too large for a number
    shares = (counts / max(counts.max(initial=0), 1)) ** popularity * (counts > 0)
    scaled = np.rint(shares * (LARGEST_TOTAL / max(shares.sum(), 1.0)))
    weights: Integers = np.maximum(scaled, counts > 0).astype(np.int64)
    return weights
