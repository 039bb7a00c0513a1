from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import cosine_similarity

from recbias.core.dataset import AnyArray, Matrix
from recbias.kernels import neighbours as shared_columns
from recbias.kernels import topk
from recbias.kernels.neighbours import Kind, Nearness, find_nearest, find_nearest_by
from recbias.kernels.topk import compute_gram, create_product_blocks

# rows a, b, c, d over four columns; d is of nothing
ROWS = csr_array(
    np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]], dtype=np.float32)
)


@pytest.mark.parametrize(
    ("kind", "alpha", "shrink", "of_b", "of_c"),
    [
        # a·b = 2, a·c = 1, |a|² = 4, |b|² = 2, |c|² = 1, |d|² = 0
        ("cosine", 0.5, 0, 2 / math.sqrt(8), 1 / 2),
        ("cosine", 0.5, 1, 2 / (math.sqrt(8) + 1), 1 / 3),
        ("jaccard", 0.5, 0, 2 / 4, 1 / 4),
        ("jaccard", 0.5, 2, 2 / 6, 1 / 6),
        ("dice", 0.5, 0, 4 / 6, 2 / 5),
        ("dice", 0.5, 3, 4 / 9, 2 / 8),
        ("asymmetric", 0.5, 0, 2 / math.sqrt(8), 1 / 2),
        # target a: its size counts with exponent 1 - alpha, the other's with alpha
        ("asymmetric", 1.0, 0, 2 / 2, 1 / 1),
        ("asymmetric", 0.0, 0, 2 / 4, 1 / 4),
        ("asymmetric", 0.25, 1, 2 / (4**0.75 * 2**0.25 + 1), 1 / (4**0.75 + 1)),
    ],
)
def test_similarities_match_hand_computation(
    kind: Kind, alpha: float, shrink: float, of_b: float, of_c: float
) -> None:
    similarities = find_nearest(ROWS, 3, kind=kind, alpha=alpha, shrink=shrink).toarray()
    np.testing.assert_allclose(similarities[0], [0, of_b, of_c, 0], rtol=1e-6)
    assert similarities[3].tolist() == [0, 0, 0, 0]
    assert similarities[1, 2] == 0  # b and c share nothing


def test_weighted_rows_match_hand_computation() -> None:
    # x = (3, 4), y = (4, 0): x·y = 12, |x|² = 25, |y|² = 16
    rows = csr_array(np.array([[3, 4], [4, 0]], dtype=np.float32))
    assert find_nearest(rows, 1).toarray()[0, 1] == pytest.approx(12 / 20)
    assert find_nearest(rows, 1, kind="jaccard").toarray()[0, 1] == pytest.approx(
        12 / (25 + 16 - 12)
    )
    assert find_nearest(rows, 1, kind="dice").toarray()[0, 1] == pytest.approx(24 / 41)


def test_each_row_has_its_nearest_and_ties_go_to_lower_rows() -> None:
    # everybody is most like everybody: all similarities are 1
    alike = csr_array(np.ones((4, 2), dtype=np.float32))
    neighbours = find_nearest(alike, 2)
    # target 0 keeps 1 and 2, target 1 keeps 0 and 2, the others 0 and 1
    assert neighbours.indices.reshape(4, 2).tolist() == [[1, 2], [0, 2], [0, 1], [0, 1]]


def compute_all_pairs(kind: Kind, matrix: Matrix) -> AnyArray:
    """The second opinion: scikit-learn, on the whole matrix."""
    dense = matrix.toarray()
    if kind == "cosine":
        return np.asarray(cosine_similarity(dense))
    return np.asarray(1 - pairwise_distances(dense > 0, metric=kind))


@pytest.mark.parametrize("kind", ["cosine", "jaccard", "dice"])
@pytest.mark.parametrize("shape", [(700, 90), (90, 700)])
def test_similarities_agree_with_scikit_learn(
    rng: np.random.Generator, kind: Kind, shape: tuple[int, int]
) -> None:
    matrix = csr_array((rng.random(shape) < 0.1).astype(np.float32))
    expected = compute_all_pairs(kind, matrix)
    np.fill_diagonal(expected, 0)
    similarities = find_nearest(matrix, shape[0], kind=kind).toarray()
    np.testing.assert_allclose(similarities, expected, atol=1e-6)
    few = find_nearest(matrix, 5, kind=kind).toarray()
    fifth = -np.sort(-similarities, axis=1)[:, 4:5]
    assert ((few > 0).sum(axis=1) <= 5).all()
    assert np.array_equal(few[similarities > fifth], similarities[similarities > fifth])


@pytest.mark.parametrize(
    ("kind", "alpha", "shrink"),
    [
        *[("cosine", 0.5, 0.0), ("cosine", 0.5, 3.0), ("asymmetric", 0.2, 1.0)],
        *[("asymmetric", 1.0, 0.0), ("asymmetric", 0.0, 0.0)],
        *[("jaccard", 0.5, 0.0), ("jaccard", 0.5, 2.0), ("dice", 0.5, 0.0), ("dice", 0.5, 2.0)],
    ],
)
def test_counted_columns_give_the_same_neighbours_to_the_last_bit(
    monkeypatch: pytest.MonkeyPatch, kind: Kind, alpha: float, shrink: float
) -> None:
    # several tiles; rows and columns of very different sizes, some of them empty; many ties
    monkeypatch.setattr(shared_columns, "TILES", range(128, 129))
    rng = np.random.default_rng(3)
    shares = np.minimum(rng.lognormal(-4, 1.5, 900)[:, None] * rng.lognormal(0, 1, 120), 1)
    matrix = csr_array((rng.random((900, 120)) < shares).astype(np.float32))
    for neighbors in (1, 30, 10**6):
        found = []
        for least in (0, np.inf):
            monkeypatch.setattr(shared_columns, "MIN_OPERATIONS", least)
            found.append(find_nearest(matrix, neighbors, kind=kind, alpha=alpha, shrink=shrink))
        assert found[0].nnz > 0
        for name in ("data", "indices", "indptr"):
            assert np.array_equal(getattr(found[0], name), getattr(found[1], name))


KINDS = get_args(Nearness)

# a, b, c over three columns; d is of nothing
DISTANCES_ROWS = csr_array(
    np.array([[1, 1, 0], [3, 1, 0], [0, 0, 2], [0, 0, 0]], dtype=np.float32)
)


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
    nearness = find_nearest_by(kind, DISTANCES_ROWS, 3).toarray()
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


@pytest.mark.parametrize("cost", [0, 10**9], ids=["sparse way", "dense way"])
@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (1, 5)])
def test_dense_and_sparse_products_are_equal(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, shape: tuple[int, int], cost: int
) -> None:
    monkeypatch.setattr(topk, "_SPARSE_COST", cost)
    dense = rng.random(shape, dtype=np.float32) * (rng.random(shape) < 0.2)
    matrix = csr_array(dense)
    np.testing.assert_allclose(compute_gram(matrix), dense @ dense.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        create_product_blocks(matrix)(0, 1), dense[:1] @ dense.T, rtol=1e-5, atol=1e-6
    )
