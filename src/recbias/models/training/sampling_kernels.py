"""Loops that sample rows and unseen items, to be compiled by ``compile_loop``."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, Codes

Integers: TypeAlias = npt.NDArray[np.int64]


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
        first = low = starts[users[s]]
        high = starts[users[s] + 1]
        while low < high:
            middle = (low + high) // 2
            if items[middle] - (middle - first) <= points[s]:
                low = middle + 1
            else:
                high = middle
        found[s] = points[s] + low - first
    return found
