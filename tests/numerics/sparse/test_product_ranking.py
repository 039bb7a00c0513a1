"""Tests of the ranking of sparse products: the results are those of all scores at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from recbias.core.dataset import Matrix
from recbias.kernels import topk
from recbias.kernels.topk import DenseProductRanking, ProductRanking, top_k


def make_matrix(shape: tuple[int, int], rng: np.random.Generator, density: float) -> Matrix:
    """Return values of few different sizes, so that scores are tied, in columns of any size."""
    matrix: Matrix = random_array(shape, density=density, rng=rng, format="csr", dtype=np.float32)
    matrix.data = rng.integers(-2, 9, matrix.nnz).astype(np.float32) / 8
    matrix.data *= (1 + 7 * rng.random(shape[1]) ** 8)[matrix.indices].astype(np.float32)
    return matrix


@given(
    seed=st.integers(0, 2**32 - 1),
    bits=st.integers(0, 7),
    k=st.integers(1, 9),
    n_columns=st.integers(1, 90),
)
def test_the_result_is_that_of_all_scores(seed: int, bits: int, k: int, n_columns: int) -> None:
    rng = np.random.default_rng(seed)
    left = make_matrix((12, 20), rng, 0.3)
    right = make_matrix((20, n_columns), rng, 0.2)
    history = make_matrix((12, n_columns), rng, 0.2)
    candidates = rng.random(n_columns) < 0.9
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topk, "TILE_BITS", bits)
        patch.setattr(topk, "MAX_TILES", 40)
        patch.setattr(topk, "DENSE_TILE", 1 << bits)
        ranking = ProductRanking(left, right, candidates)
        dense = DenseProductRanking(left, right.toarray(), candidates)
        rows = rng.permutation(12)[:7]
        found = [kind.rank(rows, history[rows], k) for kind in (ranking, dense)]
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topk, "TILE_BITS", 0)
        ranking = ProductRanking(left, right, np.ones(3, dtype=bool))
    columns, values = ranking.rank(np.arange(2), csr_array((2, 3), dtype=np.float32), 2)
    assert columns.tolist() == [[1, -1], [2, 1]]
    np.testing.assert_array_equal(values, [[np.inf, np.nan], [3, 2]])


def test_later_tiles_are_left_out_where_no_column_can_be_selected() -> None:
    """With columns in descending order of sums, those after the k-th score are not summed."""
    values = np.array([[8, 4, 2, 1]], dtype=np.float32)
    left = csr_array(np.array([[1]], dtype=np.float32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topk, "TILE_BITS", 0)
        ranking = ProductRanking(left, csr_array(values), np.ones(4, dtype=bool))
    tile_values = ranking._tiles[2]
    assert tile_values.tolist() == [8, 4, 2, 1]
    tile_values[1:] = 100  # values that a summed tile would show
    nobody = csr_array((1, 4), dtype=np.float32)
    assert ranking.rank(np.array([0]), nobody, 1)[0].tolist() == [[0]]
    assert ranking.rank(np.array([0]), nobody, 2)[0].tolist() == [[1, 0]]


def test_no_candidates() -> None:
    matrix = csr_array(np.eye(2, dtype=np.float32))
    ranking = ProductRanking(matrix, matrix, np.zeros(2, dtype=bool))
    columns, values = ranking.rank(np.array([0]), csr_array((1, 2), dtype=np.float32), 1)
    assert columns.tolist() == [[-1]]
    assert np.isnan(values).all()
