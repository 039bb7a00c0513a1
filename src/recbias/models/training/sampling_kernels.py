"""Loops that sample rows and unseen items, to be compiled by ``compile_loop``."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, Codes
from recbias.numerics.compiled.prefetch import prefetch_row

Integers: TypeAlias = npt.NDArray[np.int64]

AHEAD = 8
"""So many samples before its search, what it reads first is brought into the cache."""


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


def skip_items(users: Codes, points: Integers, starts: Integers, items: Codes) -> Codes:
    """Return the item with so many unseen items of its user before it: all have the weight 1."""
    found = np.empty(users.size, dtype=np.int32)
    for s in range(users.size):
        ahead = users[min(s + AHEAD, users.size - 1)]
        prefetch_row(starts, users[min(s + 2 * AHEAD, users.size - 1)])
        for part in range(1, 4):  # a binary search reads the middle first, then a quarter
            prefetch_row(items, (part * starts[ahead + 1] + (4 - part) * starts[ahead]) // 4)
        first = starts[users[s]]
        low, size = np.int64(0), starts[users[s] + 1] - first
        while size > 0:  # without a branch that the processor would have to guess
            half = (size + 1) // 2
            is_before = items[first + low + half - 1] - (low + half - 1) <= points[s]
            low += half if is_before else np.int64(0)
            size -= half
        found[s] = points[s] + low
    return found
