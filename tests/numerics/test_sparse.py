from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from recbias.kernels.sparse import (
    argsort_codes,
    build_rows,
    compile_loop,
    keep_columns,
    map_blocks,
    prefetch_row,
)
from recbias.statistics.inequality import (
    cover,
    cover_without_rows,
    entropy,
    entropy_without_rows,
    gini,
    gini_without_rows,
    jain,
    jain_without_rows,
)


@pytest.mark.parametrize(("n_rows", "size"), [(0, 3), (1, 3), (7, 3), (9, 3), (5, 100)])
def test_blocks_cover_every_row_once_in_order(n_rows: int, size: int) -> None:
    blocks = map_blocks(lambda start, stop: list(range(start, stop)), n_rows, size)
    assert [row for block in blocks for row in block] == list(range(n_rows))


@given(st.lists(st.integers(0, 20)))
def test_the_order_is_that_of_a_stable_sort(values: list[int]) -> None:
    codes = np.array(values, dtype=np.int32)
    order = argsort_codes(codes, 21)
    assert order.dtype == np.int32
    assert order.tolist() == np.argsort(codes, kind="stable").tolist()


@pytest.mark.parametrize("values", [1.0, np.arange(1.0, 5.0)])
def test_rows_hold_the_included_codes(values: Any, rng: np.random.Generator) -> None:
    codes = rng.permuted(np.tile(np.arange(9), (6, 1)), axis=1)[:, :4]
    included = rng.random(codes.shape) < 0.6
    expected = np.zeros((6, 9))
    of_position = np.broadcast_to(values, codes.shape)
    for row, position in zip(*np.nonzero(included), strict=True):
        expected[row, codes[row, position]] = of_position[row, position]
    built = build_rows(codes, included, 9, values)
    np.testing.assert_array_equal(built.toarray(), expected)
    assert built.indices.dtype == np.int32


def test_kept_columns_are_ones_and_all_of_them_the_matrix_itself(rng: np.random.Generator) -> None:
    matrix = csr_array((rng.random((7, 5)) < 0.5).astype(np.float32))
    kept = np.array([True, False, True, True, False])
    np.testing.assert_array_equal(keep_columns(matrix, kept).toarray(), matrix.toarray() * kept)
    assert keep_columns(matrix, np.ones(5, dtype=bool)) is matrix
    doubled = keep_columns(matrix * 2, np.ones(5, dtype=bool))
    np.testing.assert_array_equal(doubled.toarray(), matrix.toarray())


PAIRS = (
    (cover, cover_without_rows),
    (jain, jain_without_rows),
    (entropy, entropy_without_rows),
    (gini, gini_without_rows),
)


@pytest.mark.parametrize(("measure", "measure_without"), PAIRS)
@given(seed=st.integers(0, 2**32 - 1))
def test_values_equal_those_of_the_other_rows(
    measure: Any, measure_without: Any, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    q, n = rng.integers(1, 9), rng.integers(1, 7)
    rows = (rng.random((q, n)) < rng.random()).astype(np.int32)
    expected = [float(measure(np.delete(rows, row, axis=0).sum(axis=0))) for row in range(q)]
    assert measure_without(csr_array(rows)) == pytest.approx(expected, nan_ok=True, abs=1e-12)


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
