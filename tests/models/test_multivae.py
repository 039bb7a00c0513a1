from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence

from recbias.core.dataset import Split, TrainingData
from recbias.models.gpu import DeviceRows
from recbias.models.multivae import FittedMultiVAE, MultiVAE, _VAELearner, sum_kl
from recbias.models.training import Dense
from support.models import recommending
from support.worlds.small_worlds import make_interactions

PAIRS = [(0, 0), (0, 1), (0, 3), (1, 1), (1, 2), (3, 0)]
TINY = TrainingData(make_interactions(PAIRS, n_users=4, n_items=4))


def make_learner(model: MultiVAE, weights: Sequence[Any], *, step: int = 0) -> _VAELearner:
    """Return a learner on TINY with a seeded noise generator."""
    layers = [Dense(*weights[start : start + 2]) for start in (0, 2, 4, 6)]
    return _VAELearner(
        model,
        layers[:2],
        layers[2:],
        DeviceRows.copy(TINY.train.binary, torch.device("cpu")),
        torch.full((1,), float(step)),
        torch.ones(1, dtype=torch.int64),
        torch.Generator().manual_seed(5),
    )


def sample_weights(rng: np.random.Generator, *, hidden: int = 3, latent: int = 2) -> list[Any]:
    shapes = [(4, hidden), (hidden, 2 * latent), (latent, hidden), (hidden, 4)]
    sizes = [size for shape in shapes for size in (shape, shape[1:])]
    return [torch.tensor(rng.normal(size=size), requires_grad=True) for size in sizes]


def test_kl_equals_that_of_torch_distributions(rng: np.random.Generator) -> None:
    mean, log_variance = (torch.tensor(rng.normal(size=(5, 3))) for _ in range(2))
    expected = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0)).sum()
    assert sum_kl(mean, log_variance).item() == pytest.approx(expected.item())


def test_loss_by_hand() -> None:
    # One hidden unit, one latent dimension. All weights of the encoder are 0, so the mean is its
    # bias 2 and the log-variance -200: the latent vector is constant. The decoder has the hidden
    # value tanh(0.25 · 2) = 0.462117 and the scores 0, h, 2h, 3h.
    # User 0 has items 0, 1 and 3, user 3 has item 0: with s = ln Σ e^score
    model = MultiVAE(embedding_size=1, hidden_size=1, beta=0.3, anneal_steps=4, reg=0.01)
    weights = [
        *(torch.tensor(values) for values in ([[0.0]] * 4, [0.0], [[0.0, 0.0]], [2.0, -200.0])),
        *(torch.tensor(values) for values in ([[0.25]], [0.0], [[0.0, 1.0, 2.0, 3.0]], [0.0] * 4)),
    ]
    hidden = math.tanh(0.5)
    log_sum = math.log(sum(math.exp(item * hidden) for item in range(4)))
    likelihood_loss = (3 * log_sum - 4 * hidden) + (log_sum - 0)
    user_kl = (math.exp(-200) + 4 - 1 + 200) / 2
    # the second step of four: half of beta, for two users. Squares: 0.0625 + 0 + 1 + 4 + 9
    expected = likelihood_loss + 0.15 * 2 * user_kl + 0.01 * 2 * 14.0625
    loss = make_learner(model, weights, step=1).loss(torch.tensor([0, 3]))
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    # elliot: 2 steps / 200,000, KL divided by one dimension, no reg
    elliot = replace(model, variant="elliot")
    loss = make_learner(elliot, weights, step=1).loss(torch.tensor([0, 3]))
    assert loss.item() == pytest.approx(likelihood_loss + 2 / 200_000 * 2 * user_kl, rel=1e-5)


def test_encoder_input_has_unit_rows_and_dropout(rng: np.random.Generator) -> None:
    weights = [tensor.detach() for tensor in sample_weights(rng)]
    users = torch.tensor([0, 1])
    for dropout in (0.0, 0.9):
        learner = make_learner(MultiVAE(dropout=dropout), weights)
        rows, items, counts = learner.look_up(users)
        x = np.zeros((2, 4))
        x[rows, items] = 1 / np.sqrt(counts.numpy())[rows]
        hidden = np.tanh(x @ weights[0].numpy() + weights[1].numpy())
        expected = (hidden @ weights[2].numpy() + weights[3].numpy())[:, :2]
        mean, _ = learner._encode(rows, items, counts)
        assert np.allclose(mean.numpy(), expected) == (dropout == 0)


@pytest.mark.slow
@pytest.mark.real_data
def test_quality_on_movielens(movielens: Split) -> None:
    # fewer epochs than the default, whose values are in docs/evidence/tables
    data = movielens.training_data()
    model = MultiVAE(hidden_size=200, embedding_size=50, epochs=4, learning_rate=0.005)
    fitted = replace(model, device="cpu").fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 10, data)
    assert recommending.compute_mean_ndcg(lists, movielens) > 0.2


SMALL = MultiVAE(
    embedding_size=8,
    hidden_size=20,
    epochs=80,
    batch_size=8,
    learning_rate=0.01,
    anneal_steps=200,
    device="cpu",
)
ELLIOT = replace(SMALL, variant="elliot")


def fit_model(model: MultiVAE = SMALL) -> tuple[FittedMultiVAE, TrainingData]:
    data, _ = recommending.make_checkerboard(12)
    return replace(model, epochs=2).fit(data, np.random.default_rng(0)), data


@pytest.mark.usefixtures("stage_warnings")
def test_elliot_samples_latent_vectors_from_the_stored_seed() -> None:
    model = ELLIOT
    fitted, data = fit_model(model)
    queries = recommending.query_all_users(data)
    lists, repeated = (fitted.recommend(queries, 5, data) for _ in range(2))
    np.testing.assert_array_equal(lists.items, repeated.items)
    reseeded = replace(fitted, arrays={**fitted.arrays, "seed": fitted.arrays["seed"] + 1})
    assert not np.array_equal(lists.scores, reseeded.recommend(queries, 5, data).scores)
    restored = model.restore(fitted.state()).recommend(queries, 5, data)
    np.testing.assert_array_equal(lists.items, restored.items)
    assert "seed" not in fit_model()[0].state()
