"""The loops of ``shared_columns``: count the shared columns of rows and keep the nearest rows.

``find_nearest_rows`` is to be compiled by ``compile_loop`` with ``exact`` and ``PARTS``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Arrays: TypeAlias = tuple[Any, ...]

STRIP = 1024
"""Number of rows that are compared with the worst neighbour at once."""

PACK = 4
"""Number of common columns that are added at once."""

BYTE = 255 // PACK * PACK
"""Number of common columns after which counts of 8 bits are added to those of 32 bits."""

RATIO, MEAN, UNION = 0, 1, 2
"""Divisors of the count d: ``l_t r_o + c``, ``(l_t + r_o) / 2 + c`` and ``l_t + r_o - d + c``."""

BUFFER = 4
"""Rows that are collected before the best are kept, as a multiple of k."""

LAST, SHIFT = np.uint64(2**32 - 1), np.uint64(32)
"""The largest number of 32 bits, and how far a similarity is shifted."""

SLACK = np.float32(1 - 1e-5)
"""Factor of a similarity that is compared with one that was rounded in another way."""


def find_nearest_rows(
    start: int, stop: int, common: Arrays, rare: Arrays, weights: Arrays, nearest: Any
) -> None:
    """Find the nearest rows of the rows ``start`` to ``stop``, which are sorted by size.

    Args:
        start: The first target.
        stop: The target after the last.
        common: Of the columns that many rows have: where each row starts, ``int64[n + 1]``; its
            columns, padded with the last one to a multiple of ``PACK``; and which rows have them,
            ``uint8 (n_tiles, n_common + 1, tile)``, the last of them none.
        rare: Of the other columns: where each row starts and its columns; the rows of all columns,
            ascending; and where those of a tile start, ``int64 (n_tiles + 1, n_rare)``.
        weights: ``l`` and ``r``, ``float32[n]``; ``c``; the kind of divisor; the number of columns
            of each row, ``float32[n]``, descending; and the rows of the matrix, ``uint64[n]``.
        nearest: The neighbours of each row in no order, ``uint64 (n, k)``, filled with 0: the bits
            of the similarity, and the largest number of 32 bits less the row of the matrix. The
            larger number is the better neighbour; ties go to the lower row.
    """
    n, k = nearest.shape
    n_tiles, tile = common[2].shape[0], common[2].shape[2]
    counts, small_counts = np.zeros(tile, dtype=np.int32), np.zeros(tile, dtype=np.uint8)
    near_words, value = np.zeros(STRIP // 8, dtype=np.uint64), np.zeros(1, dtype=np.float32)
    candidates = np.zeros((stop - start, BUFFER * k), dtype=np.uint64)
    n_candidates = np.zeros(stop - start, dtype=np.int64)
    worst = np.zeros(stop - start, dtype=np.float32)
    own_tile = start // tile
    for step in range(2 * n_tiles):  # the tiles of rows of about this size first
        index = own_tile - step // 2 if step % 2 == 0 else own_tile + 1 + step // 2
        if index < 0 or index >= n_tiles:
            continue
        low = index * tile
        width = min(tile, n - low)
        for target in range(start, stop):
            if can_reach(target, low, width, weights, worst[target - start]):
                count_common(target, index, width, common, small_counts, counts)
                count_rare(target, index, low, rare, counts)
                if low <= target < low + width:
                    counts[target - low] = 0
                collect(
                    *(target, low, counts[:width], weights, (near_words, value)),
                    (start, k, candidates, n_candidates, worst),
                )
    for position in range(stop - start):
        keep_best(candidates[position], n_candidates[position], k, value)
        nearest[start + position] = candidates[position, :k]


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


def count_rare(target: int, index: int, low: int, rare: Arrays, counts: Any) -> None:
    """Add the numbers of rare columns that rows of a tile share with the target."""
    starts, columns, rows, tile_starts = rare
    for entry in range(starts[target], starts[target + 1]):
        column = columns[entry]
        for shared in range(tile_starts[index, column], tile_starts[index + 1, column]):
            counts[np.uintp(rows[shared] - low)] += 1


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
    candidates[:n_candidates] = np.partition(candidates[:n_candidates], n_candidates - k)[::-1]
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


PARTS = (can_reach, count_common, count_rare, divide, mark_near, keep_best, collect)
"""The functions that ``find_nearest_rows`` calls."""
