from __future__ import annotations

import multiprocessing
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_facts, collect_warnings, stage_context
from recbias.core.dataset import AnyArray
from recbias.core.errors import DeadProcess, TooLittleMemory
from recbias.kernels import devices
from recbias.models.fine_tuning import Ranks, fine_tune
from recbias.models.training import FineTuning, LearningCurve
from support.models.small_transformer import Repeats


class Interrupted(Exception):
    """What takes the place of Ctrl-C."""


class Disk:
    """Keeps checkpoints; the training is interrupted at one of them."""

    def __init__(self, interrupted_at: int = 0) -> None:
        self.arrays: Mapping[str, AnyArray] | None = None
        self.interrupted_at, self.saved = interrupted_at, 0

    def load(self) -> Mapping[str, AnyArray] | None:
        return self.arrays

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        self.saved += 1
        self.arrays = arrays
        if self.saved == self.interrupted_at:
            raise Interrupted


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "count_cores", lambda: 2)


def create_plan(**changes: Any) -> FineTuning:
    settings: dict[str, Any] = {
        "name": "Repeats",
        "epochs": 3,
        "batch_size": 5,
        "batch_parts": 2,
        "learning_rate": 0.05,
        "patience": 3,
    }
    return FineTuning(**(settings | changes))


def train(task: Repeats, **changes: Any) -> LearningCurve:
    return fine_tune(task, create_plan(**changes), np.random.default_rng(3))


def assert_same_weights(first: Repeats, second: Repeats) -> None:
    expected, actual = first.weights(), second.weights()
    for weights in (expected, actual):  # the loss does not depend on the biases of keys
        weights["layers.0.self_attn.in_proj_bias"][8:16] = 0
    for name, array in expected.items():
        np.testing.assert_allclose(actual[name], array, rtol=1e-4, atol=1e-5, err_msg=name)


def test_shares_of_a_batch_hold_each_text_once_and_are_equally_many() -> None:
    for n in range(1, 12):
        for size in (1, 2, 3):
            for n_parts in (1, 2, 4):
                shares = [Ranks(rank, size).share(np.arange(n), n_parts) for rank in range(size)]
                assert len({len(parts) for parts in shares}) == 1
                rows = [row for parts in shares for part, weight in parts for row in part * weight]
                filled = [part for parts in shares for part, weight in parts if not weight]
                assert sorted(rows) == sorted([*range(n), *[0] * len(filled)])


def test_two_processes_train_the_weights_of_one() -> None:
    alone, together = Repeats(), Repeats()
    expected = train(alone)
    progress, scores = [], []
    with (
        stage_context(
            on_progress=lambda *report: progress.append(report),
            on_validation=lambda *report: scores.append(report),
        ),
        collect_facts() as facts,
    ):
        # of the batches of 5 texts and of 3, the second process has 2 and 1
        actual = train(together, devices=2)
    assert_same_weights(alone, together)
    np.testing.assert_allclose(actual.values, expected.values, rtol=1e-4)
    assert actual.steps_per_epoch == expected.steps_per_epoch == 5
    assert progress == [("Repeats steps", step, 15) for step in range(1, 16)]
    assert [epoch for epoch, _ in scores] == [1, 2, 3]
    assert facts["tokens_per_second"]
    assert expected.values[0, 0] > 2 * expected.values[-1, 0]


@pytest.mark.slow
def test_a_process_that_dies_ends_all() -> None:
    with pytest.raises(DeadProcess) as caught:
        train(Repeats(failing=1, failure="kill"), devices=2)
    assert re.fullmatch(
        r"process 2 of 2 of Repeats, on cpu, died \(signal 9\)", caught.value.message
    )
    assert "run the same command again" in caught.value.remedy
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_a_process_without_memory_starts_all_again_with_smaller_parts() -> None:
    with (
        collect_warnings() as warnings,
        pytest.raises(TooLittleMemory, match="too little memory for a batch"),
    ):
        train(Repeats(failing=1, failure="memory"), devices=2, batch_parts=1)
    assert [warning.split("Set ")[1] for warning in warnings] == ["batch_parts: 2"]
    assert multiprocessing.active_children() == []


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_an_interrupted_training_goes_on_from_its_checkpoint(strategy: str) -> None:
    disk = Disk(interrupted_at=8)
    alone, together = Repeats(), Repeats()
    train(alone)
    progress: list[int] = []
    with stage_context(
        checkpoint_store=disk, on_progress=lambda _, step, n: progress.append(step)
    ):
        with pytest.raises(Interrupted):
            train(Repeats(), devices=2, strategy=strategy)
        assert multiprocessing.active_children() == []
        train(together, devices=2, strategy=strategy)
    assert_same_weights(alone, together)
    # five steps and the end of an epoch, then two steps: the eighth checkpoint
    assert progress == [*range(1, 8), *range(8, 16)]
