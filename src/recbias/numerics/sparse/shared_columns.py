"""The nearest rows of a large binary matrix, by a compiled count of the shared columns.

Rows are sorted by size and split into tiles. Columns that many rows have are stored as bytes, row
by row, and added as vectors; of the other columns, each row that has one is counted. A tile whose
rows are too large or too small to share enough columns with a target is not counted at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, Matrix
from recbias.core.packages import is_installed
from recbias.numerics.compiled.loops import compile_loop
from recbias.numerics.compiled.neighbour_kernel import (
    LAST,
    PARTS,
    RATIO,
    SHIFT,
    find_nearest_rows,
)
from recbias.numerics.compiled.shared_counts import PACK, Arrays
from recbias.numerics.sparse.blocks import map_blocks

MIN_OPERATIONS = 5e7
"""Number of shared columns from which on compiled code is faster than array operations, although
numba must be imported."""

COMMON_SHARE = 1 / 32
"""Share of rows that have a common column; vectors have 64 bytes."""

COMMON_LIMIT = 2**28
"""Bytes of the common columns."""

TILE_BYTES = 2**23
"""Bytes of the common columns of one tile."""

TILES = range(4096, 16384 + 1)
"""The sizes of a tile, multiples of 64."""

SORTED_ROWS = 4096
"""Number of rows whose neighbours are sorted at once."""

MAX_NEIGHBOURS = 1000
"""Largest number of neighbours; memory is reserved for all of them."""

TARGETS = 64
"""Number of targets of a block, for which the common columns of a tile stay in the cache."""


def can_count(matrix: Matrix, neighbors: int) -> bool:
    """Return whether compiled code can be used and is worth it: a large binary CSR matrix."""
    if min(neighbors, matrix.shape[0]) > MAX_NEIGHBOURS:
        return False
    sizes = np.bincount(matrix.indices, minlength=1).astype(np.float64)
    worth_it = float(sizes @ sizes) >= MIN_OPERATIONS
    return worth_it and is_installed("numba") and bool((matrix.data == 1).all())


def find_nearest_binary(
    matrix: Matrix,
    neighbors: int,
    weights: tuple[AnyArray, AnyArray],
    *,
    added: float = 0.0,
    kind: int = RATIO,
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
    search = compile_loop(find_nearest_rows, exact=True, parts=PARTS)

    tile, most_shared = columns[1][2].shape[2], row_sizes[1:2].max(initial=0)
    count_type = np.uint16 if most_shared < 2**16 else np.int32  # half of the cache

    def search_block(start: int, stop: int) -> None:
        counts = np.zeros(tile, count_type)
        search((start, stop, counts), *columns, settings, candidates)

    if n:
        search_block(0, 0)  # compiled before threads need it
    map_blocks(search_block, n, TARGETS, label="nearest neighbours")
    order = np.argsort(numbers)
    counts = np.zeros(matrix.shape[0], np.int64)
    counts[numbers] = (candidates > 0).sum(axis=1)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indptr = indptr.astype(np.int32 if indptr[-1] < 2**31 else np.int64)
    indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    for start in range(0, n, SORTED_ROWS):
        keys_found = candidates[order[start : start + SORTED_ROWS]]
        keys = np.sort(keys_found << SHIFT | keys_found >> SHIFT, axis=1)[:, ::-1]
        keys = keys[keys > 0]
        entries = slice(indptr[numbers[order[start]]], None)
        entries = slice(entries.start, entries.start + keys.size)
        indices[entries] = LAST - (keys >> SHIFT)
        values[entries] = (keys & LAST).astype(np.uint32).view(np.float32)
    return csr_array((values, indices, indptr), shape=(matrix.shape[0],) * 2)


def _split_columns(rows: Matrix) -> tuple[Arrays, Arrays, Arrays]:
    """Return the arrays of the common and of the rare columns for ``find_nearest_rows``."""
    n, m = rows.shape
    column_sizes = np.bincount(rows.indices, minlength=m)
    n_common = min(int((column_sizes > COMMON_SHARE * n).sum()), COMMON_LIMIT // max(n, 1))
    is_common = np.zeros(m, dtype=bool)
    is_common[np.argsort(-column_sizes, kind="stable")[:n_common]] = True
    tile = TILE_BYTES // (n_common + 1) // 64 * 64
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


def _tile_common(starts: AnyArray, columns: AnyArray, n_common: int, tile: int) -> Arrays:
    counts = np.diff(starts)
    n = counts.size
    has_column = np.zeros((-(-n // tile), n_common + 1, tile), dtype=np.uint8)
    entries = np.repeat(np.arange(n), counts)
    has_column[entries // tile, columns, entries % tile] = 1
    packed_starts = np.concatenate([[0], np.cumsum(-(-counts // PACK) * PACK)])
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
