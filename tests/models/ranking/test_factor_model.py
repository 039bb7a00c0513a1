from __future__ import annotations

import tracemalloc
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.dataset import Interactions, TrainingData, Vocabulary
from recbias.models.fitted import FittedFactors, score_block
from recbias.models.gpu import Ranking
from recbias.models.ranking import BYTES_PER_SCORE, RANKING_LIMIT
from support.models.recommending import query_all_users
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

USERS = np.array([[1, 0], [2, 1], [np.nan, np.nan]], dtype=np.float32)
ITEMS = np.array([[1, 1], [0, 3], [2, 0], [np.nan, 0]], dtype=np.float32)
BIAS = np.array([0, 0, -4, 0], dtype=np.float32)


def create_data() -> TrainingData:
    return TrainingData(make_interactions([(0, 3), (1, 0), (1, 1), (2, 2)], n_users=3, n_items=4))


@pytest.mark.parametrize(
    ("bias", "items", "scores"),
    [
        # u0 = (1, 0): i0 1, i1 0, i2 2;  u1 = (2, 1) has i0 and i1: i2 4
        (None, [[2, 0, 1], [2, -1, -1], [-1, -1, -1]], [[2, 1, 0], [4, np.nan, np.nan]]),
        (BIAS, [[0, 1, 2], [2, -1, -1], [-1, -1, -1]], [[1, 0, -2], [0, np.nan, np.nan]]),
    ],
)
def test_scores_are_dot_products_and_nan_vectors_have_no_score(
    bias: np.ndarray | None, items: list[list[int]], scores: list[list[float]]
) -> None:
    lists = FittedFactors(USERS, ITEMS, bias).recommend(
        make_queries(["a", "b", "c"]), 3, create_data()
    )
    assert lists.items.tolist() == items
    np.testing.assert_array_equal(lists.scores[:2], np.array(scores, dtype=np.float32))


@pytest.fixture(scope="module")
def large_data() -> TrainingData:
    """A million users and a hundred thousand items; every tenth user has an item."""
    vocabularies = [
        Vocabulary(np.arange(n).astype(str).astype(object)) for n in (1_000_000, 100_000)
    ]
    items = np.arange(100_000, dtype=np.int32)
    return TrainingData(
        Interactions(items * 10, items, np.ones(items.size, "f4"), None, *vocabularies)
    )


@pytest.mark.parametrize("spread", [1, 0], ids=["apart", "all equal"])
@pytest.mark.parametrize("kind", ["arrays", "tensors"])
def test_scores_are_computed_in_blocks(
    large_data: TrainingData, rng: np.random.Generator, spread: int, kind: str
) -> None:
    """All scores would take 400 GB, those of the queries 160 MB."""
    sides = large_data.train.n_users, large_data.train.n_items
    p, q = (spread * rng.standard_normal((n_rows, 4), dtype=np.float32) for n_rows in sides)
    fitted, queries = (
        FittedFactors(p, q),
        query_all_users(large_data, list(range(0, 1_000_000, 2_500))),
    )
    max_users = 0

    def record_block(state: Mapping[str, Any], users: Any) -> Any:
        nonlocal max_users
        max_users = max(max_users, len(users))
        return score_block(state, users)

    ranking = Ranking(record_block, fitted.state(), "cpu")
    fitted.recommend(queries.take(np.arange(1)), 10, large_data)  # the training rows as a matrix
    tracemalloc.start()
    if kind == "arrays":
        lists = ranking.lists(queries, 10, large_data)
    else:
        lists = ranking.rank_on_device(torch.device("cpu"), queries, 10, large_data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < RANKING_LIMIT
    assert 0 < max_users * large_data.train.n_items * BYTES_PER_SCORE <= RANKING_LIMIT
    scores = q @ p[2_500]
    scores[250] = -np.inf
    first = np.argsort(-scores, kind="stable")[:10]
    assert lists.items[1].tolist() == first.tolist()
