"""Data on which there is next to nothing to learn: every model trains, and its lists are sound."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import pytest

from contracts.test_recommenders import FROM_FILES, SMALL
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import UserError
from recbias.core.outputs.list_checks import check_lists
from recbias.registry import REGISTRIES
from recbias.testing.small_world import checkerboard, everybody
from support.worlds import rows

MODELS = REGISTRIES["models"]
OURS = [each for each in MODELS.names() if each not in FROM_FILES and "/" not in each]
WITH_VECTORS = [
    each
    for each in OURS
    if {"embedding_size", "factors"} & {field.name for field in fields(MODELS.load(each))}
]
GRADIENT = [
    each for each in OURS if "learning_rate" in {field.name for field in fields(MODELS.load(each))}
]


def described(train: Interactions) -> TrainingData:
    genres = [["a|b", "c"][each % 2] for each in range(train.n_items)]
    titles = [f"film {each}" for each in range(train.n_items)]
    items = pd.DataFrame({"genres": genres, "title": titles})
    return TrainingData(train, items=Attributes(train.item_ids, items, "item"))


WORLDS = {
    "one item each": described(rows([(user, user % 7) for user in range(20)])),
    "one item": described(rows([(user, 0) for user in range(5)], n_items=2)),
    "one user": described(rows([(0, item) for item in range(6)], n_items=9)),
    "one pair": described(rows([(0, 0)], n_items=3)),
    "everything": described(rows([(user, item) for user in range(4) for item in range(3)])),
}


def made(name: str, **given: Any) -> Any:
    cls = MODELS.load(name)
    known = {field.name for field in fields(cls)}
    few = {"epochs": 2, "adversarial_epochs": 1}
    settings = {key: each for key, each in few.items() if key in known}
    return cls(**SMALL.get(name, {}) | settings | given)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", OURS)
def test_every_model_has_sound_lists_or_says_why_not(name: str, world: str) -> None:
    data = WORLDS[world]
    queries = everybody(data)
    try:
        fitted = made(name).fit(data, np.random.default_rng(1))
        lists = fitted.recommend(queries, data.train.n_items + 5, data)
    except UserError as error:
        assert error.remedy, name  # noqa: PT017  either is right, but never without a way out
        return
    history = data.train.binary[np.append(queries.users[:-1], 0)]
    check_lists(lists, n_queries=len(queries), seen=None, n_items=data.train.n_items, who=name)
    places = np.where(lists.filled, lists.items, 0)
    seen = history.toarray()[np.arange(len(queries))[:, None], places] > 0
    assert not (seen & lists.filled)[:-1].any()
    assert (data.candidates[places] | ~lists.filled).all()


@pytest.mark.parametrize("name", WITH_VECTORS)
def test_more_factors_than_items(name: str) -> None:
    data = described(checkerboard().train)
    size = "embedding_size" if name != "PureSVD" else "factors"
    many = 48 if name == "ConvMF" else 37  # more than the 25 items
    try:
        fitted = made(name, **{size: many}).fit(data, np.random.default_rng(1))
    except UserError as error:
        assert error.remedy  # noqa: PT017
        return
    assert fitted.recommend(everybody(data), 3, data).filled.any()


@pytest.mark.parametrize("name", GRADIENT)
def test_a_learning_rate_that_diverges_stops_with_the_epoch_and_the_loss(name: str) -> None:
    data = described(checkerboard().train)
    with pytest.raises(UserError, match=r"diverged in epoch \d+ of \d+: the loss is") as caught:
        made(name, learning_rate=1e30, epochs=9).fit(data, np.random.default_rng(1))
    assert "learning_rate" in caught.value.remedy
