from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import OutOfRange, TooLittleMemory
from recbias.core.stage_context import collect_warnings, stage_context
from recbias.models.ranking.factor_model import FittedFactors
from recbias.models.ranking.tensors import (
    array_of,
    drawn_normal,
    parameter,
    torch_generator,
)
from recbias.models.training.loop import train
from recbias.models.training.schedule import Schedule
from support.worlds import rows

DATA = TrainingData(rows([(0, 0), (0, 1), (1, 1), (1, 2)], n_items=4))
CPU = torch.device("cpu")


class Parabola:
    """Learns one number: the loss of a sample x is (w - x)² / 2."""

    def __init__(self, samples: list[float]) -> None:
        self.samples = np.array(samples, dtype=np.float32)
        self.weight = parameter(np.zeros(1), CPU)
        self.batches: list[list[float]] = []
        self.threads = 0

    def parameters(self) -> Sequence[Any]:
        return [self.weight]

    def epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        return [self.samples]

    def loss(self, *batch: Any) -> Any:
        self.batches.append(batch[0].tolist())
        self.threads = torch.get_num_threads()
        return (self.weight - batch[0]).square().sum() / 2

    def fitted(self) -> FittedFactors:
        value = array_of(self.weight)
        return FittedFactors(np.ones((2, 1), dtype=np.float32), value * np.ones((4, 1), "f4"))


def schedule(**settings: Any) -> Schedule:
    given: dict[str, Any] = {
        "name": "Parabola",
        "epochs": 1,
        "batch_size": 2,
        "learning_rate": 0.1,
    }
    return Schedule(**(given | settings))


def test_steps_of_sgd_by_hand(rng: np.random.Generator) -> None:
    # first batch (1, 2): w = 0 - 0.1 ((0 - 1) + (0 - 2)) = 0.3; second (4): 0.3 + 0.1 · 3.7 = 0.67
    learner = Parabola([1, 2, 4])
    found = train(learner, schedule(optimizer="sgd"), DATA, rng)
    assert found.item_factors[0, 0] == pytest.approx(0.67)
    assert learner.batches == [[1, 2], [4]]


class Stepping(Parabola):
    """Makes the steps of SGD itself, of another length, so that they are told apart."""

    def loss(self, *batch: Any) -> Any:
        raise AssertionError

    def step(self, learning_rate: float, *batch: Any) -> Any:
        with torch.no_grad():
            self.weight += learning_rate * len(batch[0])
        return batch[0].sum()


def test_a_learner_may_make_the_steps_of_sgd_itself(rng: np.random.Generator) -> None:
    found = train(Stepping([1, 2, 4]), schedule(optimizer="sgd"), DATA, rng)
    assert found.item_factors[0, 0] == pytest.approx(0.1 * 3)
    with pytest.raises(AssertionError):
        train(Stepping([1, 2, 4]), schedule(), DATA, rng)


class Single(Stepping):
    """Makes single steps on a CPU, of another length again."""

    def single_steps(self, learning_rate: float, *samples: AnyArray) -> float:
        with torch.no_grad():
            self.weight += 2 * learning_rate * len(samples[0])
        return float(samples[0].sum())


def test_on_a_cpu_a_learner_may_make_single_steps(rng: np.random.Generator) -> None:
    found = train(Single([1, 2, 4]), schedule(optimizer="sgd"), DATA, rng)
    assert found.item_factors[0, 0] == pytest.approx(0.2 * 3)
    found = train(Single([]), schedule(optimizer="sgd"), DATA, rng)
    assert found.item_factors[0, 0] == 0


def test_single_steps_that_diverge_are_told(rng: np.random.Generator) -> None:
    for samples, rate, said in (([1.0, np.inf], 0.1, "loss is inf"), ([1.0], np.inf, "loss is 1")):
        with pytest.raises(OutOfRange, match=f"epoch 1 of 1: the {said}"):
            train(Single(samples), schedule(optimizer="sgd", learning_rate=rate), DATA, rng)


def test_codes_come_as_64_bit_integers_and_the_rest_as_it_is(rng: np.random.Generator) -> None:
    kinds: list[Any] = []

    class Typed(Parabola):
        def epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
            return [np.arange(2, dtype=np.int32), np.ones(2, np.float32), np.ones(2, bool)]

        def loss(self, *batch: Any) -> Any:
            kinds.extend(each.dtype for each in batch)
            return super().loss(batch[1])

    train(Typed([]), schedule(), DATA, rng)
    assert kinds == [torch.int64, torch.float32, torch.bool]


def test_the_first_step_of_adam_is_as_long_as_the_learning_rate(rng: np.random.Generator) -> None:
    found = train(Parabola([5]), schedule(), DATA, rng)
    assert found.item_factors[0, 0] == pytest.approx(0.1, rel=1e-4)


def test_epochs_are_reported(rng: np.random.Generator) -> None:
    heard: list[tuple[str, int, int]] = []
    with stage_context(on_progress=lambda *each: heard.append(each)):
        train(Parabola([1]), schedule(epochs=2), DATA, rng)
    assert heard == [("Parabola epochs", done, 2) for done in (0, 1, 2)]


def test_divergence_names_the_epoch_the_loss_and_the_setting(rng: np.random.Generator) -> None:
    with pytest.raises(OutOfRange) as caught:
        train(
            Parabola([1]),
            schedule(optimizer="sgd", learning_rate=1e12, epochs=9),
            DATA,
            rng,
        )
    # w = 1e12, 1e24, 1e36, then beyond float32: squares overflow from 1e24 on, in epoch 3
    assert "diverged in epoch 3 of 9: the loss is inf" in str(caught.value)
    assert caught.value.remedy == "lower learning_rate, which is 1e+12"


def test_a_last_step_to_infinity_is_divergence(rng: np.random.Generator) -> None:
    with pytest.raises(OutOfRange, match="epoch 1 of 1"):
        train(Parabola([1e20]), schedule(optimizer="sgd", learning_rate=1e20), DATA, rng)


def test_too_little_memory_says_what_to_lower(rng: np.random.Generator) -> None:
    class Hungry(Parabola):
        def loss(self, *batch: Any) -> Any:
            raise torch.cuda.OutOfMemoryError

    with pytest.raises(OutOfRange) as caught:
        train(Hungry([1]), schedule(batch_size=4096), DATA, rng)
    assert "lower batch_size, which is 4,096" in caught.value.remedy


def test_an_epoch_too_large_for_memory_says_what_to_lower(rng: np.random.Generator) -> None:
    class Hungry(Parabola):
        def epoch(self, rng: np.random.Generator) -> Any:
            raise MemoryError

        def single_steps(self, learning_rate: float, *samples: Any) -> float:
            return 0.0

    with pytest.raises(TooLittleMemory) as caught:
        train(Hungry([1]), schedule(optimizer="sgd", others={"negatives": 10**8}), DATA, rng)
    assert caught.value.remedy == "lower negatives, which is 100,000,000"


def test_no_samples_teach_nothing(rng: np.random.Generator) -> None:
    found = train(Parabola([]), schedule(epochs=2), DATA, rng)
    assert found.item_factors[0, 0] == 0


def test_validation_stops_and_the_best_epoch_is_taken(rng: np.random.Generator) -> None:
    # the vectors of all items are alike, so no epoch is better than the first
    data = TrainingData(DATA.train, rows([(0, 2), (1, 0)], n_items=4))
    learner = Parabola([5])
    found = train(learner, schedule(epochs=50, patience=3), data, rng)
    assert len(learner.batches) == 4
    assert found.item_factors[0, 0] == pytest.approx(0.1, rel=1e-4)


def test_mixed_precision_is_for_cuda_only(rng: np.random.Generator) -> None:
    plain, mixed = (
        train(Parabola([1, 2, 4]), schedule(mixed=each), DATA, rng) for each in (False, True)
    )
    np.testing.assert_array_equal(plain.item_factors, mixed.item_factors)


def test_threads_are_put_back(rng: np.random.Generator) -> None:
    before, learner = torch.get_num_threads(), Parabola([1])
    train(learner, schedule(threads=1), DATA, rng)
    assert learner.threads == 1
    assert torch.get_num_threads() == before


def test_the_random_state_of_the_process_is_left_alone(rng: np.random.Generator) -> None:
    before = torch.random.get_rng_state()
    drawn_normal((3, 2), 1.0, CPU, rng)
    torch.rand(3, generator=torch_generator(rng, CPU))
    train(Parabola([1, 2]), schedule(), DATA, rng)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(("rate", "said"), [(0.1, []), (1e-30, ["learned nothing"])])
def test_a_loss_that_does_not_fall_is_said(
    rng: np.random.Generator, rate: float, said: list[str]
) -> None:
    with collect_warnings() as notes:
        train(Parabola([1, 2]), schedule(epochs=3, learning_rate=rate), DATA, rng)
    assert [each in note for each, note in zip(said, notes, strict=True)] == [True] * len(said)


@pytest.mark.parametrize("error", [MemoryError("4 TiB"), RuntimeError("can't allocate memory: 9")])
def test_a_cpu_runs_out_of_memory_too(rng: np.random.Generator, error: Exception) -> None:
    class Hungry(Parabola):
        def loss(self, *batch: Any) -> Any:
            raise error

    with pytest.raises(TooLittleMemory, match="too little memory"):
        train(Hungry([1]), schedule(), DATA, rng)


def test_another_fault_of_the_library_is_not_memory(rng: np.random.Generator) -> None:
    class Broken(Parabola):
        def loss(self, *batch: Any) -> Any:
            raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match="shapes differ"):
        train(Broken([1]), schedule(), DATA, rng)
