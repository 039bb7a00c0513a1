from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, hstack

from recbias.kernels.sparse import join_columns, select_columns


@pytest.mark.parametrize(("rows", "left", "right"), [(20, 6, 4), (5, 1, 9), (3, 2, 0), (0, 2, 3)])
def test_joined_columns_are_those_of_scipy(
    rows: int, left: int, right: int, rng: np.random.Generator
) -> None:
    a = csr_array(rng.integers(0, 3, (rows, left)).astype(np.int32))
    b = csr_array(rng.integers(0, 3, (rows, right)) * 0.5)
    joined, expected = join_columns(a, b), hstack([a, b], format="csr")
    assert joined.dtype == expected.dtype
    assert joined.shape == expected.shape
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(expected, name))


def test_all_columns_are_the_matrix_itself(rng: np.random.Generator) -> None:
    matrix = csr_array(rng.integers(0, 3, (4, 5)))
    assert select_columns(matrix, np.arange(5)) is matrix
    np.testing.assert_array_equal(
        select_columns(matrix, np.array([1, 4])).toarray(), matrix.toarray()[:, [1, 4]]
    )
