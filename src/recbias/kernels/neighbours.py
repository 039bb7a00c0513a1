"""Nearest rows of a sparse matrix by similarities or distances.

In a large binary matrix a compiled loop counts shared columns. Rows are sorted by size and split
into tiles. Columns that many rows have are stored as bytes and added as vectors; of the others,
each row that has one is counted. A tile whose rows are too large or too small to share enough
columns with a target is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from recbias.core.dataset import AnyArray, BoolArray, Matrix
from recbias.kernels.sparse import block_size, compile_loop, map_blocks
from recbias.kernels.topk import Floats32, create_product_blocks, select_largest

_Arrays: TypeAlias = tuple[Any, ...]

_PACK, _BYTE = 4, 252
"""Numbers of common columns that are added at once, and that a count of 8 bits can hold."""


def _list_sharing(target: int, lists: _Arrays, counts: Any, sharing: Any) -> int:
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


def _count_common(
    target: int, index: int, width: int, common: _Arrays, small_counts: Any, counts: Any
) -> None:
    """Set the counts to the numbers of common columns that rows share with the target."""
    starts, columns, has_column = common
    for position in range(width):
        counts[position] = 0
    for begin in range(starts[target], starts[target + 1], _BYTE):
        for position in range(width):
            small_counts[position] = 0
        for entry in range(begin, min(begin + _BYTE, starts[target + 1]), _PACK):
            a, b = has_column[index, columns[entry]], has_column[index, columns[entry + 1]]
            c, d = has_column[index, columns[entry + 2]], has_column[index, columns[entry + 3]]
            for position in range(width):
                small_counts[position] += a[position] + b[position] + c[position] + d[position]
        for position in range(width):
            counts[position] += small_counts[position]


def _count_rare(target: int, index: int, rare: _Arrays, counts: Any) -> None:
    """Add the numbers of rare columns that rows of a tile share with the target."""
    starts, columns, tile_starts, rows = rare
    for entry in range(starts[target], starts[target + 1]):
        column = columns[entry]
        for shared in range(tile_starts[index, column], tile_starts[index + 1, column]):
            counts[np.uintp(rows[np.uintp(shared)])] += 1  # signed indices are compared with 0


_STRIP = 1024
"""Number of rows that are compared with the worst neighbour at once."""

_RATIO, _MEAN, _UNION = 0, 1, 2
"""Divisors of the count d: ``l_t r_o + c``, ``(l_t + r_o) / 2 + c`` and ``l_t + r_o - d + c``."""

_SPARSE_SHARE = 1 / 8
"""Targets with fewer shared columns than this share of the rows are counted row by row."""

_BUFFER = 4
"""Rows that are collected before the best are kept, as a multiple of k."""

_LAST, _SHIFT = np.uint64(2**32 - 1), np.uint64(32)
"""The largest number of 32 bits, and how far a similarity is shifted."""

_SLACK = np.float32(1 - 1e-5)
"""Factor of a similarity that is compared with one that was rounded in another way."""


def _find_nearest_rows(
    bounds: _Arrays, lists: _Arrays, common: _Arrays, rare: _Arrays, weights: _Arrays, nearest: Any
) -> None:
    """Find the nearest rows of a block of targets; rows are sorted by size.

    Args:
        bounds: The first target, the one after the last, and memory for the counts of a tile, of
            a type that holds the number of shared columns of any two rows.
        lists: The matrix by rows and by columns: where each row starts, the columns of rows, where
            each column starts, and the rows of columns, ascending.
        common: Of the columns that many rows have: where each row starts, ``int64[n + 1]``; its
            columns, padded with the last one to a multiple of ``_PACK``; and which rows have them,
            ``uint8 (n_tiles, n_common + 1, tile)``, the last of them none.
        rare: Of the other columns: where each row starts, its columns, where the rows of each tile
            start in the rows of columns, ``int64 (n_tiles + 1, n_rare)``, and the rows of columns
            as their places in their tile, ``uint16``.
        weights: ``l`` and ``r``, ``float32[n]``; ``c``; the kind of divisor; the number of columns
            of each row, ``float32[n]``, descending; and the rows of the matrix, ``uint64[n]``.
        nearest: The neighbours of each row in no order, ``uint64 (n, k)``, filled with 0: the bits
            of the similarity, and the largest number of 32 bits less the row of the matrix. The
            larger number is the better neighbour; ties go to the lower row.
    """
    start, stop, counts = bounds
    n, k = nearest.shape
    n_tiles, tile = common[2].shape[0], common[2].shape[2]
    small_counts = np.zeros(tile, dtype=np.uint8)
    near_words, value = np.zeros(_STRIP // 8, dtype=np.uint64), np.zeros(1, dtype=np.float32)
    candidates = np.zeros((stop - start, _BUFFER * k), dtype=np.uint64)
    n_candidates = np.zeros(stop - start, dtype=np.int64)
    worst = np.zeros(stop - start, dtype=np.float32)
    is_sparse = np.zeros(stop - start, dtype=np.bool_)
    _count_sparse(bounds, lists, weights, value, (k, candidates, n_candidates, is_sparse))
    own_tile = start // tile
    for step in range(2 * n_tiles):  # the tiles of rows of about this size first
        index = own_tile - step // 2 if step % 2 == 0 else own_tile + 1 + step // 2
        if index < 0 or index >= n_tiles:
            continue
        low = index * tile
        width = min(tile, n - low)
        for target in range(start, stop):
            position = target - start
            if not is_sparse[position] and _can_reach(
                target, low, width, weights, worst[position]
            ):
                _count_common(target, index, width, common, small_counts, counts)
                _count_rare(target, index, rare, counts)
                if low <= target < low + width:
                    counts[target - low] = 0
                _collect(
                    *(target, low, counts[:width], weights, (near_words, value)),
                    (start, k, candidates, n_candidates, worst),
                )
    for position in range(stop - start):
        _keep_best(candidates[position], n_candidates[position], k, value)
        nearest[start + position] = candidates[position, :k]


def _count_sparse(
    bounds: _Arrays, lists: _Arrays, weights: _Arrays, value: Any, targets: _Arrays
) -> None:
    """Find the neighbours of the targets of which few rows share a column, row by row."""
    starts, columns, column_starts, _ = lists
    left, right, added, kind, _, numbers = weights
    k, candidates, n_candidates, is_sparse = targets
    n = left.size
    counts, sharing = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
    bits = value.view(np.uint32)
    for target in range(bounds[0], bounds[1]):
        position, work = target - bounds[0], 0
        for entry in range(starts[target], starts[target + 1]):
            work += column_starts[columns[entry] + 1] - column_starts[columns[entry]]
        if work > _SPARSE_SHARE * n:
            continue
        is_sparse[position] = True
        n_sharing = _list_sharing(target, lists, counts, sharing)
        for index in range(n_sharing):
            row = sharing[index]
            if row != target:
                value[0] = _divide(counts[row], left[target], right[row], added, kind)
                key = (np.uint64(bits[0]) << _SHIFT) | (_LAST - numbers[row])
                candidates[position, n_candidates[position]] = key
                n_candidates[position] += 1
                if n_candidates[position] == candidates.shape[1]:
                    _keep_best(candidates[position], candidates.shape[1], k, value)
                    n_candidates[position] = k
            counts[row] = 0


def _can_reach(target: int, low: int, width: int, weights: _Arrays, worst: Any) -> bool:
    """Return whether a row of a tile could be as near as the worst neighbour of the target.

    The nearest that it could have is of the size closest to the target's and shares all columns.
    """
    left, right, added, kind, sizes, _ = weights
    if low <= target < low + width:
        return True
    closest = low if target < low else low + width - 1
    shared = min(sizes[target], sizes[closest])
    return bool(_divide(shared, left[target], right[closest], added, kind) >= worst * _SLACK)


def _collect(
    target: int, low: int, counts: Any, weights: _Arrays, memory: _Arrays, targets: _Arrays
) -> None:
    """Add the rows of a tile that may be neighbours of the target to those of earlier tiles."""
    left, right, added, kind, _, numbers = weights
    near_words, value = memory
    start, k, all_candidates, n_candidates, worst = targets
    position, candidates = target - start, all_candidates[target - start]
    is_near, bits = near_words.view(np.uint8), value.view(np.uint32)
    for begin in range(0, counts.size, _STRIP):
        strip = counts[begin : begin + _STRIP]
        scale = right[low + begin : low + begin + strip.size]
        _mark_near(strip, scale, (left[target], worst[position], added, kind), is_near)
        for word in range((strip.size + 7) // 8):
            if near_words[word] == 0:
                continue
            for row in range(8 * word, min(8 * word + 8, strip.size)):
                if is_near[row]:
                    value[0] = _divide(strip[row], left[target], scale[row], added, kind)
                    key = (np.uint64(bits[0]) << _SHIFT) | (_LAST - numbers[low + begin + row])
                    candidates[n_candidates[position]] = key
                    n_candidates[position] += 1
                    if n_candidates[position] == candidates.size:
                        worst[position] = _keep_best(candidates, candidates.size, k, value)
                        n_candidates[position] = k
    if n_candidates[position] > 2 * k:
        worst[position] = _keep_best(candidates, n_candidates[position], k, value)
        n_candidates[position] = k


def _keep_best(candidates: Any, n_candidates: int, k: int, value: Any) -> Any:
    """Move the k best to the front; return the worst similarity of them, 0 if there are fewer."""
    if n_candidates <= k:
        return np.float32(0)
    low, high = 0, n_candidates - 1
    while low < high:  # Hoare's selection, the largest first
        pivot, left, right = candidates[(low + high) // 2], low, high
        while left <= right:
            while candidates[left] > pivot:
                left += 1
            while candidates[right] < pivot:
                right -= 1
            if left <= right:
                candidates[left], candidates[right] = candidates[right], candidates[left]
                left += 1
                right -= 1
        low, high = (low if k - 1 <= right else left), (right if k - 1 <= right else high)
        if right < k - 1 < left:
            break
    value.view(np.uint32)[0] = np.uint32(candidates[k - 1] >> _SHIFT)
    return value[0]


def _mark_near(counts: Any, scale: Any, target: _Arrays, is_near: Any) -> None:
    """Mark the rows that may be as near as the worst neighbour, which is 0 if there is none."""
    size, worst, added, kind = target
    least = worst * _SLACK
    if worst == 0:
        for position in range(counts.size):
            is_near[position] = counts[position] > 0
    elif kind == _RATIO:  # without c, which lowers a similarity
        least *= size
        for position in range(counts.size):
            is_near[position] = np.float32(counts[position]) >= least * scale[position]
    else:  # 2 d >= s (l + r + 2 c) or (1 + s) d >= s (l + r + c), s the worst similarity
        factor = np.float32(2) if kind == _MEAN else np.float32(1) + worst
        fixed = size + (added + added if kind == _MEAN else added)
        for position in range(counts.size):
            bound = least * (fixed + scale[position])
            is_near[position] = factor * np.float32(counts[position]) >= bound


def _divide(count: Any, size: Any, scale: Any, added: Any, kind: int) -> Any:
    """Return the similarity of a target and a row, ``float32``."""
    shared = np.float32(count)
    if kind == _RATIO:
        divisor = size * scale
    elif kind == _MEAN:
        divisor = (size + scale) * np.float32(0.5)
    else:
        divisor = size + scale - shared
    return shared / (divisor + added)


_PARTS = (
    _list_sharing,
    _count_sparse,
    _can_reach,
    _count_common,
    _count_rare,
    _divide,
    _mark_near,
    _keep_best,
    _collect,
)
"""The functions that ``_find_nearest_rows`` calls."""


_Blocks: TypeAlias = Callable[[int, int], Floats32]
"""Function of the first row of a block and the row after its last; returns a new array."""

Nearness: TypeAlias = Literal["dot", "euclidean", "braycurtis", "chebyshev"]
"""Names of the measures of nearness."""

_MAX_BLOCK_ROWS = 256
"""Maximum number of rows of a block; larger blocks are not faster."""


def find_nearest_by(kind: Nearness, matrix: Matrix, neighbors: int) -> Matrix:
    """Find the nearest other rows of each row.

        dot         x · y
        euclidean   1 / (1 + |x - y|)
        braycurtis  1 / (1 + Σ |x_a - y_a| / Σ |x_a + y_a|)
        chebyshev   1 / (1 + max |x_a - y_a|)

    The matrix is CSR ``(n, m)`` without negative entries; row t of the result, CSR ``float32
    (n, n)``, holds the neighbours of row t, columns ascending. Empty rows have no neighbours and
    are not neighbours. Only values above 0 count; ties go to the lower row. ``chebyshev`` compares
    all pairs of rows in all columns, which is slow for thousands of columns.

    >>> from scipy.sparse import csr_array
    >>> rows = csr_array(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 3.0]]))
    >>> find_nearest_by("euclidean", rows, 1).toarray().tolist()
    [[0.0, 0.5, 0.0], [0.5, 0.0, 0.0], [0.0, 0.30901700258255005, 0.0]]

    Source:
        Bray and Curtis, "An Ordination of the Upland Forest Communities of Southern Wisconsin",
        Ecological Monographs 27, 1957.
    """
    matrix = matrix.astype(np.float32)
    n, m = matrix.shape
    values = {
        "dot": create_product_blocks,
        "euclidean": _create_euclidean,
        "braycurtis": _create_bray_curtis,
        "chebyshev": _create_chebyshev,
    }[kind](matrix)
    is_empty = np.asarray(abs(matrix).sum(axis=1)).ravel() == 0

    def mask_empty_rows(start: int, stop: int) -> Floats32:
        block = values(start, stop)
        block[:, is_empty] = -np.inf
        block[is_empty[start:stop]] = -np.inf
        return block

    return select_neighbors(mask_empty_rows, n, neighbors, bytes_per_row=32 * n + 4 * m)


def select_neighbors(values: _Blocks, n: int, neighbors: int, *, bytes_per_row: int) -> Matrix:
    """Select the largest positive values of each of ``n`` rows, excluding the diagonal.

    Blocks of rows are overwritten. Ties go to the lower column.
    """
    from scipy.sparse import csr_array

    size = min(block_size(bytes_per_row), _MAX_BLOCK_ROWS)

    def select_block(start: int, stop: int) -> tuple[AnyArray, AnyArray, AnyArray]:
        block = values(start, stop)
        block[np.arange(stop - start), np.arange(start, stop)] = -np.inf
        columns, best = select_largest(block, min(neighbors, n))
        is_positive = best > 0
        return np.count_nonzero(is_positive, axis=1), columns[is_positive], best[is_positive]

    empty = (np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    blocks = [empty, *map_blocks(select_block, n, size, label="nearest neighbours")]
    counts, indices, data = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    indptr = np.cumsum(counts).astype(np.int32 if indices.size < 2**31 else np.int64)
    return csr_array((data, indices.astype(np.int32), indptr), shape=(n, n))


def _create_euclidean(matrix: Matrix) -> _Blocks:
    dots = create_product_blocks(matrix)
    squares = np.asarray((matrix * matrix).sum(axis=1), dtype=np.float32).ravel()

    def compute_block(start: int, stop: int) -> Floats32:
        squared = squares[start:stop, None] + squares - 2 * dots(start, stop)
        nearness: Floats32 = 1 / (1 + np.sqrt(np.maximum(squared, 0)))
        return nearness

    return compute_block


def _create_bray_curtis(matrix: Matrix) -> _Blocks:
    """Use Σ |x - y| = Σ (x + y) - 2 Σ min(x, y), column by column."""
    columns = matrix.tocsc()
    columns.sort_indices()
    sums = np.asarray(matrix.sum(axis=1), dtype=np.float32).ravel()

    def compute_block(start: int, stop: int) -> Floats32:
        shared = np.zeros((stop - start, sums.size), dtype=np.float32)
        for column in np.unique(matrix[start:stop].indices):
            entries = slice(columns.indptr[column], columns.indptr[column + 1])
            rows, values = columns.indices[entries], columns.data[entries]
            block = slice(*np.searchsorted(rows, (start, stop)))
            shared[np.ix_(rows[block] - start, rows)] += np.minimum.outer(values[block], values)
        totals = np.maximum(sums[start:stop, None] + sums, np.finfo(np.float32).tiny)
        nearness: Floats32 = 1 / (2 - 2 * shared / totals)
        return nearness

    return compute_block


def _create_chebyshev(matrix: Matrix) -> _Blocks:
    """Convert a few columns at a time to dense."""
    from scipy.spatial.distance import cdist

    n, m = matrix.shape
    columns = matrix.tocsc()
    width = block_size(8 * max(n, 1))

    def compute_block(start: int, stop: int) -> Floats32:
        distances = np.zeros((stop - start, n))
        for column in range(0, m, width):
            dense = columns[:, column : column + width].toarray()
            np.maximum(distances, cdist(dense[start:stop], dense, "chebyshev"), out=distances)
        return (1 / (1 + distances)).astype(np.float32)

    return compute_block


MIN_OPERATIONS = 5e7
"""Number of shared columns from which on compiled code is faster than array operations, although
numba must be imported."""

_COMMON_SHARE = 1 / 32
"""Share of rows that have a common column; vectors have 64 bytes."""

_COMMON_LIMIT = 2**28
"""Bytes of the common columns."""

_TILE_BYTES = 2**23
"""Bytes of the common columns of one tile."""

TILES = range(4096, 16384 + 1)
"""The sizes of a tile, multiples of 64."""

_SORTED_ROWS = 4096
"""Number of rows whose neighbours are sorted at once."""

_MAX_NEIGHBOURS = 1000
"""Largest number of neighbours; memory is reserved for all of them."""

_TARGETS = 64
"""Number of targets of a block, for which the common columns of a tile stay in the cache."""


def can_count(matrix: Matrix, neighbors: int) -> bool:
    """Return whether compiled code is worth it: for a large binary CSR matrix."""
    if min(neighbors, matrix.shape[0]) > _MAX_NEIGHBOURS:
        return False
    sizes = np.bincount(matrix.indices, minlength=1).astype(np.float64)
    worth_it = float(sizes @ sizes) >= MIN_OPERATIONS
    return worth_it and bool((matrix.data == 1).all())


def _find_nearest_binary(
    matrix: Matrix,
    neighbors: int,
    weights: tuple[AnyArray, AnyArray],
    *,
    added: float = 0.0,
    kind: int = _RATIO,
) -> Matrix:
    """Return the neighbours of each row, CSR ``float32 (n, n)``, columns ascending.

    Args:
        matrix: CSR ``(n, m)`` of ones.
        neighbors: Number of neighbours.
        weights: The weights of a row as target and as neighbour, ``float32[n]``.
        added: A constant of the divisor.
        kind: The kind of the divisor of the number of shared columns, see ``neighbour_kernel``.
    """
    from scipy.sparse import csr_array

    sizes = np.diff(matrix.indptr)
    numbers = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)].astype(np.int32)
    rows = matrix[numbers]
    rows.indices = rows.indices.astype(np.int32, copy=False)
    n, k = numbers.size, min(neighbors, max(matrix.shape[0] - 1, 1))
    left, right = (np.ascontiguousarray(weight[numbers], np.float32) for weight in weights)
    columns = _split_columns(rows)
    row_sizes = sizes[numbers].astype(np.float32)
    settings = (left, right, np.float32(added), kind, row_sizes, numbers.astype(np.uint64))
    candidates = np.zeros((n, k), np.uint64)
    search = compile_loop(_find_nearest_rows, exact=True, parts=_PARTS)

    tile, most_shared = columns[1][2].shape[2], row_sizes[1:2].max(initial=0)
    count_type = np.uint16 if most_shared < 2**16 else np.int32  # half of the cache

    def search_block(start: int, stop: int) -> None:
        counts = np.zeros(tile, count_type)
        search((start, stop, counts), *columns, settings, candidates)

    if n:
        search_block(0, 0)  # compiled before threads need it
    map_blocks(search_block, n, _TARGETS, label="nearest neighbours")
    order = np.argsort(numbers)
    counts = np.zeros(matrix.shape[0], np.int64)
    counts[numbers] = (candidates > 0).sum(axis=1)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indptr = indptr.astype(np.int32 if indptr[-1] < 2**31 else np.int64)
    indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    for start in range(0, n, _SORTED_ROWS):
        keys_found = candidates[order[start : start + _SORTED_ROWS]]
        keys = np.sort(keys_found << _SHIFT | keys_found >> _SHIFT, axis=1)[:, ::-1]
        keys = keys[keys > 0]
        entries = slice(indptr[numbers[order[start]]], None)
        entries = slice(entries.start, entries.start + keys.size)
        indices[entries] = _LAST - (keys >> _SHIFT)
        values[entries] = (keys & _LAST).astype(np.uint32).view(np.float32)
    return csr_array((values, indices, indptr), shape=(matrix.shape[0],) * 2)


def _split_columns(rows: Matrix) -> tuple[_Arrays, _Arrays, _Arrays]:
    """Return the arrays of the common and of the rare columns for ``_find_nearest_rows``."""
    n, m = rows.shape
    column_sizes = np.bincount(rows.indices, minlength=m)
    n_common = min(int((column_sizes > _COMMON_SHARE * n).sum()), _COMMON_LIMIT // max(n, 1))
    is_common = np.zeros(m, dtype=bool)
    is_common[np.argsort(-column_sizes, kind="stable")[:n_common]] = True
    tile = _TILE_BYTES // (n_common + 1) // 64 * 64
    tile = min(max(tile, TILES.start), TILES.stop - 1)
    by_column: Any = rows.tocsc()
    by_column.sort_indices()
    column_starts = by_column.indptr.astype(np.int64)
    column_rows = by_column.indices.astype(np.int32, copy=False)
    lists = (rows.indptr.astype(np.int64), rows.indices, column_starts, column_rows)
    tile_starts = _find_tile_starts(rows, column_starts, tile)[:, ~is_common]
    places = np.empty(column_rows.size, dtype=np.uint16)  # half of the memory that is read
    np.remainder(column_rows, tile, out=places, casting="unsafe")
    return (
        lists,
        _tile_common(*_select_columns(rows, is_common), n_common, tile),
        (*_select_columns(rows, ~is_common), np.ascontiguousarray(tile_starts), places),
    )


def _select_columns(rows: Matrix, is_selected: BoolArray) -> tuple[AnyArray, AnyArray]:
    """Return where each row starts and its columns, counted among the selected ones only."""
    numbers = np.cumsum(is_selected, dtype=np.int32) - np.int32(1)
    kept = np.flatnonzero(is_selected[rows.indices])
    return np.searchsorted(kept, rows.indptr), numbers[rows.indices[kept]]


def _tile_common(starts: AnyArray, columns: AnyArray, n_common: int, tile: int) -> _Arrays:
    counts = np.diff(starts)
    n = counts.size
    has_column = np.zeros((-(-n // tile), n_common + 1, tile), dtype=np.uint8)
    entries = np.repeat(np.arange(n), counts)
    has_column[entries // tile, columns, entries % tile] = 1
    packed_starts = np.concatenate([[0], np.cumsum(-(-counts // _PACK) * _PACK)])
    packed = np.full(packed_starts[-1], n_common, dtype=np.int32)
    packed[np.arange(entries.size) + np.repeat(packed_starts[:-1] - starts[:-1], counts)] = columns
    return packed_starts, packed, has_column


def _find_tile_starts(rows: Matrix, column_starts: AnyArray, tile: int) -> AnyArray:
    """Return where the rows of each tile start in the rows of a column, of all columns."""
    n, m = rows.shape
    tile_starts = np.empty((-(-n // tile) + 1, m), dtype=np.int64)
    tile_starts[0] = column_starts[:-1]
    for index, start in enumerate(range(0, n, tile)):
        entries = slice(rows.indptr[start], rows.indptr[min(start + tile, n)])
        counts = np.bincount(rows.indices[entries], minlength=m)
        tile_starts[index + 1] = tile_starts[index] + counts
    return tile_starts


Kind: TypeAlias = Literal["cosine", "asymmetric", "jaccard", "dice"]
"""Names of the similarities."""


def find_nearest(
    matrix: Matrix,
    neighbors: int,
    *,
    kind: Kind = "cosine",
    alpha: float = 0.5,
    shrink: float = 0.0,
) -> Matrix:
    """Find the most similar other rows of each row.

    With ``d = x_t · x_o`` the product of a target row and another row, ``a = |x_t|²`` and
    ``b = |x_o|²``, the similarity is

        cosine      d / (sqrt(a b) + shrink)
        asymmetric  d / (a^(1 - alpha) b^alpha + shrink)
        jaccard     d / (a + b - d + shrink)
        dice        2 d / (a + b + shrink)

    The matrix is CSR ``(n, m)``, binary or weighted; row t of the result, CSR ``float32 (n, n)``,
    holds the neighbours of target t, columns ascending. Only similarities above 0 count; ties go
    to the lower row. ``alpha`` 0.5 is cosine, 1 divides by the norm of the other row only, 0 by
    the target's. A larger ``shrink`` shrinks similarities of small overlap.

    Source:
        Aiolli, "Efficient Top-N Recommendation for Very Large Scale Binary Rated Datasets",
        RecSys 2013, section 4 (asymmetric cosine).
    """
    matrix = matrix.astype(np.float32)
    n, similarity = matrix.shape[0], Similarity(kind, alpha, shrink)
    left, right = similarity.weigh(matrix)
    if can_count(matrix, neighbors):
        divisor = {"jaccard": _UNION, "dice": _MEAN}.get(kind, _RATIO)
        added = shrink / 2 if kind == "dice" else shrink
        return _find_nearest_binary(matrix, neighbors, (left, right), added=added, kind=divisor)
    dots = create_product_blocks(matrix)

    def compute_block(start: int, stop: int) -> Floats32:
        block: Floats32 = similarity.divide(dots(start, stop), left[start:stop, None], right)
        return block

    bytes_per_row = 20 * n + 4 * matrix.shape[1]
    return select_neighbors(compute_block, n, neighbors, bytes_per_row=bytes_per_row)


@dataclass(frozen=True)
class Similarity:
    """A similarity of rows, of arrays or of tensors: see ``find_nearest``."""

    kind: Kind = "cosine"
    alpha: float = 0.5
    shrink: float = 0.0

    def weigh(self, matrix: Matrix) -> tuple[Floats32, Floats32]:
        """Return what the divisors of ``_divide`` have of each row, as target and as other row."""
        squares: Floats32 = np.asarray((matrix * matrix).sum(axis=1), dtype=np.float32).ravel()
        squares[squares == 0] = 1  # empty rows have similarity 0 / 1
        if self.kind in {"jaccard", "dice"}:
            return squares, squares
        exponent = self.alpha if self.kind == "asymmetric" else 0.5
        left: Floats32 = squares ** (1 - exponent)
        right: Floats32 = squares**exponent
        return left, right

    def divide(self, products: Any, left: Any, right: Any) -> Any:
        """Return the similarities of rows with these products, which are overwritten."""
        if self.kind == "jaccard":
            divisors, added = left + right - products, self.shrink
        elif self.kind == "dice":
            divisors, added = (left + right) / 2, self.shrink / 2
        else:
            divisors, added = left * right, self.shrink
        if added:
            divisors += added
        products /= divisors
        return products
