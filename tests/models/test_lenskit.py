from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import TrainingData
from recbias.models.libraries import (
    FittedScorer,
    LensKitItemKNN,
    LensKitUserKNN,
    warn_about_equal_ratings,
)
from recbias.testing import make_checkerboard, query_all_users
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions


@pytest.mark.usefixtures("stage_warnings")
def test_fitted_scorer_returns_scores_of_library() -> None:
    from lenskit.data import ItemList, RecQuery
    from lenskit.knn import ItemKNNScorer

    data = make_checkerboard()
    scorer = ItemKNNScorer(max_nbrs=3, feedback="implicit")
    fitted = FittedScorer.train(scorer, data, np.random.default_rng(0))
    lists = fitted.recommend(query_all_users(data), 4, data)
    items = ItemList(item_nums=np.arange(data.train.n_items), vocabulary=fitted.dataset.items)
    for user in (0, 7, 39):
        query = RecQuery(user_id=user, history_items=fitted.dataset.user_row(user))
        scores = scorer(query, items).scores()
        assert scores[lists.items[user]].tolist() == lists.scores[user].tolist()


@pytest.mark.parametrize(("value", "warns"), [(5.0, True), (4.0, False)])
def test_equal_ratings_are_reported(value: float, warns: bool) -> None:
    train = make_interactions([(0, 0), (0, 1)], values=[5.0, value])
    with collect_warnings() as messages:
        warn_about_equal_ratings(TrainingData(train), "mine")
    assert bool(messages) == warns


def make_data() -> TrainingData:
    #      i0 i1 i2
    # u0   x  x
    # u1   x  x  x
    # u2      x
    # u3         x
    pairs = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (3, 2)]
    return TrainingData(make_interactions(pairs))


def recommend_to(model: Any, user: int) -> dict[int, float]:
    fitted = model.fit(make_data(), np.random.default_rng(0))
    lists = fitted.recommend(make_queries(["q"], [user]), 3, make_data())
    filled = lists.items[0] >= 0
    return dict(
        zip(lists.items[0][filled].tolist(), lists.scores[0][filled].tolist(), strict=True)
    )


def test_item_neighbour_scores_by_hand() -> None:
    # u2 has i1 (3 users); i0 (2 users) shares 2, i2 (2 users) shares 1
    scores = recommend_to(LensKitItemKNN(), 2)
    assert scores == pytest.approx({0: 2 / np.sqrt(6), 2: 1 / np.sqrt(6)})


def test_user_neighbour_scores_by_hand() -> None:
    # LensKit normalizes the rows of the neighbours, not that of the user:
    # u2 has i1; its similarity is 1/√2 to u0 (2 items), 1/√3 to u1 (3 items) and 0 to u3
    scores = recommend_to(LensKitUserKNN(), 2)
    assert scores == pytest.approx({0: 1 / np.sqrt(2) + 1 / np.sqrt(3), 2: 1 / np.sqrt(3)})


@pytest.mark.parametrize(
    "model", [LensKitItemKNN(feedback="explicit"), LensKitUserKNN(feedback="explicit")], ids=type
)
def test_equal_ratings_are_reported_of_lenskit_neighbours(model: Any) -> None:
    with collect_warnings() as messages:
        model.fit(make_data(), np.random.default_rng(0))
    assert any("all training ratings are 1" in message for message in messages)
