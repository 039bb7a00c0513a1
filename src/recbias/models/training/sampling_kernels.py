"""Loops that sample rows and unseen items, to be compiled by ``compile_loop``."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, Codes
from recbias.numerics.compiled.prefetch import prefetch_row

Integers: TypeAlias = npt.NDArray[np.int64]

UnseenIndex: TypeAlias = tuple[Integers, Integers, Integers, Codes, Codes]

BATCH = 64
"""Number of samples for which what a search reads is brought into the cache together."""

WIDTH = 16
"""Number of cuts that are compared at once."""

NO_CUT = 2**31 - 1


def insert_rows(
    keys: AnyArray, users: Codes, items: Codes, values: AnyArray
) -> tuple[Codes, Codes, AnyArray]:
    """Insert each row at the position among the rows before it that its key determines."""
    a, b, c = np.empty_like(users), np.empty_like(items), np.empty_like(values)
    for last in range(keys.size):
        row = (np.uint64(keys[last]) * np.uint64(last + 1)) >> np.uint64(32)
        a[last], b[last], c[last] = a[row], b[row], c[row]
        a[row], b[row], c[row] = users[last], items[last], values[last]
    return a, b, c


def skip_cuts(
    users: Codes, points: Integers, starts: Integers, cuts: Integers, cumulative: Integers
) -> Integers:
    """Convert points on the line of a user's unseen items to points on the line of all items."""
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
        moved[s] = points[s] + cumulative[low] - cumulative[first]
    return moved


def index_unseen(starts: Integers, items: Codes, arrays: UnseenIndex) -> None:
    """Fill the cuts and the numbers of cuts before each bucket of ``find_unseen``."""
    first_cuts, first_buckets, shifts, cuts, lows = arrays
    for user in range(shifts.size):
        start, size, first = starts[user], starts[user + 1] - starts[user], first_cuts[user]
        for number in range(size):
            cuts[first + number] = items[start + number] - number
        for place in range(first + size, first_cuts[user + 1]):
            cuts[place] = NO_CUT
        place = first
        for bucket in range(first_buckets[user], first_buckets[user + 1]):
            edge = (bucket - first_buckets[user]) << shifts[user]
            while cuts[place] < edge:
                place += 1
            lows[bucket] = place


def find_unseen(users: Codes, points: Integers, arrays: UnseenIndex) -> Codes:
    """Return the item with so many unseen items of its user before it: all have the weight 1.

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
    places = np.empty(BATCH, dtype=np.int64)
    for begin in range(0, users.size, BATCH):
        size = min(BATCH, users.size - begin)
        for s in range(size):
            user = np.uintp(users[begin + s])
            places[s] = first_buckets[user] + (points[begin + s] >> shifts[user])
            prefetch_row(lows, places[s])
        for s in range(size):
            places[s] = lows[np.uintp(places[s])]
            prefetch_row(cuts, places[s])
            prefetch_row(cuts, places[s] + WIDTH - 1)
        for s in range(size):
            place, point = places[s], np.int32(points[begin + s])
            n_before = np.int32(WIDTH)
            while n_before == WIDTH:
                n_before = np.int32(0)
                for offset in range(WIDTH):
                    is_before = cuts[np.uintp(place + offset)] <= point
                    n_before += np.int32(1) if is_before else np.int32(0)
                place += n_before
            found[begin + s] = point + place - first_cuts[np.uintp(users[begin + s])]
    return found
