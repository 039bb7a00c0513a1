from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from recbias.kernels.sparse import build_rows, keep_columns, split_rows


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


def test_kept_columns_are_ones_and_all_of_them_the_matrix_itself(
    rng: np.random.Generator,
) -> None:
    matrix = csr_array((rng.random((7, 5)) < 0.5).astype(np.float32))
    kept = np.array([True, False, True, True, False])
    np.testing.assert_array_equal(keep_columns(matrix, kept).toarray(), matrix.toarray() * kept)
    assert keep_columns(matrix, np.ones(5, dtype=bool)) is matrix
    doubled = keep_columns(matrix * 2, np.ones(5, dtype=bool))
    np.testing.assert_array_equal(doubled.toarray(), matrix.toarray())


def test_blocks_are_the_rows_in_order(rng: np.random.Generator) -> None:
    matrix = csr_array(rng.integers(0, 3, (7, 4)))
    blocks = [block.toarray() for block in split_rows(matrix, 3)]
    assert [len(block) for block in blocks] == [3, 3, 1]
    np.testing.assert_array_equal(np.concatenate(blocks), matrix.toarray())
