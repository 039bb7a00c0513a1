from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare, kstest

from recbias.core.dataset.split import Split, TrainingData
from recbias.models.unpersonalised import FittedRandom, MostPop, Random, hashed
from support.asked import asked
from support.recommending import everybody, mean_ndcg, random_world
from support.worlds import rows


def drawn(data: TrainingData, seed: int, k: int = 5) -> np.ndarray:
    fitted = Random().fit(data, np.random.default_rng(seed))
    return fitted.recommend(everybody(data), k, data).items


def test_most_popular_first_and_equals_by_code() -> None:
    # item 0: 1 user, item 1: 3, item 2: 2, item 3: 2, item 4: nobody
    pairs = [(0, 0), (0, 1), (1, 1), (2, 1), (1, 2), (2, 2), (3, 3), (2, 3)]
    data = TrainingData(rows(pairs, n_users=5, n_items=5))
    lists = MostPop().fit(data, np.random.default_rng(1)).recommend(everybody(data), 4, data)
    assert lists.items.tolist() == [
        [2, 3, -1, -1],
        [3, 0, -1, -1],
        [0, -1, -1, -1],
        [1, 2, 0, -1],
        [1, 2, 3, 0],
    ]
    np.testing.assert_array_equal(lists.scores[4], np.array([3, 2, 2, 1], dtype=np.float32))


def test_each_unseen_item_has_the_same_chance() -> None:
    data = TrainingData(rows([(user, user % 2) for user in range(4_000)], n_items=12))
    other = TrainingData(rows([(0, item) for item in range(12)], n_users=1, n_items=12))
    fitted = Random().fit(data, np.random.default_rng(3))
    users = asked([f"u{each}" for each in range(4_000)], [-1] * 4_000)
    first = fitted.recommend(users, 1, other).items[:, 0]
    assert chisquare(np.bincount(first, minlength=12)).pvalue > 0.001
    scores = fitted.recommend(users, 12, other).scores
    assert kstest(scores.ravel(), "uniform").pvalue > 0.001


def test_users_are_independent_and_seeds_differ() -> None:
    data = random_world(np.random.default_rng(5), 200, 60)
    lists = drawn(data, 1)
    assert len({tuple(each) for each in lists.tolist()}) > 190
    assert (lists == drawn(data, 2)).mean() < 0.1
    assert np.array_equal(lists, drawn(data, 1))


def test_items_that_come_and_go_leave_the_others_in_place() -> None:
    more = TrainingData(rows([(0, item) for item in range(30)], n_users=1, n_items=30))
    fewer = TrainingData(rows([(0, item) for item in range(20)], n_users=1, n_items=30))
    fitted = FittedRandom(np.array(9, dtype=np.uint64))
    asked_of = asked(["somebody"], [-1])
    long = fitted.recommend(asked_of, 30, more).items[0]
    short = fitted.recommend(asked_of, 20, fewer).items[0]
    assert long[long < 20].tolist() == short.tolist()


def test_hashes_are_of_the_text_and_fixed() -> None:
    ids = np.array(["1", "2", "ü", "a,b\n", "😀"], dtype=object)
    assert np.array_equal(hashed(ids)[::-1], hashed(ids[::-1]))
    assert np.unique(hashed(ids)).size == 5
    assert hashed(ids)[0] == pd.util.hash_array(np.array(["1"], dtype=object))[0]
    assert hashed(np.empty(0, dtype=object)).size == 0


@pytest.mark.real_data
def test_most_popular_on_movielens_is_near_the_published_figure(movielens: Split) -> None:
    data = movielens.training_data()
    lists = MostPop().fit(data, np.random.default_rng(1)).recommend(everybody(data), 10, data)
    assert mean_ndcg(lists, movielens) == pytest.approx(0.1622, abs=0.01)
