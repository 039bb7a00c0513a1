"""Rows are loaded ahead in compiled loops, and nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recbias.kernels.sparse import compile_loop, prefetch_row, register_prefetch


def sum_rows(table: Any, rows: Any) -> float:
    total = 0.0
    for place in range(rows.size):
        prefetch_row(table, rows[min(place + 4, rows.size - 1)])
        total += table[rows[place]].sum()
    return total


@pytest.mark.parametrize("width", [1, 16, 33])
@pytest.mark.parametrize("row_type", [np.int32, np.int64, np.uint64])
def test_a_loop_that_prefetches_gives_the_sums_of_numpy(width: int, row_type: Any) -> None:
    rng = np.random.default_rng(width)
    table, rows = rng.random((50, width)), rng.integers(50, size=200).astype(row_type)
    assert compile_loop(sum_rows)(table, rows) == pytest.approx(table[rows].sum(), rel=1e-12)
    assert sum_rows(table, rows) == pytest.approx(table[rows].sum(), rel=1e-12)


def test_the_machine_code_has_an_instruction_that_prefetches() -> None:
    import numba

    register_prefetch()
    run: Any = numba.njit(sum_rows)  # code that numba has cached cannot be inspected
    run(np.ones((3, 20)), np.zeros(5, dtype=np.int32))
    if not hasattr(run, "inspect_asm"):
        pytest.skip("compilation is switched off")
    code = "".join(run.inspect_asm().values())
    assert "prefetch" in code or "prfm" in code


def test_entries_of_a_vector_are_prefetched_too() -> None:
    def take(vector: Any, places: Any) -> float:
        total = 0.0
        for place in places:
            prefetch_row(vector, place)
            total += vector[place]
        return total

    vector, places = np.arange(9.0), np.array([0, 8, 4])
    assert compile_loop(take)(vector, places) == 12.0
