from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence

from recbias.core import stage_context as context_module
from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import Split, TrainingData
from recbias.core.errors import OutOfRange
from recbias.core.stage_context import stage_context
from recbias.models.neural import multivae
from recbias.models.neural.histories import Histories
from recbias.models.neural.multivae import FittedMultiVAE, MultiVAE, VAELearner, kl
from recbias.models.training.layers import Dense, collect_parameters
from support import recommending
from support.worlds import make_interactions

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
every = pytest.mark.parametrize("model", MODELS, ids=lambda each: str(each.variant))

PAIRS = [(0, 0), (0, 1), (0, 3), (1, 1), (1, 2), (3, 0)]
TINY = TrainingData(make_interactions(PAIRS, n_users=4, n_items=4))


def learner_of(model: MultiVAE, weights: Sequence[Any], *, step: int = 0) -> VAELearner:
    """A learner of TINY whose noise is the same each time."""
    first, second, third, fourth = (
        Dense(weights[place], weights[place + 1]) for place in (0, 2, 4, 6)
    )
    return VAELearner(
        model,
        [first, second],
        [third, fourth],
        Histories.of(TINY.train, torch.device("cpu")),
        torch.full((1,), float(step)),
        torch.ones(1, dtype=torch.int64),
        torch.Generator().manual_seed(5),
    )


def weights_of(rng: np.random.Generator, *, hidden: int = 3, latent: int = 2) -> list[Any]:
    shapes = [(4, hidden), (hidden, 2 * latent), (latent, hidden), (hidden, 4)]
    both = [each for shape in shapes for each in (shape, shape[1:])]
    return [torch.tensor(rng.normal(size=each), requires_grad=True) for each in both]


def test_kl_is_that_of_distributions(rng: np.random.Generator) -> None:
    mean, log_variance = (torch.tensor(rng.normal(size=(5, 3))) for _ in range(2))
    expected = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0)).sum()
    assert kl(mean, log_variance).item() == pytest.approx(expected.item())


@pytest.mark.parametrize("variant", ["paper", "elliot"])
def test_gradients_are_finite_differences(variant: Any, rng: np.random.Generator) -> None:
    model = MultiVAE(embedding_size=2, hidden_size=3, anneal_steps=2, reg=0.1, variant=variant)
    users = torch.tensor([3, 0, 1])

    def loss(*weights: Any) -> Any:
        return learner_of(model, weights).loss(users)

    assert torch.autograd.gradcheck(loss, weights_of(rng))


def test_the_loss_by_hand() -> None:
    # One hidden unit, one latent dimension. All weights of the encoder are 0, so the mean is its
    # bias 2 and the logarithm of the variance -200: nothing is left to chance. The decoder has the
    # hidden value tanh(0.25 · 2) = 0.462117 and the scores 0, h, 2h, 3h.
    # User 0 has items 0, 1 and 3, user 3 has item 0: with s = ln Σ e^score
    model = MultiVAE(embedding_size=1, hidden_size=1, beta=0.3, anneal_steps=4, reg=0.01)
    weights = [
        torch.tensor(each)
        for each in (
            [[0.0]] * 4,
            [0.0],
            [[0.0, 0.0]],
            [2.0, -200.0],
            [[0.25]],
            [0.0],
            [[0.0, 1.0, 2.0, 3.0]],
            [0.0] * 4,
        )
    ]
    hidden = math.tanh(0.5)
    log_sum = math.log(sum(math.exp(each * hidden) for each in range(4)))
    missed = (3 * log_sum - 4 * hidden) + (log_sum - 0)
    each_kl = (math.exp(-200) + 4 - 1 + 200) / 2
    # the second step of four: half of beta, for two users. Squares: 0.0625 + 0 + 1 + 4 + 9
    expected = missed + 0.15 * 2 * each_kl + 0.01 * 2 * 14.0625
    found = learner_of(model, weights, step=1).loss(torch.tensor([0, 3]))
    assert found.item() == pytest.approx(expected, rel=1e-5)
    # elliot: 2 steps / 200,000, KL divided by one dimension, no reg
    found = learner_of(replace(model, variant="elliot"), weights, step=1).loss(
        torch.tensor([0, 3])
    )
    assert found.item() == pytest.approx(missed + 2 / 200_000 * 2 * each_kl, rel=1e-5)


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
def test_the_weight_of_kl_rises_in_a_line(variant: Any, step: int, expected: float) -> None:
    model = MultiVAE(embedding_size=100, beta=0.2, anneal_steps=500, variant=variant)
    assert model.kl_weight(torch.tensor([step])).item() == pytest.approx(expected)


def test_the_encoder_sees_rows_of_length_1_and_drops_while_training(
    rng: np.random.Generator,
) -> None:
    weights = [each.detach() for each in weights_of(rng)]
    users = torch.tensor([0, 1])
    for dropout in (0.0, 0.9):
        learner = learner_of(MultiVAE(dropout=dropout), weights)
        rows_, items, counts = learner.histories.of_users(users)
        x = np.zeros((2, 4))
        x[rows_, items] = 1 / np.sqrt(counts.numpy())[rows_]
        hidden = np.tanh(x @ weights[0].numpy() + weights[1].numpy())
        expected = (hidden @ weights[2].numpy() + weights[3].numpy())[:, :2]
        mean, _ = learner._encoded(rows_, items, counts)
        assert np.allclose(mean.numpy(), expected) == (dropout == 0)


@every
def test_it_learns_the_checkerboard(model: MultiVAE) -> None:
    data, wanted = recommending.make_checkerboard(20)
    found = model.fit(data, np.random.default_rng(0))
    lists = found.recommend(recommending.query_all_users(data), 1, data)
    assert (lists.items[:, 0] == wanted).mean() > 0.8


def fitted(model: MultiVAE = SMALL, epochs: int = 2) -> tuple[FittedMultiVAE, TrainingData]:
    data, _ = recommending.make_checkerboard(12)
    return replace(model, epochs=epochs).fit(data, np.random.default_rng(0)), data


def test_lists_are_of_the_mean() -> None:
    found, data = fitted()
    state = found.state()
    x = data.train.binary.toarray()
    x /= np.sqrt(x.sum(axis=1, keepdims=True))
    hidden = np.tanh(x @ state["encoder.0.weight"] + state["encoder.0.bias"])
    mean = (hidden @ state["encoder.1.weight"] + state["encoder.1.bias"])[:, :8]
    np.testing.assert_allclose(state["latent"], mean, rtol=1e-4, atol=1e-6)
    deep = np.tanh(mean @ state["decoder.0.weight"] + state["decoder.0.bias"])
    scores = deep @ state["decoder.1.weight"] + state["decoder.1.bias"]
    scores[x > 0] = -np.inf
    lists = found.recommend(recommending.query_all_users(data), 6, data)
    np.testing.assert_allclose(lists.scores, -np.sort(-scores, axis=1)[:, :6], rtol=1e-4)


def test_elliot_draws_for_lists_by_what_it_stored() -> None:
    model = MODELS[1]
    found, data = fitted(model)
    queries = recommending.query_all_users(data)
    first, again = (found.recommend(queries, 5, data) for _ in range(2))
    np.testing.assert_array_equal(first.items, again.items)
    other = replace(found, arrays={**found.arrays, "seed": found.arrays["seed"] + 1})
    assert not np.array_equal(first.scores, other.recommend(queries, 5, data).scores)
    restored = model.restore(found.state()).recommend(queries, 5, data)
    np.testing.assert_array_equal(first.items, restored.items)
    assert "seed" not in fitted()[0].state()


def test_a_history_that_is_given_later_is_what_counts() -> None:
    # user 0 has even items, and is given the history of one who has odd ones
    data, _ = recommending.make_checkerboard(12)
    found = SMALL.fit(data, np.random.default_rng(0))
    others = zip(data.train.users.tolist(), data.train.items.tolist(), strict=True)
    pairs = [each for each in others if each[0] != 0]
    given = TrainingData(make_interactions([(0, 1), (0, 3), (0, 5), (0, 7), *pairs]))
    lists = found.recommend(recommending.query_all_users(data, [0]), 2, given)
    assert set(lists.items[0].tolist()) == {9, 11}


def test_vectors_multiply_to_the_scores() -> None:
    found, data = fitted()
    vectors = found.embeddings()
    assert vectors.users is not None
    assert vectors.items is not None
    assert vectors.users.shape == (12, 20)
    scores = vectors.users @ vectors.items.T + found.state()["decoder.1.bias"]
    lists = found.recommend(recommending.query_all_users(data), 4, data)
    np.testing.assert_allclose(
        np.take_along_axis(scores, lists.items, 1), lists.scores, rtol=1e-4, atol=1e-6
    )


def test_scores_are_the_same_with_tensors() -> None:
    found, _ = fitted()
    users = np.array([3, 1], dtype=np.int32)
    tensors = {name: torch.from_numpy(each) for name, each in found.state().items()}
    np.testing.assert_allclose(
        multivae._scores(tensors, torch.from_numpy(users).long()).numpy(),
        multivae._scores(found.state(), users),
        rtol=1e-4,
        atol=1e-6,
    )


@every
def test_one_seed_one_result_another_another(model: MultiVAE) -> None:
    data, _ = recommending.make_checkerboard(12)
    first, again, other = (
        replace(model, epochs=2).fit(data, np.random.default_rng(seed)).state()
        for seed in (1, 1, 2)
    )
    for name, each in first.items():
        np.testing.assert_array_equal(each, again[name])
    assert not np.array_equal(first["latent"], other["latent"])


def test_a_strong_reg_leaves_small_weights() -> None:
    free, _ = fitted(epochs=40)
    tight, _ = fitted(replace(SMALL, reg=10.0), epochs=40)
    name = "decoder.1.weight"
    assert np.abs(tight.arrays[name]).max() < 0.1 * np.abs(free.arrays[name]).max()


def test_a_learning_rate_that_diverges_is_named() -> None:
    data, _ = recommending.make_checkerboard(12)
    with pytest.raises(OutOfRange, match="MultiVAE diverged in epoch"):
        replace(SMALL, learning_rate=1e30).fit(data, np.random.default_rng(0))


@every
@pytest.mark.parametrize(
    "data",
    [
        TrainingData(make_interactions([(0, 0), (1, 0)])),
        TrainingData(make_interactions([(0, 0), (1, 1), (2, 2)])),
        TrainingData(make_interactions([(0, 0), (0, 1), (2, 2)])),
        TrainingData(make_interactions([], n_users=2, n_items=3)),
    ],
    ids=["one item", "one row a user", "a user without rows", "no row"],
)
def test_the_smallest_worlds_are_learned(model: MultiVAE, data: TrainingData) -> None:
    found = replace(model, epochs=2).fit(data, np.random.default_rng(0))
    lists = found.recommend(recommending.query_all_users(data), 5, data)
    assert lists.items.shape == (data.train.n_users, 5)
    empty = data.train.user_counts() == 0
    assert (lists.items[empty] == -1).all()
    users = found.embeddings().users
    assert users is not None
    np.testing.assert_array_equal(np.isnan(users).all(axis=1), empty)


class Killed(Exception):
    """What takes the place of a kill inside a test."""


class Disk:
    """Keeps what survives, and kills the third time."""

    def __init__(self) -> None:
        self.arrays: Mapping[str, AnyArray] | None = None
        self.saved = 0

    def load(self) -> Mapping[str, AnyArray] | None:
        return self.arrays

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        self.arrays = {name: each.copy() for name, each in arrays.items()}
        self.saved += 1
        if self.saved == 3:
            raise Killed


@every
def test_what_was_cut_off_ends_in_the_same_figures(
    model: MultiVAE, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_module, "MIN_CHECKPOINT_INTERVAL", 0.0)
    monkeypatch.setattr(context_module, "CHECKPOINT_TIME_SHARE", np.inf)
    data, _ = recommending.make_checkerboard(12)
    model = replace(model, epochs=6)
    whole = model.fit(data, np.random.default_rng(3)).state()
    with stage_context(checkpoint_store=Disk()):
        with pytest.raises(Killed):
            model.fit(data, np.random.default_rng(3))
        found = model.fit(data, np.random.default_rng(99)).state()
    for name, each in whole.items():
        np.testing.assert_array_equal(each, found[name])


def test_the_first_layers_are_glorots() -> None:
    learner = VAELearner.drawn(SMALL, TINY, np.random.default_rng(0))
    first = learner.encoder[0].weight
    assert first.abs().max() <= math.sqrt(6 / (4 + 20))
    shapes = [
        tuple(each.shape) for each in collect_parameters([*learner.encoder, *learner.decoder])
    ]
    assert shapes == [(4, 20), (20,), (20, 16), (16,), (8, 20), (20,), (20, 4), (4,)]


@pytest.mark.real_data
def test_quality_on_movielens(movielens: Split) -> None:
    # a few of the epochs of the default, whose figures stand in docs/results.md
    data = movielens.training_data()
    model = MultiVAE(hidden_size=200, embedding_size=50, epochs=4, learning_rate=0.005)
    found = replace(model, device="cpu").fit(data, np.random.default_rng(0))
    lists = found.recommend(recommending.query_all_users(data), 10, data)
    assert recommending.compute_mean_ndcg(lists, movielens) > 0.2
