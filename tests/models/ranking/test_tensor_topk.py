from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from recbias.core.dataset import AnyArray
from recbias.kernels import topk
from recbias.models.gpu import top_k

LEVELS = st.sampled_from([-np.inf, np.nan, np.inf, -1.5, -0.0, 0.0, 0.25, 1.0, 2.0])


def compute_top_k(scores: AnyArray, k: int) -> tuple[list[list[int]], AnyArray]:
    columns, values = top_k(torch.tensor(scores), k)
    assert (columns.dtype, values.dtype) == (torch.int32, torch.float32)
    return columns.tolist(), values.numpy()


def assert_same_as_arrays(scores: AnyArray, k: int) -> None:
    columns, values = compute_top_k(scores, k)
    expected, expected_values = topk.top_k(scores, k)
    assert columns == expected.tolist()
    np.testing.assert_array_equal(values, expected_values)


@given(
    scores=arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=60), elements=LEVELS),
    k=st.integers(1, 70),
)
def test_result_equals_the_top_k_of_arrays(scores: AnyArray, k: int) -> None:
    assert_same_as_arrays(scores, k)


@pytest.mark.parametrize("k", [1, 10, 100, 2_999, 3_000, 3_001])
@pytest.mark.parametrize("levels", [2, 40, 10**9])
def test_result_equals_the_top_k_of_arrays_for_wide_rows(
    rng: np.random.Generator, k: int, levels: int
) -> None:
    scores = rng.integers(levels, size=(23, 3_000)).astype(np.float32)
    scores[3] = -np.inf
    scores[4, 5:] = np.nan
    assert_same_as_arrays(scores, k)


def test_ties_go_to_the_lower_column_and_short_rows_are_padded() -> None:
    nan, inf = np.nan, np.inf
    scores = np.array([[1, 3, 3, -inf], [2, 2, 2, 2], [nan, -inf, 0, nan], [inf, 1, inf, 5]])
    columns, values = compute_top_k(scores, 3)
    assert columns == [[1, 2, 0], [0, 1, 2], [2, -1, -1], [0, 2, 3]]
    expected = np.array([[3, 3, 1], [2, 2, 2], [0, nan, nan], [inf, inf, 5]], dtype=np.float32)
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
def test_empty_input_is_padded(shape: tuple[int, int]) -> None:
    columns, values = top_k(torch.empty(shape), 2)
    assert columns.shape == values.shape == (shape[0], 2)
    assert (columns == -1).all()


def test_scores_are_compared_in_single_precision() -> None:
    # 1 and 1 + 1e-9 are the same there: the lower column comes first
    assert compute_top_k(np.array([[1.0, 1.0 + 1e-9]]), 1)[0] == [[0]]
