"""The k largest scores of each row, best first; ties go to the lower column.

``top_k`` ranks an array of scores. From ``MIN_SCORES`` scores on, compiled loops score and rank in
tiles of columns that fit the cache, with the same results. The columns of a sparse right factor
are ordered by the sum of their absolute values: no score of a row is above the largest absolute
value of its left factor times that sum, so that later tiles are left out for most rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.dataset import AnyArray, BoolArray, Codes, Matrix
from recbias.kernels.sparse import MEMORY_LIMIT, block_size, compile_loop, map_blocks

_Arrays: TypeAlias = tuple[Any, ...]

_STRIP = 1024
"""Number of scores that are compared with the worst selected one at once."""


def _select_best(
    scores: Any, first: int, excluded: Any, history: _Arrays, result: _Arrays
) -> None:
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
    words = np.zeros(_STRIP // 8, dtype=np.uint64)
    is_better = words.view(np.uint8)
    for row in range(scores.shape[0]):
        candidates, best, chosen = scores[row], values[row], columns[row]
        _exclude(candidates, first, excluded)
        _exclude_seen(candidates, first, history, row)
        n_chosen = _count_chosen(chosen)
        for begin in range(0, n, _STRIP):
            strip = candidates[begin : begin + _STRIP]
            worst = best[k - 1] if n_chosen == k else np.float32(-np.inf)
            for position in range(strip.size):
                is_better[position] = strip[position] > worst
            for word in range((strip.size + 7) // 8):
                if words[word] == 0:
                    continue
                for position in range(8 * word, min(8 * word + 8, strip.size)):
                    if strip[position] > worst:
                        n_chosen = _insert(
                            chosen, best, n_chosen, first + begin + position, strip[position]
                        )
                        worst = best[k - 1] if n_chosen == k else worst


def _count_chosen(columns: AnyArray) -> int:
    """Return the number of columns before the first -1."""
    n_chosen = columns.size
    while n_chosen > 0 and columns[n_chosen - 1] < 0:
        n_chosen -= 1
    return n_chosen


def _exclude(scores: Any, first: int, columns: Any) -> None:
    """Set the scores of these columns to -inf; those of ``scores`` start at ``first``."""
    for position in range(columns.size):
        scores[columns[position] - first] = -np.inf


def _exclude_seen(scores: Any, first: int, history: _Arrays, row: int) -> None:
    """Set the scores of the columns of the history of a row to -inf, as far as they are here."""
    places, ends, seen = history
    location = places[row]
    while location < ends[row] and seen[location] < first + scores.size:
        scores[seen[location] - first] = -np.inf
        location += 1
    places[row] = location


def _insert(columns: Any, values: Any, n_chosen: int, column: int, value: Any) -> int:
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


_PARTS = (_count_chosen, _exclude, _exclude_seen, _insert)
"""The functions that ``_select_best`` calls."""


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


def _split_into_tiles(matrix: _Arrays, places: Any, shift: int, tiles: _Arrays, free: Any) -> None:
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


def _rank_products(
    left: _Arrays, tiles: _Arrays, history: _Arrays, sums: Any, result: _Arrays
) -> None:
    """Select the best columns of ``left[rows] @ right``; ties go to the lower column.

    A tile is left out for a row whose worst selected score is above its bound.

    Args:
        left: The rows; where each row of the CSR matrix starts, its columns and values.
        tiles: The right factor as written by ``_split_into_tiles``; the largest sum of absolute
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
    is_near = np.zeros(_STRIP // 8, dtype=np.uint64)
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
            _add_rows(row, left, tile, tiles, sums)
            _exclude_places(index, history, first, sums)
            tile_names = names[first : first + width]
            _select_row(sums[:width], tile_names, result[0][index], best[index], is_near)


def _add_rows(row: int, left: _Arrays, tile: int, tiles: _Arrays, sums: Any) -> None:
    """Add the products of a row of the left factor with the columns of a tile."""
    _, left_starts, left_columns, left_values = left
    starts, columns, values = tiles[0][tile], tiles[1], tiles[2]
    for entry in range(left_starts[row], left_starts[row + 1]):
        weight, inner = left_values[entry], left_columns[entry]
        for position in range(starts[inner], starts[inner + 1]):
            place = np.uintp(position)  # a signed index would be compared with 0 each time
            sums[np.uintp(columns[place])] += weight * values[place]


def _rank_dense_products(
    left: _Arrays, tile: Any, names: Any, excluded: Any, history: _Arrays, result: _Arrays
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
    is_near = np.zeros(_STRIP // 8, dtype=np.uint64)
    scores, first = np.empty(names.size, dtype=np.float32), names[0]
    starts, seen = history
    for index in range(left[0].size):
        scores[:] = 0
        _add_dense_rows(left[0][index], left, tile, scores)
        _exclude(scores, first, excluded)
        begin, end = starts[index], starts[index + 1]
        begin += np.searchsorted(seen[begin:end], first)
        while begin < end and seen[begin] < first + names.size:
            scores[seen[begin] - first] = -np.inf
            begin += 1
        _select_row(scores, names, result[0][index], result[1][index], is_near)


def _add_dense_rows(row: int, left: _Arrays, tile: Any, sums: Any) -> None:
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


def _exclude_places(index: int, history: _Arrays, first: int, sums: Any) -> None:
    """Set the scores of the excluded columns of a row to -inf."""
    starts, columns, places = history
    for entry in range(starts[index], starts[index + 1]):
        place = places[columns[entry]] - first
        if 0 <= place < sums.size:
            sums[place] = -np.inf


def _select_row(scores: Any, names: Any, chosen: Any, best: Any, near_words: Any) -> None:
    """Add columns in any order to the best ones of a row, best first."""
    k, is_near = best.size, near_words.view(np.uint8)
    n_chosen = _count_chosen(chosen)
    for begin in range(0, scores.size, _STRIP):
        strip = scores[begin : begin + _STRIP]
        worst = best[k - 1] if n_chosen == k else np.float32(-np.inf)
        for position in range(strip.size):
            is_near[position] = strip[position] >= worst
        for word in range((strip.size + 7) // 8):
            if near_words[word] == 0:
                continue
            for position in range(8 * word, min(8 * word + 8, strip.size)):
                score, name = strip[position], names[begin + position]
                if score > worst or (score == worst and name < chosen[k - 1]):
                    n_chosen = _insert(chosen, best, n_chosen, name, score)
                    worst = best[k - 1] if n_chosen == k else worst


_SPARSE_PARTS = (_count_chosen, _insert, _add_rows, _exclude_places, _select_row)
"""The functions that ``_rank_products`` calls."""

_DENSE_PARTS = (_count_chosen, _insert, _exclude, _add_dense_rows, _select_row)
"""The functions that ``_rank_dense_products`` calls."""


Floats32 = npt.NDArray[np.float32]

_MAX_CANDIDATES = 4
"""Candidates per row, in multiples of k, from which ties are resolved at once."""

_TIE_CHUNKS = 8
"""Number of chunks in which rows with ties at the k-th score are resolved, to save memory."""


def top_k(scores: AnyArray, k: int) -> tuple[Codes, Floats32]:
    """Return the columns and scores of the ``k`` largest scores of each row, best first.

    Scores are compared as ``float32``; ties go to the lower column. Scores of -inf and NaN are
    never selected: a row with fewer than ``k`` other scores is padded (column -1, score NaN).

    ``k`` may exceed the number of columns. The arrays are ``int32[b, k]`` and ``float32[b, k]``.

    >>> columns, best = top_k(np.array([[1.0, 3.0, 3.0, -np.inf]]), 4)
    >>> columns.tolist(), best.tolist()
    ([[1, 2, 0, -1]], [[3.0, 3.0, 1.0, nan]])
    """
    columns, values = select_largest(scores, k)
    order = np.argsort(-values, axis=1, kind="stable")  # NaN sorts last
    return np.take_along_axis(columns, order, 1), np.take_along_axis(values, order, 1)


def select_largest(scores: AnyArray, k: int) -> tuple[Codes, Floats32]:
    """Return the result of ``top_k`` in ascending order of columns, which is faster.

    >>> columns, best = select_largest(np.array([[1.0, 3.0, 4.0]]), 2)
    >>> columns.tolist(), best.tolist()
    ([[1, 2]], [[3.0, 4.0]])
    """
    scores = np.asarray(scores, dtype=np.float32)
    if scores.size and np.isnan(scores.max()):
        scores = np.where(np.isnan(scores), np.float32(-np.inf), scores)
    columns, candidates = _pack_left(_find_candidates(scores, k), scores, k)
    if candidates.shape[1] == k:
        return columns, candidates
    selected = np.flatnonzero(
        _mark_top_k(np.where(columns < 0, np.float32(-np.inf), candidates), k)
    )
    positions, values = _pack_left(selected, candidates, k)
    top_columns = np.take_along_axis(columns, np.maximum(positions, 0), 1)
    return np.where(positions < 0, np.int32(-1), top_columns), values


def _find_candidates(scores: AnyArray, k: int) -> AnyArray:
    """Return flat positions that contain the ``k`` largest scores of each row, perhaps more.

    The k-th largest maximum of groups of columns is at most the k-th largest score, and is cheaper
    to compute than a partition of all columns.
    """
    n = scores.shape[1]
    width = min(n // (8 * k), 32)
    if width < 2:
        return np.flatnonzero(_mark_top_k(scores, k))
    groups = scores[:, : n // width * width].reshape(len(scores), width, -1)
    marked = _mark_at_least(scores, _select_kth(groups.max(axis=1), k))
    limit = _MAX_CANDIDATES * k
    is_sparse = np.count_nonzero(marked) <= limit * len(marked)  # else positions need much memory
    flat = np.flatnonzero(marked) if is_sparse else np.arange(0)
    counts = np.diff(_find_bounds(flat, scores)) if is_sparse else np.count_nonzero(marked, axis=1)
    tied = np.flatnonzero(counts > limit)
    if not tied.size:
        return flat
    marked[tied] = _mark_top_k(scores[tied], k)
    return np.flatnonzero(marked)


def _find_bounds(flat: AnyArray, scores: AnyArray) -> AnyArray:
    """Return where each row starts in ``flat``, and the end of the last row."""
    bounds: AnyArray = np.searchsorted(flat, np.arange(len(scores) + 1) * scores.shape[1])
    return bounds


def _mark_top_k(scores: AnyArray, k: int) -> BoolArray:
    """Mark the ``k`` largest scores of each row; ties go to the lower column."""
    kth = _select_kth(scores, k)
    marked = _mark_at_least(scores, kth)
    tied = np.flatnonzero(np.count_nonzero(marked, axis=1) > k)
    for chunk in np.array_split(tied, min(tied.size, _TIE_CHUNKS) or 1):
        rows, threshold = scores[chunk], kth[chunk, None]
        above, equal = rows > threshold, rows == threshold
        n_equal = k - np.count_nonzero(above, axis=1)
        order = np.cumsum(equal, axis=1, dtype=np.int32)
        marked[chunk] = above | (equal & (order <= n_equal[:, None]))
    return marked


def _select_kth(scores: AnyArray, k: int) -> AnyArray:
    """Return the ``k``-th largest score of each row, -inf if there are fewer columns."""
    position = scores.shape[1] - k
    if position < 0:
        return np.full(len(scores), -np.inf, dtype=scores.dtype)
    kth: AnyArray = np.partition(scores, position, axis=1)[:, position]
    return kth


def _mark_at_least(scores: AnyArray, thresholds: AnyArray) -> BoolArray:
    marked: BoolArray = scores >= np.maximum(thresholds, np.finfo(scores.dtype).min)[:, None]
    return marked


def _pack_left(flat: AnyArray, scores: AnyArray, k: int) -> tuple[Codes, Floats32]:
    """Move the scores at flat positions to the left of at least ``k`` columns, padded."""
    starts = _find_bounds(flat, scores)
    counts = np.diff(starts)
    rows = np.repeat(np.arange(len(scores)), counts)
    positions = np.arange(flat.size) - starts[rows]
    shape = (len(scores), max(k, int(counts.max(initial=0))))
    columns = np.full(shape, -1, dtype=np.int32)
    values = np.full(shape, np.nan, dtype=np.float32)
    columns[rows, positions] = flat - rows * scores.shape[1]
    values[rows, positions] = scores.ravel()[flat]
    return columns, values


MIN_SCORES = 5e7
"""Number of scores from which on compiled code is faster, although numba must be imported."""


def can_compile(n_scores: float) -> bool:
    """Return whether compiled code is worth it for this number of scores."""
    return n_scores >= MIN_SCORES


class BestColumns:
    """The columns with the k largest scores of each row, of columns that are added in order.

    The result is that of ``topk.top_k`` on all columns at once without the excluded ones.

    Args:
        k: Number of columns to select.
        excluded: Columns that are excluded from every row, ascending.
        history: Columns that are excluded from each row: CSR ``(b, n)`` with ascending columns,
            whose values are ignored.

    >>> from scipy.sparse import csr_array
    >>> best = BestColumns(2, np.array([3]), csr_array([[0, 1, 0, 0]]))
    >>> best.add(np.array([[3, 5]], np.float32), 0)
    >>> best.add(np.array([[5, 4]], np.float32), 2)
    >>> best.columns.tolist(), best.values.tolist()
    ([[2, 0]], [[5.0, 3.0]])
    """

    def __init__(self, k: int, excluded: AnyArray, history: Matrix) -> None:
        bounds = history.indptr.astype(np.int64)
        self._history = bounds[:-1].copy(), bounds[1:], history.indices.astype(np.int32)
        self._excluded = excluded.astype(np.int64)
        shape = (history.shape[0], k)
        self.columns: Codes = np.full(shape, -1, dtype=np.int32)
        self.values: Floats32 = np.full(shape, np.nan, dtype=np.float32)

    def add(self, scores: Floats32, first: int) -> None:
        """Add the scores of the columns from ``first`` on, ``(b, n)``, which are overwritten."""
        if not self.columns.shape[1]:
            return
        begin, end = np.searchsorted(self._excluded, [first, first + scores.shape[1]])
        compile_loop(_select_best, exact=True, parts=_PARTS)(
            scores, first, self._excluded[begin:end], self._history, (self.columns, self.values)
        )


TILE_BITS, _MAX_TILE_BITS = 13, 16
"""Logarithms of the size of a tile, whose scores fit the first cache, and of the largest one."""

MAX_TILES = 16
"""Number of tiles from which on they are larger: each has the place where every row starts."""

DENSE_TILE = 256
"""Number of columns of a tile of a dense right factor, of which many rows fit the second cache."""

_SLACK = 1 + 1e-4
"""Factor of a bound, for the rounding of the scores, which are sums of ``float32``."""


class ProductRanking:
    """The best columns of rows of ``left @ right``, summed in the order of the left factor.

    The result is that of ``topk.top_k`` of the scores of a row without its excluded columns.

    Args:
        left: CSR ``(n, m)``.
        right: CSR ``(m, n_columns)``.
        candidates: The columns that may be selected, ``bool[n_columns]``.

    >>> from scipy.sparse import csr_array
    >>> left = csr_array(np.array([[1, 0], [2, 3]], dtype=np.float32))
    >>> right = csr_array(np.array([[0, 4, 1], [2, 1, 0]], dtype=np.float32))
    >>> ranking = ProductRanking(left, right, np.ones(3, dtype=bool))
    >>> columns, scores = ranking.rank(np.array([1]), csr_array([[0, 1, 0]]), 3)
    >>> columns.tolist(), scores.tolist()
    ([[0, 2, -1]], [[6.0, 2.0, nan]])
    """

    def __init__(self, left: Matrix, right: Matrix, candidates: BoolArray) -> None:
        self._left = _list_arrays(left)
        arrays = _list_arrays(right)
        columns = np.flatnonzero(candidates).astype(np.int32)
        sizes = np.bincount(arrays[1], np.abs(arrays[2]).astype(np.float64), right.shape[1])
        bounds = np.nan_to_num(_SLACK * sizes, nan=np.inf)
        names = columns[np.argsort(-bounds[columns], kind="stable")]
        bits = _choose_bits(names.size)
        self._size = 1 << bits
        self._places = np.full(right.shape[1], -1, dtype=np.int32)
        self._places[names] = np.arange(names.size, dtype=np.int32)
        counts = np.bincount(arrays[1], minlength=right.shape[1])[names]
        counts = np.append(counts, np.zeros(-names.size % self._size, dtype=np.int64))
        ends = np.cumsum(counts.reshape(-1, self._size).sum(axis=1))
        n_entries = int(counts.sum())
        tiles = (
            np.empty((ends.size, right.shape[0] + 1), dtype=np.int64),
            np.empty(n_entries, dtype=np.uint16),
            np.empty(n_entries, dtype=np.float32),
        )
        free = np.append(np.int64(0), ends)[:-1].copy()
        compile_loop(_split_into_tiles, exact=True)(arrays, self._places, bits, tiles, free)
        self._tiles = (*tiles, bounds[names[:: self._size]], names)

    def rank(self, rows: AnyArray, excluded: Matrix, k: int) -> tuple[Codes, Floats32]:
        """Return the columns and scores of the k largest scores of rows, best first.

        Args:
            rows: Rows of the left factor, ``int64[b]``.
            excluded: Columns that are excluded from each row, CSR ``(b, n_columns)``.
            k: Number of columns to select; rows with fewer are padded (column -1, score NaN).
        """
        columns = np.full((rows.size, k), -1, dtype=np.int32)
        scores = np.full((rows.size, k), np.nan, dtype=np.float32)
        if k:
            history = excluded.indptr.astype(np.int64), excluded.indices, self._places
            left, sums = (rows.astype(np.int64), *self._left), np.empty(self._size, np.float32)
            rank = compile_loop(_rank_products, exact=True, parts=_SPARSE_PARTS)
            rank(left, self._tiles, history, sums, (columns, scores))
        return columns, scores


class DenseProductRanking:
    """The results of ``ProductRanking`` for a dense right factor.

    Args:
        left: CSR ``(n, m)``.
        right: ``float32 (m, n_columns)``.
        candidates: The columns that may be selected, ``bool[n_columns]``.

    >>> from scipy.sparse import csr_array
    >>> left = csr_array(np.array([[1, 0], [2, 3]], dtype=np.float32))
    >>> right = np.array([[0, 4, 1], [2, 1, 0]], dtype=np.float32)
    >>> ranking = DenseProductRanking(left, right, np.ones(3, dtype=bool))
    >>> columns, scores = ranking.rank(np.array([1]), csr_array([[0, 1, 0]]), 3)
    >>> columns.tolist(), scores.tolist()
    ([[0, 2, -1]], [[6.0, 2.0, nan]])
    """

    def __init__(self, left: Matrix, right: AnyArray, candidates: BoolArray) -> None:
        self._left, self._right = _list_arrays(left), right
        self._excluded = np.flatnonzero(~candidates)

    def rank(self, rows: AnyArray, excluded: Matrix, k: int) -> tuple[Codes, Floats32]:
        """Return the columns and scores as ``ProductRanking.rank`` does.

        The columns of ``excluded`` are ascending within a row. A copy of each tile is made for
        all rows, so that thousands of rows at once are faster than a few.
        """
        columns = np.full((rows.size, k), -1, dtype=np.int32)
        scores = np.full((rows.size, k), np.nan, dtype=np.float32)
        if not k:
            return columns, scores
        history = excluded.indptr.astype(np.int64), excluded.indices
        left = (rows.astype(np.int64), *self._left)
        rank = compile_loop(_rank_dense_products, exact=True, parts=_DENSE_PARTS)
        for first in range(0, self._right.shape[1], DENSE_TILE):
            tile = np.ascontiguousarray(self._right[:, first : first + DENSE_TILE], np.float32)
            names = np.arange(first, first + tile.shape[1], dtype=np.int32)
            begin, end = np.searchsorted(self._excluded, [first, first + names.size])
            barred = self._excluded[begin:end]
            rank(left, tile, names, barred, history, (columns, scores))
        return columns, scores


def _count_bytes(n_rows: float, n_columns: float, n_entries: float) -> float:
    """Return the bytes of the copy of a right factor, or of the sums before it, if those are more.

    An entry has its column and its value; each tile has the place where every row starts.

    >>> _count_bytes(10, 2**14, 1000), _count_bytes(10, 2**14, 10)
    (12000, 236)
    """
    n_tiles = -(-n_columns // (1 << _choose_bits(int(n_columns))))
    return max(12 * n_entries, 6 * n_entries + 8 * (n_rows + 1) * n_tiles)


def _choose_bits(n_columns: int) -> int:
    """Return the logarithm of the size of a tile."""
    bits = min(TILE_BITS, int(n_columns).bit_length())
    while bits < _MAX_TILE_BITS and n_columns > MAX_TILES << bits:
        bits += 1
    return bits


def _list_arrays(matrix: Matrix) -> tuple[AnyArray, AnyArray, AnyArray]:
    values = np.ascontiguousarray(matrix.data, dtype=np.float32)
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False), values


_SPARSE_COST = 16
"""Cost of an operation of a sparse product, in operations of a dense one (measured)."""

_TAKEN_ROWS = 64
"""Number of rows whose places are there at once in ``take_symmetric``."""


def sparse_is_faster(left: Matrix, right: Matrix) -> bool:
    """Return whether ``left @ right`` is faster with a sparse ``right`` than with a dense one.

    With a dense right factor, each entry of ``left`` is multiplied by a whole row, in vectorised
    operations; with a sparse one only by the entries of that row, in slower operations.
    """
    operations = float(np.diff(right.indptr)[left.indices].sum())
    return _SPARSE_COST * operations < float(left.nnz) * int(right.shape[1])


def create_product_blocks(matrix: Matrix) -> Callable[[int, int], Floats32]:
    """Return a function that multiplies rows ``start`` to ``stop`` by all rows, as a new array.

    The matrix is CSR ``(n, m)``, ``float32``; a block needs about ``8 n + 4 m`` bytes per row.
    """
    transposed = matrix.T.tocsr()

    def multiply_dense(start: int, stop: int) -> Floats32:
        targets = np.ascontiguousarray(matrix[start:stop].toarray().T)
        return np.ascontiguousarray((matrix @ targets).T)

    def multiply_sparse(start: int, stop: int) -> Floats32:
        products: Floats32 = (matrix[start:stop] @ transposed).toarray()
        return products

    return multiply_sparse if sparse_is_faster(matrix, transposed) else multiply_dense


def compute_gram(matrix: Matrix, *, memory_limit: int = MEMORY_LIMIT) -> Floats32:
    """Return the products of all pairs of rows, ``matrix @ matrix.T``, ``float32 (n, n)``.

    The matrix is CSR ``float32 (n, m)``; ``memory_limit`` is that of the blocks, in bytes.

    >>> from scipy.sparse import csr_array
    >>> compute_gram(csr_array(np.array([[1, 1], [0, 1]], dtype=np.float32))).tolist()
    [[2.0, 1.0], [1.0, 1.0]]
    """
    n, m = matrix.shape
    products = np.empty((n, n), dtype=np.float32)
    dots = create_product_blocks(matrix)

    def fill_block(start: int, stop: int) -> None:
        products[start:stop] = dots(start, stop)

    size = min(block_size(8 * n + 4 * m, memory_limit=memory_limit), 256)
    map_blocks(fill_block, n, size)
    return products


def take_symmetric(matrix: AnyArray, codes: AnyArray) -> AnyArray:
    """Return the rows and columns of these codes, without a copy of whole rows.

    >>> take_symmetric(np.arange(9).reshape(3, 3), np.array([0, 2])).tolist()
    [[0, 2], [6, 8]]
    """
    entries, taken = matrix.reshape(-1), np.empty((codes.size, codes.size), dtype=matrix.dtype)
    for start in range(0, codes.size, _TAKEN_ROWS):
        rows = slice(start, start + _TAKEN_ROWS)
        places = codes[rows, None] * len(matrix) + codes
        np.take(entries, places, out=taken[rows], mode="clip")
    return taken
