"""Compiled losses, and batches that are copied in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.arrays import AnyArray
from recbias.core.stage_context import collect_warnings
from recbias.models.neural.deepfm import DeepFM
from recbias.models.neural.neumf import NeuMF
from recbias.models.ranking.tensors import copy_to_device
from recbias.models.training import gradient_step
from recbias.models.training.batches import iterate_batches
from recbias.models.training.gradient_step import CompiledLoss, GradientStep
from recbias.models.training.loop import TrainedModel
from recbias.models.training.schedule import Schedule
from support.models.recommending import make_random_data

CPU = torch.device("cpu")


@pytest.mark.parametrize("chunk", [1, 7, 2**20])
@pytest.mark.parametrize("batch_size", [1, 3, 20])
def test_batches_are_the_samples_in_order(chunk: int, batch_size: int) -> None:
    samples: Sequence[AnyArray] = [
        np.arange(17, dtype=np.int32),
        np.linspace(0, 1, 17, dtype=np.float32),
    ]
    batches = [*iterate_batches(samples, batch_size, CPU, chunk=chunk)]
    assert [len(codes) for codes, _ in batches[:-1]] == [batch_size] * (len(batches) - 1)
    for number, dtype in enumerate((torch.int64, torch.float32)):
        joined = torch.cat([batch[number] for batch in batches])
        assert joined.dtype == dtype
        np.testing.assert_array_equal(joined.numpy(), samples[number])


def test_no_samples_are_no_batches() -> None:
    assert [*iterate_batches([np.empty(0, dtype=np.int32)], 4, CPU)] == []


def test_a_cpu_shares_the_memory_of_an_array() -> None:
    array = np.zeros(3, dtype=np.float32)
    copy_to_device(array, CPU)[1] = 5
    assert array.tolist() == [0, 5, 0]


class Line:
    """Learns one number; counts how often its loss is computed by Python."""

    def __init__(self, *, fixed_shapes: bool = True) -> None:
        self.weight = torch.ones(1, requires_grad=True)
        self.fixed_shapes = fixed_shapes

    def parameters(self) -> Sequence[Any]:
        return [self.weight]

    def loss(self, *batch: Any) -> Any:
        return (self.weight * batch[0]).sum()


@pytest.mark.rotating
def test_a_loss_is_compiled_on_cuda_if_it_has_many_steps_of_one_shape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gradient_step, "MIN_COMPILED_STEPS", 8)
    optimizer: Any = None
    for device, fixed_shapes, n_samples, expected in (
        ("cuda", True, 40, True),
        ("cuda", True, 39, False),  # 3 whole batches an epoch
        ("cuda", False, 40, False),
        ("cpu", True, 40, False),
    ):
        schedule = Schedule(name="Line", epochs=2, batch_size=10, learning_rate=0.1)
        step = GradientStep(Line(fixed_shapes=fixed_shapes), optimizer, schedule)
        step.device = torch.device(device)
        step.expect(n_samples)
        assert isinstance(step.loss, CompiledLoss) == expected
        before = step.loss
        step.expect(n_samples)
        assert step.loss is before or not expected, "it is compiled once"


def test_a_loss_that_cannot_be_compiled_is_one_warning() -> None:
    def loss(batch: Any) -> Any:
        if float(batch[0]) > 0:  # depends on a value: not one graph
            return batch.sum()
        return -batch.sum()

    compiled = CompiledLoss("Model", loss, 3)
    with collect_warnings() as warnings:
        assert float(compiled(torch.ones(3))) == 3
        assert float(compiled(-torch.ones(3))) == 3
    (warning,) = warnings
    assert warning.startswith("Model: torch.compile failed (")
    assert warning.endswith("the result is the same up to rounding")


def test_a_full_device_is_not_taken_for_a_failure_to_compile() -> None:
    compiled = CompiledLoss("Model", lambda batch: batch.sum(), 2)

    def fail(*batch: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")

    compiled.compiled = fail
    with pytest.raises(torch.OutOfMemoryError):
        compiled(torch.ones(2))


@pytest.mark.slow  # compiling takes half a minute each
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")  # of torch, of its own functions
@pytest.mark.parametrize("model", [NeuMF, DeepFM])
def test_a_compiled_training_is_that_of_eager_steps(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, model: type[TrainedModel]
) -> None:
    data = make_random_data(rng, 60, 45)
    settings: Any = {"epochs": 2, "batch_size": 256, "patience": 0, "device": "cpu"}
    monkeypatch.setattr(gradient_step, "COMPILED_DEVICES", {"cpu"})
    states = []
    for least in (10**9, 0):
        monkeypatch.setattr(gradient_step, "MIN_COMPILED_STEPS", least)
        with collect_warnings() as warnings:
            fitted: Any = model(**settings).fit(data, np.random.default_rng(1))  # type: ignore[attr-defined]
        assert not [warning for warning in warnings if "compile" in warning], "it did not fail"
        states.append(fitted.state())
    for name, array in states[0].items():
        np.testing.assert_allclose(states[1][name], array, atol=1e-4)
