from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.sparse import csr_array, random_array

from recbias.core.dataset import AnyArray, Matrix
from recbias.kernels.topk import ProductRanking, top_k
from recbias.rerankers.fair import rank_to_shares

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


@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(1, 9),
    n_columns=st.integers(1, 90),
)
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


NONE = -np.inf


def rank(
    scores: list[list[float]], groups: list[int], shares: list[float], k: int
) -> list[list[int]]:
    columns, values = rank_to_shares(np.array(scores), np.array(groups), np.array(shares), k)
    list_scores = np.take_along_axis(np.array(scores), np.maximum(columns, 0), 1)
    np.testing.assert_array_equal(
        values, np.where(columns < 0, np.nan, list_scores).astype(np.float32)
    )
    lists: list[list[int]] = columns.tolist()
    return lists


def test_ranking_matches_hand_computation() -> None:
    # shares 0.25, 0.25, 0.5; columns a0 a1 a2 (9, 8, 7), b3 b4 (6, 1), c5 c6 c7 (5, 4, 3)
    # rank 1: floors 0 0 0, ceilings 1 1 1: nobody is short, the best of all is a0
    # rank 2: floors 0 0 1, ceilings 1 1 1: c is short: c5
    # rank 3: floors 0 0 1, ceilings 1 1 2: b (0) and c (1) are below: 6 or 4: b3
    # rank 4: floors 1 1 2: c is short: c6
    # rank 5: floors 1 1 2, ceilings 2 2 3: all are below: a1 (8)
    # rank 6: floors 1 1 3: c is short: c7
    # rank 7: floors 1 1 3, ceilings 2 2 4: b (1) is below, c has none left: b4
    # rank 8: floors 2 2 4: c is short and has none left; ceilings 2 2 4: nobody: of all, a2
    scores = [[9.0, 8.0, 7.0, 6.0, 1.0, 5.0, 4.0, 3.0]]
    groups, shares = [0, 0, 0, 1, 1, 2, 2, 2], [0.25, 0.25, 0.5]
    assert rank(scores, groups, shares, 8) == [[0, 5, 3, 6, 1, 7, 4, 2]]


@pytest.mark.parametrize(
    ("scores", "groups", "shares", "k", "expected"),
    [
        # one group is the plain ranking, ties by column
        ([[1.0, 3.0, 3.0]], [0, 0, 0], [1.0], 3, [1, 2, 0]),
        # of two groups that are both short of nothing and tie, the lower column
        ([[2.0, 2.0]], [1, 0], [0.5, 0.5], 2, [0, 1]),
        # a group with a share of 0 comes last, however good
        ([[9.0, 1.0, 2.0]], [0, 1, 1], [0.0, 1.0], 3, [2, 1, 0]),
        # a group without a column leaves its places to the others
        ([[3.0, 2.0]], [0, 0], [0.5, 0.5], 2, [0, 1]),
        # nobody's columns are not listed, and a short list is padded
        ([[NONE, np.nan, 1.0]], [0, 1, 1], [0.5, 0.5], 3, [2, -1, -1]),
        ([[1.0, NONE]], [0, 0], [1.0], 4, [0, -1, -1, -1]),
        # 0.3 of rank 10 is 3 places, though the product is a little less
        ([list(range(20, 0, -1))], [0] * 15 + [1] * 5, [0.7, 0.3], 10, None),
    ],
)
def test_ranking_in_edge_cases(
    scores: list[list[float]],
    groups: list[int],
    shares: list[float],
    k: int,
    expected: list[int] | None,
) -> None:
    (ranking,) = rank(scores, groups, shares, k)
    if expected is None:
        assert np.bincount(np.array(groups)[ranking]).tolist() == [7, 3]
    else:
        assert ranking == expected


def rank_by_definition(
    scores: list[float], groups: list[int], shares: list[float], k: int
) -> list[int]:
    """The algorithm as the paper writes it down, one list at a time."""
    ranking: list[int] = []
    for rank in range(1, k + 1):
        counts = [sum(groups[column] == a for column in ranking) for a in range(len(shares))]
        left = [column for column in range(len(scores)) if column not in ranking]
        fewest = [int(np.floor(p * rank + 1e-9)) for p in shares]
        most = [int(np.ceil(p * rank - 1e-9)) for p in shares]
        short = [c for c in left if counts[groups[c]] < fewest[groups[c]]]
        below = [c for c in left if counts[groups[c]] < most[groups[c]]]
        if left:
            ranking.append(max(short or below or left, key=lambda c: (scores[c], -c)))
    return ranking + [-1] * (k - len(ranking))


@given(st.data())
def test_ranking_equals_the_published_algorithm(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    n_groups = data.draw(st.integers(1, 5))
    parts = data.draw(st.lists(st.integers(0, 4), min_size=n_groups, max_size=n_groups))
    shares = [part / (sum(parts) or 1) for part in parts]
    groups = data.draw(st.lists(st.integers(0, n_groups - 1), min_size=n, max_size=n))
    rows = data.draw(
        st.lists(st.lists(st.integers(-3, 3), min_size=n, max_size=n), min_size=1, max_size=3)
    )
    scores = [[float(score) for score in row] for row in rows]
    k = data.draw(st.integers(1, 14))
    assert rank(scores, groups, shares, k) == [
        rank_by_definition(row, groups, shares, k) for row in scores
    ]
