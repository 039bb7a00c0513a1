"""A range of rows in blocks, worked on by all cores at once, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from recbias.core.stage_context import track_progress

T = TypeVar("T")

MEMORY_LIMIT = 128 * 2**20
"""Bytes that the blocks under work may take together, unless said otherwise."""


def block_size(bytes_a_row: int, *, memory_limit: int = MEMORY_LIMIT) -> int:
    """Return how many rows a block may have, so that one block a core fits; at least 1.

    >>> block_size(2**20, memory_limit=1)
    1
    """
    return max(1, memory_limit // (n_workers() * max(bytes_a_row, 1)))


def n_workers() -> int:
    """Return how many blocks are worked on at once: the number of cores, at most 8."""
    return min(os.cpu_count() or 1, 8)


def map_blocks(
    work: Callable[[int, int], T], n_rows: int, size: int, *, what: str = ""
) -> list[T]:
    """Return ``work(start, stop)`` of each block of ``size`` rows, in order.

    The blocks are worked on in threads: the array libraries release the interpreter while they
    work. A block's result must not hang on another's. Inside a block a matrix product uses one
    core: more would only wait for each other, for long where other processes work too.

    Args:
        work: What is done with a block.
        n_rows: How many rows there are.
        size: How many rows a block has; the last may have fewer.
        what: What the blocks are reported as; empty reports nothing.

    >>> map_blocks(lambda start, stop: list(range(start, stop)), 5, 2)
    [[0, 1], [2, 3], [4]]
    """
    from threadpoolctl import threadpool_limits

    starts = range(0, n_rows, size)
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_workers()) as pool:
        blocks = [pool.submit(work, start, min(start + size, n_rows)) for start in starts]
        waited = track_progress(blocks, what) if what else blocks
        return [block.result() for block in waited]
