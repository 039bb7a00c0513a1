"""Ranks of candidates in replies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.models.lm_rerank import rank_candidates
from support.worlds.film_worlds import TITLES, write_list

FILMS = [("Heat", 1995), ("Alien", 1979), ("Jaws", 1975), ("Ran", 1985)]
SHOWN = ["Heat (1995)", "Alien (1979)", "Jaws (1975)", "Ran (1985)"]


def rank(*titles: str) -> list[float]:
    (ranks,) = rank_candidates([write_list(titles)], FILMS, 90.0).ranks.tolist()
    return list(ranks)


def test_candidates_have_the_rank_of_the_reply() -> None:
    assert rank(SHOWN[2], SHOWN[0], SHOWN[3], SHOWN[1]) == [2, 4, 1, 3]


def test_candidates_that_are_left_out_follow_in_their_own_order() -> None:
    assert rank(SHOWN[3]) == [2, 3, 4, 1]


def test_a_title_of_two_candidates_is_the_better_one() -> None:
    films = [("Ran", 1985), ("Hamlet", 1996), ("Hamlet", 1996)]
    ranked = rank_candidates([write_list(["Hamlet (1996)"])], films, None)
    assert ranked.ranks.tolist() == [[2, 1, 3]]


@pytest.mark.parametrize("reply", ["", "I am sorry, I cannot do that.", "1. Casino (1995)"])
def test_a_reply_that_names_no_candidate_is_no_ranking(reply: str) -> None:
    ranked = rank_candidates([reply, write_list(SHOWN[::-1])], FILMS, 90.0)
    assert ranked.is_read.tolist() == [False, True]
    assert np.isnan(ranked.ranks[0]).all()
    order, means = ranked.order_candidates()
    assert order.tolist() == [3, 2, 1, 0]
    assert means.tolist() == [1, 2, 3, 4]


@given(st.lists(st.permutations(range(6)), min_size=1, max_size=4), st.integers(0, 6))
def test_ranks_are_a_permutation_that_begins_with_the_named_candidates(
    orders: list[list[int]], n_named: int
) -> None:
    films = [(title, 1970 + row) for row, title in enumerate(TITLES[:6])]
    replies = [
        write_list(f"{films[row][0]} ({films[row][1]})" for row in order[:n_named])
        for order in orders
    ]
    ranks = rank_candidates(replies, films, None).ranks
    for order, row in zip(orders, ranks, strict=True):
        if n_named == 0:
            assert np.isnan(row).all()
        else:
            rest = sorted(order[n_named:])
            assert np.argsort(row).tolist() == [*order[:n_named], *rest]
