"""The loops of ``shared_columns``: count the shared columns of rows and keep the nearest rows.

``find_nearest_rows`` is to be compiled by ``compile_loop`` with ``exact`` and ``PARTS``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recbias.numerics.compiled.shared_counts import (
    Arrays,
    count_common,
    count_rare,
    list_sharing,
)

STRIP = 1024
"""Number of rows that are compared with the worst neighbour at once."""

RATIO, MEAN, UNION = 0, 1, 2
"""Divisors of the count d: ``l_t r_o + c``, ``(l_t + r_o) / 2 + c`` and ``l_t + r_o - d + c``."""

SPARSE_SHARE = 1 / 8
"""Targets with fewer shared columns than this share of the rows are counted row by row."""

BUFFER = 4
"""Rows that are collected before the best are kept, as a multiple of k."""

LAST, SHIFT = np.uint64(2**32 - 1), np.uint64(32)
"""The largest number of 32 bits, and how far a similarity is shifted."""

SLACK = np.float32(1 - 1e-5)
"""Factor of a similarity that is compared with one that was rounded in another way."""


def find_nearest_rows(
    bounds: Arrays, lists: Arrays, common: Arrays, rare: Arrays, weights: Arrays, nearest: Any
) -> None:
    """Find the nearest rows of a block of targets; rows are sorted by size.

    Args:
        bounds: The first target, the one after the last, and memory for the counts of a tile, of
            a type that holds the number of shared columns of any two rows.
        lists: The matrix by rows and by columns: where each row starts, the columns of rows, where
            each column starts, and the rows of columns, ascending.
        common: Of the columns that many rows have: where each row starts, ``int64[n + 1]``; its
            columns, padded with the last one to a multiple of ``PACK``; and which rows have them,
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
    near_words, value = np.zeros(STRIP // 8, dtype=np.uint64), np.zeros(1, dtype=np.float32)
    candidates = np.zeros((stop - start, BUFFER * k), dtype=np.uint64)
    n_candidates = np.zeros(stop - start, dtype=np.int64)
    worst = np.zeros(stop - start, dtype=np.float32)
    is_sparse = np.zeros(stop - start, dtype=np.bool_)
    count_sparse(bounds, lists, weights, value, (k, candidates, n_candidates, is_sparse))
    own_tile = start // tile
    for step in range(2 * n_tiles):  # the tiles of rows of about this size first
        index = own_tile - step // 2 if step % 2 == 0 else own_tile + 1 + step // 2
        if index < 0 or index >= n_tiles:
            continue
        low = index * tile
        width = min(tile, n - low)
        for target in range(start, stop):
            position = target - start
            if not is_sparse[position] and can_reach(target, low, width, weights, worst[position]):
                count_common(target, index, width, common, small_counts, counts)
                count_rare(target, index, rare, counts)
                if low <= target < low + width:
                    counts[target - low] = 0
                collect(
                    *(target, low, counts[:width], weights, (near_words, value)),
                    (start, k, candidates, n_candidates, worst),
                )
    for position in range(stop - start):
        keep_best(candidates[position], n_candidates[position], k, value)
        nearest[start + position] = candidates[position, :k]


def count_sparse(
    bounds: Arrays, lists: Arrays, weights: Arrays, value: Any, targets: Arrays
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
        if work > SPARSE_SHARE * n:
            continue
        is_sparse[position] = True
        n_sharing = list_sharing(target, lists, counts, sharing)
        for index in range(n_sharing):
            row = sharing[index]
            if row != target:
                value[0] = divide(counts[row], left[target], right[row], added, kind)
                key = (np.uint64(bits[0]) << SHIFT) | (LAST - numbers[row])
                candidates[position, n_candidates[position]] = key
                n_candidates[position] += 1
                if n_candidates[position] == candidates.shape[1]:
                    keep_best(candidates[position], candidates.shape[1], k, value)
                    n_candidates[position] = k
            counts[row] = 0


def can_reach(target: int, low: int, width: int, weights: Arrays, worst: Any) -> bool:
    """Return whether a row of a tile could be as near as the worst neighbour of the target.

    The nearest that it could have is of the size closest to the target's and shares all columns.
    """
    left, right, added, kind, sizes, _ = weights
    if low <= target < low + width:
        return True
    closest = low if target < low else low + width - 1
    shared = min(sizes[target], sizes[closest])
    return bool(divide(shared, left[target], right[closest], added, kind) >= worst * SLACK)


def collect(
    target: int, low: int, counts: Any, weights: Arrays, memory: Arrays, targets: Arrays
) -> None:
    """Add the rows of a tile that may be neighbours of the target to those of earlier tiles."""
    left, right, added, kind, _, numbers = weights
    near_words, value = memory
    start, k, all_candidates, n_candidates, worst = targets
    position, candidates = target - start, all_candidates[target - start]
    is_near, bits = near_words.view(np.uint8), value.view(np.uint32)
    for begin in range(0, counts.size, STRIP):
        strip = counts[begin : begin + STRIP]
        scale = right[low + begin : low + begin + strip.size]
        mark_near(strip, scale, (left[target], worst[position], added, kind), is_near)
        for word in range((strip.size + 7) // 8):
            if near_words[word] == 0:
                continue
            for row in range(8 * word, min(8 * word + 8, strip.size)):
                if is_near[row]:
                    value[0] = divide(strip[row], left[target], scale[row], added, kind)
                    key = (np.uint64(bits[0]) << SHIFT) | (LAST - numbers[low + begin + row])
                    candidates[n_candidates[position]] = key
                    n_candidates[position] += 1
                    if n_candidates[position] == candidates.size:
                        worst[position] = keep_best(candidates, candidates.size, k, value)
                        n_candidates[position] = k
    if n_candidates[position] > 2 * k:
        worst[position] = keep_best(candidates, n_candidates[position], k, value)
        n_candidates[position] = k


def keep_best(candidates: Any, n_candidates: int, k: int, value: Any) -> Any:
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
    value.view(np.uint32)[0] = np.uint32(candidates[k - 1] >> SHIFT)
    return value[0]


def mark_near(counts: Any, scale: Any, target: Arrays, is_near: Any) -> None:
    """Mark the rows that may be as near as the worst neighbour, which is 0 if there is none."""
    size, worst, added, kind = target
    least = worst * SLACK
    if worst == 0:
        for position in range(counts.size):
            is_near[position] = counts[position] > 0
    elif kind == RATIO:  # without c, which lowers a similarity
        least *= size
        for position in range(counts.size):
            is_near[position] = np.float32(counts[position]) >= least * scale[position]
    else:  # 2 d >= s (l + r + 2 c) or (1 + s) d >= s (l + r + c), s the worst similarity
        factor = np.float32(2) if kind == MEAN else np.float32(1) + worst
        fixed = size + (added + added if kind == MEAN else added)
        for position in range(counts.size):
            bound = least * (fixed + scale[position])
            is_near[position] = factor * np.float32(counts[position]) >= bound


def divide(count: Any, size: Any, scale: Any, added: Any, kind: int) -> Any:
    """Return the similarity of a target and a row, ``float32``."""
    shared = np.float32(count)
    if kind == RATIO:
        divisor = size * scale
    elif kind == MEAN:
        divisor = (size + scale) * np.float32(0.5)
    else:
        divisor = size + scale - shared
    return shared / (divisor + added)


PARTS = (
    list_sharing,
    count_sparse,
    can_reach,
    count_common,
    count_rare,
    divide,
    mark_near,
    keep_best,
    collect,
)
"""The functions that ``find_nearest_rows`` calls."""
