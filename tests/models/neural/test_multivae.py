from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence

from recbias.core import context as context_module
from recbias.core.context import stage_context
from recbias.core.dataset import AnyArray, Split, TrainingData
from recbias.core.errors import OutOfRange
from recbias.models.multivae import MultiVAE, _Histories, _VAELearner, sum_kl
from recbias.models.training import Dense, collect_parameters
from support.models import recommending
from support.worlds.small_worlds import make_interactions

SMALL = MultiVAE(
    embedding_size=8,
    hidden_size=20,
    epochs=80,
    batch_size=8,
    learning_rate=0.01,
    anneal_steps=200,
    device="cpu",
)
MODELS = [SMALL, replace(SMALL, variant="elliot")]
all_variants = pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model.variant))

PAIRS = [(0, 0), (0, 1), (0, 3), (1, 1), (1, 2), (3, 0)]
TINY = TrainingData(make_interactions(PAIRS, n_users=4, n_items=4))


def make_learner(model: MultiVAE, weights: Sequence[Any], *, step: int = 0) -> _VAELearner:
    """Return a learner on TINY with a seeded noise generator."""
    layers = [Dense(*weights[start : start + 2]) for start in (0, 2, 4, 6)]
    return _VAELearner(
        model,
        layers[:2],
        layers[2:],
        _Histories.from_interactions(TINY.train, torch.device("cpu")),
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


@pytest.mark.parametrize("variant", ["paper", "elliot"])
def test_gradients_equal_finite_differences(variant: Any, rng: np.random.Generator) -> None:
    model = MultiVAE(embedding_size=2, hidden_size=3, anneal_steps=2, reg=0.1, variant=variant)
    users = torch.tensor([3, 0, 1])

    def compute_loss(*weights: Any) -> Any:
        return make_learner(model, weights).loss(users)

    assert torch.autograd.gradcheck(compute_loss, sample_weights(rng))


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


@pytest.mark.parametrize(
    ("variant", "step", "expected"),
    [
        ("paper", 1, 0.2 / 500),
        ("paper", 250, 0.1),
        ("paper", 500, 0.2),
        ("paper", 9999, 0.2),
        ("elliot", 500, 500 / 200_000 / 100),
        ("elliot", 40_000, 0.2 / 100),
        ("elliot", 90_000, 0.2 / 100),
    ],
)
def test_weight_of_kl_increases_linearly(variant: Any, step: int, expected: float) -> None:
    model = MultiVAE(embedding_size=100, beta=0.2, anneal_steps=500, variant=variant)
    assert model.kl_weight(torch.tensor([step])).item() == pytest.approx(expected)


def test_encoder_input_has_unit_rows_and_dropout(
    rng: np.random.Generator,
) -> None:
    weights = [tensor.detach() for tensor in sample_weights(rng)]
    users = torch.tensor([0, 1])
    for dropout in (0.0, 0.9):
        learner = make_learner(MultiVAE(dropout=dropout), weights)
        rows, items, counts = learner.histories.look_up(users)
        x = np.zeros((2, 4))
        x[rows, items] = 1 / np.sqrt(counts.numpy())[rows]
        hidden = np.tanh(x @ weights[0].numpy() + weights[1].numpy())
        expected = (hidden @ weights[2].numpy() + weights[3].numpy())[:, :2]
        mean, _ = learner._encode(rows, items, counts)
        assert np.allclose(mean.numpy(), expected) == (dropout == 0)


@all_variants
def test_checkerboard_is_learned(model: MultiVAE) -> None:
    data, expected = recommending.make_checkerboard(20)
    fitted = model.fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 1, data)
    assert (lists.items[:, 0] == expected).mean() > 0.8


@all_variants
def test_fit_is_reproducible_and_depends_on_the_seed(model: MultiVAE) -> None:
    data, _ = recommending.make_checkerboard(12)
    state, repeated, different = (
        replace(model, epochs=2).fit(data, np.random.default_rng(seed)).state()
        for seed in (1, 1, 2)
    )
    for name, array in state.items():
        np.testing.assert_array_equal(array, repeated[name])
    assert not np.array_equal(state["latent"], different["latent"])


def test_large_reg_shrinks_weights() -> None:
    data, _ = recommending.make_checkerboard(12)
    unpenalized, penalized = (
        replace(SMALL, epochs=40, reg=reg).fit(data, np.random.default_rng(0))
        for reg in (0.0, 10.0)
    )
    name = "decoder.1.weight"
    assert np.abs(penalized.arrays[name]).max() < 0.1 * np.abs(unpenalized.arrays[name]).max()


def test_divergence_is_an_error_that_names_the_learning_rate() -> None:
    data, _ = recommending.make_checkerboard(12)
    with pytest.raises(OutOfRange, match="MultiVAE diverged in epoch"):
        replace(SMALL, learning_rate=1e30).fit(data, np.random.default_rng(0))


@pytest.mark.usefixtures("stage_warnings")
@all_variants
@pytest.mark.parametrize(
    "data",
    [
        TrainingData(make_interactions([(0, 0), (1, 0)])),
        TrainingData(make_interactions([(0, 0), (1, 1), (2, 2)])),
        TrainingData(make_interactions([(0, 0), (0, 1), (2, 2)])),
        TrainingData(make_interactions([], n_users=2, n_items=3)),
    ],
    ids=["one item", "one interaction per user", "user without history", "no interactions"],
)
def test_smallest_datasets_are_learned(model: MultiVAE, data: TrainingData) -> None:
    fitted = replace(model, epochs=2).fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 5, data)
    assert lists.items.shape == (data.train.n_users, 5)
    empty = data.train.user_counts() == 0
    assert (lists.items[empty] == -1).all()
    users = fitted.embeddings().users
    assert users is not None
    np.testing.assert_array_equal(np.isnan(users).all(axis=1), empty)


class Interrupted(Exception):
    """Stands for an interruption of the training."""


class CheckpointStore:
    """Keeps the last checkpoint and interrupts the training after the third."""

    def __init__(self) -> None:
        self.arrays: Mapping[str, AnyArray] | None = None
        self.n_saved = 0

    def load(self) -> Mapping[str, AnyArray] | None:
        return self.arrays

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        self.arrays = {name: array.copy() for name, array in arrays.items()}
        self.n_saved += 1
        if self.n_saved == 3:
            raise Interrupted


@all_variants
def test_resumed_training_gives_the_same_state(
    model: MultiVAE, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_module, "MIN_CHECKPOINT_INTERVAL", 0.0)
    monkeypatch.setattr(context_module, "CHECKPOINT_TIME_SHARE", np.inf)
    data, _ = recommending.make_checkerboard(12)
    model = replace(model, epochs=6)
    uninterrupted = model.fit(data, np.random.default_rng(3)).state()
    with stage_context(checkpoint_store=CheckpointStore()):
        with pytest.raises(Interrupted):
            model.fit(data, np.random.default_rng(3))
        resumed = model.fit(data, np.random.default_rng(99)).state()
    for name, array in uninterrupted.items():
        np.testing.assert_array_equal(array, resumed[name])


def test_initial_weights_are_glorot_uniform() -> None:
    learner = _VAELearner.initialize(SMALL, TINY, np.random.default_rng(0))
    first = learner.encoder[0].weight
    assert first.abs().max() <= math.sqrt(6 / (4 + 20))
    shapes = [
        tuple(tensor.shape) for tensor in collect_parameters([*learner.encoder, *learner.decoder])
    ]
    assert shapes == [(4, 20), (20,), (20, 16), (16,), (8, 20), (20,), (20, 4), (4,)]


@pytest.mark.real_data
def test_quality_on_movielens(movielens: Split) -> None:
    # fewer epochs than the default, whose values are in docs/results.md
    data = movielens.training_data()
    model = MultiVAE(hidden_size=200, embedding_size=50, epochs=4, learning_rate=0.005)
    fitted = replace(model, device="cpu").fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 10, data)
    assert recommending.compute_mean_ndcg(lists, movielens) > 0.2
