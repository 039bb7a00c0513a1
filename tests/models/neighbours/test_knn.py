from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from recbias.core.dataset.split import Split, TrainingData
from recbias.models.neighbours.knn import ItemKNN, UserKNN
from support.recommending import everybody, mean_ndcg, random_world
from support.worlds import rows

# u0: i0 i1;  u1: i0 i1 i2;  u2: i1 i2 i3;  u3: i3
PAIRS = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 3)]


def recommended(model: Any, data: TrainingData, k: int) -> Any:
    return model.fit(data, np.random.default_rng(1)).recommend(everybody(data), k, data)


def test_item_scores_by_hand() -> None:
    # users of i0: 2, i1: 3, i2: 2, i3: 2
    # s(0,1) = 2/√6, s(0,2) = 1/2, s(1,2) = 2/√6, s(1,3) = 1/√6, s(2,3) = 1/2, s(0,3) = 0
    lists = recommended(ItemKNN(neighbors=9), TrainingData(rows(PAIRS)), 2)
    root = math.sqrt(6)
    assert lists.items.tolist() == [[2, 3], [3, -1], [0, -1], [2, 1]]
    np.testing.assert_allclose(lists.scores[0], [1 / 2 + 2 / root, 1 / root], rtol=1e-6)
    np.testing.assert_allclose(lists.scores[1, 0], 1 / root + 1 / 2, rtol=1e-6)
    np.testing.assert_allclose(lists.scores[2, 0], 2 / root + 1 / 2, rtol=1e-6)
    np.testing.assert_allclose(lists.scores[3], [1 / 2, 1 / root], rtol=1e-6)


def test_the_scored_item_keeps_its_neighbours_not_the_item_of_the_history() -> None:
    # with one neighbour: N(0) = {1}, N(1) = {0} (before 2, which is as near), N(2) = {1},
    # N(3) = {2}; so u3, who has i3, speaks for no item: 1 and 2 are nearest to i3, but i3 is not
    # among their nearest
    lists = recommended(ItemKNN(neighbors=1), TrainingData(rows(PAIRS)), 3)
    assert lists.scores[3].tolist() == [0, 0, 0]
    np.testing.assert_allclose(lists.scores[0, 0], 2 / math.sqrt(6), rtol=1e-6)  # i2 by i1


def test_user_scores_by_hand() -> None:
    # u0 has 2 items, u1 3, u2 3, u3 1
    # s(0,1) = 2/√6, s(0,2) = 1/√6, s(1,2) = 2/3, s(2,3) = 1/√3, the others 0
    lists = recommended(UserKNN(neighbors=9), TrainingData(rows(PAIRS)), 2)
    a, b, c = 2 / math.sqrt(6), 1 / math.sqrt(6), 1 / math.sqrt(3)
    assert lists.items.tolist() == [[2, 3], [3, -1], [0, -1], [1, 2]]
    np.testing.assert_allclose(lists.scores[0], [a + b, b], rtol=1e-6)
    np.testing.assert_allclose(lists.scores[1, 0], 2 / 3, rtol=1e-6)
    np.testing.assert_allclose(lists.scores[2, 0], 2 / 3 + b, rtol=1e-6)
    np.testing.assert_allclose(lists.scores[3], [c, c], rtol=1e-6)


@pytest.mark.parametrize(
    ("variant", "scores_of_u1", "scores_of_u3"),
    [
        # nearest: N(0) = {1}, N(1) = {0} (2/√6 > 2/3), N(2) = {1}, N(3) = {2}
        # own: u1 asks u0, who has nothing new; u3 asks u2: i1 and i2 with 1/√3
        ("paper", [0.0], [1 / math.sqrt(3), 1 / math.sqrt(3)]),
        # reverse: u1 is the neighbour of u0 and u2: i3 by u2 with 2/3; u3 is nobody's: 0
        ("elliot", [2 / 3], [0.0, 0.0]),
    ],
)
def test_reverse_neighbours_by_hand(
    variant: Any, scores_of_u1: list[float], scores_of_u3: list[float]
) -> None:
    model = UserKNN(neighbors=1, variant=variant)
    lists = recommended(model, TrainingData(rows(PAIRS)), 2)
    np.testing.assert_allclose(lists.scores[1, :1], scores_of_u1, rtol=1e-6)
    np.testing.assert_allclose(lists.scores[3], scores_of_u3, rtol=1e-6)


def test_ratings_weigh() -> None:
    # i0 = (5, 4), i1 = (1, 0), i2 = (0, 2) over u0 and u1: s(0,1) = 5/√41, s(0,2) = 8/(2 √41)
    data = TrainingData(rows([(0, 0), (0, 1), (1, 0), (1, 2)], values=[5, 1, 4, 2]))
    lists = recommended(ItemKNN(weights="rating"), data, 1)
    # u0 has i0 with 5 and i1, which shares nobody with i2
    np.testing.assert_allclose(lists.scores[0, 0], 5 * 4 / math.sqrt(41), rtol=1e-6)
    # u0·u1 = 20, |u0|² = 26, |u1|² = 20; u1 has i2 with 2
    lists = recommended(UserKNN(weights="rating"), data, 1)
    np.testing.assert_allclose(lists.scores[0, 0], 2 * 20 / math.sqrt(26 * 20), rtol=1e-6)


@pytest.mark.parametrize("similarity", ["cosine", "asymmetric", "jaccard", "dice"])
def test_neighbours_are_learned_and_no_more_than_asked(
    similarity: Any, rng: np.random.Generator
) -> None:
    data = random_world(rng)
    for model in (ItemKNN, UserKNN):
        learned = model(neighbors=4, similarity=similarity).fit(data, rng).neighbours
        assert np.diff(learned.indptr).max() == 4
        assert (learned.diagonal() == 0).all()
        assert (learned.data > 0).all()


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("model", "published"),
    [
        (ItemKNN(neighbors=200), 0.2993),
        (UserKNN(neighbors=291, variant="elliot"), 0.3209),
        # measured beside other libraries on another split of the same data
        (ItemKNN(neighbors=100), 0.2925),
        (UserKNN(neighbors=100), 0.2977),
    ],
    ids=str,
)
def test_ndcg_on_movielens_is_near_the_published_figure(
    model: Any, published: float, movielens: Split
) -> None:
    lists = recommended(model, movielens.training_data(), 10)
    assert mean_ndcg(lists, movielens) == pytest.approx(published, abs=0.01)
