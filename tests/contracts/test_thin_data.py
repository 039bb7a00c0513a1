"""Models on degenerate data: every model trains, and its lists are valid."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import pytest

from contracts.test_recommenders import FROM_FILES, SMALL
from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, Interactions, TrainingData
from recbias.core.errors import UserError
from recbias.core.evidence import check_lists
from recbias.registry import REGISTRIES
from recbias.testing import make_checkerboard, query_all_users
from support.worlds.small_worlds import make_interactions

MODELS = REGISTRIES["models"]
OWN_MODELS = [name for name in MODELS.names() if name not in FROM_FILES and "/" not in name]
SETTINGS = {name: {field.name for field in fields(MODELS.load(name))} for name in OWN_MODELS}
LATENT = [name for name in OWN_MODELS if {"embedding_size", "factors"} & SETTINGS[name]]
GRADIENT = [name for name in OWN_MODELS if "learning_rate" in SETTINGS[name]]


def add_attributes(train: Interactions) -> TrainingData:
    genres = [["a|b", "c"][item % 2] for item in range(train.n_items)]
    titles = [f"film {item}" for item in range(train.n_items)]
    items = pd.DataFrame({"genres": genres, "title": titles})
    return TrainingData(train, items=Attributes(train.item_ids, items, "item"))


DATASETS = {
    "one item each": add_attributes(make_interactions([(user, user % 7) for user in range(20)])),
    "one item": add_attributes(make_interactions([(user, 0) for user in range(5)], n_items=2)),
    "one user": add_attributes(make_interactions([(0, item) for item in range(6)], n_items=9)),
    "one pair": add_attributes(make_interactions([(0, 0)], n_items=3)),
    "everything": add_attributes(
        make_interactions([(user, item) for user in range(4) for item in range(3)])
    ),
}


def make_model(name: str, **settings: Any) -> Any:
    epochs = {"epochs": 2, "adversarial_epochs": 1}
    defaults = {key: value for key, value in epochs.items() if key in SETTINGS[name]}
    return MODELS.load(name)(**SMALL.get(name, {}) | defaults | settings)


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("name", OWN_MODELS)
@collect_warnings()
def test_every_model_returns_valid_lists_or_a_remedy(name: str, dataset: str) -> None:
    data = DATASETS[dataset]
    queries = query_all_users(data)
    try:
        fitted = make_model(name).fit(data, np.random.default_rng(1))
        lists = fitted.recommend(queries, data.train.n_items + 5, data)
    except UserError as error:
        assert error.remedy, name  # noqa: PT017  lists or an error with a remedy are valid
        return
    history = data.train.binary[np.append(queries.users[:-1], 0)]
    check_lists(lists, n_queries=len(queries), seen=None, n_items=data.train.n_items, model=name)
    items = np.where(lists.filled, lists.items, 0)
    seen = history.toarray()[np.arange(len(queries))[:, None], items] > 0
    assert not (seen & lists.filled)[:-1].any()
    assert (data.candidates[items] | ~lists.filled).all()


@pytest.mark.parametrize("name", LATENT)
@collect_warnings()
def test_a_model_may_have_more_factors_than_items(name: str) -> None:
    data = add_attributes(make_checkerboard().train)
    size = "embedding_size" if name != "PureSVD" else "factors"
    n_factors = 48 if name == "ConvMF" else 37  # more than the 25 items
    try:
        fitted = make_model(name, **{size: n_factors}).fit(data, np.random.default_rng(1))
    except UserError as error:
        assert error.remedy  # noqa: PT017
        return
    assert fitted.recommend(query_all_users(data), 3, data).filled.any()


@pytest.mark.parametrize(
    "name", [name for name in GRADIENT if name != "GRU4Rec"]
)  # bounded states
@collect_warnings()
def test_a_diverging_training_reports_the_epoch_and_the_loss(name: str) -> None:
    data = add_attributes(make_checkerboard().train)
    with pytest.raises(UserError, match=r"diverged in epoch \d+ of \d+: the loss is") as caught:
        make_model(name, learning_rate=1e30, epochs=9).fit(data, np.random.default_rng(1))
    assert "learning_rate" in caught.value.remedy
