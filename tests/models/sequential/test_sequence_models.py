"""What SASRec, GRU4Rec and BERT4Rec have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recbias.core.dataset import AnyArray, TrainingData
from recbias.models.baselines import MostPop
from recbias.models.linear import EASE
from recbias.models.sequential import BERT4Rec, GRU4Rec, SASRec
from support.models import recommending
from support.models.sequence_worlds import make_chain, set_file_order

SETTINGS: dict[str, Any] = {
    "embedding_size": 16,
    "batch_size": 16,
    "learning_rate": 0.01,
    "dropout": 0.0,
    "max_length": 8,
    "device": "cpu",
}
MODELS = [
    SASRec(epochs=15, **SETTINGS),
    SASRec(epochs=30, loss="binary_cross_entropy", negatives=1, **SETTINGS),
    SASRec(epochs=15, negatives=4, **SETTINGS),
    GRU4Rec(epochs=25, **SETTINGS),
    GRU4Rec(epochs=25, negatives=6, **SETTINGS),
    BERT4Rec(epochs=80, **SETTINGS | {"learning_rate": 0.005}),
]


def name_model(model: Any) -> str:
    return f"{type(model).__name__} {getattr(model, 'loss', '')} {getattr(model, 'negatives', '')}"


all_models = pytest.mark.parametrize("model", MODELS, ids=name_model)
each_model = pytest.mark.parametrize("model", [MODELS[0], MODELS[3], MODELS[5]], ids=name_model)


def count_hits(fitted: Any, data: TrainingData, expected: AnyArray) -> float:
    lists = fitted.recommend(recommending.query_all_users(data), 1, data)
    return float((lists.items[:, 0] == expected).mean())


@all_models
def test_the_item_after_the_last_is_found(model: Any) -> None:
    data, expected = make_chain()
    assert count_hits(model.fit(data, np.random.default_rng(0)), data, expected) > 0.9


@pytest.mark.parametrize("model", [MostPop(), EASE()], ids=["MostPop", "EASE"])
def test_a_model_without_the_order_cannot_find_it(model: Any) -> None:
    data, expected = make_chain()
    assert count_hits(model.fit(data, np.random.default_rng(0)), data, expected) < 0.65


@each_model
def test_the_order_is_that_of_the_times_not_of_the_rows(model: Any) -> None:
    data, expected = make_chain()
    assert (
        count_hits(model.fit(set_file_order(data), np.random.default_rng(0)), data, expected)
        < 0.65
    )
