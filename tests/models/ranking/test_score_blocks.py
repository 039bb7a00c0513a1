from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import BrokenContract
from recbias.core.stage_context import collect_warnings
from recbias.models.ranking import score_blocks as ranking
from recbias.models.ranking.score_blocks import (
    own_cells,
    rank_by_product,
    rank_by_scores,
    rank_rows,
)
from support.asked import asked
from support.recommending import everybody, random_world
from support.worlds import rows

SCORES = np.array([[5, 4, 3, 2], [1, 1, 1, 1], [0, np.nan, 2, -np.inf]], dtype=np.float32)


def world() -> TrainingData:
    """u0 has i0, u1 has i0 and i2, u2 has i0; u3 and i3 have nobody."""
    return TrainingData(rows([(0, 0), (1, 0), (1, 2), (2, 1)], n_users=4, n_items=4))


def scores_of(users: Codes) -> AnyArray:
    return SCORES[users]


def test_own_items_items_of_nobody_and_nan_are_left_out() -> None:
    lists = rank_by_scores(scores_of, asked(["a", "b", "c"]), 3, world())
    # u0: not i0 (own) nor i3 (no candidate): i1 with 4, i2 with 3;  u1: i1;  u2: i2 and i0
    assert lists.items.tolist() == [[1, 2, -1], [1, -1, -1], [2, 0, -1]]
    expected = [[4, 3, np.nan], [1, np.nan, np.nan], [2, 0, np.nan]]
    np.testing.assert_array_equal(lists.scores, np.array(expected, dtype=np.float32))


def test_queries_without_history_have_empty_lists_that_are_counted() -> None:
    with collect_warnings() as notes:
        lists = rank_by_scores(scores_of, asked(["d", "a", "?"], [3, 0, -1]), 2, world())
    assert lists.items.tolist() == [[-1, -1], [1, 2], [-1, -1]]
    assert np.isnan(lists.scores[[0, 2]]).all()
    assert notes == ["2 of 3 queries have no training history: empty lists"]


def test_nobody_is_asked() -> None:
    lists = rank_by_scores(scores_of, asked([]), 5, world())
    assert lists.items.shape == lists.scores.shape == (0, 5)


def test_ties_go_to_the_lower_code() -> None:
    data = TrainingData(rows([(0, 2), (1, 0), (1, 1), (1, 3), (1, 4)]))
    lists = rank_by_scores(lambda users: np.ones((users.size, 5)), asked(["a"]), 9, data)
    assert lists.items.tolist() == [[0, 1, 3, 4, -1, -1, -1, -1, -1]]


def test_memory_and_company_change_no_list(rng: np.random.Generator) -> None:
    data = random_world(rng)
    scores = rng.random((60, 45), dtype=np.float32)
    whole = rank_by_scores(lambda users: scores[users], everybody(data), 7, data)
    bounded = rank_by_scores(lambda users: scores[users], everybody(data), 7, data, memory_limit=1)
    assert np.array_equal(whole.items, bounded.items)
    backwards = everybody(data, list(range(60))[::-1])
    turned = rank_by_scores(lambda users: scores[users], backwards, 7, data)
    assert np.array_equal(whole.items[::-1], turned.items)


def test_scores_may_be_read_only_or_double_and_are_copied_then() -> None:
    fixed = SCORES[:2].astype(np.float64)
    fixed.flags.writeable = False
    lists = rank_by_scores(lambda users: fixed, asked(["a", "b"]), 1, world())
    assert lists.items.tolist() == [[1], [1]]
    assert fixed[0, 0] == 5


@pytest.mark.parametrize("shape", [(1, 4), (2, 3), (2, 5)])
def test_scores_of_another_shape_break_the_contract(shape: tuple[int, int]) -> None:
    with pytest.raises(BrokenContract, match=r"scores have shape \(\d, \d\) where \(2, 4\)"):
        rank_by_scores(lambda users: np.zeros(shape), asked(["a", "b"]), 1, world())


def test_rows_may_be_of_nobody() -> None:
    users = np.array([-1, 1], dtype=np.int32)
    lists = rank_rows(lambda places: SCORES[places], users, 4, world())
    assert lists.items.tolist() == [[0, 1, 2, -1], [1, -1, -1, -1]]


@pytest.mark.parametrize("limit", [0, 2**28], ids=["sparse", "dense"])
def test_a_product_is_ranked_the_same_either_way(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, limit: int
) -> None:
    monkeypatch.setattr(ranking, "DENSE_LIMIT", limit)
    data = random_world(rng)
    weights = rng.integers(0, 3, (45, 45)).astype(np.float32)
    expected = rank_by_scores(
        lambda users: data.train.binary[users].toarray() @ weights, everybody(data), 5, data
    )
    for right in (weights, csr_array(weights)):
        found = rank_by_product(data.train.binary, right, everybody(data), 5, data)
        assert np.array_equal(found.items, expected.items)
        np.testing.assert_array_equal(found.scores, expected.scores)


def test_cells_of_a_block_are_its_users_own_items() -> None:
    rows_, items = own_cells(world().train.binary, np.array([1, -1, 0], dtype=np.int32))
    assert [rows_.tolist(), items.tolist()] == [[0, 0, 2], [0, 2, 0]]
