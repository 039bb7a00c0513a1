"""Loops that sample triples of a block of users, to be compiled by ``compile_loop``.

The memory of a block is a tuple of arrays, which ``gather_block`` fills: of each pair its user's
slot in the block and its item; of each user the first of its pairs, the first word of its bits
and the shift of its hashes; and the bits. An item sets the bit of its hash among those of the
user, at least 8 for each pair, so that most items whose bit is 0 need no search.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, Codes
from recbias.numerics.compiled.prefetch import prefetch_row

Arrays: TypeAlias = tuple[Any, ...]

BATCH = 128
"""Number of samples whose pairs are brought into the cache together."""

BITS_PER_PAIR, WORD = 8, 32
MULTIPLIER = np.uint32(2654435769)
"""2³² over the golden ratio: the upper bits of a product with it are a hash."""

HALF, LOWER = np.uint64(32), np.uint64(2**32 - 1)
WORD_SHIFT, BIT_MASK, ONE = np.uint32(5), np.uint32(WORD - 1), np.uint32(1)


def gather_block(users: Codes, starts: AnyArray, items: Codes, memory: Arrays) -> None:
    """Copy the pairs of the users to the memory of a block, and set their bits."""
    owners, seen, firsts, words, shifts, bits = memory
    pair, word = np.int64(0), np.int64(0)
    for slot in range(users.size):
        start, end = starts[users[slot]], starts[users[slot] + 1]
        n_bits, shift = np.int64(WORD), np.uint32(27)
        while n_bits < BITS_PER_PAIR * (end - start):
            n_bits *= 2
            shift -= ONE
        firsts[slot], words[slot], shifts[slot] = pair, word, shift
        for index in range(n_bits // WORD):
            bits[word + index] = 0
        for row in range(start, end):
            item = items[row]
            seen[pair], owners[pair] = item, slot
            pair += 1
            bit = np.uint32(np.uint32(item) * MULTIPLIER) >> np.uint32(shift)
            bits[word + np.int64(bit >> WORD_SHIFT)] |= ONE << np.uint32(bit & BIT_MASK)
        word += n_bits // WORD
    firsts[users.size] = pair


def draw_triples(
    seed: Any, n_items: int, users: Codes, memory: Arrays, triples: tuple[Codes, Codes, Codes]
) -> None:
    """Fill arrays with triples: a pair of the block, and an item that its user lacks, uniformly.

    Every user must lack an item.
    """
    owners, seen, firsts, words, shifts, bits = memory
    sampled_users, positives, negatives = triples
    state = np.empty(1, dtype=np.uint64)
    state[0] = seed
    n_pairs, n_all = np.uint64(firsts[users.size]), np.uint64(n_items)
    pairs, items = np.empty(BATCH, dtype=np.int64), np.empty(BATCH, dtype=np.int64)
    for begin in range(0, positives.size, BATCH):
        size = min(BATCH, positives.size - begin)
        for s in range(size):
            key = draw_key(state)
            pairs[s] = draw_below(n_pairs, key >> HALF, state)
            items[s] = draw_below(n_all, key & LOWER, state)
            prefetch_row(owners, pairs[s])
            prefetch_row(seen, pairs[s])
        for s in range(size):
            slot, item = np.uintp(owners[np.uintp(pairs[s])]), items[s]
            bit = np.uint32(np.uint32(item) * MULTIPLIER) >> np.uint32(shifts[slot])
            word = bits[np.uintp(words[slot] + np.int64(bit >> WORD_SHIFT))]
            if (word >> np.uint32(bit & BIT_MASK)) & ONE:
                history = seen[firsts[slot] : firsts[slot + np.uintp(1)]]
                item = replace_seen(item, history, n_items, state)
            sampled_users[begin + s], negatives[begin + s] = users[slot], item
            positives[begin + s] = seen[np.uintp(pairs[s])]


def draw_key(state: Any) -> Any:
    """Return 64 random bits and advance the state: splitmix64."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def draw_below(n: Any, key: Any, state: Any) -> Any:
    """Return a uniform number below ``n`` by 32 random bits, or more (Lemire 2019, section 4)."""
    product = key * n
    if (product & LOWER) < n:
        least = (LOWER - n + np.uint64(1)) % n
        while (product & LOWER) < least:
            product = (draw_key(state) >> HALF) * n
    return product >> HALF


def replace_seen(item: Any, history: Any, n_items: int, state: Any) -> Any:
    """Return the item, or a random item that is not in the ascending history if it is."""
    low, size = np.int64(0), np.int64(history.size)
    while size > 0:
        half = (size + 1) // 2
        low += half if history[low + half - 1] < item else np.int64(0)
        size -= half
    if low == history.size or history[low] != item:
        return item
    point = np.int64(draw_below(np.uint64(n_items - history.size), draw_key(state) >> HALF, state))
    low, size = np.int64(0), np.int64(history.size)
    while size > 0:  # count the items of the history before the one with so many unseen before it
        half = (size + 1) // 2
        low += half if history[low + half - 1] - (low + half - 1) <= point else np.int64(0)
        size -= half
    return point + low


PARTS = (draw_key, draw_below, replace_seen)
"""The functions that ``draw_triples`` calls."""
