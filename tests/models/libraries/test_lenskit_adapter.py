from __future__ import annotations

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import TrainingData
from recbias.models.lenskit import (
    FittedScorer,
    to_lenskit_dataset,
    train_scorer,
    warn_about_equal_ratings,
)
from recbias.testing import make_checkerboard, query_all_users
from support.worlds.small_worlds import make_interactions


def test_last_of_repeated_rows_counts() -> None:
    dataset = to_lenskit_dataset(
        make_interactions([(0, 0), (0, 1), (0, 0)], values=[1.0, 2.0, 5.0])
    )
    row = dataset.user_row(0)
    assert dict(zip(row.numbers().tolist(), row.field("rating").tolist(), strict=True)) == {
        0: 5.0,
        1: 2.0,
    }


@pytest.mark.usefixtures("stage_warnings")
def test_fitted_scorer_returns_scores_of_library() -> None:
    from lenskit.data import ItemList, RecQuery
    from lenskit.knn import ItemKNNScorer

    data = make_checkerboard()
    scorer = train_scorer(
        ItemKNNScorer(max_nbrs=3, feedback="implicit"), data, np.random.default_rng(0)
    )
    fitted = FittedScorer.from_training(scorer, data)
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
