from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from recbias.core.dataset import Split, TrainingData
from recbias.kernels import topk
from recbias.models.baselines import MostPop, Random
from support.models.recommending import compute_mean_ndcg, make_random_data, query_all_users
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions


def recommend_at_random(data: TrainingData, seed: int, k: int = 5) -> np.ndarray:
    fitted = Random().fit(data, np.random.default_rng(seed))
    return fitted.recommend(query_all_users(data), k, data).items


def test_items_are_ordered_by_popularity_and_ties_by_code() -> None:
    # item 0: 1 user, item 1: 3, item 2: 2, item 3: 2, item 4: nobody
    pairs = [(0, 0), (0, 1), (1, 1), (2, 1), (1, 2), (2, 2), (3, 3), (2, 3)]
    data = TrainingData(make_interactions(pairs, n_users=5, n_items=5))
    lists = MostPop().fit(data, np.random.default_rng(1)).recommend(query_all_users(data), 4, data)
    assert lists.items.tolist() == [
        [2, 3, -1, -1],
        [3, 0, -1, -1],
        [0, -1, -1, -1],
        [1, 2, 0, -1],
        [1, 2, 3, 0],
    ]
    np.testing.assert_array_equal(lists.scores[4], np.array([3, 2, 2, 1], dtype=np.float32))


def test_unseen_items_are_equally_likely() -> None:
    data = TrainingData(make_interactions([(user, user % 2) for user in range(4_000)], n_items=12))
    one_user_data = TrainingData(
        make_interactions([(0, item) for item in range(12)], n_users=1, n_items=12)
    )
    fitted = Random().fit(data, np.random.default_rng(3))
    users = make_queries([f"u{user}" for user in range(4_000)], [-1] * 4_000)
    top_items = fitted.recommend(users, 1, one_user_data).items[:, 0]
    assert chisquare(np.bincount(top_items, minlength=12)).pvalue > 0.001
    scores = fitted.recommend(users, 12, one_user_data).scores
    assert kstest(scores.ravel(), "uniform").pvalue > 0.001


def test_lists_differ_between_users_and_seeds() -> None:
    data = make_random_data(np.random.default_rng(5), 200, 60)
    lists = recommend_at_random(data, 1)
    assert len({tuple(row) for row in lists.tolist()}) > 190
    assert (lists == recommend_at_random(data, 2)).mean() < 0.1
    assert np.array_equal(lists, recommend_at_random(data, 1))


@pytest.mark.real_data
def test_most_popular_on_movielens_is_close_to_the_published_value(movielens: Split) -> None:
    data = movielens.training_data()
    lists = (
        MostPop().fit(data, np.random.default_rng(1)).recommend(query_all_users(data), 10, data)
    )
    assert compute_mean_ndcg(lists, movielens) == pytest.approx(0.1622, abs=0.01)


def fit(model: Any, data: TrainingData) -> Any:
    return model.fit(data, np.random.default_rng(7))


def test_compiled_loops_give_the_same_random_lists(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    data = make_random_data(rng)
    fitted = Random().fit(data, rng)
    lists = []
    for least in (0, np.inf):
        monkeypatch.setattr(topk, "MIN_SCORES", least)
        lists.append(fitted.recommend(query_all_users(data), 20, data))
    assert np.array_equal(lists[0].items, lists[1].items)
    assert np.array_equal(lists[0].scores, lists[1].scores, equal_nan=True)
