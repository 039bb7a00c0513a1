"""Cases worked by hand, and input that does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import OutOfRange, UnknownColumn, UserError
from recbias.core.plugins import Candidates
from recbias.rerankers.fair import FAIR, DetGreedy
from recbias.rerankers.relevance import (
    CalibratedPopularity,
    Calibration,
    group_by_popularity,
)
from support.worlds.candidate_worlds import make_candidates

GENRES = ("a", "a", "a", "b", "b", None, "a|b", "c", "c", "a")


def select(reranker: Any, candidates: Candidates, k: int) -> list[list[int]]:
    """Return the items that a re-ranker selects, -1 for none."""
    positions = reranker.rerank(candidates, k)
    items = np.take_along_axis(candidates.lists.items, np.maximum(positions, 0), axis=1)
    lists: list[list[int]] = np.where(positions < 0, -1, items).tolist()
    return lists


def test_a_query_without_a_history_with_values_keeps_its_list() -> None:
    lists = [[0, 1, 3], [0, 1, 3], [3, 0, 1]]
    candidates = make_candidates(lists, [[], [5], [9]], genres=GENRES)
    with collect_warnings() as warnings:
        found = select(Calibration(attribute="genres", strength=1), candidates, 2)
    assert found == [[0, 1], [0, 1], [0, 1]]
    assert warnings == ["2 of 3 queries have no history with a value: not re-ranked"]


def test_groups_of_popularity_hold_their_shares() -> None:
    # counts 4, 3, 2, 1 of items 0 to 3: the head at 0.4 is item 0, the tail at 0.1 item 3
    histories = [[0, 1, 2, 3], [0, 1, 2], [0, 1], [0]]
    data = make_candidates([[0]] * 4, histories, genres=["a"] * 4).data
    groups = group_by_popularity(data, 0.4, 0.1)
    assert groups.names == ("head", "middle", "tail")
    assert groups.codes[:-1, 0].tolist() == [0, 1, 1, 2]
    # user 3 knows popular items only
    candidates = make_candidates([[3, 1, 0]] * 4, histories, genres=["a"] * 4)
    listed = select(CalibratedPopularity(strength=1, head=0.4, tail=0.1), candidates, 1)
    assert listed[3] == [0]


def test_fa_ir_moves_protected_items_up_where_a_test_would_reject() -> None:
    candidates = make_candidates([[0, 1, 2, 9, 3, 4]], [[8]], genres=GENRES)
    fair = FAIR(attribute="genres", protected="b", share=0.5, adjust=False)
    # without adjustment m = 0, 0, 0, 1, 1, 1 for p = 0.5 and alpha = 0.1
    assert select(fair, candidates, 6) == [[0, 1, 2, 3, 9, 4]]
    # a fair list has none in its first four with the probability 1/16, which is below 0.1 already
    assert select(replace(fair, adjust=True), candidates, 6) == [[0, 1, 2, 3, 9, 4]]
    # at 0.05 the first is due at rank 5, as four in a row without one have 0.0625
    assert select(replace(fair, alpha=0.05), candidates, 5) == [[0, 1, 2, 9, 3]]


def test_fa_ir_counts_lists_with_too_few_protected_candidates() -> None:
    candidates = make_candidates([[0, 1, 2, 9], [0, 1, 3, 4]], [[8], [8]], genres=GENRES)
    with collect_warnings() as warnings:
        lists = select(FAIR(attribute="genres", protected="b", share=0.5), candidates, 4)
    assert lists[0] == [0, 1, 2, 9]
    assert warnings == ["1 of 2 queries have too few protected candidates"]


PRICES = ("1", "1", "1", "2", None, "2")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ({"1": 0.0, "2": 1.0}, [3, 0, 1, 2, 4]),
        ({"1": 0.5, "2": 0.5}, [0, 3, 1, 2, 4]),
        # what is left of 1 goes to price 1 and no price as 3 : 1, here 0.375 and 0.125; at rank 4
        # price 1 has its ceil(1.5) places already, price 2 has no item left, and 4 no price
        ({"2": 0.5}, [0, 3, 1, 4, 2]),
        ({"1": 0.5, "2": 0.0}, [0, 4, 1, 2, 3]),
        # 3/5 of the items with training rows cost 1, 1/5 cost 2, 1/5 have no price
        ("catalogue", [0, 1, 3, 2, 4]),
    ],
)
def test_det_greedy_reaches_target_shares(
    target: Literal["catalogue"] | Mapping[str, float], expected: list[int]
) -> None:
    candidates = make_candidates([[0, 1, 2, 3, 4]], [[0, 1, 2, 3, 4]], price=PRICES)
    assert select(DetGreedy(attribute="price", target=target), candidates, 5) == [expected]


@pytest.mark.parametrize(
    ("reranker", "kind", "where"),
    [
        (Calibration(attribute="genre"), UnknownColumn, "attribute"),
        (FAIR(attribute="genres", protected="z"), UnknownColumn, "protected"),
        (DetGreedy(attribute="genres"), UnknownColumn, "attribute"),
        (DetGreedy(attribute="price", target={"5": 0.1}), UnknownColumn, "target"),
        (DetGreedy(attribute="full", target={"1": 0.6, "2": 0.3}), OutOfRange, "target"),
    ],
)
def test_settings_that_do_not_fit_the_items_are_errors_before_training(
    reranker: Any, kind: type[UserError], where: str
) -> None:
    columns: dict[str, Any] = {
        "genres": GENRES[:7],
        "blank": [None] * 7,
        "price": (*PRICES, None),
        "full": ["1", "2"] * 3 + ["1"],
    }
    data = make_candidates([[0]], [[0, 1]], **columns).data
    with pytest.raises(kind) as caught:
        reranker.check_data(data)
    assert caught.value.where == where
    assert caught.value.remedy


def test_scores_are_scaled_and_ranks_stand_in_for_missing_ones() -> None:
    lists = [[0, 1, 2], [0, 1, -1], [0, 1, 2]]
    scores = [[5.0, 4.0, 1.0], [2.0, 2.0, 0.0], [np.nan] * 3]
    candidates = make_candidates(lists, [[3]] * 3, scores)
    np.testing.assert_allclose(
        candidates.scores, [[1, 0.75, 0], [1, 1, np.nan], [1, 2 / 3, 1 / 3]], rtol=1e-6
    )
