from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from recbias.core.dataset import AnyArray
from recbias.kernels.topk import select_largest, top_k

LEVELS = st.sampled_from([-np.inf, np.nan, np.inf, -1.5, -0.0, 0.0, 0.25, 1.0, 2.0])


def sort_fully(scores: AnyArray, k: int) -> tuple[list[list[int]], AnyArray]:
    """The second opinion: a stable sort of each whole row."""
    clean = np.where(np.isnan(scores), -np.inf, scores)
    order = np.argsort(-clean, axis=1, kind="stable")[:, :k]
    columns = np.full((len(scores), k), -1)
    values = np.full((len(scores), k), np.nan, dtype=np.float32)
    columns[:, : order.shape[1]] = order
    values[:, : order.shape[1]] = np.take_along_axis(clean, order, 1)
    nobody = np.isneginf(values) | np.isnan(values)
    return np.where(nobody, -1, columns).tolist(), np.where(nobody, np.float32(np.nan), values)


@given(
    scores=arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=60), elements=LEVELS),
    k=st.integers(1, 70),
)
def test_top_k_equals_a_stable_sort_cut_at_k(scores: AnyArray, k: int) -> None:
    columns, values = top_k(scores, k)
    expected, expected_values = sort_fully(scores, k)
    assert columns.tolist() == expected
    np.testing.assert_array_equal(values, expected_values)


@pytest.mark.parametrize("k", [1, 10, 100, 2_999, 3_000, 3_001])
@pytest.mark.parametrize("levels", [2, 40, 10**9])
def test_wide_rows_with_ties_equal_a_stable_sort(
    rng: np.random.Generator, k: int, levels: int
) -> None:
    scores = rng.integers(levels, size=(23, 3_000)).astype(np.float32)
    scores[3] = -np.inf
    scores[4, 5:] = np.nan
    columns, values = top_k(scores, k)
    expected, expected_values = sort_fully(scores, k)
    assert columns.tolist() == expected
    np.testing.assert_array_equal(values, expected_values)


def test_single_row_of_ties_equals_a_stable_sort(rng: np.random.Generator) -> None:
    scores = rng.random((50, 1_000), dtype=np.float32)
    scores[7] = 0.5
    assert top_k(scores, 5)[0][7].tolist() == [0, 1, 2, 3, 4]
    assert top_k(scores, 5)[0].tolist() == sort_fully(scores, 5)[0]


def test_select_largest_returns_top_k_in_column_order(rng: np.random.Generator) -> None:
    scores = rng.integers(30, size=(40, 500)).astype(np.float32)
    columns, values = select_largest(scores, 9)
    assert np.array_equal(columns, np.sort(top_k(scores, 9)[0], axis=1))
    np.testing.assert_array_equal(values, np.take_along_axis(scores, columns, 1))


def test_padding_is_last_and_nan() -> None:
    columns, values = top_k(np.array([[-np.inf, 2.0, np.nan]]), 3)
    assert columns.tolist() == [[1, -1, -1]]
    np.testing.assert_array_equal(values, np.array([[2, np.nan, np.nan]], dtype=np.float32))


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
def test_empty_scores_give_empty_lists(shape: tuple[int, int]) -> None:
    columns, values = top_k(np.empty(shape), 2)
    assert columns.shape == values.shape == (shape[0], 2)
    assert (columns == -1).all()


def test_scores_are_unchanged_and_result_types_fixed() -> None:
    scores = np.array([[np.nan, 1.0, 3.0]])
    before = scores.copy()
    columns, values = top_k(scores, 2)
    np.testing.assert_array_equal(scores, before)
    assert [columns.dtype.name, values.dtype.name] == ["int32", "float32"]
    # 1 and 1 + 1e-9 are the same in single precision: the lower column comes first
    assert top_k(np.array([[1.0, 1.0 + 1e-9]]), 1)[0].tolist() == [[0]]


@pytest.mark.parametrize("k", [10, 2_000], ids="k={}".format)
@pytest.mark.parametrize("score", [0.0, np.nan, 1.0])
def test_rows_of_ties_need_little_memory(rng: np.random.Generator, k: int, score: float) -> None:
    scores = rng.integers(3, size=(40, 20_000)).astype(np.float32)
    scores[scores == 2] = score
    tracemalloc.start()
    top_k(scores, k)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 17 * scores.size
