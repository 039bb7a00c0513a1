from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.kernels.topk import top_k
from recbias.rerankers.fair import rank_to_shares

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


def test_empty_scores_and_lists() -> None:
    nothing, _ = rank_to_shares(np.empty((0, 3)), np.array([0, 0, 1]), np.array([0.5, 0.5]), 2)
    assert nothing.shape == (0, 2)
    none, _ = rank_to_shares(np.ones((2, 3)), np.array([0, 0, 1]), np.array([0.5, 0.5]), 0)
    assert none.shape == (2, 0)


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


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_up_to_three_groups_reach_their_shares_at_every_rank(seed: int, n_groups: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(n_groups))
    groups = np.repeat(np.arange(n_groups), 20).astype(np.int32)
    columns, _ = rank_to_shares(rng.normal(size=(4, groups.size)), groups, shares, 20)
    for a, share in enumerate(shares):
        counts = np.cumsum(groups[columns] == a, axis=1)
        assert (counts >= np.floor(share * np.arange(1, 21))).all()


def test_single_group_is_ranked_as_by_top_k() -> None:
    scores = np.random.default_rng(1).integers(0, 5, (6, 30)).astype(float)
    columns, values = rank_to_shares(scores, np.zeros(30, dtype=np.int32), np.ones(1), 8)
    expected, best = top_k(scores, 8)
    np.testing.assert_array_equal(columns, expected)
    np.testing.assert_array_equal(values, best)
