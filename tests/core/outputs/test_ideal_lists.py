from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from recbias.core.dataset import Odds
from recbias.core.evidence import rank_ideal_lists, weigh_lists

ALL = np.ones(4, dtype=bool)


def make_histories(rows: list[list[int]], n_items: int) -> Any:
    dense = np.zeros((len(rows), n_items))
    for row, items in enumerate(rows):
        dense[row, items] = 1.0
    return csr_array(dense)


def test_hand_worked_lists() -> None:
    # types 0 and 1 like the items in the orders 3 2 1 0 and 0 1 2 3; user 0 is of type 1 and has
    # had item 0; user 1 is of type 0 and item 2 is no candidate; the third query is no user
    odds = Odds(np.array([[0.0, 1.0, 2.0, 3.0], [3.0, 2.0, 1.0, 0.0]]), np.array([1, 0]))
    users = np.array([0, 1, -1], dtype=np.int32)
    histories = make_histories([[0], [], []], 4)
    candidates = np.array([True, True, False, True])
    lists = rank_ideal_lists(odds, users, histories, candidates, 3)
    assert lists.tolist() == [[1, 3, -1], [3, 1, 0], [-1, -1, -1]]
    # relative to the best item of each user, e^-1 and e^-3; e^0, e^-2 and e^-3
    np.testing.assert_allclose(
        weigh_lists(odds, users, lists),
        [
            [np.exp(-1.0), np.exp(-3.0), 0.0],
            [1.0, np.exp(-2.0), np.exp(-3.0)],
            [np.nan, np.nan, np.nan],
        ],
    )


def test_ties_are_in_the_order_of_the_items_and_lists_are_no_longer_than_the_catalogue() -> None:
    odds, users = Odds(np.zeros((1, 4)), np.array([0])), np.array([0], dtype=np.int32)
    lists = rank_ideal_lists(odds, users, make_histories([[1]], 4), ALL, 6)
    assert lists.tolist() == [[0, 2, 3, -1, -1, -1]]


@given(seed=st.integers(0, 10**6), k=st.integers(1, 6))
def test_lists_are_those_of_a_sort_of_every_user_by_itself(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    n_users, n_items = 5, 6
    odds = Odds(rng.integers(0, 4, (3, n_items)).astype(float), rng.integers(0, 3, n_users))
    had = rng.random((n_users, n_items)) < 0.4
    candidates = rng.random(n_items) < 0.8
    users = rng.integers(-1, n_users, 7).astype(np.int32)
    lists = rank_ideal_lists(odds, users, csr_array(had[users].astype(float)), candidates, k)
    for user, row in zip(users, lists.tolist(), strict=True):
        free = [i for i in range(n_items) if user >= 0 and candidates[i] and not had[user, i]]
        likes = odds.by_type[odds.types[user]]
        best = sorted(free, key=lambda item: (-likes[item], item))[:k]
        assert row == best + [-1] * (k - len(best))
