from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.dataset import TrainingData
from recbias.models.factorization import (
    PMF,
    FactorTables,
    _sum_penalized_errors,
    count_pairs,
    weigh_penalties,
)
from recbias.models.sgd import create_rating_sampler
from support.models import recommending
from support.worlds.small_worlds import make_interactions

SMALL = PMF(embedding_size=8, epochs=60, batch_size=64, learning_rate=0.05, reg=0.5, device="cpu")
MODELS = [SMALL, replace(SMALL, variant="elliot", epochs=150)]
all_variants = pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model.variant))


def sample_tensor(*shape: int, rng: np.random.Generator) -> Any:
    return torch.tensor(rng.normal(size=shape), requires_grad=True)


def test_gradients_match_finite_differences(rng: np.random.Generator) -> None:
    pairs = [torch.tensor([0, 0, 2]), torch.tensor([1, 3, 1]), torch.tensor([1.0, 0.0, 0.5])]
    penalties = torch.rand(3).double(), torch.rand(4).double()

    def loss(users: Any, items: Any) -> Any:
        return _sum_penalized_errors(FactorTables(users, items), penalties, *pairs)

    assert torch.autograd.gradcheck(
        loss, (sample_tensor(3, 2, rng=rng), sample_tensor(4, 2, rng=rng))
    )


def test_loss_of_pairs_matches_a_hand_computation() -> None:
    # σ(2 · 0.5) = 0.731059; errors 1 - 0.731059 and 0 - 0.731059; the user has two pairs, so that
    # each weighs 2² by 0.3 / 2, and the item four, two of them in other batches: 0.5² by 0.3 / 4
    tables = FactorTables(torch.tensor([[2.0]]), torch.tensor([[0.5]]))
    penalties = weigh_penalties(tables, (np.array([2]), np.array([4])), 0.3)
    pairs = (torch.tensor([0, 0]), torch.tensor([0, 0]), torch.tensor([1.0, 0.0]))
    expected = 0.268941**2 + 0.731059**2 + 2 * 0.15 * 4 + 2 * 0.075 * 0.25
    loss = _sum_penalized_errors(tables, penalties, *pairs).item()
    assert loss == pytest.approx(expected, rel=1e-5)


def test_gradients_of_the_batches_of_an_epoch_add_up_to_that_of_the_objective(
    rng: np.random.Generator,
) -> None:
    pairs = [(u, i) for u in range(6) for i in range(7) if rng.random() < 0.5 or i == u]
    train = make_interactions(pairs, values=rng.integers(1, 6, len(pairs)).tolist())
    tables = FactorTables(sample_tensor(6, 3, rng=rng), sample_tensor(7, 3, rng=rng))
    of_users, of_items = weigh_penalties(tables, count_pairs(train, 4), 0.7)
    weights = of_users.double(), of_items.double()
    users, items, values = map(torch.tensor, create_rating_sampler(train, 4, unit=True)(rng))
    errors = values - (tables.users[users] * tables.items[items]).sum(1).sigmoid()
    squares = tables.users.square().sum() + tables.items.square().sum()
    vectors = tables.parameters()
    expected = torch.autograd.grad(errors.square().sum() + 0.7 * squares, vectors)
    sums = [torch.zeros_like(table) for table in vectors]
    for start in range(0, len(pairs), 4):
        batch = (column[start : start + 4] for column in (users, items, values))
        loss = _sum_penalized_errors(tables, weights, *batch)
        for index, gradient in enumerate(torch.autograd.grad(loss, vectors)):
            sums[index] += gradient
    torch.testing.assert_close(sums, list(expected), rtol=1e-6, atol=1e-7)


def test_counts_are_those_of_sampled_epochs_on_average(rng: np.random.Generator) -> None:
    # user 0 has every item and is left out; every user has item 3, which is never unseen
    pairs = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 3), (2, 1), (2, 3), (3, 0), (3, 2), (3, 3)]
    train = make_interactions(pairs, n_users=5)
    sampler = create_rating_sampler(train, 2)
    epochs = [sampler(rng) for _ in range(2_000)]
    for code, (counts, n_rows) in enumerate(zip(count_pairs(train, 2), (5, 4), strict=True)):
        drawn = [np.bincount(epoch[code], minlength=n_rows) for epoch in epochs]
        spread = np.std(drawn, axis=0) / np.sqrt(len(drawn))
        assert (np.abs(np.mean(drawn, axis=0) - counts) <= 4.5 * spread + 1e-12).all()
    assert count_pairs(train, 2)[0].tolist() == [0, 3, 6, 9, 0]


@all_variants
def test_checkerboard_pattern_is_learned(model: PMF) -> None:
    data, missing = recommending.make_checkerboard(20)
    fitted = model.fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 1, data)
    assert (lists.items[:, 0] == missing).mean() > 0.8


def test_ratings_are_learned_in_their_range(rng: np.random.Generator) -> None:
    # users rate items of their own colour 5 and the others 1
    pairs = [(u, i) for u in range(20) for i in range(20) if rng.random() < 0.7]
    values = [5.0 if (u + i) % 2 == 0 else 1.0 for u, i in pairs]
    fitted = replace(SMALL, reg=0.05).fit(
        TrainingData(make_interactions(pairs, values=values)), np.random.default_rng(0)
    )
    scores = 1 / (1 + np.exp(-fitted.scores(np.arange(20, dtype=np.int32))))
    colours = np.add.outer(np.arange(20), np.arange(20)) % 2 == 0
    assert scores[colours].mean() > 0.8
    assert scores[~colours].mean() < 0.2


def test_elliot_variant_ignores_ratings() -> None:
    pairs = [(0, 0), (0, 1), (1, 1), (2, 2)]
    data = [
        TrainingData(make_interactions(pairs, values=values))
        for values in ([1.0, 2, 3, 4], [4.0, 3, 2, 1])
    ]
    model = replace(SMALL, variant="elliot", epochs=2)
    first, second = (model.fit(part, np.random.default_rng(0)) for part in data)
    np.testing.assert_array_equal(first.item_factors, second.item_factors)
