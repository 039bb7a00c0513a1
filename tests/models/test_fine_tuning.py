from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.context import stage_context
from recbias.core.dataset import AnyArray
from recbias.core.errors import TooLittleMemory
from recbias.models.fine_tuning import FineTuning, Task, fine_tune
from support.models.checkpoints import Interrupted, MemoryStore


class Line(Task):
    """Fits y = 3 x with a network that drops half of its input by chance."""

    def __init__(self, interrupted_at: int = 0, has_validation: bool = True) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(5)
            self.network = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(1, 1))
        self.x = np.linspace(-1, 1, 20, dtype=np.float32)
        self.interrupted_at, self.steps, self.has_validation = interrupted_at, 0, has_validation
        self.visited_rows: list[int] = []

    @property
    def module(self) -> Any:
        return self.network

    @property
    def has_validation_texts(self) -> bool:
        return self.has_validation

    @property
    def lengths(self) -> AnyArray:
        return np.arange(20) % 4 + 1

    def loss(self, rows: AnyArray) -> Any:
        self.steps += 1
        self.visited_rows.extend(rows.tolist())
        if self.steps == self.interrupted_at:
            raise Interrupted
        x = torch.from_numpy(self.x[rows])[:, None]
        return (self.network(x) - 3 * x).square().sum()

    def validation_score(self) -> float:
        weight: float = self.network[1].weight.item()  # type: ignore[operator]  # a tensor
        return -abs(weight - 3)

    def parameters(self) -> list[float]:
        return [parameter.item() for parameter in self.network.parameters()]


def create_plan(**changes: Any) -> FineTuning:
    settings: dict[str, Any] = {"name": "Line", "epochs": 4, "batch_size": 6, "learning_rate": 0.1}
    return FineTuning(**(settings | changes))


@pytest.mark.parametrize("patience", [0, 1, 3])
@pytest.mark.parametrize("interrupted_at", [2, 4, 7, 15])
def test_a_resumed_training_ends_in_the_same_weights(interrupted_at: int, patience: int) -> None:
    schedule = create_plan(patience=patience)
    whole = Line()
    fine_tune(whole, schedule, np.random.default_rng(3))
    disk = MemoryStore()
    with stage_context(checkpoint_store=disk):
        if interrupted_at < whole.steps:
            with pytest.raises(Interrupted):
                fine_tune(Line(interrupted_at), schedule, np.random.default_rng(3))
        again = Line()
        fine_tune(again, schedule, np.random.default_rng(3))
    assert again.parameters() == whole.parameters()
    if interrupted_at < whole.steps:
        assert again.steps == whole.steps - (interrupted_at - 1)


def test_summed_gradients_of_parts_equal_those_of_the_batch() -> None:
    parameters = []
    for batch_parts in (1, 3):
        line = Line()
        line.network[0] = torch.nn.Identity()
        fine_tune(line, create_plan(batch_parts=batch_parts), np.random.default_rng(3))
        parameters.append(line.parameters())
    np.testing.assert_allclose(parameters[0], parameters[1], rtol=1e-5)


class Full(Line):
    """A task on a device that has memory for three texts at once."""

    def __init__(self) -> None:
        super().__init__()
        self.network[0] = torch.nn.Identity()

    def loss(self, rows: AnyArray) -> Any:
        if rows.size > 3:
            torch.empty(2**60)  # torch's own error
        return super().loss(rows)


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ("batch_size", "lower batch_size or max_length"),
        ("batch_parts", "set batch_parts: 2, or lower max_length"),
    ],
)
def test_a_full_device_is_reported_with_the_setting_to_change(setting: str, remedy: str) -> None:
    with pytest.raises(TooLittleMemory) as caught:
        fine_tune(Full(), create_plan(memory_setting=setting), np.random.default_rng(3))
    assert (caught.value.where, caught.value.remedy) == (setting, remedy)


def test_the_head_has_its_own_learning_rate() -> None:
    # the first step of Adam is as long as its rate: 0.1 (no warm-up), and 5 times that in the head
    class WithHead(Line):
        def __init__(self) -> None:
            super().__init__(has_validation=False)
            parts = {name: torch.nn.Linear(1, 1, bias=False) for name in ("encoder", "head")}
            for layer in parts.values():
                torch.nn.init.ones_(layer.weight)
            self.network = torch.nn.ModuleDict(parts)  # type: ignore[assignment]

        def loss(self, rows: AnyArray) -> Any:
            return sum(part(torch.ones(len(rows), 1)).sum() for part in self.network.values())  # type: ignore[operator]

    task = WithHead()
    once = create_plan(epochs=1, batch_size=20, warmup=0, weight_decay=0.0, head_rate=5.0)
    fine_tune(task, once, np.random.default_rng(3))
    assert task.parameters() == pytest.approx([0.9, 0.5])
