"""Loops that count the columns that rows of a sparse matrix share, for ``neighbour_kernel``."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Arrays: TypeAlias = tuple[Any, ...]

PACK, BYTE = 4, 252
"""Numbers of common columns that are added at once, and that a count of 8 bits can hold."""


def list_sharing(target: int, lists: Arrays, counts: Any, sharing: Any) -> int:
    """Count shared columns and list the rows that have any; return their number."""
    starts, columns, column_starts, rows = lists
    n_sharing = 0
    for entry in range(starts[target], starts[target + 1]):
        for number in range(column_starts[columns[entry]], column_starts[columns[entry] + 1]):
            row = np.uintp(rows[number])
            if counts[row] == 0:
                sharing[n_sharing] = row
                n_sharing += 1
            counts[row] += 1
    return n_sharing


def count_common(
    target: int, index: int, width: int, common: Arrays, small_counts: Any, counts: Any
) -> None:
    """Set the counts to the numbers of common columns that rows share with the target."""
    starts, columns, has_column = common
    for position in range(width):
        counts[position] = 0
    for begin in range(starts[target], starts[target + 1], BYTE):
        for position in range(width):
            small_counts[position] = 0
        for entry in range(begin, min(begin + BYTE, starts[target + 1]), PACK):
            a, b = has_column[index, columns[entry]], has_column[index, columns[entry + 1]]
            c, d = has_column[index, columns[entry + 2]], has_column[index, columns[entry + 3]]
            for position in range(width):
                small_counts[position] += a[position] + b[position] + c[position] + d[position]
        for position in range(width):
            counts[position] += small_counts[position]


def count_rare(target: int, index: int, rare: Arrays, counts: Any) -> None:
    """Add the numbers of rare columns that rows of a tile share with the target."""
    starts, columns, tile_starts, rows = rare
    for entry in range(starts[target], starts[target + 1]):
        column = columns[entry]
        for shared in range(tile_starts[index, column], tile_starts[index + 1, column]):
            counts[np.uintp(rows[np.uintp(shared)])] += 1  # signed indices are compared with 0
