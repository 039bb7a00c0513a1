from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from recbias.core.dataset import AnyArray, Codes, TrainingData
from recbias.core.plugins import FittedRecommender
from recbias.kernels import topk
from recbias.models import ranking
from recbias.models import ranking as product_lists
from recbias.models.knn import ItemKNN, UserKNN
from recbias.models.linear import EASE
from recbias.models.ranking import (
    rank_by_product,
    rank_by_scores,
    rank_rows,
    rank_tiles,
)
from support.models.recommending import make_random_data, query_all_users
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

SCORES = np.array([[5, 4, 3, 2], [1, 1, 1, 1], [0, np.nan, 2, -np.inf]], dtype=np.float32)


def create_data() -> TrainingData:
    """u0 has i0, u1 has i0 and i2, u2 has i0; u3 and i3 have no training row."""
    return TrainingData(make_interactions([(0, 0), (1, 0), (1, 2), (2, 1)], n_users=4, n_items=4))


def look_up_scores(users: Codes) -> AnyArray:
    return SCORES[users]


def test_history_noncandidates_and_nan_are_excluded() -> None:
    lists = rank_by_scores(look_up_scores, make_queries(["a", "b", "c"]), 3, create_data())
    # u0: neither i0 (history) nor i3 (no candidate): i1 with 4, i2 with 3;  u1: i1;  u2: i2 and i0
    assert lists.items.tolist() == [[1, 2, -1], [1, -1, -1], [2, 0, -1]]
    expected = [[4, 3, np.nan], [1, np.nan, np.nan], [2, 0, np.nan]]
    np.testing.assert_array_equal(lists.scores, np.array(expected, dtype=np.float32))


def test_lists_do_not_depend_on_memory_limit_or_order(rng: np.random.Generator) -> None:
    data = make_random_data(rng)
    scores = rng.random((60, 45), dtype=np.float32)
    lists = rank_by_scores(lambda users: scores[users], query_all_users(data), 7, data)
    bounded = rank_by_scores(
        lambda users: scores[users], query_all_users(data), 7, data, memory_limit=1
    )
    assert np.array_equal(lists.items, bounded.items)
    backwards = query_all_users(data, list(range(60))[::-1])
    reversed_lists = rank_by_scores(lambda users: scores[users], backwards, 7, data)
    assert np.array_equal(lists.items[::-1], reversed_lists.items)


@pytest.mark.parametrize("limit", [0, 2**28], ids=["sparse", "dense"])
def test_sparse_and_dense_products_give_the_same_lists(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, limit: int
) -> None:
    monkeypatch.setattr(product_lists, "DENSE_LIMIT", limit)
    data = make_random_data(rng)
    weights = rng.integers(0, 3, (45, 45)).astype(np.float32)
    expected = rank_by_scores(
        lambda users: data.train.binary[users].toarray() @ weights, query_all_users(data), 5, data
    )
    for right in (weights, csr_array(weights)):
        lists = rank_by_product(data.train.binary, right, query_all_users(data), 5, data)
        assert np.array_equal(lists.items, expected.items)
        np.testing.assert_array_equal(lists.scores, expected.scores)


@pytest.mark.parametrize("k", [1, 7, 60])
def test_compiled_loops_give_the_same_lists(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, k: int
) -> None:
    data = make_random_data(rng)
    queries = query_all_users(data)
    scores = rng.integers(-3, 4, (60, 45)).astype(np.float32)  # many ties
    scores[rng.random(scores.shape) < 0.1] = np.nan
    scores[rng.random(scores.shape) < 0.1] = -np.inf
    models: list[FittedRecommender] = [
        ItemKNN(neighbors=5).fit(data, rng),
        UserKNN(neighbors=5).fit(data, rng),
        EASE(reg=5.0).fit(data, rng),
    ]
    monkeypatch.setattr(topk, "DENSE_TILE", 7)
    found = []
    for least in (0, np.inf):
        monkeypatch.setattr(topk, "MIN_SCORES", least)
        lists = [rank_by_scores(lambda users: scores[users], queries, k, data)]
        found.append([*lists, *(model.recommend(queries, k, data) for model in models)])
    for compiled, plain in zip(*found, strict=True):
        assert np.array_equal(compiled.items, plain.items)
        assert np.array_equal(compiled.scores, plain.scores, equal_nan=True)


@pytest.mark.parametrize("k", [1, 7, 60])
def test_tiles_give_the_same_lists(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, k: int
) -> None:
    data = make_random_data(rng)
    scores = rng.integers(-3, 4, (60, 45)).astype(np.float32)  # many ties
    scores[rng.random(scores.shape) < 0.1] = np.nan
    scores[rng.random(scores.shape) < 0.1] = -np.inf
    users = np.arange(-1, 59, dtype=np.int32)
    plain = rank_rows(lambda rows: scores[rows], users, k, data)
    for n_rows, n_items in ((60, 45), (7, 4), (1, 1), (128, 2048)):
        monkeypatch.setattr(ranking, "TILE_ROWS", n_rows)
        monkeypatch.setattr(ranking, "TILE_ITEMS", n_items)
        tiles = rank_tiles(
            lambda rows, first, last: scores[rows, first:last].copy(), users, k, data
        )
        assert np.array_equal(tiles.items, plain.items)
        assert np.array_equal(tiles.scores, plain.scores, equal_nan=True)
