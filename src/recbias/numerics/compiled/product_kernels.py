"""Loops that rank the columns of a sparse product, to be compiled by ``compile_loop``."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from recbias.numerics.compiled.ranking_kernels import count_chosen, exclude, insert

Arrays: TypeAlias = tuple[Any, ...]

STRIP = 1024
"""Number of scores that are compared with the worst selected one at once."""


def split_into_tiles(matrix: Arrays, places: Any, shift: int, tiles: Arrays, free: Any) -> None:
    """Write the entries of a CSR matrix tile by tile, each tile row by row.

    Args:
        matrix: Where each row starts, the columns and the values.
        places: The place of each column, of which a tile has ``2 ** shift``; -1 to leave it out.
        shift: The logarithm of the size of a tile.
        tiles: Where each row of each tile starts, and the last one ends,
            ``int64 (n_tiles, n_rows + 1)``; the columns within their tile, and the values.
        free: Where the entries of each tile start, ``int64[n_tiles]``; overwritten.
    """
    starts, columns, values = matrix
    tile_starts, tile_columns, tile_values = tiles
    n_rows, inside = starts.size - 1, (1 << shift) - 1
    for row in range(n_rows):
        for tile in range(free.size):
            tile_starts[tile, row] = free[tile]
        for entry in range(starts[row], starts[row + 1]):
            place = places[columns[entry]]
            if place >= 0:
                tile = place >> shift
                tile_columns[free[tile]] = place & inside
                tile_values[free[tile]] = values[entry]
                free[tile] += 1
    for tile in range(free.size):
        tile_starts[tile, n_rows] = free[tile]


def rank_products(left: Arrays, tiles: Arrays, history: Arrays, sums: Any, result: Arrays) -> None:
    """Select the best columns of ``left[rows] @ right``; ties go to the lower column.

    A tile is left out for a row whose worst selected score is above its bound.

    Args:
        left: The rows; where each row of the CSR matrix starts, its columns and values.
        tiles: The right factor as written by ``split_into_tiles``; the largest sum of absolute
            values of a column of each tile, ``float64``; and the column of each place.
        history: The excluded columns of each row, as CSR of the rows: where they start and the
            columns; and the place of each column, -1 if it has none.
        sums: Memory for the scores of a tile, ``float32``.
        result: The best columns and scores, ``(b, k)``, filled with -1 and NaN. Scores of -inf and
            NaN are never selected.
    """
    rows, left_starts, _, left_values = left
    tile_starts, _, _, bounds, names = tiles
    best = result[1]
    is_near = np.zeros(STRIP // 8, dtype=np.uint64)
    for tile in range(tile_starts.shape[0]):
        first = tile * sums.size
        width = min(sums.size, names.size - first)
        for index in range(rows.size):
            row, largest = rows[index], np.float64(0)
            for entry in range(left_starts[row], left_starts[row + 1]):
                largest = max(largest, abs(np.float64(left_values[entry])))
            if best[index, -1] > bounds[tile] * largest:  # NaN while there are fewer than k
                continue
            sums[:] = 0
            add_rows(row, left, tile, tiles, sums)
            exclude_places(index, history, first, sums)
            tile_names = names[first : first + width]
            select_row(sums[:width], tile_names, result[0][index], best[index], is_near)


def add_rows(row: int, left: Arrays, tile: int, tiles: Arrays, sums: Any) -> None:
    """Add the products of a row of the left factor with the columns of a tile."""
    _, left_starts, left_columns, left_values = left
    starts, columns, values = tiles[0][tile], tiles[1], tiles[2]
    for entry in range(left_starts[row], left_starts[row + 1]):
        weight, inner = left_values[entry], left_columns[entry]
        for position in range(starts[inner], starts[inner + 1]):
            place = np.uintp(position)  # a signed index would be compared with 0 each time
            sums[np.uintp(columns[place])] += weight * values[place]


def rank_dense_products(
    left: Arrays, tile: Any, names: Any, excluded: Any, history: Arrays, result: Arrays
) -> None:
    """Add the columns of a tile to the best ones of ``left[rows] @ right``.

    Args:
        left: The rows; where each row of the CSR matrix starts, its columns and values.
        tile: The columns of the right factor, ``float32 (m, n)``.
        names: Their names, ascending by 1, ``int32[n]``.
        excluded: Names of columns of the tile that are excluded from every row.
        history: The excluded columns of each row, as CSR of the rows: where they start and the
            columns, ascending.
        result: The best columns and scores so far, ``(b, k)``, filled up with -1 and NaN. Scores
            of -inf and NaN are never selected.
    """
    is_near = np.zeros(STRIP // 8, dtype=np.uint64)
    scores, first = np.empty(names.size, dtype=np.float32), names[0]
    starts, seen = history
    for index in range(left[0].size):
        scores[:] = 0
        add_dense_rows(left[0][index], left, tile, scores)
        exclude(scores, first, excluded)
        begin, end = starts[index], starts[index + 1]
        begin += np.searchsorted(seen[begin:end], first)
        while begin < end and seen[begin] < first + names.size:
            scores[seen[begin] - first] = -np.inf
            begin += 1
        select_row(scores, names, result[0][index], result[1][index], is_near)


def add_dense_rows(row: int, left: Arrays, tile: Any, sums: Any) -> None:
    """Add the products of a row of the left factor with a tile, four of its rows at once."""
    _, left_starts, columns, weights = left
    entry, end = left_starts[row], left_starts[row + 1]
    while entry + 4 <= end:
        first, second = tile[np.uintp(columns[entry])], tile[np.uintp(columns[entry + 1])]
        third, fourth = tile[np.uintp(columns[entry + 2])], tile[np.uintp(columns[entry + 3])]
        of_first, of_second = weights[entry], weights[entry + 1]
        of_third, of_fourth = weights[entry + 2], weights[entry + 3]
        for place in range(sums.size):
            total = sums[place] + of_first * first[place] + of_second * second[place]
            sums[place] = total + of_third * third[place] + of_fourth * fourth[place]
        entry += 4
    while entry < end:
        first, of_first = tile[np.uintp(columns[entry])], weights[entry]
        for place in range(sums.size):
            sums[place] += of_first * first[place]
        entry += 1


def exclude_places(index: int, history: Arrays, first: int, sums: Any) -> None:
    """Set the scores of the excluded columns of a row to -inf."""
    starts, columns, places = history
    for entry in range(starts[index], starts[index + 1]):
        place = places[columns[entry]] - first
        if 0 <= place < sums.size:
            sums[place] = -np.inf


def select_row(scores: Any, names: Any, chosen: Any, best: Any, near_words: Any) -> None:
    """Add columns in any order to the best ones of a row, best first."""
    k, is_near = best.size, near_words.view(np.uint8)
    n_chosen = count_chosen(chosen)
    for begin in range(0, scores.size, STRIP):
        strip = scores[begin : begin + STRIP]
        worst = best[k - 1] if n_chosen == k else np.float32(-np.inf)
        for position in range(strip.size):
            is_near[position] = strip[position] >= worst
        for word in range((strip.size + 7) // 8):
            if near_words[word] == 0:
                continue
            for position in range(8 * word, min(8 * word + 8, strip.size)):
                score, name = strip[position], names[begin + position]
                if score > worst or (score == worst and name < chosen[k - 1]):
                    n_chosen = insert(chosen, best, n_chosen, name, score)
                    worst = best[k - 1] if n_chosen == k else worst


PARTS = (count_chosen, insert, add_rows, exclude_places, select_row)
"""The functions that ``rank_products`` calls."""

DENSE_PARTS = (count_chosen, insert, exclude, add_dense_rows, select_row)
"""The functions that ``rank_dense_products`` calls."""
