"""Properties that all baselines, neighbourhood and linear models share, on small datasets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import TrainingData
from recbias.core.evidence import check_lists
from recbias.core.plugins import Restores, Storable
from recbias.models.baselines import MostPop, Random
from recbias.models.knn import ItemKNN, UserKNN
from recbias.models.linear import EASE, SLIM, PureSVD
from support.models.recommending import (
    make_checkerboard,
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


@all_models
@pytest.mark.parametrize("k", [1, 10, 100], ids="k={}".format)
def test_lists_are_valid_and_as_long_as_possible(
    model: Any, k: int, rng: np.random.Generator
) -> None:
    data = make_random_data(rng)
    lists = fit(model, data).recommend(query_all_users(data), k, data)
    assert lists.k == k
    check_lists(lists, n_queries=60, seen=data.train.binary, n_items=45, model=str(model))
    recommended = lists.items[lists.filled]
    assert data.candidates[recommended].all()
    n_unseen = data.candidates.sum() - data.train.user_counts()
    is_active = data.train.user_counts() > 0
    assert np.array_equal(lists.filled.sum(axis=1)[is_active], np.minimum(n_unseen, k)[is_active])


@all_models
def test_lists_do_not_depend_on_other_queries(model: Any, rng: np.random.Generator) -> None:
    data = make_random_data(rng)
    fitted = fit(model, data)
    together = fitted.recommend(query_all_users(data), 10, data)
    for user in range(0, 60, 4):
        alone = fitted.recommend(query_all_users(data, [user]), 10, data)
        assert alone.items[0].tolist() == together.items[user].tolist()
        np.testing.assert_allclose(alone.scores[0], together.scores[user], rtol=1e-5, atol=1e-6)


@all_models
def test_restored_state_gives_the_same_lists(model: Any, rng: np.random.Generator) -> None:
    data = make_random_data(rng)
    fitted = fit(model, data)
    state = {name: np.array(array) for name, array in fitted.state().items()}
    first = fitted.recommend(query_all_users(data), 10, data)
    second = model.restore(state).recommend(query_all_users(data), 10, data)
    assert np.array_equal(first.items, second.items)
    np.testing.assert_array_equal(first.scores, second.scores)
    assert isinstance(fitted, Storable)
    assert isinstance(model, Restores)


@all_models
def test_same_seed_gives_the_same_state(model: Any, rng: np.random.Generator) -> None:
    data = make_random_data(rng)
    first, second = fit(model, data).state(), fit(model, data).state()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])


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
def test_checkerboard_pattern_is_learned(model: Any) -> None:
    data, missing = make_checkerboard()
    lists = fit(model, data).recommend(query_all_users(data), 1, data)
    assert lists.items[:, 0].tolist() == missing


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


@all_models
def test_model_is_defined_by_its_settings_and_needs_training_rows_only(
    model: Any, tmp_path: Any
) -> None:
    assert type(model)(**vars(model)) == model
    assert model.needs == {"train"}
    assert "lists" in model.provides
