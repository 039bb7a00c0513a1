"""What SASRec, GRU4Rec and BERT4Rec have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recbias.core import context as context_module
from recbias.core.context import stage_context
from recbias.core.dataset import AnyArray, TrainingData
from recbias.core.errors import OutOfRange, UnknownColumn
from recbias.models.baselines import MostPop
from recbias.models.linear import EASE
from recbias.models.sequential import BERT4Rec, GRU4Rec, SASRec
from support.models import recommending
from support.models.sequence_worlds import make_chain, set_file_order
from support.worlds.small_worlds import make_interactions

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
    GRU4Rec(epochs=40, loss="bpr_max", negatives=16, bpr_reg=0.1, **SETTINGS),
    BERT4Rec(epochs=80, **SETTINGS | {"learning_rate": 0.005}),
    SASRec(epochs=15, loss="sampled_softmax", negatives=6, **SETTINGS),
    GRU4Rec(epochs=25, loss="sampled_softmax", negatives=6, **SETTINGS),
    BERT4Rec(
        epochs=80,
        loss="sampled_softmax",
        negatives=6,
        **SETTINGS | {"learning_rate": 0.005},
    ),
]


def name_model(model: Any) -> str:
    return f"{type(model).__name__} {getattr(model, 'loss', '')} {getattr(model, 'negatives', '')}"


all_models = pytest.mark.parametrize("model", MODELS, ids=name_model)
each_model = pytest.mark.parametrize("model", [MODELS[0], MODELS[3], MODELS[6]], ids=name_model)


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


@each_model
def test_lists_follow_the_history_at_recommendation_time(model: Any) -> None:
    data, expected = make_chain(length=6)
    fitted = model.fit(data, np.random.default_rng(0))
    times = data.train.times
    assert times is not None
    shorter = TrainingData(data.train.take(times < times.max()))
    last = data.train.items[np.lexsort((times, data.train.users))].reshape(-1, 6)[:, -1]
    assert count_hits(fitted, shorter, last) > 0.8
    assert count_hits(fitted, data, expected) > 0.8


@pytest.mark.usefixtures("stage_warnings")
@all_models
def test_fit_is_reproducible_and_depends_on_the_seed(model: Any) -> None:
    data, _ = make_chain()
    state, repeated, different = (
        replace(model, epochs=2, dropout=0.3).fit(data, np.random.default_rng(seed)).state()
        for seed in (1, 1, 2)
    )
    for name, array in state.items():
        np.testing.assert_array_equal(array, repeated[name])
    assert not np.array_equal(state["items.weight"], different["items.weight"])


@each_model
def test_embeddings_give_the_scores_of_the_lists(model: Any) -> None:
    data, _ = make_chain()
    fitted = replace(model, epochs=2).fit(data, np.random.default_rng(1))
    lists = fitted.recommend(recommending.query_all_users(data), 3, data)
    embeddings = fitted.embeddings()
    scores = embeddings.users @ embeddings.items.T + fitted.state().get("items.bias", 0)
    expected = np.take_along_axis(scores, lists.items, axis=1)
    np.testing.assert_allclose(lists.scores, expected, rtol=1e-4, atol=1e-5)


@each_model
def test_data_without_times_are_refused(model: Any) -> None:
    data, _ = recommending.make_checkerboard(6)
    with pytest.raises(UnknownColumn, match="needs the order of a user's interactions") as error:
        model.check_data(data)
    assert "add a column timestamp" in error.value.remedy
    with pytest.raises(UnknownColumn):
        model.fit(data, np.random.default_rng(0))


@each_model
def test_divergence_is_an_error_that_names_the_learning_rate(model: Any) -> None:
    data, _ = make_chain()
    with pytest.raises(OutOfRange, match="diverged in epoch") as error:
        replace(model, learning_rate=1e38).fit(data, np.random.default_rng(0))
    assert error.value.where == "learning_rate"


@pytest.mark.usefixtures("stage_warnings")
@all_models
@pytest.mark.parametrize(
    "pairs",
    [[(0, 0), (1, 0)], [(0, 0), (0, 1), (0, 2), (1, 1)], [(0, 0), (1, 1), (2, 2)], []],
    ids=["one item", "user of all items", "one item per user", "no interactions"],
)
def test_smallest_datasets_are_learned(model: Any, pairs: list[tuple[int, int]]) -> None:
    train = make_interactions(pairs, n_users=3, n_items=3)
    data = set_file_order(TrainingData(train))
    fitted = replace(model, epochs=2).fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 5, data)
    n_unseen = data.candidates.sum() - train.user_counts()
    expected = np.where(train.user_counts() > 0, n_unseen, 0)
    assert lists.filled.sum(1).tolist() == expected.tolist()
    users = fitted.embeddings().users
    np.testing.assert_array_equal(np.isnan(users).all(axis=1), train.user_counts() == 0)


class Interrupted(Exception):
    """Stands for an interruption of the training."""


class CheckpointStore:
    """Keeps the last checkpoint and interrupts the training after the second."""

    def __init__(self) -> None:
        self.arrays: Mapping[str, AnyArray] | None = None
        self.n_saved = 0

    def load(self) -> Mapping[str, AnyArray] | None:
        return self.arrays

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        self.arrays = {name: array.copy() for name, array in arrays.items()}
        self.n_saved += 1
        if self.n_saved == 2:
            raise Interrupted


@pytest.mark.usefixtures("stage_warnings")
@all_models
def test_resumed_training_gives_the_same_state(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_module, "MIN_CHECKPOINT_INTERVAL", 0.0)
    monkeypatch.setattr(context_module, "CHECKPOINT_TIME_SHARE", np.inf)
    data, _ = make_chain()
    model = replace(model, epochs=4, dropout=0.2)
    uninterrupted = model.fit(data, np.random.default_rng(3)).state()
    with stage_context(checkpoint_store=CheckpointStore()):
        with pytest.raises(Interrupted):
            model.fit(data, np.random.default_rng(3))
        resumed = model.fit(data, np.random.default_rng(99)).state()
    for name, array in uninterrupted.items():
        np.testing.assert_array_equal(array, resumed[name])
