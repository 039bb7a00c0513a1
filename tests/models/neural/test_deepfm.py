from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from recbias.core.dataset import Attributes, TrainingData
from recbias.core.errors import MissingEvidence, OutOfRange, UnknownColumn
from recbias.models.deepfm import DeepFM, sum_crossed_losses
from recbias.models.neumf import score_block, sum_pair_losses
from support.models import recommending
from support.worlds.small_worlds import make_interactions

SMALL = DeepFM(
    embedding_size=8,
    hidden_sizes=(8,),
    epochs=30,
    batch_size=64,
    learning_rate=0.01,
    device="cpu",
)
MODELS = [SMALL, replace(SMALL, variant="elliot", epochs=80)]
all_variants = pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model.variant))


def test_crossed_loss_equals_the_loss_over_a_table_of_all_pairs(rng: np.random.Generator) -> None:
    products, offsets = (
        torch.tensor(rng.normal(size=6, scale=3), requires_grad=True) for _ in range(2)
    )
    labels = torch.tensor([1.0, 0, 1, 1, 0, 0], dtype=torch.float64)

    def sum_over_table() -> Any:
        table = torch.sigmoid(offsets[:, None] + products[None, :])
        losses = -table.log() * labels[None, :] - (1 - table).log() * (1 - labels[None, :])
        return losses.sum() / 6

    expected = torch.autograd.grad(sum_over_table(), (products, offsets))
    gradients = torch.autograd.grad(
        sum_crossed_losses(products, offsets, labels), (products, offsets)
    )
    assert sum_crossed_losses(products, offsets, labels).item() == pytest.approx(
        sum_over_table().item()
    )
    for gradient, reference in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, reference)


def test_losses_by_hand() -> None:
    # σ(0) = 1/2: two pairs have a loss of ln 2 each, crossed or not
    zeros, labels = torch.zeros(2), torch.tensor([1.0, 0.0])
    assert sum_pair_losses(zeros, labels).item() == pytest.approx(2 * np.log(2))
    assert sum_crossed_losses(zeros, zeros, labels).item() == pytest.approx(2 * np.log(2))


@all_variants
def test_checkerboard_is_learned(model: DeepFM) -> None:
    data, expected = recommending.make_checkerboard(20)
    fitted = model.fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 1, data)
    assert (lists.items[:, 0] == expected).mean() > 0.8


def add_colours(data: TrainingData) -> TrainingData:
    """Return the checkerboard with the colours of users and items as attributes."""
    users, items = (
        Attributes(ids, pd.DataFrame({"colour": ["white", "black"] * (len(ids) // 2)}))
        for ids in (data.train.user_ids, data.train.item_ids)
    )
    return TrainingData(data.train, users=users, items=items)


def test_features_improve_scores_of_a_rare_item() -> None:
    # only one white user has item 0; features alone identify the other users of its colour
    data, _ = recommending.make_checkerboard(30)
    train = data.train.take(np.flatnonzero((data.train.items > 0) | (data.train.users == 2)))
    data = add_colours(TrainingData(train))
    users = np.setdiff1d(np.arange(30), [0, 2])
    gaps = []
    short = replace(SMALL, epochs=15)
    for model in (short, replace(short, user_features="none", item_features="none")):
        state = model.fit(data, np.random.default_rng(0)).state()
        scores = score_block(state, users)
        margins = scores[:, 0] - scores[:, 1:].mean(1)
        gaps.append(margins[users % 2 == 0].mean() - margins[users % 2 == 1].mean())
    assert gaps[0] > gaps[1] + 2


@pytest.mark.usefixtures("stage_warnings")
def test_elliot_uses_ids_only() -> None:
    data, _ = recommending.make_checkerboard(12)
    model = replace(MODELS[1], epochs=2)
    plain, coloured = (
        model.fit(training_data, np.random.default_rng(0)).state()
        for training_data in (data, add_colours(data))
    )
    np.testing.assert_array_equal(plain["item_factors"], coloured["item_factors"])


@pytest.mark.usefixtures("stage_warnings")
def test_elliot_applies_the_sigmoid_when_ranking() -> None:
    data, _ = recommending.make_checkerboard(12)
    fitted = replace(MODELS[1], epochs=2).fit(data, np.random.default_rng(0))
    assert fitted.sigmoid
    assert MODELS[1].restore(fitted.state()).sigmoid


def test_dropout_is_reproducible_and_applies_to_training_only() -> None:
    data, _ = recommending.make_checkerboard(12)
    model = replace(SMALL, dropout=0.5, epochs=2)
    state, repeated = (model.fit(data, np.random.default_rng(1)).state() for _ in range(2))
    np.testing.assert_array_equal(
        score_block(state, np.arange(12)), score_block(repeated, np.arange(12))
    )


def test_large_reg_shrinks_vectors() -> None:
    data, _ = recommending.make_checkerboard(10)
    unpenalized, penalized = (
        replace(SMALL, reg=reg).fit(data, np.random.default_rng(0)).state()["user_factors"]
        for reg in (0.0, 10.0)
    )
    assert np.abs(penalized).max() < 0.1 * np.abs(unpenalized).max()


@pytest.mark.usefixtures("stage_warnings")
@all_variants
def test_fit_is_reproducible_and_depends_on_the_seed(model: DeepFM) -> None:
    data, _ = recommending.make_checkerboard(12)
    state, repeated, different = (
        replace(model, epochs=2).fit(data, np.random.default_rng(seed)).state()
        for seed in (1, 1, 2)
    )
    for name, array in state.items():
        np.testing.assert_array_equal(array, repeated[name])
    assert not np.array_equal(state["item_factors"], different["item_factors"])


@all_variants
def test_divergence_is_an_error_that_names_the_learning_rate(model: DeepFM) -> None:
    data, _ = recommending.make_checkerboard(12)
    with pytest.raises(OutOfRange, match="DeepFM diverged in epoch"):
        replace(model, learning_rate=1e30).fit(data, np.random.default_rng(0))


def test_missing_columns_are_refused() -> None:
    data, _ = recommending.make_checkerboard(12)
    with pytest.raises(UnknownColumn, match="no column 'color'"):
        replace(SMALL, item_features=("color",)).fit(add_colours(data), np.random.default_rng(0))
    with pytest.raises(MissingEvidence, match="the dataset has no users table"):
        replace(SMALL, user_features=("colour",)).fit(data, np.random.default_rng(0))


@pytest.mark.usefixtures("stage_warnings")
@all_variants
@pytest.mark.parametrize(
    "data",
    [
        TrainingData(make_interactions([(0, 0), (1, 0)])),
        TrainingData(make_interactions([(0, 0), (0, 1), (0, 2)])),
        TrainingData(make_interactions([(0, 0), (0, 1), (1, 1)])),
        TrainingData(make_interactions([(0, 0), (1, 1), (2, 2)])),
        TrainingData(make_interactions([], n_users=2, n_items=3)),
    ],
    ids=["one item", "one user", "user of all items", "one item per user", "no interactions"],
)
def test_smallest_datasets_are_learned(model: DeepFM, data: TrainingData) -> None:
    fitted = replace(model, epochs=2).fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 5, data)
    assert lists.items.shape == (data.train.n_users, 5)
    n_unseen = data.candidates.sum() - data.train.user_counts()
    n_expected = np.where(data.train.user_counts() > 0, n_unseen, 0)
    assert lists.filled.sum(1).tolist() == np.minimum(n_expected, 5).tolist()
