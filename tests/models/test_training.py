from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from recbias.core.dataset import AnyArray, Interactions, TrainingData
from recbias.core.errors import OutOfRange, TooLittleMemory
from recbias.models import sgd
from recbias.models.factorization import BPRMF
from recbias.models.fitted import FittedFactors
from recbias.models.gpu import copy_to_array, create_parameter
from recbias.models.sgd import Sampler
from recbias.models.training import (
    EarlyStopping,
    Learner,
    Schedule,
    has_validation_users,
    train,
    validation_ndcg,
)
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
