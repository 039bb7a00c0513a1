from __future__ import annotations

import numpy as np
import pytest

from recbias.metrics.embeddings.sets import average_favourites, compute_audience_deciles
from support.worlds.small_worlds import make_interactions


@pytest.mark.parametrize(
    ("of_a", "of_b", "decile"),
    [
        (0, 3, 0),
        (1, 9, 1),  # 0.1 belongs to 10-20%
        (3, 7, 3),  # 10 * 0.3 in floating point is 3, but 10 * 0.29... is not asked
        (5, 5, 5),
        (59, 41, 5),
        (6, 4, 6),
        (9, 1, 9),
        (4, 0, 9),  # all of it is in the last one
        (0, 0, -1),
    ],
)
def test_the_decile_of_an_audience(of_a: int, of_b: int, decile: int) -> None:
    a, b = np.arange(100), np.arange(100, 200)
    pairs = [(user, 0) for user in [*a[:of_a], *b[:of_b]]]
    train = make_interactions(pairs, n_users=250, n_items=1)
    assert compute_audience_deciles(train, a, b).tolist() == [decile]


def test_a_user_counts_once_and_others_do_not() -> None:
    # item 0: user 0 of A twice, user 1 of B, user 2 of neither
    train = make_interactions([(0, 0), (0, 0), (1, 0), (2, 0)], n_items=2)
    deciles = compute_audience_deciles(train, np.array([0]), np.array([1]))
    assert deciles.tolist() == [5, -1]


def test_the_favourites_by_hand() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [4.0, 0.0], [0.0, 8.0]])
    # user 1: item 3 (5 stars), then 0 and 2 with 4: the first of them; user 0 has nothing
    train = make_interactions([(1, 0), (1, 1), (1, 2), (1, 3)], values=[4, 1, 4, 5], n_users=3)
    averages, places = average_favourites(train, vectors, np.array([0, 1, 2]), 2)
    assert places.tolist() == [1]
    assert averages.tolist() == [[0.5, 4.0]]


def test_an_item_without_a_vector_is_passed_over() -> None:
    vectors = np.array([[np.nan, np.nan], [2.0, 0.0]])
    train = make_interactions([(0, 0), (0, 1), (1, 0)], values=[5, 1, 5])
    averages, places = average_favourites(train, vectors, np.array([1, 0]), 3)
    assert places.tolist() == [1]
    assert averages.tolist() == [[2.0, 0.0]]


def test_repeated_interactions_add_up() -> None:
    vectors = np.array([[1.0], [2.0]])
    train = make_interactions([(0, 0), (0, 1), (0, 1)])
    assert average_favourites(train, vectors, np.array([0]), 1)[0].tolist() == [[2.0]]
