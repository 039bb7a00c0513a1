from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import MissingEvidence, OutOfRange, UnknownColumn
from recbias.models.neural.deepfm import DeepFM, crossed_loss, pair_loss
from recbias.models.neural.pair_network import pair_scores
from support import recommending
from support.worlds import make_interactions

SMALL = DeepFM(
    embedding_size=8,
    hidden_sizes=(8,),
    epochs=30,
    batch_size=64,
    learning_rate=0.01,
    device="cpu",
)
MODELS = [SMALL, replace(SMALL, variant="elliot", epochs=80)]
every = pytest.mark.parametrize("model", MODELS, ids=lambda each: str(each.variant))


def test_the_crossed_loss_is_the_one_of_a_table_of_all_pairs(rng: np.random.Generator) -> None:
    products, others = (
        torch.tensor(rng.normal(size=6, scale=3), requires_grad=True) for _ in range(2)
    )
    labels = torch.tensor([1.0, 0, 1, 1, 0, 0], dtype=torch.float64)

    def naive() -> Any:
        table = torch.sigmoid(others[:, None] + products[None, :])
        wrong = -table.log() * labels[None, :] - (1 - table).log() * (1 - labels[None, :])
        return wrong.sum() / 6

    expected = torch.autograd.grad(naive(), (products, others))
    found = torch.autograd.grad(crossed_loss(products, others, labels), (products, others))
    assert crossed_loss(products, others, labels).item() == pytest.approx(naive().item())
    for each, same in zip(found, expected, strict=True):
        torch.testing.assert_close(each, same)


def test_losses_by_hand() -> None:
    # σ(0) = 1/2: two pairs lose ln 2 each, whether or not they meet
    zeros, labels = torch.zeros(2), torch.tensor([1.0, 0.0])
    assert pair_loss(zeros, labels).item() == pytest.approx(2 * np.log(2))
    assert crossed_loss(zeros, zeros, labels).item() == pytest.approx(2 * np.log(2))


@every
def test_it_learns_the_checkerboard(model: DeepFM) -> None:
    data, wanted = recommending.make_checkerboard(20)
    found = model.fit(data, np.random.default_rng(0))
    lists = found.recommend(recommending.query_all_users(data), 1, data)
    assert (lists.items[:, 0] == wanted).mean() > 0.8


def coloured(data: TrainingData) -> TrainingData:
    """The checkerboard with the colours of users and items said."""
    users, items = (
        Attributes(ids, pd.DataFrame({"colour": ["white", "black"] * (len(ids) // 2)}))
        for ids in (data.train.user_ids, data.train.item_ids)
    )
    return TrainingData(data.train, users=users, items=items)


def test_features_tell_of_an_item_that_hardly_anybody_has() -> None:
    # item 0 is one white user's; users of its colour are told apart from others by features only
    data, _ = recommending.make_checkerboard(30)
    kept = data.train.take(np.flatnonzero((data.train.items > 0) | (data.train.users == 2)))
    known = coloured(TrainingData(kept))
    others = np.setdiff1d(np.arange(30), [0, 2])
    gaps = []
    short = replace(SMALL, epochs=15)
    for model in (short, replace(short, user_features="none", item_features="none")):
        state = model.fit(known, np.random.default_rng(0)).state()
        scores = pair_scores(state, others)
        first = scores[:, 0] - scores[:, 1:].mean(1)
        gaps.append(first[others % 2 == 0].mean() - first[others % 2 == 1].mean())
    assert gaps[0] > gaps[1] + 2


def test_elliot_knows_ids_alone() -> None:
    data, _ = recommending.make_checkerboard(12)
    model = replace(MODELS[1], epochs=2)
    bare, known = (
        model.fit(each, np.random.default_rng(0)).state() for each in (data, coloured(data))
    )
    np.testing.assert_array_equal(bare["item_factors"], known["item_factors"])


def test_elliot_sends_the_deep_part_through_a_sigmoid_at_ranking_too() -> None:
    data, _ = recommending.make_checkerboard(12)
    found = replace(MODELS[1], epochs=2).fit(data, np.random.default_rng(0))
    again = MODELS[1].restore(found.state())
    assert found.squashed
    assert again.squashed


def test_dropout_is_of_training_only_and_of_the_experiments_own_chance() -> None:
    data, _ = recommending.make_checkerboard(12)
    model = replace(SMALL, dropout=0.5, epochs=2)
    first, again = (model.fit(data, np.random.default_rng(1)).state() for _ in range(2))
    np.testing.assert_array_equal(
        pair_scores(first, np.arange(12)), pair_scores(again, np.arange(12))
    )


def test_a_strong_penalty_leaves_short_vectors() -> None:
    data, _ = recommending.make_checkerboard(10)
    free, tight = (
        replace(SMALL, reg=reg).fit(data, np.random.default_rng(0)).state()["user_factors"]
        for reg in (0.0, 10.0)
    )
    assert np.abs(tight).max() < 0.1 * np.abs(free).max()


@every
def test_one_seed_one_result_another_another(model: DeepFM) -> None:
    data, _ = recommending.make_checkerboard(12)
    first, again, other = (
        replace(model, epochs=2).fit(data, np.random.default_rng(seed)).state()
        for seed in (1, 1, 2)
    )
    for name, each in first.items():
        np.testing.assert_array_equal(each, again[name])
    assert not np.array_equal(first["item_factors"], other["item_factors"])


@every
def test_a_learning_rate_that_diverges_is_named(model: DeepFM) -> None:
    data, _ = recommending.make_checkerboard(12)
    with pytest.raises(OutOfRange, match="DeepFM diverged in epoch"):
        replace(model, learning_rate=1e30).fit(data, np.random.default_rng(0))


def test_columns_that_are_not_there_are_refused() -> None:
    data, _ = recommending.make_checkerboard(12)
    with pytest.raises(UnknownColumn, match="no column 'color'"):
        replace(SMALL, item_features=("color",)).fit(coloured(data), np.random.default_rng(0))
    with pytest.raises(MissingEvidence, match="nothing is known of the users"):
        replace(SMALL, user_features=("colour",)).fit(data, np.random.default_rng(0))


@every
@pytest.mark.parametrize(
    "data",
    [
        TrainingData(make_interactions([(0, 0), (1, 0)])),
        TrainingData(make_interactions([(0, 0), (0, 1), (0, 2)])),
        TrainingData(make_interactions([(0, 0), (0, 1), (1, 1)])),
        TrainingData(make_interactions([(0, 0), (1, 1), (2, 2)])),
        TrainingData(make_interactions([], n_users=2, n_items=3)),
    ],
    ids=["one item", "one user", "a user of every item", "an item a user", "no row"],
)
def test_the_smallest_worlds_are_learned(model: DeepFM, data: TrainingData) -> None:
    found = replace(model, epochs=2).fit(data, np.random.default_rng(0))
    lists = found.recommend(recommending.query_all_users(data), 5, data)
    assert lists.items.shape == (data.train.n_users, 5)
    left = data.candidates.sum() - data.train.user_counts()
    asked = np.where(data.train.user_counts() > 0, left, 0)
    assert lists.filled.sum(1).tolist() == np.minimum(asked, 5).tolist()
