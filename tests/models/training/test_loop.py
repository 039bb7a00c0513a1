from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.context import collect_warnings, stage_context
from recbias.core.dataset import AnyArray, TrainingData
from recbias.core.errors import OutOfRange, TooLittleMemory
from recbias.models import training
from recbias.models.fitted import FittedFactors
from recbias.models.gpu import (
    copy_to_array,
    create_parameter,
    create_torch_generator,
    initialize_normal,
)
from recbias.models.training import Learner, Schedule, train
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


def test_sgd_steps_match_a_hand_computation(rng: np.random.Generator) -> None:
    # first batch (1, 2): w = 0 - 0.1 ((0 - 1) + (0 - 2)) = 0.3; second (4): 0.3 + 0.1 · 3.7 = 0.67
    learner = Parabola([1, 2, 4])
    fitted = train(learner, create_schedule(optimizer="sgd"), DATA, rng)
    assert fitted.item_factors[0, 0] == pytest.approx(0.67)
    assert learner.batches == [[1, 2], [4]]


class BatchLearner(Parabola):
    """Computes SGD steps on batches itself, of a distinguishable length."""

    has_steps = True

    def loss(self, *batch: Any) -> Any:
        raise AssertionError

    def step(self, learning_rate: float, *batch: Any) -> Any:
        with torch.no_grad():
            self.weight += learning_rate * len(batch[0])
        return batch[0].sum()


def test_learner_with_batch_steps_is_used_for_sgd_only(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "_steps_by_samples", lambda *_: False)
    fitted = train(BatchLearner([1, 2, 4]), create_schedule(optimizer="sgd"), DATA, rng)
    assert fitted.item_factors[0, 0] == pytest.approx(0.1 * 3)
    with pytest.raises(AssertionError):
        train(BatchLearner([1, 2, 4]), create_schedule(), DATA, rng)


class SampleLearner(BatchLearner):
    """Computes SGD steps on single samples itself, of a third length."""

    def step_by_samples(self, learning_rate: float, *samples: AnyArray) -> float:
        with torch.no_grad():
            self.weight += 2 * learning_rate * len(samples[0])
        return float(samples[0].sum())


def test_learner_with_sample_steps_is_used_on_a_cpu(rng: np.random.Generator) -> None:
    fitted = train(SampleLearner([1, 2, 4]), create_schedule(optimizer="sgd"), DATA, rng)
    assert fitted.item_factors[0, 0] == pytest.approx(0.2 * 3)
    fitted = train(SampleLearner([]), create_schedule(optimizer="sgd"), DATA, rng)
    assert fitted.item_factors[0, 0] == 0


def test_divergence_of_sample_steps_raises(rng: np.random.Generator) -> None:
    for samples, rate, message in (
        ([1.0, np.inf], 0.1, "loss is inf"),
        ([1.0], np.inf, "loss is 1"),
    ):
        with pytest.raises(OutOfRange, match=f"epoch 1 of 1: the {message}"):
            train(
                SampleLearner(samples),
                create_schedule(optimizer="sgd", learning_rate=rate),
                DATA,
                rng,
            )


def test_codes_are_converted_to_64_bit_integers(rng: np.random.Generator) -> None:
    dtypes: list[Any] = []

    class TypedLearner(Parabola):
        def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
            return [np.arange(2, dtype=np.int32), np.ones(2, np.float32), np.ones(2, bool)]

        def loss(self, *batch: Any) -> Any:
            dtypes.extend(tensor.dtype for tensor in batch)
            return super().loss(batch[1])

    train(TypedLearner([]), create_schedule(), DATA, rng)
    assert dtypes == [torch.int64, torch.float32, torch.bool]


def test_first_adam_step_has_the_length_of_the_learning_rate(rng: np.random.Generator) -> None:
    fitted = train(Parabola([5]), create_schedule(), DATA, rng)
    assert fitted.item_factors[0, 0] == pytest.approx(0.1, rel=1e-4)


def test_epochs_are_reported(rng: np.random.Generator) -> None:
    reports: list[tuple[str, int, int]] = []
    with stage_context(on_progress=lambda *report: reports.append(report)):
        train(Parabola([1]), create_schedule(epochs=2), DATA, rng)
    assert reports == [("Parabola epochs", epoch, 2) for epoch in (0, 1, 2)]


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


def test_infinite_parameter_after_the_last_step_raises(rng: np.random.Generator) -> None:
    with pytest.raises(OutOfRange, match="epoch 1 of 1"):
        train(Parabola([1e20]), create_schedule(optimizer="sgd", learning_rate=1e20), DATA, rng)


def test_memory_error_in_a_batch_names_the_batch_size(rng: np.random.Generator) -> None:
    class Hungry(Parabola):
        def loss(self, *batch: Any) -> Any:
            raise torch.cuda.OutOfMemoryError

    with pytest.raises(OutOfRange) as caught:
        train(Hungry([1]), create_schedule(batch_size=4096), DATA, rng)
    assert "lower batch_size, which is 4,096" in caught.value.remedy


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


def test_a_loss_of_the_batch_as_a_whole_is_not_split(rng: np.random.Generator) -> None:
    class Crossed(Parabola):
        crosses_batch = True

        def loss(self, *batch: Any) -> Any:
            self.batches.append(batch[0].tolist())
            return torch.empty(2**60)

    learner = Crossed([1, 2])
    with pytest.raises(TooLittleMemory):
        train(learner, create_schedule(), DATA, rng)
    assert learner.batches == [[1, 2]]


def test_memory_error_in_sampling_names_the_negatives(rng: np.random.Generator) -> None:
    class Hungry(Parabola):
        has_steps = True

        def sample_epoch(self, rng: np.random.Generator) -> Any:
            raise MemoryError

        def step_by_samples(self, learning_rate: float, *samples: Any) -> float:
            return 0.0

    with pytest.raises(TooLittleMemory) as caught:
        train(
            Hungry([1]), create_schedule(optimizer="sgd", settings={"negatives": 10**8}), DATA, rng
        )
    assert caught.value.remedy == "lower negatives, which is 100,000,000"


@pytest.mark.usefixtures("stage_warnings")
def test_no_samples_change_nothing(rng: np.random.Generator) -> None:
    fitted = train(Parabola([]), create_schedule(epochs=2), DATA, rng)
    assert fitted.item_factors[0, 0] == 0


def test_early_stopping_returns_the_best_epoch(rng: np.random.Generator) -> None:
    # all items have the same vector, so that no epoch is better than the first
    data = TrainingData(DATA.train, make_interactions([(0, 2), (1, 0)], n_items=4))
    learner = Parabola([5])
    fitted = train(learner, create_schedule(epochs=50, patience=3), data, rng)
    assert len(learner.batches) == 4
    assert fitted.item_factors[0, 0] == pytest.approx(0.1, rel=1e-4)


def test_mixed_precision_is_ignored_on_a_cpu(rng: np.random.Generator) -> None:
    plain, mixed = (
        train(Parabola([1, 2, 4]), create_schedule(mixed=is_mixed), DATA, rng)
        for is_mixed in (False, True)
    )
    np.testing.assert_array_equal(plain.item_factors, mixed.item_factors)


def test_thread_count_is_restored(rng: np.random.Generator) -> None:
    before, learner = torch.get_num_threads(), Parabola([1])
    train(learner, create_schedule(threads=1), DATA, rng)
    assert learner.threads == 1
    assert torch.get_num_threads() == before


def test_global_random_state_is_unchanged(rng: np.random.Generator) -> None:
    before = torch.random.get_rng_state()
    initialize_normal((3, 2), 1.0, CPU, rng)
    torch.rand(3, generator=create_torch_generator(rng, CPU))
    train(Parabola([1, 2]), create_schedule(), DATA, rng)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(("rate", "message"), [(0.1, []), (1e-30, ["learned nothing"])])
def test_warning_reports_a_loss_that_does_not_decrease(
    rng: np.random.Generator, rate: float, message: list[str]
) -> None:
    with collect_warnings() as warnings:
        train(Parabola([1, 2]), create_schedule(epochs=3, learning_rate=rate), DATA, rng)
    assert len(warnings) == len(message)
    assert all(text in warning for text, warning in zip(message, warnings, strict=True))


@pytest.mark.parametrize("error", [MemoryError("4 TiB"), RuntimeError("can't allocate memory: 9")])
def test_cpu_memory_errors_are_reported(rng: np.random.Generator, error: Exception) -> None:
    class Hungry(Parabola):
        def loss(self, *batch: Any) -> Any:
            raise error

    with pytest.raises(TooLittleMemory, match="too little memory"):
        train(Hungry([1]), create_schedule(), DATA, rng)


def test_other_runtime_errors_are_not_caught(rng: np.random.Generator) -> None:
    class Broken(Parabola):
        def loss(self, *batch: Any) -> Any:
            raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match="shapes differ"):
        train(Broken([1]), create_schedule(), DATA, rng)
