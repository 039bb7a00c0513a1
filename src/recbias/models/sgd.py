"""Loops of SGD steps, compiled by ``compile_loop``: on single samples, and on sampled triples.

The samples of an epoch are drawn at once, or in blocks of users that stay in the cache.

Each kernel takes the samples, arrays of one length; the tables of ``FactorTables.arrays``, which
it updates in place; and ``float32`` settings that start with the learning rate. It returns the sum
of the losses, each computed before its step and without the penalty.

The memory of a block is a tuple of arrays, which ``_gather_block`` fills: of each pair its user's
slot in the block and its item; of each user the first of its pairs, the first word of its bits
and the shift of its hashes; and the bits. An item sets the bit of its hash among those of the
user, at least 8 for each pair, so that most items whose bit is 0 need no search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, Codes, Interactions
from recbias.core.plugins import is_changed
from recbias.kernels.sparse import compile_loop, prefetch_row

_Settings: TypeAlias = tuple[Any, ...]
_Arrays: TypeAlias = tuple[AnyArray, ...]

_ZERO, _ONE = np.float32(0), np.float32(1)
_AHEAD = 6
"""So many samples before its step, the vectors of a sample are brought into the cache."""

_FACTORS = 32
"""Number of losses whose sum is one logarithm of a product; each factor is from 1 to 2."""


def step_bpr(samples: _Arrays, tables: _Arrays, settings: _Settings) -> float:
    """Minimise ``-ln σ(x) + (reg_user |p|² + reg_i |q_i|² + reg_j |q_j|² + reg_b (...)) / 2``.

    ``x = p · (q_i - q_j) + b_i - b_j``; the gradient of ``-ln σ(x)`` by x is ``-σ(-x)``.
    """
    users, positives, negatives = samples
    p, q, _, bias, _ = tables
    rate, reg_user, reg_positive, reg_negative, reg_bias = settings
    decay_user, decay_bias = _ONE - rate * reg_user, _ONE - rate * reg_bias
    decay_positive, decay_negative = _ONE - rate * reg_positive, _ONE - rate * reg_negative
    total, product = 0.0, 1.0
    for s in range(users.size):
        ahead = min(s + _AHEAD, users.size - 1)
        prefetch_row(p, users[ahead])
        prefetch_row(q, positives[ahead])
        prefetch_row(q, negatives[ahead])
        i, j = np.uintp(positives[s]), np.uintp(negatives[s])
        user, positive, negative = p[np.uintp(users[s])], q[i], q[j]
        margin = bias[i, 0] - bias[j, 0]
        for f in range(user.size):
            margin += user[f] * (positive[f] - negative[f])
        small = math.exp(-abs(margin))
        total += max(-margin, _ZERO)
        product *= 1.0 + small
        if s % _FACTORS == _FACTORS - 1:
            total += math.log(product)
            product = 1.0
        pull = rate * (small if margin > _ZERO else _ONE) / (_ONE + small)
        for f in range(user.size):
            a, b, c = user[f], positive[f], negative[f]
            user[f] = decay_user * a + pull * (b - c)
            positive[f] = decay_positive * b + pull * a
            negative[f] = decay_negative * c - pull * a
        bias[i, 0] = decay_bias * bias[i, 0] + pull
        bias[j, 0] = decay_bias * bias[j, 0] - pull
    return total + math.log(product)


def step_logistic(samples: _Arrays, tables: _Arrays, settings: _Settings) -> float:
    """Minimise ``-y ln σ(s) - (1 - y) ln σ(-s) + reg (b² + b_u² + b_i² + |p|² + |q|²) / 2``.

    ``s = b + b_u + b_i + p · q``; the gradient of the cross-entropy by s is ``σ(s) - y``.
    """
    users, items, labels = samples
    p, q, user_bias, item_bias, offset = tables
    rate, reg = settings
    total, decay = 0.0, _ONE - rate * reg
    for s in range(users.size):
        ahead = min(s + _AHEAD, users.size - 1)
        prefetch_row(p, users[ahead])
        prefetch_row(q, items[ahead])
        u, i = np.uintp(users[s]), np.uintp(items[s])
        user, item = p[u], q[i]
        score = offset[0] + user_bias[u, 0] + item_bias[i, 0]
        for f in range(user.size):
            score += user[f] * item[f]
        small = math.exp(-abs(score))
        total += math.log1p(small) + max(score, _ZERO) - labels[s] * score
        pull = rate * (labels[s] - (_ONE if score > _ZERO else small) / (_ONE + small))
        for f in range(user.size):
            a, c = user[f], item[f]
            user[f] = decay * a + pull * c
            item[f] = decay * c + pull * a
        user_bias[u, 0] = decay * user_bias[u, 0] + pull
        item_bias[i, 0] = decay * item_bias[i, 0] + pull
        offset[0] = decay * offset[0] + pull
    return total


def step_squared(samples: _Arrays, tables: _Arrays, settings: _Settings) -> float:
    """Minimise ``((r - s)² + reg (|p|² + |q|² + b_u² + b_i²)) / 2``.

    ``s = mean + b_u + b_i + p · q``, without biases if the tables have none.
    """
    users, items, values = samples
    p, q, user_bias, item_bias, _ = tables
    rate, reg, mean = settings
    total, decay, has_bias = 0.0, _ONE - rate * reg, item_bias.size > 0
    for s in range(users.size):
        ahead = min(s + _AHEAD, users.size - 1)
        prefetch_row(p, users[ahead])
        prefetch_row(q, items[ahead])
        u, i = np.uintp(users[s]), np.uintp(items[s])
        user, item, score = p[u], q[i], mean
        if has_bias:
            score += user_bias[u, 0] + item_bias[i, 0]
        for f in range(user.size):
            score += user[f] * item[f]
        error = values[s] - score
        total += error * error
        pull = rate * error
        for f in range(user.size):
            a, c = user[f], item[f]
            user[f] = decay * a + pull * c
            item[f] = decay * c + pull * a
        if has_bias:
            user_bias[u, 0] = decay * user_bias[u, 0] + pull
            item_bias[i, 0] = decay * item_bias[i, 0] + pull
    return total / 2


_BlockMemory: TypeAlias = tuple[Any, ...]

_BATCH = 128
"""Number of samples whose pairs are brought into the cache together."""

_BITS_PER_PAIR, _WORD = 8, 32
_MULTIPLIER = np.uint32(2654435769)
"""2³² over the golden ratio: the upper bits of a product with it are a hash."""

_HALF, _LOWER = np.uint64(32), np.uint64(2**32 - 1)
_WORD_SHIFT, _BIT_MASK, _ONE_TRIPLE_KERNELS = np.uint32(5), np.uint32(_WORD - 1), np.uint32(1)


def _gather_block(users: Codes, starts: AnyArray, items: Codes, memory: _BlockMemory) -> None:
    """Copy the pairs of the users to the memory of a block, and set their bits."""
    owners, seen, firsts, words, shifts, bits = memory
    pair, word = np.int64(0), np.int64(0)
    for slot in range(users.size):
        start, end = starts[users[slot]], starts[users[slot] + 1]
        n_bits, shift = np.int64(_WORD), np.uint32(27)
        while n_bits < _BITS_PER_PAIR * (end - start):
            n_bits *= 2
            shift -= _ONE_TRIPLE_KERNELS
        firsts[slot], words[slot], shifts[slot] = pair, word, shift
        for index in range(n_bits // _WORD):
            bits[word + index] = 0
        for row in range(start, end):
            item = items[row]
            seen[pair], owners[pair] = item, slot
            pair += 1
            bit = np.uint32(np.uint32(item) * _MULTIPLIER) >> np.uint32(shift)
            bits[word + np.int64(bit >> _WORD_SHIFT)] |= _ONE_TRIPLE_KERNELS << np.uint32(
                bit & _BIT_MASK
            )
        word += n_bits // _WORD
    firsts[users.size] = pair


def _draw_triples(
    seed: Any,
    n_items: int,
    users: Codes,
    memory: _BlockMemory,
    triples: tuple[Codes, Codes, Codes],
) -> None:
    """Fill arrays with triples: a pair of the block, and an item that its user lacks, uniformly.

    Every user must lack an item.
    """
    owners, seen, firsts, words, shifts, bits = memory
    sampled_users, positives, negatives = triples
    state = np.empty(1, dtype=np.uint64)
    state[0] = seed
    n_pairs, n_all = np.uint64(firsts[users.size]), np.uint64(n_items)
    pairs, items = np.empty(_BATCH, dtype=np.int64), np.empty(_BATCH, dtype=np.int64)
    for begin in range(0, positives.size, _BATCH):
        size = min(_BATCH, positives.size - begin)
        for s in range(size):
            key = _draw_key(state)
            pairs[s] = _draw_below(n_pairs, key >> _HALF, state)
            items[s] = _draw_below(n_all, key & _LOWER, state)
            prefetch_row(owners, pairs[s])
            prefetch_row(seen, pairs[s])
        for s in range(size):
            slot, item = np.uintp(owners[np.uintp(pairs[s])]), items[s]
            bit = np.uint32(np.uint32(item) * _MULTIPLIER) >> np.uint32(shifts[slot])
            word = bits[np.uintp(words[slot] + np.int64(bit >> _WORD_SHIFT))]
            if (word >> np.uint32(bit & _BIT_MASK)) & _ONE_TRIPLE_KERNELS:
                history = seen[firsts[slot] : firsts[slot + np.uintp(1)]]
                item = _replace_seen(item, history, n_items, state)
            sampled_users[begin + s], negatives[begin + s] = users[slot], item
            positives[begin + s] = seen[np.uintp(pairs[s])]


def _draw_key(state: Any) -> Any:
    """Return 64 random bits and advance the state: splitmix64."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _draw_below(n: Any, key: Any, state: Any) -> Any:
    """Return a uniform number below ``n`` by 32 random bits, or more (Lemire 2019, section 4)."""
    product = key * n
    if (product & _LOWER) < n:
        least = (_LOWER - n + np.uint64(1)) % n
        while (product & _LOWER) < least:
            product = (_draw_key(state) >> _HALF) * n
    return product >> _HALF


def _replace_seen(item: Any, history: Any, n_items: int, state: Any) -> Any:
    """Return the item, or a random item that is not in the ascending history if it is."""
    low, size = np.int64(0), np.int64(history.size)
    while size > 0:
        half = (size + 1) // 2
        low += half if history[low + half - 1] < item else np.int64(0)
        size -= half
    if low == history.size or history[low] != item:
        return item
    point = np.int64(
        _draw_below(np.uint64(n_items - history.size), _draw_key(state) >> _HALF, state)
    )
    low, size = np.int64(0), np.int64(history.size)
    while size > 0:  # count the items of the history before the one with so many unseen before it
        half = (size + 1) // 2
        low += half if history[low + half - 1] - (low + half - 1) <= point else np.int64(0)
        size -= half
    return point + low


_PARTS = (_draw_key, _draw_below, _replace_seen)
"""The functions that ``_draw_triples`` calls."""


_Integers: TypeAlias = npt.NDArray[np.int64]

_UnseenIndex: TypeAlias = tuple[_Integers, _Integers, _Integers, Codes, Codes]

_BATCH_SAMPLING_KERNELS = 64
"""Number of samples for which what a search reads is brought into the cache together."""

_WIDTH = 16
"""Number of cuts that are compared at once."""

_NO_CUT = 2**31 - 1


def _insert_rows(
    keys: AnyArray, users: Codes, items: Codes, values: AnyArray
) -> tuple[Codes, Codes, AnyArray]:
    """Insert each row at the position among the rows before it that its key determines."""
    a, b, c = np.empty_like(users), np.empty_like(items), np.empty_like(values)
    for last in range(keys.size):
        row = (np.uint64(keys[last]) * np.uint64(last + 1)) >> np.uint64(32)
        a[last], b[last], c[last] = a[row], b[row], c[row]
        a[row], b[row], c[row] = users[last], items[last], values[last]
    return a, b, c


def _index_unseen(starts: _Integers, items: Codes, arrays: _UnseenIndex) -> None:
    """Fill the cuts and the numbers of cuts before each bucket of ``_find_unseen``."""
    first_cuts, first_buckets, shifts, cuts, lows = arrays
    for user in range(shifts.size):
        start, size, first = starts[user], starts[user + 1] - starts[user], first_cuts[user]
        for number in range(size):
            cuts[first + number] = items[start + number] - number
        for place in range(first + size, first_cuts[user + 1]):
            cuts[place] = _NO_CUT
        place = first
        for bucket in range(first_buckets[user], first_buckets[user + 1]):
            edge = (bucket - first_buckets[user]) << shifts[user]
            while cuts[place] < edge:
                place += 1
            lows[bucket] = place


def _find_unseen(users: Codes, points: _Integers, arrays: _UnseenIndex) -> Codes:
    """Return the item with so many unseen items of its user before it.

    A point is moved by the number of the user's cuts, items less the number of the user's items
    before them, that are not after it. They are counted from the bucket of the point on, 16 at
    once.

    Args:
        users: The users, ``int32[n]``.
        points: Numbers of unseen items, ``int64[n]``.
        arrays: The first cut and the first bucket of each user, the logarithm of the length of
            the user's buckets; the cuts of each user, with 16 more that are after every point;
            and the first cut of each bucket.
    """
    first_cuts, first_buckets, shifts, cuts, lows = arrays
    found = np.empty(users.size, dtype=np.int32)
    places = np.empty(_BATCH_SAMPLING_KERNELS, dtype=np.int64)
    for begin in range(0, users.size, _BATCH_SAMPLING_KERNELS):
        size = min(_BATCH_SAMPLING_KERNELS, users.size - begin)
        for s in range(size):
            user = np.uintp(users[begin + s])
            places[s] = first_buckets[user] + (points[begin + s] >> shifts[user])
            prefetch_row(lows, places[s])
        for s in range(size):
            places[s] = lows[np.uintp(places[s])]
            prefetch_row(cuts, places[s])
            prefetch_row(cuts, places[s] + _WIDTH - 1)
        for s in range(size):
            place, point = places[s], np.int32(points[begin + s])
            n_before = np.int32(_WIDTH)
            while n_before == _WIDTH:
                n_before = np.int32(0)
                for offset in range(_WIDTH):
                    is_before = cuts[np.uintp(place + offset)] <= point
                    n_before += np.int32(1) if is_before else np.int32(0)
                place += n_before
            found[begin + s] = point + place - first_cuts[np.uintp(users[begin + s])]
    return found


_Labels: TypeAlias = npt.NDArray[np.float32]  # 1 for a positive pair, 0 for a negative pair


@dataclass(frozen=True, eq=False)
class Sampler:
    """Samples positive pairs of a training part, and negative items, uniformly.

    Unseen items are sampled without rejection: a number of items that the user lacks, of which the
    one with so many before it is found.

    Args:
        users: The user of each distinct positive pair, ascending, ``int32[p]``.
        items: The item of each pair, ascending within a user, ``int32[p]``.
        starts: Start of each user's pairs in ``items``, ``int64[n_users + 1]``.
        n_items: The number of items.
    """

    users: Codes
    items: Codes
    starts: _Integers
    n_items: int

    @classmethod
    def from_interactions(cls, train: Interactions) -> Sampler:
        """Return the sampler of a training part, in which a repeated pair counts once."""
        matrix = train.binary
        starts = matrix.indptr.astype(np.int64)
        users = np.repeat(np.arange(train.n_users, dtype=np.int32), np.diff(starts))
        return cls(users, matrix.indices.astype(np.int32), starts, train.n_items)

    def sample_positives(self, n: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
        """Sample ``n`` positive pairs uniformly."""
        rows = rng.integers(self.users.size, size=n)
        return self.users[rows], self.items[rows]

    def sample_positive_items(self, users: Codes, rng: np.random.Generator) -> Codes:
        """Sample one of the items of each user uniformly; each user must have an item."""
        counts = self.starts[users + 1] - self.starts[users]
        return np.asarray(self.items[self.starts[users] + rng.integers(counts)])

    def sample_items(self, n: int, rng: np.random.Generator) -> Codes:
        """Sample ``n`` items, seen or unseen, ``int32[n]``."""
        return rng.integers(self.n_items, size=n).astype(np.int32)

    def sample_unseen(self, users: Codes, rng: np.random.Generator) -> Codes:
        """Sample an unseen item of each user; each user must lack an item."""
        points = rng.integers(self._n_unseen[users])
        return compile_loop(_find_unseen)(users, points, self._unseen_index)  # type: ignore[no-any-return]

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
        if not self._n_unseen.min(initial=1) > 0:
            has_unseen = self._n_unseen[users] > 0
            users, items = users[has_unseen], items[has_unseen]
        return users, items, self.sample_unseen(users, rng)

    def sample_coin_pairs(self, n: int, rng: np.random.Generator) -> tuple[Codes, Codes, _Labels]:
        """Sample ``n`` of (user, item, label): a uniform user, a fair coin, a seen or unseen item.

        A user who has every item always gets a seen item.
        """
        users = self._sample_users(n, rng)
        labels = rng.integers(2, size=n).astype(bool) | (self._n_unseen[users] <= 0)
        items = np.empty(n, dtype=np.int32)
        items[labels] = self.sample_positive_items(users[labels], rng)
        items[~labels] = self.sample_unseen(users[~labels], rng)
        return users, items, labels.astype(np.float32)

    def sample_with_negatives(
        self, negatives: int, rng: np.random.Generator, *, unseen: bool = False
    ) -> tuple[Codes, Codes, _Labels]:
        """Return every positive pair once, in random order, each followed by its negatives.

        With ``unseen``, negatives are unseen items, and users who have every item are dropped.
        Otherwise any item is sampled, including positives of the user. Users, items and labels
        have ``1 + negatives`` entries per pair each.
        """
        order = rng.permutation(self.users.size)
        if unseen:
            order = order[self._n_unseen[self.users[order]] > 0]
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
    def _n_unseen(self) -> _Integers:
        """The number of items that each user lacks, ``int64[n_users]``."""
        return np.asarray(self.n_items - np.diff(self.starts))

    @cached_property
    def _unseen_index(self) -> _UnseenIndex:
        """The arrays of ``_find_unseen``: about four cuts for each bucket of a user."""
        counts = np.diff(self.starts)
        last_points = np.maximum(self._n_unseen - 1, 0)
        shifts = np.zeros(counts.size, dtype=np.int64)
        while (is_fine := (last_points >> shifts) >= np.maximum(counts // 4, 1)).any():
            shifts[is_fine] += 1
        first_cuts, first_buckets = (
            np.append(0, np.cumsum(sizes))
            for sizes in (counts + _WIDTH, (last_points >> shifts) + 1)
        )
        cuts, lows = np.empty(first_cuts[-1], np.int32), np.empty(first_buckets[-1], np.int32)
        arrays = (first_cuts, first_buckets, shifts, cuts, lows)
        compile_loop(_index_unseen)(self.starts, self.items, arrays)
        return arrays

    def _sample_users(self, n: int, rng: np.random.Generator) -> Codes:
        return np.asarray(self._active_users[rng.integers(self._active_users.size, size=n)])


def shuffle_rows(
    users: Codes, items: Codes, values: AnyArray, rng: np.random.Generator
) -> tuple[Codes, Codes, AnyArray]:
    """Return ``n`` rows in random order, uniform up to a bias of n in 2³²."""
    keys = rng.integers(2**32, size=users.size, dtype=np.uint32)
    return compile_loop(_insert_rows)(keys, users, items, values)  # type: ignore[no-any-return]


EpochSampler: TypeAlias = Callable[[np.random.Generator], Sequence[AnyArray]]
"""Samples the users, items and targets of an epoch."""


def is_implicit(train: Interactions) -> bool:
    """Return whether all values are equal, so that there are no ratings to learn."""
    return not len(train) or bool(train.values.min() == train.values.max())


def create_rating_sampler(train: Interactions, model: Any, *, unit: bool = False) -> EpochSampler:
    """Return a sampler of the ratings in random order, or of the pairs with their negatives.

    Implicit feedback has target 1 for a training pair and 0 for each of the ``negatives`` unseen
    items of the model. ``unit`` rescales ratings from their range to 0 to 1.
    """
    if is_implicit(train):
        sampler = Sampler.from_interactions(train)
        return lambda rng: sampler.sample_with_negatives(model.negatives, rng, unseen=True)
    if is_changed(model, "negatives"):
        warn("negatives has no effect on ratings, which are the targets; threshold makes pairs")
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


_Triples: TypeAlias = tuple[Codes, Codes, Codes]

_USERS_PER_BLOCK = 2048
"""Their 64 factors and the items of MovieLens' users take about 2 MB."""

MANY_USERS = 16_384
"""From so many users on, vectors and items are too large for the cache of a core."""


@dataclass(frozen=True, eq=False)
class UserBlocks:
    """Samples an epoch of triples, block of users after block of users.

    Each epoch divides the users into blocks anew, at random. The triples are the independent ones
    of ``Sampler.sample_triples`` in another order: how many are in each block is multinomial by
    its number of pairs, and those of a block are drawn in random order.

    Args:
        sampler: The pairs; negatives are uniform.
        size: About how many users a block has, at most 40,000.
    """

    sampler: Sampler
    size: int = _USERS_PER_BLOCK

    def sample(self, rng: np.random.Generator) -> _Triples:
        """Sample triples (user, seen item, unseen item), as many as there are pairs.

        Users who have every item are left out.

        >>> pairs = [np.array(codes, dtype=np.int32) for codes in ([0, 1, 1], [1, 0, 1])]
        >>> sampler = Sampler(*pairs, np.array([0, 1, 3]), 2)
        >>> [array.tolist() for array in UserBlocks(sampler).sample(np.random.default_rng(0))]
        [[0], [1], [0]]
        """
        counts, n_items = np.diff(self.sampler.starts), self.sampler.n_items
        users = np.flatnonzero((counts > 0) & (counts < n_items)).astype(np.int32)
        order = rng.permutation(users)
        n = int(counts[users].sum())
        triples = (np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32))
        if n:
            n_blocks = max(1, round(users.size / self.size))
            blocks = np.array_split(order, n_blocks)
            sizes = np.array([counts[block].sum() for block in blocks])
            ends = np.cumsum(rng.multinomial(n, sizes / n))
            seeds = rng.integers(2**64, size=n_blocks, dtype=np.uint64)
            self._fill(blocks, sizes, ends, seeds, triples)
        return triples

    def _fill(
        self, blocks: list[Codes], sizes: AnyArray, ends: AnyArray, seeds: AnyArray, triples: Any
    ) -> None:
        """Draw the triples of each block up to its end."""
        memory = _create_memory(int(sizes.max()), blocks[0].size)
        gather, draw = compile_loop(_gather_block), compile_loop(_draw_triples, parts=_PARTS)
        start = 0
        for users, end, seed in zip(blocks, ends.tolist(), seeds, strict=True):
            gather(users, self.sampler.starts, self.sampler.items, memory)
            parts = tuple(array[start:end] for array in triples)
            draw(seed, self.sampler.n_items, users, memory, parts)
            start = end


def _create_memory(n_pairs: int, n_users: int) -> tuple[AnyArray, ...]:
    """Return the arrays of ``triple_kernels`` for the largest block."""
    n_words = 2 * _BITS_PER_PAIR * n_pairs // _WORD + n_users  # powers of two: less than twice
    return (
        np.empty(n_pairs, dtype=np.uint16),
        np.empty(n_pairs, dtype=np.int32),
        np.empty(n_users + 1, dtype=np.int64),
        np.empty(n_users, dtype=np.int64),
        np.empty(n_users, dtype=np.uint32),
        np.empty(n_words, dtype=np.uint32),
    )


def create_triple_sampler(sampler: Sampler) -> Callable[[np.random.Generator], _Triples]:
    """Return a sampler of an epoch's triples, in blocks of users for ``MANY_USERS``."""
    if sampler.starts.size > MANY_USERS:
        return UserBlocks(sampler).sample
    return lambda rng: sampler.sample_triples(sampler.users.size, rng)
