from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array
from sklearn.metrics import pairwise_distances

from recbias.core.dataset import AnyArray, Matrix
from recbias.kernels.neighbours import Nearness, find_nearest_by, select_neighbors

KINDS = get_args(Nearness)

# a, b, c over three columns; d is of nothing
ROWS = csr_array(np.array([[1, 1, 0], [3, 1, 0], [0, 0, 2], [0, 0, 0]], dtype=np.float32))


@pytest.mark.parametrize(
    ("kind", "a_b", "a_c"),
    [
        ("dot", 4.0, 0.0),  # 1·3 + 1·1
        ("euclidean", 1 / 3, 1 / (1 + math.sqrt(6))),  # |(-2, 0, 0)| = 2, |(1, 1, -2)| = √6
        ("braycurtis", 1 / (1 + 2 / 6), 1 / 2),  # 2 apart of 2 + 4 together; all apart
        ("chebyshev", 1 / 3, 1 / 3),  # 2 and 2
    ],
)
def test_nearness_matches_hand_computation(kind: Nearness, a_b: float, a_c: float) -> None:
    nearness = find_nearest_by(kind, ROWS, 3).toarray()
    np.testing.assert_allclose(nearness[0], [0, a_b, a_c, 0], rtol=1e-6)
    np.testing.assert_allclose(nearness, nearness.T, rtol=1e-6)
    assert not nearness[3].any()  # of nothing: no neighbours, and nobody's
    assert not nearness[:, 3].any()


def sample_rows(seed: int, n: int = 30, m: int = 12) -> Matrix:
    rng = np.random.default_rng(seed)
    rows = csr_array(random_array((n, m), density=0.3, rng=rng)) * 4
    return csr_array(np.round(rows.toarray()))


def compute_with_sklearn(kind: Nearness, matrix: AnyArray) -> AnyArray:
    if kind == "dot":
        near: AnyArray = matrix @ matrix.T
    else:
        together = np.abs(matrix[:, None] + matrix).sum(axis=2)
        apart = pairwise_distances(matrix, metric=kind)  # NaN where both are of nothing
        near = 1 / (1 + np.where(together > 0, apart, 0))
    nothing = ~matrix.any(axis=1)
    near[nothing] = near[:, nothing] = 0
    np.fill_diagonal(near, 0)
    return near


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_nearness_agrees_with_scikit_learn(kind: Nearness, seed: int) -> None:
    matrix = sample_rows(seed)
    nearness = find_nearest_by(kind, matrix, 30).toarray()
    # float32: a distance of 0 between rows of squares about 40 is off by √(40 · 1e-7)
    np.testing.assert_allclose(nearness, compute_with_sklearn(kind, matrix.toarray()), atol=5e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_memory_limit_does_not_change_results(kind: Nearness) -> None:
    matrix = sample_rows(7, n=40)
    whole, little = (
        find_nearest_by(kind, matrix, 5, memory_limit=limit) for limit in (2**27, 4000)
    )
    np.testing.assert_array_equal(whole.indices, little.indices)
    np.testing.assert_allclose(whole.data, little.data, rtol=1e-6)


@given(seed=st.integers(0, 1000), kind=st.sampled_from(KINDS), neighbors=st.integers(1, 40))
def test_nearest_other_rows_are_selected(seed: int, kind: Nearness, neighbors: int) -> None:
    matrix = sample_rows(seed, n=12, m=5)
    every = find_nearest_by(kind, matrix, 12).toarray()
    neighbours = find_nearest_by(kind, matrix, neighbors)
    nearness = neighbours.toarray()
    assert not nearness.diagonal().any()
    assert np.diff(neighbours.indptr).max() <= neighbors
    best = -np.sort(-every, axis=1)[:, : min(neighbors, 12)]
    np.testing.assert_array_equal(-np.sort(-nearness, axis=1)[:, : best.shape[1]], best)


@pytest.mark.parametrize("kind", ["braycurtis", "chebyshev", "euclidean"])
def test_equal_rows_have_maximum_nearness_and_ties_go_to_lower_rows(kind: Nearness) -> None:
    alike = csr_array(np.tile(np.array([[1, 2]], dtype=np.float32), (4, 1)))
    neighbours = find_nearest_by(kind, alike, 2)
    assert neighbours.indices.reshape(4, 2).tolist() == [[1, 2], [0, 2], [0, 1], [0, 1]]
    assert neighbours.data.tolist() == [1] * 8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1)])
def test_too_few_rows_have_no_neighbours(kind: Nearness, shape: tuple[int, int]) -> None:
    neighbours = find_nearest_by(kind, csr_array(np.ones(shape, dtype=np.float32)), 2)
    assert neighbours.shape == (shape[0], shape[0])
    assert neighbours.nnz == 0


def test_blocks_are_concatenated_in_order() -> None:
    # row r is as near to column c as c + 1 is large, but never to itself; -5 is not kept
    values = np.array([[1, 2, -5], [1, 2, -5], [1, 2, -5]], dtype=np.float32)
    selected = select_neighbors(lambda start, stop: values[start:stop].copy(), 3, 1, size=2)
    assert selected.toarray().tolist() == [[0, 2, 0], [1, 0, 0], [0, 2, 0]]
