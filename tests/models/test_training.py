"""RowAdam against Adam on all rows, in double precision and by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from recbias.core.context import stage_context
from recbias.core.dataset import AnyArray, Attributes, Interactions, TrainingData
from recbias.core.errors import OutOfRange, TooLittleMemory
from recbias.models import sgd
from recbias.models.convmf import ConvMF
from recbias.models.factorization import AMF, BPRMF, MF, MF2020, PMF, FunkSVD
from recbias.models.fitted import FittedFactors
from recbias.models.gpu import copy_to_array, create_parameter, create_torch_generator
from recbias.models.multivae import MultiVAE
from recbias.models.sequential import BERT4Rec, GRU4Rec, SASRec
from recbias.models.sgd import Sampler
from recbias.models.training import (
    EarlyStopping,
    Learner,
    RowAdam,
    Schedule,
    has_validation_users,
    look_up,
    train,
    validation_ndcg,
)
from support.models.checkpoints import Interrupted, MemoryStore
from support.models.sequence_worlds import make_chain
from support.worlds.small_worlds import make_interactions

DATA = TrainingData(make_interactions([(0, 0), (0, 1), (1, 1), (1, 2)], n_items=4))


CPU = torch.device("cpu")


class Parabola(Learner[FittedFactors]):
    """Learns one number w; the loss of a sample x is (w - x)² / 2."""

    def __init__(self, samples: list[float]) -> None:
        self.samples = np.array(samples, dtype=np.float32)
        self.weight = create_parameter(np.zeros(1), CPU)
        self.batches: list[list[float]] = []
        self.threads = 0

    def parameters(self) -> Sequence[Any]:
        return [self.weight]

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        return [self.samples]

    def loss(self, *batch: Any) -> Any:
        self.batches.append(batch[0].tolist())
        self.threads = torch.get_num_threads()
        return (self.weight - batch[0]).square().sum() / 2

    def export(self) -> FittedFactors:
        value = copy_to_array(self.weight)
        return FittedFactors(np.ones((2, 1), dtype=np.float32), value * np.ones((4, 1), "f4"))


def create_schedule(**settings: Any) -> Schedule:
    defaults: dict[str, Any] = {
        "name": "Parabola",
        "epochs": 1,
        "batch_size": 2,
        "learning_rate": 0.1,
    }
    return Schedule(**(defaults | settings))


def test_steps_match_a_hand_computation(rng: np.random.Generator) -> None:
    # Adam's first step is 0.1 whatever the gradient -3 of the batch (1, 2); that of the batch (4)
    # is 0.1 - 4 = -3.9: m = (0.9 · 0.1 · -3 - 0.1 · 3.9) / 0.19, v = (0.999 · 0.009 + 0.01521)
    # / (1 - 0.999²), and w = 0.1 - 0.1 m / sqrt(v)
    learner = Parabola([1, 2, 4])
    fitted = train(learner, create_schedule(), DATA, rng)
    mean, square = -0.66 / 0.19, (0.999 * 0.009 + 0.01521) / (1 - 0.999**2)
    assert fitted.item_factors[0, 0] == pytest.approx(0.1 - 0.1 * mean / math.sqrt(square))
    assert learner.batches == [[1, 2], [4]]


def test_divergence_error_names_epoch_loss_and_setting(rng: np.random.Generator) -> None:
    with pytest.raises(OutOfRange) as caught:
        train(Parabola([1]), create_schedule(learning_rate=1e30, epochs=9), DATA, rng)
    # w = 1e30 after the first epoch, whose square is beyond float32
    assert "diverged in epoch 2 of 9: the loss is inf" in str(caught.value)
    assert caught.value.remedy == "lower learning_rate, which is 1e+30"


def test_early_stopping_returns_the_best_epoch(rng: np.random.Generator) -> None:
    # all items have the same vector, so that no epoch is better than the first
    data = TrainingData(DATA.train, make_interactions([(0, 2), (1, 0)], n_items=4))
    learner = Parabola([5])
    fitted = train(learner, create_schedule(epochs=50, patience=3), data, rng)
    assert len(learner.batches) == 4
    assert fitted.item_factors[0, 0] == pytest.approx(0.1, rel=1e-4)


@pytest.mark.parametrize("error", [MemoryError("4 TiB"), RuntimeError("can't allocate memory: 9")])
def test_cpu_memory_errors_are_reported(rng: np.random.Generator, error: Exception) -> None:
    class Hungry(Parabola):
        def loss(self, *batch: Any) -> Any:
            raise error

    with pytest.raises(TooLittleMemory, match="too little memory"):
        train(Hungry([1]), create_schedule(), DATA, rng)


# user 0 lacks items 1, 2 and 3, user 1 lacks 0, 2 and 3; user 2 has no training row
TRAIN = make_interactions([(0, 0), (1, 1), (1, 2), (1, 3), (0, 3)], n_users=3, n_items=4)


VALIDATION = make_interactions([(0, 2), (1, 0), (2, 1)], n_users=3, n_items=4)


EARLY_STOPPING_DATA = TrainingData(TRAIN, VALIDATION)


def create_recommender(*scores: float) -> FittedFactors:
    """Return a recommender with the same scores of the four items for all users."""
    vectors = np.array(scores, dtype=np.float32)[:, None]
    return FittedFactors(np.ones((3, 1), dtype=np.float32), vectors)


def test_ndcg_matches_a_hand_computation() -> None:
    # user 0 has the list 1, 2 with a hit at rank 2: 1 / log2(3); user 1 has the list 0: 1; user 2
    # has no training row
    expected = (1 / math.log2(3) + 1) / 2
    assert validation_ndcg(create_recommender(0, 5, 4, 3), EARLY_STOPPING_DATA) == pytest.approx(
        expected
    )


def test_training_stops_after_patience_and_restores_the_best_epoch() -> None:
    stopping, value = (
        EarlyStopping(has_validation_users(EARLY_STOPPING_DATA), patience=2),
        torch.zeros(1),
    )
    recommenders = [
        create_recommender(0, 5, 4, 3),
        create_recommender(0, 4, 5, 3),
        create_recommender(0, 5, 4, 3),
        create_recommender(0, 5, 4, 3),
    ]
    stops = []
    for epoch, fitted in enumerate(recommenders):
        value.fill_(epoch)
        stopping.record(validation_ndcg(fitted, EARLY_STOPPING_DATA), [value])
        stops.append(stopping.should_stop)
    assert stops == [False, False, False, True]
    stopping.restore([value])
    assert value.item() == 1


WORLD = make_interactions(
    [(0, 1), (0, 3), (1, 0), (1, 1), (1, 2), (2, 3), (2, 3)], n_users=4, n_items=5
)
"""User 0 has items 1, 3; user 1 has 0, 1, 2; user 2 has 3 (twice). User 3 and item 4 have none."""


N = 60_000


def is_seen(train: Interactions, users: AnyArray, items: AnyArray) -> AnyArray:
    mask: AnyArray = train.binary.toarray()[users, items] > 0
    return mask


def matches_shares(counts: AnyArray, shares: list[float]) -> bool:
    """Test by chi-square whether counts are consistent with these shares."""
    expected = np.array(shares) / np.sum(shares) * counts.sum()
    return bool(chisquare(counts, expected).pvalue > 0.001)


def test_unseen_items_are_sampled_uniformly(rng: np.random.Generator) -> None:
    users = np.repeat(np.arange(4, dtype=np.int32), N // 4)
    items = Sampler.from_interactions(WORLD).sample_unseen(users, rng)
    assert not is_seen(WORLD, users, items).any()
    for user, unseen_items in enumerate([[0, 2, 4], [3, 4], [0, 1, 2, 4], [0, 1, 2, 3, 4]]):
        counts = np.bincount(items[users == user], minlength=5)
        assert matches_shares(counts[unseen_items], [1] * len(unseen_items))


def test_a_model_of_many_users_learns_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    # users of even numbers have items below 20, others those from 20 on
    rng = np.random.default_rng(0)
    pairs = {
        (user, 20 * (user % 2) + int(item))
        for user in range(200)
        for item in rng.choice(20, 8, replace=False)
    }
    train = make_interactions(sorted(pairs), n_users=200, n_items=40)
    monkeypatch.setattr(sgd, "MANY_USERS", 200)
    monkeypatch.setattr(sgd.UserBlocks.__init__, "__defaults__", (20,))
    model = BPRMF(embedding_size=8, epochs=60, device="cpu")
    fitted = model.fit(TrainingData(train), np.random.default_rng(0))
    assert fitted.item_bias is not None
    scores = fitted.user_factors @ fitted.item_factors.T + fitted.item_bias
    scores[train.users, train.items] = -np.inf
    best = scores.argsort(axis=1)[:, -5:]
    assert (best // 20 == np.arange(200)[:, None] % 2).mean() > 0.95


RATE = 0.01


def make_table(n_rows: int, size: int = 2) -> Any:
    values = np.linspace(-0.1, 0.1, n_rows * size, dtype=np.float32).reshape(n_rows, size)
    return torch.tensor(values, requires_grad=True)


def train_row_adam(
    table: Any, batches: Sequence[Sequence[int]], optimizer: Any, read: Any
) -> None:
    """Make a step per batch towards targets that depend on the rows of the batch."""
    for number, batch in enumerate(batches):
        codes = torch.tensor(batch, dtype=torch.int64)
        targets = torch.tensor([0.3 * np.sin(number + code) for code in batch])
        optimizer.zero_grad()
        (read(table, codes).sum(1) - targets).square().sum().backward()
        optimizer.step()


class Steps:
    """RowAdam with the calls of an optimizer of torch; flushes after some steps."""

    def __init__(self, optimizer: RowAdam, flushed: frozenset[int] = frozenset()) -> None:
        self.optimizer, self.flushed, self.n_steps = optimizer, flushed, 0

    def zero_grad(self) -> None:
        """Do nothing: rows are new in each batch."""

    def read(self, table: Any, codes: Any) -> Any:
        with self.optimizer.record():
            return look_up(table, codes)

    def step(self) -> None:
        self.optimizer.step()
        self.n_steps += 1
        if self.n_steps in self.flushed:
            self.optimizer.flush()


def train_rows(
    table: Any, batches: Sequence[Sequence[int]], flushed: frozenset[int] = frozenset()
) -> Any:
    steps = Steps(RowAdam([table], RATE), flushed)
    train_row_adam(table, batches, steps, steps.read)
    steps.optimizer.flush()
    return table.detach().numpy()


def train_densely(table: Any, batches: Sequence[Sequence[int]]) -> Any:
    exact = table.detach().double().requires_grad_()
    optimizer = torch.optim.Adam([exact], lr=RATE)
    train_row_adam(exact, batches, optimizer, lambda rows, codes: rows.index_select(0, codes))
    return exact.detach().numpy()


def test_an_idle_row_moves_by_its_moments() -> None:
    # gradient 1 in step 1: m = 0.1, v = 0.001, both corrected to 1: a move by the rate
    # step 2: m = 0.09 / (1 - 0.81) = 0.473684, v = 0.000999 / (1 - 0.998001) = 0.499750
    # a move by 0.473684 / sqrt(0.499750) = 0.670059 rates
    table = torch.zeros((3, 1), requires_grad=True)
    optimizer = RowAdam([table], RATE)
    with optimizer.record():
        look_up(table, torch.tensor([1])).sum().backward()
    optimizer.step()
    assert table.flatten().tolist() == pytest.approx([0, -RATE, 0])
    with optimizer.record():
        look_up(table, torch.tensor([0])).sum().backward()
    optimizer.step()
    optimizer.flush()
    assert table[1].item() == pytest.approx(-1.670059 * RATE, rel=1e-5)


BATCHES = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4), max_size=12)


@given(BATCHES)
def test_steps_are_those_of_adam_on_all_rows(batches: list[list[int]]) -> None:
    exact = train_densely(make_table(5), batches)
    np.testing.assert_allclose(train_rows(make_table(5), batches), exact, rtol=0, atol=1e-6)


DATA_STATE = TrainingData(
    make_interactions([(0, 0), (0, 1), (1, 1), (1, 2)], n_items=4),
    make_interactions([(0, 2), (1, 3)], n_items=4),
)


class Noisy(Learner[FittedFactors]):
    """Learns item scores from noise, with the number of steps as a buffer."""

    def __init__(self, interrupt_at: int = 0) -> None:
        self.weight = create_parameter(np.zeros(4), CPU)
        self.count = torch.zeros(1)
        self.interrupt_at, self.epochs = interrupt_at, 0
        self.noise: Any = None

    def parameters(self) -> Sequence[Any]:
        return [self.weight]

    def buffers(self) -> Sequence[Any]:
        return [self.count]

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        self.epochs += 1
        if self.epochs == self.interrupt_at:
            raise Interrupted
        self.noise = create_torch_generator(rng, CPU)
        return [rng.standard_normal((6, 4)).astype(np.float32)]

    def loss(self, *batch: Any) -> Any:
        self.count += 1
        targets = batch[0] + torch.rand(4, generator=self.noise) / self.count
        return (self.weight - targets).square().sum()

    def export(self) -> FittedFactors:
        return FittedFactors(np.ones((2, 1), "f4"), copy_to_array(self.weight)[:, None])


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.parametrize("patience", [0, 5, 9])
@pytest.mark.parametrize("interrupt_at", [1, 2, 5])
def test_resumed_training_gives_the_same_factors(interrupt_at: int, patience: int) -> None:
    schedule = Schedule(
        name="Noisy", epochs=8, batch_size=2, learning_rate=0.05, patience=patience
    )
    uninterrupted = train(Noisy(), schedule, DATA_STATE, np.random.default_rng(3))
    store = MemoryStore()
    with stage_context(checkpoint_store=store):
        with pytest.raises(Interrupted):
            train(Noisy(interrupt_at), schedule, DATA_STATE, np.random.default_rng(3))
        resumed = Noisy()
        fitted = train(resumed, schedule, DATA_STATE, np.random.default_rng(99))
    if interrupt_at > 1:
        assert resumed.epochs <= 8 - (interrupt_at - 1)
        np.testing.assert_array_equal(uninterrupted.item_factors, fitted.item_factors)
    else:
        assert store.arrays is not None


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.parametrize(
    "model",
    [
        BPRMF(embedding_size=4, epochs=6, device="cpu"),
        MF2020(embedding_size=4, epochs=6, device="cpu"),
        MF(embedding_size=4, epochs=6, device="cpu"),
        FunkSVD(embedding_size=4, epochs=6, device="cpu"),
        PMF(embedding_size=4, epochs=6, batch_size=64, device="cpu"),
        AMF(embedding_size=4, epochs=6, adversarial_epochs=2, device="cpu"),
        AMF(embedding_size=4, epochs=6, adversarial_epochs=2, variant="elliot", device="cpu"),
        MultiVAE(hidden_size=6, embedding_size=4, epochs=6, device="cpu"),
        MultiVAE(hidden_size=6, embedding_size=4, epochs=6, variant="elliot", device="cpu"),
        ConvMF(text=("title",), embedding_size=4, epochs=6, device="cpu"),
        ConvMF(text=("title",), embedding_size=16, epochs=6, variant="elliot", device="cpu"),
        SASRec(embedding_size=4, epochs=6, dropout=0.2, device="cpu"),
        GRU4Rec(embedding_size=4, epochs=6, dropout=0.2, device="cpu"),
        BERT4Rec(embedding_size=4, epochs=6, dropout=0.2, device="cpu"),
    ],
    ids=lambda model: f"{type(model).__name__} {getattr(model, 'variant', '')}",
)
def test_models_are_resumed_at_the_interrupted_epoch(model: Any) -> None:
    walks, _ = make_chain()
    titles = pd.DataFrame(
        {"title": [f"a thing {item % 5}" for item in range(walks.train.n_items)]}
    )
    data = replace(walks, items=Attributes(walks.train.item_ids, titles, "item"))

    def interrupt(_: str, completed: int, __: int) -> None:
        if completed == 4:
            raise Interrupted

    uninterrupted = model.fit(data, np.random.default_rng(3))
    with stage_context(checkpoint_store=MemoryStore()):
        with pytest.raises(Interrupted), stage_context(on_progress=interrupt):
            model.fit(data, np.random.default_rng(3))
        epochs: list[int] = []
        with stage_context(on_progress=lambda _, completed, __: epochs.append(completed)):
            fitted = model.fit(data, np.random.default_rng(99))
    assert epochs == [3, 4, 5, 6]
    for name, array in uninterrupted.state().items():
        np.testing.assert_array_equal(array, fitted.state()[name])
