from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from recbias.core.dataset import Attributes, TrainingData
from recbias.models.deepfm import DeepFM, sum_crossed_losses
from recbias.models.neumf import score_block, sum_pair_losses
from support.models import recommending

SMALL = DeepFM(
    embedding_size=8,
    hidden_sizes=(8,),
    epochs=30,
    batch_size=64,
    learning_rate=0.01,
    device="cpu",
)
MODELS = [SMALL, replace(SMALL, variant="elliot", epochs=80)]


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
def test_elliot_applies_the_sigmoid_when_ranking() -> None:
    data, _ = recommending.make_checkerboard(12)
    fitted = replace(MODELS[1], epochs=2).fit(data, np.random.default_rng(0))
    assert fitted.sigmoid
    assert MODELS[1].restore(fitted.state()).sigmoid
