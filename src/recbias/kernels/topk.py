"""The k largest scores of each row, best first; ties go to the lower column.

``top_k`` ranks an array of scores. From ``MIN_SCORES`` scores on, compiled loops do, with the same
results; those of a product of two matrices are computed row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.dataset import AnyArray, BoolArray, Codes, Matrix
from recbias.kernels.sparse import block_size, compile_loop, map_blocks

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
    words = np.zeros(_STRIP // 8, dtype=np.uint64)
    for row in range(scores.shape[0]):
        candidates = scores[row]
        _exclude(candidates, first, excluded)
        _exclude_seen(candidates, first, history, row)
        _select_row(candidates, first, columns[row], values[row], words)


def _select_row(scores: Any, first: int, chosen: Any, best: Any, words: Any) -> None:
    """Add the columns from ``first`` on to the best ones of a row; ``words`` is its memory."""
    k, is_better = best.size, words.view(np.uint8)
    n_chosen = _count_chosen(chosen)
    for begin in range(0, scores.size, _STRIP):
        strip = scores[begin : begin + _STRIP]
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


_PARTS = (_count_chosen, _exclude, _exclude_seen, _insert, _select_row)
"""The functions that the compiled loops call."""


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


def _rank_products(
    left: _Arrays, right: Any, excluded: Any, history: _Arrays, sums: Any, result: _Arrays
) -> None:
    """Select the best columns of ``left[rows] @ right``, both CSR; ties go to the lower column.

    Args:
        left: The rows, and the arrays of the left factor.
        right: The arrays of the right factor.
        excluded: Columns that are excluded from every row.
        history: The place of the first excluded column of each row, the end, and the columns.
        sums: Memory for the scores of a row, ``float32[n]``.
        result: The columns and scores, ``(b, k)``, filled with -1 and NaN.
    """
    rows, starts, columns, values = left
    right_starts, right_columns, right_values = right
    words = np.zeros(_STRIP // 8, dtype=np.uint64)
    for index in range(rows.size):
        sums[:] = 0
        for entry in range(starts[rows[index]], starts[rows[index] + 1]):
            weight, inner = values[entry], columns[entry]
            for position in range(right_starts[inner], right_starts[inner + 1]):
                place = np.uintp(position)  # a signed index would be compared with 0 each time
                sums[np.uintp(right_columns[place])] += weight * right_values[place]
        _exclude(sums, 0, excluded)
        _exclude_seen(sums, 0, history, index)
        _select_row(sums, 0, result[0][index], result[1][index], words)


def _rank_dense_products(
    left: _Arrays, right: Any, excluded: Any, history: _Arrays, sums: Any, result: _Arrays
) -> None:
    """Do the same for a dense right factor, of which four rows are added at once."""
    rows, starts, columns, weights = left
    words = np.zeros(_STRIP // 8, dtype=np.uint64)
    for index in range(rows.size):
        sums[:] = 0
        entry, end = starts[rows[index]], starts[rows[index] + 1]
        while entry + 4 <= end:
            a, b = right[np.uintp(columns[entry])], right[np.uintp(columns[entry + 1])]
            c, d = right[np.uintp(columns[entry + 2])], right[np.uintp(columns[entry + 3])]
            of_a, of_b = weights[entry], weights[entry + 1]
            of_c, of_d = weights[entry + 2], weights[entry + 3]
            for place in range(sums.size):
                total = sums[place] + of_a * a[place] + of_b * b[place]
                sums[place] = total + of_c * c[place] + of_d * d[place]
            entry += 4
        while entry < end:
            a, of_a = right[np.uintp(columns[entry])], weights[entry]
            for place in range(sums.size):
                sums[place] += of_a * a[place]
            entry += 1
        _exclude(sums, 0, excluded)
        _exclude_seen(sums, 0, history, index)
        _select_row(sums, 0, result[0][index], result[1][index], words)


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
        self._history = _list_bounds(history)
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


class ProductRanking:
    """The best columns of rows of ``left @ right``, summed in the order of the left factor.

    Args:
        left: CSR ``(n, m)``.
        right: ``(m, n_columns)``, CSR or dense.
        candidates: Which columns may be selected, ``bool[n_columns]``.
    """

    def __init__(self, left: Matrix, right: Matrix | AnyArray, candidates: BoolArray) -> None:
        self._left, self._excluded = _list_arrays(left), np.flatnonzero(~candidates)
        loop = _rank_dense_products if isinstance(right, np.ndarray) else _rank_products
        self._rank = compile_loop(loop, exact=True, parts=_PARTS)
        self._right = (
            np.ascontiguousarray(right, np.float32)
            if isinstance(right, np.ndarray)
            else _list_arrays(right)
        )

    def rank(self, rows: AnyArray, history: Matrix, k: int) -> tuple[Codes, Floats32]:
        """Return the columns and scores of the k largest scores of rows, best first.

        Args:
            rows: Rows of the left factor, ``[b]``.
            history: The columns that are excluded from each of these rows, CSR
                ``(b, n_columns)`` with ascending columns.
            k: The number of columns, padded with -1 and scores NaN.
        """
        columns = np.full((rows.size, k), -1, dtype=np.int32)
        scores = np.full((rows.size, k), np.nan, dtype=np.float32)
        if k:
            left, sums = (rows.astype(np.int64), *self._left), np.empty(history.shape[1], "f4")
            seen = _list_bounds(history)
            self._rank(left, self._right, self._excluded, seen, sums, (columns, scores))
        return columns, scores


def _list_bounds(history: Matrix) -> tuple[AnyArray, AnyArray, AnyArray]:
    bounds = history.indptr.astype(np.int64)
    return bounds[:-1].copy(), bounds[1:], history.indices.astype(np.int32)


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


def compute_gram(matrix: Matrix) -> Floats32:
    """Return the products of all pairs of rows, ``matrix @ matrix.T``, ``float32 (n, n)``.

    The matrix is CSR ``float32 (n, m)``.

    >>> from scipy.sparse import csr_array
    >>> compute_gram(csr_array(np.array([[1, 1], [0, 1]], dtype=np.float32))).tolist()
    [[2.0, 1.0], [1.0, 1.0]]
    """
    n, m = matrix.shape
    products = np.empty((n, n), dtype=np.float32)
    dots = create_product_blocks(matrix)

    def fill_block(start: int, stop: int) -> None:
        products[start:stop] = dots(start, stop)

    map_blocks(fill_block, n, min(block_size(8 * n + 4 * m), 256))
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
