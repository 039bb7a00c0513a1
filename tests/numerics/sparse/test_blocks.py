from __future__ import annotations

import pytest

from recbias.core.context import stage_context
from recbias.kernels.sparse import block_size, map_blocks, n_workers


@pytest.mark.parametrize(("n_rows", "size"), [(0, 3), (1, 3), (7, 3), (9, 3), (5, 100)])
def test_blocks_cover_every_row_once_in_order(n_rows: int, size: int) -> None:
    blocks = map_blocks(lambda start, stop: list(range(start, stop)), n_rows, size)
    assert [row for block in blocks for row in block] == list(range(n_rows))


def test_error_in_a_block_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        map_blocks(lambda start, _stop: 1 // start, 4, 2)


def test_progress_counts_blocks() -> None:
    events = []
    with stage_context(on_progress=lambda *event: events.append(event)):
        map_blocks(lambda start, _stop: start, 4, 2, label="lists")
        map_blocks(lambda start, _stop: start, 4, 2)
    assert events == [("lists", 0, 2), ("lists", 1, 2), ("lists", 2, 2)]


def test_parallel_blocks_fit_the_memory_limit() -> None:
    assert block_size(10, memory_limit=1_000) * n_workers() * 10 <= 1_000
    assert block_size(10**12) == 1
