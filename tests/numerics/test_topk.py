from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.sparse import csr_array, random_array

from recbias.core.dataset import AnyArray, Matrix
from recbias.kernels.topk import ProductRanking, top_k

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


def make_matrix(shape: tuple[int, int], rng: np.random.Generator, density: float) -> Matrix:
    """Return values of few different sizes, so that scores are tied, in columns of any size."""
    matrix: Matrix = random_array(shape, density=density, rng=rng, format="csr", dtype=np.float32)
    matrix.data = rng.integers(-2, 9, matrix.nnz).astype(np.float32) / 8
    matrix.data *= (1 + 7 * rng.random(shape[1]) ** 8)[matrix.indices].astype(np.float32)
    return matrix


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 9), n_columns=st.integers(1, 90))
def test_the_result_is_that_of_all_scores(seed: int, k: int, n_columns: int) -> None:
    rng = np.random.default_rng(seed)
    left = make_matrix((12, 20), rng, 0.3)
    right = make_matrix((20, n_columns), rng, 0.2)
    history = make_matrix((12, n_columns), rng, 0.2)
    candidates = rng.random(n_columns) < 0.9
    rows = rng.permutation(12)[:7]
    rankings = [ProductRanking(left, factor, candidates) for factor in (right, right.toarray())]
    found = [ranking.rank(rows, history[rows], k) for ranking in rankings]
    scores = (left[rows] @ right).toarray()
    scores[:, ~candidates] = -np.inf
    excluded = history[rows]
    for row in range(rows.size):
        seen = excluded.indices[excluded.indptr[row] : excluded.indptr[row + 1]]
        scores[row, seen] = -np.inf
    expected_columns, expected = top_k(scores, k)
    for columns, values in found:
        np.testing.assert_array_equal(columns, expected_columns)
        np.testing.assert_array_equal(values, expected)


def test_scores_that_are_not_finite() -> None:
    left = csr_array(np.array([[1, 1], [1, 0]], dtype=np.float32))
    right = csr_array(np.array([[1, 2, 3], [np.nan, np.inf, -np.inf]], dtype=np.float32))
    ranking = ProductRanking(left, right, np.ones(3, dtype=bool))
    columns, values = ranking.rank(np.arange(2), csr_array((2, 3), dtype=np.float32), 2)
    assert columns.tolist() == [[1, -1], [2, 1]]
    np.testing.assert_array_equal(values, [[np.inf, np.nan], [3, 2]])
