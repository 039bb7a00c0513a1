"""Process rows in blocks, on all cores in parallel and in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from recbias.core.stage_context import track_progress

T = TypeVar("T")

MEMORY_LIMIT = 128 * 2**20
"""Default limit of the bytes of all blocks that are processed in parallel."""


def block_size(bytes_per_row: int, *, memory_limit: int = MEMORY_LIMIT) -> int:
    """Return the number of rows of a block, at least 1, so that one block per core fits.

    >>> block_size(2**20, memory_limit=1)
    1
    """
    return max(1, memory_limit // (n_workers() * max(bytes_per_row, 1)))


def n_workers() -> int:
    """Return the number of blocks processed in parallel: the number of cores, at most 8."""
    return min(os.cpu_count() or 1, 8)


def map_blocks(
    work: Callable[[int, int], T], n_rows: int, size: int, *, label: str = ""
) -> list[T]:
    """Return ``work(start, stop)`` for each block of ``size`` rows, in order.

    Blocks run in threads, because array libraries release the interpreter lock. A block must not
    depend on the result of another one. Inside a block a matrix product uses one core: more would
    compete with the other blocks. With a ``label``, progress is reported under it.

    >>> map_blocks(lambda start, stop: list(range(start, stop)), 5, 2)
    [[0, 1], [2, 3], [4]]
    """
    blocks: list[T] = []
    for_each_block(work, n_rows, size, blocks.append, label=label)
    return blocks


def for_each_block(
    work: Callable[[int, int], T],
    n_rows: int,
    size: int,
    receive: Callable[[T], object],
    *,
    first: int = 0,
    label: str = "",
) -> None:
    """Call ``receive`` with the result of each block from row ``first`` on, in order.

    Results are received in this thread, while later blocks run.

    >>> for_each_block(lambda start, stop: (start, stop), 5, 2, print, first=1)
    (1, 3)
    (3, 5)
    """
    from threadpoolctl import threadpool_limits

    starts = range(first, n_rows, size)
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_workers()) as pool:
        blocks = [pool.submit(work, start, min(start + size, n_rows)) for start in starts]
        for block in track_progress(blocks, label) if label else blocks:
            receive(block.result())
