"""Properties that all baselines, neighbourhood and linear models share, on small datasets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import TrainingData
from recbias.models.baselines import MostPop, Random
from recbias.models.knn import ItemKNN, UserKNN
from recbias.models.linear import EASE, SLIM, PureSVD
from support.models.recommending import (
    make_random_data,
    permute_codes,
    query_all_users,
)
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

PERSONALIZED = [
    ItemKNN(neighbors=10),
    ItemKNN(neighbors=7, similarity="asymmetric", alpha=0.3, shrink=2, weights="rating"),
    ItemKNN(similarity="jaccard"),
    UserKNN(neighbors=12),
    UserKNN(neighbors=60, similarity="dice", variant="elliot"),
    UserKNN(similarity="jaccard", weights="rating", shrink=1),
    PureSVD(factors=2),
    EASE(reg=5),
    SLIM(alpha=0.01, l1_ratio=0.1, neighbors=20),
]
ALL = [Random(), MostPop(), *PERSONALIZED]

all_models = pytest.mark.parametrize("model", ALL, ids=str)
personalized_models = pytest.mark.parametrize("model", PERSONALIZED, ids=str)


def fit(model: Any, data: TrainingData) -> Any:
    return model.fit(data, np.random.default_rng(7))


WITHOUT_TIES = [
    Random(),
    MostPop(),
    ItemKNN(),
    ItemKNN(similarity="asymmetric", alpha=0.3, shrink=2, weights="rating"),
    UserKNN(),
    UserKNN(similarity="jaccard", variant="elliot"),
    PureSVD(factors=2),
    EASE(reg=5),
    SLIM(alpha=0.01, l1_ratio=0.1, max_iter=500, tolerance=1e-6),
]
"""Models that keep all neighbours; the choice among tied neighbours depends on their codes."""


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.parametrize("model", WITHOUT_TIES, ids=str)
def test_lists_do_not_depend_on_codes(model: Any, rng: np.random.Generator) -> None:
    """Permuted codes give the same lists, up to ties."""
    data = make_random_data(rng)
    renamed, users, items = permute_codes(data, rng)
    first = fit(model, data).recommend(query_all_users(data), 10, data)
    second = fit(model, renamed).recommend(query_all_users(renamed), 10, renamed)
    np.testing.assert_allclose(first.scores, second.scores[users], rtol=1e-4, atol=1e-5)
    gaps = np.diff(first.scores, axis=1, append=np.float32(np.nan))
    clear = (gaps < -1e-4) & (np.roll(gaps, 1, axis=1) < -1e-4)
    assert clear.sum() > 50 or isinstance(model, MostPop)
    assert np.array_equal(items[first.items][clear], second.items[users][clear])


@personalized_models
def test_users_without_history_have_empty_lists(model: Any) -> None:
    data = TrainingData(make_interactions([(0, 0), (0, 1), (1, 1), (1, 2)], n_users=3, n_items=4))
    fitted = fit(model, data)
    with collect_warnings() as warnings:
        lists = fitted.recommend(make_queries(["u0", "u2", "prompt"], [0, 2, -1]), 5, data)
    # item 3 has no training row: the only candidate of u0 is item 2
    assert lists.items.tolist() == [[2, -1, -1, -1, -1], [-1] * 5, [-1] * 5]
    assert warnings == ["2 of 3 queries have no training history: empty lists"]


@pytest.mark.parametrize("model", [Random(), MostPop()], ids=str)
def test_unpersonalized_models_have_lists_for_users_without_history(model: Any) -> None:
    data = TrainingData(make_interactions([(0, 0), (0, 1), (1, 1), (1, 2)], n_users=3, n_items=4))
    lists = fit(model, data).recommend(make_queries(["u2", "prompt"], [2, -1]), 5, data)
    assert np.sort(lists.items, axis=1)[:, 2:].tolist() == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.usefixtures("stage_warnings")
@all_models
def test_lists_are_empty_without_training_rows(model: Any) -> None:
    data = TrainingData(make_interactions([], n_users=2, n_items=3))
    lists = fit(model, data).recommend(query_all_users(data), 2, data)
    assert lists.items.tolist() == [[-1, -1], [-1, -1]]
