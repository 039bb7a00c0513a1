from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.context import collect_warnings
from recbias.core.dataset import AnyArray, TrainingData
from recbias.core.errors import OutOfRange, TooLittleMemory
from recbias.models.fitted import FittedFactors
from recbias.models.gpu import (
    copy_to_array,
    create_parameter,
)
from recbias.models.training import Schedule, train
from support.worlds.small_worlds import make_interactions

DATA = TrainingData(make_interactions([(0, 0), (0, 1), (1, 1), (1, 2)], n_items=4))
CPU = torch.device("cpu")


class Parabola:
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


def test_sgd_steps_match_a_hand_computation(rng: np.random.Generator) -> None:
    # first batch (1, 2): w = 0 - 0.1 ((0 - 1) + (0 - 2)) = 0.3; second (4): 0.3 + 0.1 · 3.7 = 0.67
    learner = Parabola([1, 2, 4])
    fitted = train(learner, create_schedule(optimizer="sgd"), DATA, rng)
    assert fitted.item_factors[0, 0] == pytest.approx(0.67)
    assert learner.batches == [[1, 2], [4]]


def test_first_adam_step_has_the_length_of_the_learning_rate(rng: np.random.Generator) -> None:
    fitted = train(Parabola([5]), create_schedule(), DATA, rng)
    assert fitted.item_factors[0, 0] == pytest.approx(0.1, rel=1e-4)


def test_divergence_error_names_epoch_loss_and_setting(rng: np.random.Generator) -> None:
    with pytest.raises(OutOfRange) as caught:
        train(
            Parabola([1]),
            create_schedule(optimizer="sgd", learning_rate=1e12, epochs=9),
            DATA,
            rng,
        )
    # w = 1e12, 1e24, 1e36, then beyond float32: squares overflow from 1e24 on, in epoch 3
    assert "diverged in epoch 3 of 9: the loss is inf" in str(caught.value)
    assert caught.value.remedy == "lower learning_rate, which is 1e+12"


def test_batches_are_split_when_the_device_is_full() -> None:
    class Full(Parabola):
        def loss(self, *batch: Any) -> Any:
            if len(batch[0]) > 2:
                torch.empty(2**60)  # torch's own error
            return super().loss(*batch)

    samples = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    schedule = create_schedule(batch_size=7, epochs=5)
    plain = train(Parabola(samples), schedule, DATA, np.random.default_rng(1))
    with collect_warnings() as warnings:
        split = train(Full(samples), schedule, DATA, np.random.default_rng(1))
    np.testing.assert_allclose(split.item_factors, plain.item_factors, rtol=1e-5)
    assert [warning.split("computed in ")[1][:7] for warning in warnings] == ["2 parts", "4 parts"]


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
