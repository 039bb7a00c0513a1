"""Sampling of the training pairs, negatives and targets of a whole epoch at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.interactions import Interactions
from recbias.models.training.sampling_kernels import (
    WIDTH,
    UnseenIndex,
    find_unseen,
    index_unseen,
    insert_rows,
    skip_cuts,
)
from recbias.numerics.compiled.loops import compile_loop

Labels: TypeAlias = npt.NDArray[np.float32]  # 1 for a positive pair, 0 for a negative pair
Integers: TypeAlias = npt.NDArray[np.int64]

WEIGHT_TOTAL = 2**31  # Approximate sum of the popularity weights: integers, for exact sampling


@dataclass(frozen=True, eq=False)
class Sampler:
    """Samples positive pairs of a training part, and negative items by weight.

    Unseen items are sampled without rejection: the weights of all items lie end to end on a line,
    the intervals of the user's items are cut out, and a point is sampled on the remaining line. A
    binary search counts the cuts before the point.

    Args:
        users: The user of each distinct positive pair, ascending, ``int32[p]``.
        items: The item of each pair, ascending within a user, ``int32[p]``.
        starts: Start of each user's pairs in ``items``, ``int64[n_users + 1]``.
        ends: Cumulative sum of the item weights, ``int64[n_items]``.
    """

    users: Codes
    items: Codes
    starts: Integers
    ends: Integers

    @classmethod
    def from_interactions(cls, train: Interactions, *, popularity: float = 0.0) -> Sampler:
        """Return the sampler of a training part, in which a repeated pair counts once.

        The probability of an item as a negative is proportional to its number of rows to the power
        ``popularity``; 0 for a uniform distribution.
        """
        matrix = train.binary
        starts = matrix.indptr.astype(np.int64)
        users = np.repeat(np.arange(train.n_users, dtype=np.int32), np.diff(starts))
        weights = _compute_weights(train.item_counts(), popularity)
        return cls(users, matrix.indices.astype(np.int32), starts, np.cumsum(weights))

    def sample_positives(self, n: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
        """Sample ``n`` positive pairs uniformly."""
        rows = rng.integers(self.users.size, size=n)
        return self.users[rows], self.items[rows]

    def sample_positive_items(self, users: Codes, rng: np.random.Generator) -> Codes:
        """Sample one of the items of each user uniformly; each user must have an item."""
        counts = self.starts[users + 1] - self.starts[users]
        return np.asarray(self.items[self.starts[users] + rng.integers(counts)])

    def sample_items(self, n: int, rng: np.random.Generator) -> Codes:
        """Sample ``n`` items by weight, seen or unseen, ``int32[n]``."""
        return self._find_items(rng.integers(self.ends[-1], size=n))

    def sample_unseen(self, users: Codes, rng: np.random.Generator) -> Codes:
        """Sample an unseen item of each user by weight; each user must lack an item."""
        points = rng.integers(self._unseen_weights[users])
        if self.is_uniform:
            return compile_loop(find_unseen)(users, points, self._unseen_index)  # type: ignore[no-any-return]
        arrays = (self.starts, self._cuts, self._cumulative_weights)
        return self._find_items(compile_loop(skip_cuts)(users, points, *arrays))

    def sample_triples(
        self, n: int, rng: np.random.Generator, *, by_user: bool = False
    ) -> tuple[Codes, Codes, Codes]:
        """Sample ``n`` triples (user, seen item, unseen item), as for BPR.

        Triples of users who have every item are dropped. Pairs of a user and a seen item are
        sampled uniformly or, with ``by_user``, first users and then one of their items.
        """
        users, items = self.sample_positives(n, rng)
        if by_user:
            users = self._sample_users(n, rng)
            items = self.sample_positive_items(users, rng)
        if not self._unseen_weights.min(initial=1) > 0:
            has_unseen = self._unseen_weights[users] > 0
            users, items = users[has_unseen], items[has_unseen]
        return users, items, self.sample_unseen(users, rng)

    def sample_coin_pairs(self, n: int, rng: np.random.Generator) -> tuple[Codes, Codes, Labels]:
        """Sample ``n`` of (user, item, label): a uniform user, a fair coin, a seen or unseen item.

        A user who has every item always gets a seen item.
        """
        users = self._sample_users(n, rng)
        labels = rng.integers(2, size=n).astype(bool) | (self._unseen_weights[users] <= 0)
        items = np.empty(n, dtype=np.int32)
        items[labels] = self.sample_positive_items(users[labels], rng)
        items[~labels] = self.sample_unseen(users[~labels], rng)
        return users, items, labels.astype(np.float32)

    def sample_with_negatives(
        self, negatives: int, rng: np.random.Generator, *, unseen: bool = False
    ) -> tuple[Codes, Codes, Labels]:
        """Return every positive pair once, in random order, each followed by its negatives.

        With ``unseen``, negatives are unseen items, and users who have every item are dropped.
        Otherwise any item is sampled, including positives of the user. Users, items and labels
        have ``1 + negatives`` entries per pair each.
        """
        order = rng.permutation(self.users.size)
        if unseen:
            order = order[self._unseen_weights[self.users[order]] > 0]
        users = np.repeat(self.users[order], 1 + negatives).reshape(-1, 1 + negatives)
        items, labels = np.empty_like(users), np.zeros(users.shape, dtype=np.float32)
        items[:, 0], labels[:, 0] = self.items[order], 1.0
        if unseen:
            negative_items = self.sample_unseen(np.repeat(self.users[order], negatives), rng)
        else:
            negative_items = self.sample_items(order.size * negatives, rng)
        items[:, 1:] = negative_items.reshape(order.size, negatives)
        return users.ravel(), items.ravel(), labels.ravel()

    @cached_property
    def _active_users(self) -> AnyArray:
        return np.flatnonzero(np.diff(self.starts)).astype(np.int32)

    @cached_property
    def _cumulative_weights(self) -> Integers:
        """Sum of the item weights of the pairs before each pair, and of all, ``int64[p + 1]``."""
        weights = np.diff(self.ends, prepend=0)
        return np.append(np.zeros(1, np.int64), np.cumsum(weights[self.items]))

    @cached_property
    def _unseen_weights(self) -> Integers:
        """Sum of the weights of the items that each user lacks, ``int64[n_users]``."""
        if self.is_uniform:
            return np.asarray(self.ends[-1] - np.diff(self.starts))
        return np.asarray(self.ends[-1] - np.diff(self._cumulative_weights[self.starts]))

    @cached_property
    def _cuts(self) -> Integers:
        """The point at which each pair's item is cut out of its user's line, ``int64[p]``."""
        before = np.append(0, self.ends)[self.items]
        cumulative = self._cumulative_weights
        return np.asarray(before - cumulative[:-1] + cumulative[self.starts[self.users]])

    @cached_property
    def _unseen_index(self) -> UnseenIndex:
        """The arrays of ``find_unseen``: about four cuts for each bucket of a user."""
        counts = np.diff(self.starts)
        last_points = np.maximum(self._unseen_weights - 1, 0)
        shifts = np.zeros(counts.size, dtype=np.int64)
        while (is_fine := (last_points >> shifts) >= np.maximum(counts // 4, 1)).any():
            shifts[is_fine] += 1
        first_cuts, first_buckets = (
            np.append(0, np.cumsum(sizes))
            for sizes in (counts + WIDTH, (last_points >> shifts) + 1)
        )
        cuts, lows = np.empty(first_cuts[-1], np.int32), np.empty(first_buckets[-1], np.int32)
        arrays = (first_cuts, first_buckets, shifts, cuts, lows)
        compile_loop(index_unseen)(self.starts, self.items, arrays)
        return arrays

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all items have weight 1, so that a point on the line is an item code."""
        return bool((np.diff(self.ends, prepend=0) == 1).all())

    def _find_items(self, points: Integers) -> Codes:
        """Return the item whose interval contains each point of the line of all weights."""
        if self.is_uniform:
            return points.astype(np.int32)
        return np.searchsorted(self.ends, points, side="right").astype(np.int32)

    def _sample_users(self, n: int, rng: np.random.Generator) -> Codes:
        return np.asarray(self._active_users[rng.integers(self._active_users.size, size=n)])


def shuffle_rows(
    users: Codes, items: Codes, values: AnyArray, rng: np.random.Generator
) -> tuple[Codes, Codes, AnyArray]:
    """Return ``n`` rows in random order, uniform up to a bias of n in 2³²."""
    keys = rng.integers(2**32, size=users.size, dtype=np.uint32)
    return compile_loop(insert_rows)(keys, users, items, values)  # type: ignore[no-any-return]


def _compute_weights(counts: Integers, popularity: float) -> Integers:
    """Return integer weights proportional to ``counts ** popularity``; 0 for an item of 0 rows."""
    if popularity == 0:
        return np.ones(counts.size, dtype=np.int64)
    # relative to the most popular item, so that no power overflows
    shares = (counts / max(counts.max(initial=0), 1)) ** popularity * (counts > 0)
    scaled = np.rint(shares * (WEIGHT_TOTAL / max(shares.sum(), 1.0)))
    return np.asarray(np.maximum(scaled, counts > 0).astype(np.int64))


EpochSampler: TypeAlias = Callable[[np.random.Generator], Sequence[AnyArray]]
"""Samples the users, items and targets of an epoch."""


def is_implicit(train: Interactions) -> bool:
    """Return whether all values are equal, so that there are no ratings to learn."""
    return not len(train) or bool(train.values.min() == train.values.max())


def create_rating_sampler(
    train: Interactions, negatives: int, *, unit: bool = False
) -> EpochSampler:
    """Return a sampler of the ratings in random order, or of the pairs with their negatives.

    Implicit feedback has target 1 for a training pair and 0 for each of its ``negatives`` unseen
    items. ``unit`` rescales ratings from their range to 0 to 1.
    """
    if is_implicit(train):
        sampler = Sampler.from_interactions(train)
        return lambda rng: sampler.sample_with_negatives(negatives, rng, unseen=True)
    values = train.values
    if unit:
        values = (values - values.min()) / np.ptp(values)
    return lambda rng: shuffle_rows(train.users, train.items, values, rng)


def create_coin_sampler(train: Interactions) -> EpochSampler:
    """Return a sampler of as many coin pairs as there are training rows."""
    sampler = Sampler.from_interactions(train)
    return lambda rng: sampler.sample_coin_pairs(len(train), rng)


def compute_mean_target(train: Interactions, negatives: int) -> float:
    """Return the mean of the targets of ``create_rating_sampler``."""
    return 1 / (1 + negatives) if is_implicit(train) else float(train.values.mean())
