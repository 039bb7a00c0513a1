"""Loops that score and rank rows, to be compiled by ``compile_loop`` with ``exact``."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Arrays: TypeAlias = tuple[Any, ...]

STRIP = 1024
"""Number of scores that are compared with the worst selected one at once."""


def add_products(rows: Any, left: Arrays, right: Arrays, scores: Any) -> None:
    """Write ``left[rows] @ right`` to ``scores``, ``float32 (b, n)``.

    The matrices are CSR, as their starts, columns and values.
    """
    left_starts, left_columns, left_values = left
    right_starts, right_columns, right_values = right
    for index in range(rows.size):
        row = rows[index]
        sums = scores[index]
        for column in range(sums.size):
            sums[column] = 0
        for entry in range(left_starts[row], left_starts[row + 1]):
            weight, inner = left_values[entry], left_columns[entry]
            for position in range(right_starts[inner], right_starts[inner + 1]):
                sums[np.uintp(right_columns[position])] += weight * right_values[position]


def select_best(scores: Any, excluded: Any, history: Arrays, result: Arrays) -> None:
    """Select the best columns of each row, best first; ties go to the lower column.

    Args:
        scores: ``float32 (b, n)``; excluded cells are overwritten.
        excluded: Columns that are excluded from every row.
        history: Where the excluded columns of each row start, and these columns.
        result: Columns and scores, ``(b, k)``, filled with -1 and NaN. Scores of -inf and NaN are
            never selected.
    """
    starts, seen = history
    columns, values = result
    n, k = scores.shape[1], columns.shape[1]
    words = np.zeros(STRIP // 8, dtype=np.uint64)
    is_better = words.view(np.uint8)
    for row in range(scores.shape[0]):
        candidates, best, chosen = scores[row], values[row], columns[row]
        exclude(candidates, excluded)
        exclude(candidates, seen[starts[row] : starts[row + 1]])
        n_chosen = 0
        for begin in range(0, n, STRIP):
            strip = candidates[begin : begin + STRIP]
            worst = best[k - 1] if n_chosen == k else np.float32(-np.inf)
            for position in range(strip.size):
                is_better[position] = strip[position] > worst
            for word in range((strip.size + 7) // 8):
                if words[word] == 0:
                    continue
                for position in range(8 * word, min(8 * word + 8, strip.size)):
                    if strip[position] > worst:
                        n_chosen = insert(
                            chosen, best, n_chosen, begin + position, strip[position]
                        )
                        worst = best[k - 1] if n_chosen == k else worst


def exclude(scores: Any, columns: Any) -> None:
    """Set the scores of these columns to -inf."""
    for position in range(columns.size):
        scores[columns[position]] = -np.inf


def insert(columns: Any, values: Any, n_chosen: int, column: int, value: Any) -> int:
    """Insert a column, which is better than the last of k; return the new number of columns."""
    n_chosen = min(n_chosen + 1, values.size)
    rank = n_chosen - 1
    while rank > 0 and values[rank - 1] < value:
        values[rank], columns[rank] = values[rank - 1], columns[rank - 1]
        rank -= 1
    values[rank], columns[rank] = value, column
    return n_chosen


PARTS = (exclude, insert)
"""The functions that ``select_best`` calls."""
