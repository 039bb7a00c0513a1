"""Loops that score and rank rows, to be compiled by ``compile_loop`` with ``exact``."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray

Arrays: TypeAlias = tuple[Any, ...]

STRIP = 1024
"""Number of scores that are compared with the worst selected one at once."""


def select_best(scores: Any, first: int, excluded: Any, history: Arrays, result: Arrays) -> None:
    """Add columns to the best ones of each row, best first; ties go to the lower column.

    Args:
        scores: The scores of the columns from ``first`` on, ``float32 (b, n)``; excluded cells are
            overwritten.
        first: The first of the columns, all of which are after those that were added before.
        excluded: Columns that are excluded from every row.
        history: The excluded columns of each row, ascending, as the place of the first one that is
            not before ``first``, the end and the columns; the place moves past the scores.
        result: The best columns and scores so far, ``(b, k)``, filled up with -1 and NaN. Scores
            of -inf and NaN are never selected.
    """
    columns, values = result
    n, k = scores.shape[1], columns.shape[1]
    words = np.zeros(STRIP // 8, dtype=np.uint64)
    is_better = words.view(np.uint8)
    for row in range(scores.shape[0]):
        candidates, best, chosen = scores[row], values[row], columns[row]
        exclude(candidates, first, excluded)
        exclude_seen(candidates, first, history, row)
        n_chosen = count_chosen(chosen)
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
                            chosen, best, n_chosen, first + begin + position, strip[position]
                        )
                        worst = best[k - 1] if n_chosen == k else worst


def count_chosen(columns: AnyArray) -> int:
    """Return the number of columns before the first -1."""
    n_chosen = columns.size
    while n_chosen > 0 and columns[n_chosen - 1] < 0:
        n_chosen -= 1
    return n_chosen


def exclude(scores: Any, first: int, columns: Any) -> None:
    """Set the scores of these columns to -inf; those of ``scores`` start at ``first``."""
    for position in range(columns.size):
        scores[columns[position] - first] = -np.inf


def exclude_seen(scores: Any, first: int, history: Arrays, row: int) -> None:
    """Set the scores of the columns of the history of a row to -inf, as far as they are here."""
    places, ends, seen = history
    location = places[row]
    while location < ends[row] and seen[location] < first + scores.size:
        scores[seen[location] - first] = -np.inf
        location += 1
    places[row] = location


def insert(columns: Any, values: Any, n_chosen: int, column: int, value: Any) -> int:
    """Insert a column, which is better than the last of k; return the new number of columns."""
    n_chosen = min(n_chosen + 1, values.size)
    rank = n_chosen - 1
    while rank > 0 and (
        values[rank - 1] < value or (values[rank - 1] == value and columns[rank - 1] > column)
    ):
        values[rank], columns[rank] = values[rank - 1], columns[rank - 1]
        rank -= 1
    values[rank], columns[rank] = value, column
    return n_chosen


PARTS = (count_chosen, exclude, exclude_seen, insert)
"""The functions that ``select_best`` calls."""


def mix_hashes(users: Any, items: Any, scores: Any) -> None:
    """Write numbers uniform on [0, 1), ``float32 (b, n)``, by 64-bit hashes of users and items.

    The bits of the exclusive or of the two are mixed as by splitmix64.
    """
    increment = np.uint64(0x9E3779B97F4A7C15)
    factor, other_factor = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
    for row in range(users.size):
        user, numbers = users[row], scores[row]
        for column in range(items.size):
            mixed = (user ^ items[column]) + increment
            mixed = (mixed ^ (mixed >> np.uint64(30))) * factor
            mixed = (mixed ^ (mixed >> np.uint64(27))) * other_factor
            high = (mixed ^ (mixed >> np.uint64(31))) >> np.uint64(40)
            numbers[column] = np.float32(np.int32(high)) * np.float32(2.0**-24)
