from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recbias.core import stage_context as context_module
from recbias.core.arrays import AnyArray
from recbias.core.errors import OutOfRange, TooLittleMemory
from recbias.core.stage_context import collect_facts, stage_context
from recbias.models.text.fine_tuning import FineTuning, bucketed, fine_tune


class Killed(Exception):
    """What takes the place of a kill inside a test."""


class Line:
    """Fits y = 3 x with a network that drops half of its input by chance."""

    def __init__(self, dies_at: int = 0, judges: bool = True) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(5)
            self.network = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(1, 1))
        self.x = np.linspace(-1, 1, 20, dtype=np.float32)
        self.dies_at, self.steps, self.has_judges = dies_at, 0, judges
        self.seen: list[int] = []

    @property
    def module(self) -> Any:
        return self.network

    @property
    def lengths(self) -> AnyArray:
        return np.arange(20) % 4 + 1

    def loss(self, rows: AnyArray) -> Any:
        self.steps += 1
        self.seen.extend(rows.tolist())
        if self.steps == self.dies_at:
            raise Killed
        x = torch.from_numpy(self.x[rows])[:, None]
        return (self.network(x) - 3 * x).square().sum()

    def figure(self) -> float:
        weight: float = self.network[1].weight.item()  # type: ignore[operator]  # a tensor
        return -abs(weight - 3)

    def learned(self) -> list[float]:
        return [each.item() for each in self.network.parameters()]


class Disk:
    """Keeps what survives."""

    def __init__(self) -> None:
        self.arrays: Mapping[str, AnyArray] | None = None

    def load(self) -> Mapping[str, AnyArray] | None:
        return self.arrays

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        self.arrays = {name: each.copy() for name, each in arrays.items()}


@pytest.fixture(autouse=True)
def _at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_module, "MIN_CHECKPOINT_INTERVAL", 0.0)
    monkeypatch.setattr(context_module, "CHECKPOINT_TIME_SHARE", np.inf)


def plan(**given: Any) -> FineTuning:
    settings: dict[str, Any] = {"name": "Line", "epochs": 4, "batch_size": 6, "learning_rate": 0.1}
    return FineTuning(**(settings | given))


@pytest.mark.parametrize("patience", [0, 1, 3])
@pytest.mark.parametrize("dies_at", [2, 4, 7, 15])
def test_what_was_cut_off_anywhere_ends_in_the_same_weights(dies_at: int, patience: int) -> None:
    schedule = plan(patience=patience)
    whole = Line()
    fine_tune(whole, schedule, np.random.default_rng(3))
    disk = Disk()
    with stage_context(checkpoint_store=disk):
        if dies_at < whole.steps:
            with pytest.raises(Killed):
                fine_tune(Line(dies_at), schedule, np.random.default_rng(3))
        again = Line()
        fine_tune(again, schedule, np.random.default_rng(3))
    assert again.learned() == whole.learned()
    if dies_at < whole.steps:
        assert again.steps == whole.steps - (dies_at - 1)


def test_each_epoch_goes_through_every_text_once_in_another_order() -> None:
    line = Line(judges=False)
    fine_tune(line, plan(epochs=2, patience=3), np.random.default_rng(3))
    assert sorted(line.seen[:20]) == sorted(line.seen[20:]) == list(range(20))
    assert line.seen[:20] != line.seen[20:]


def test_parts_of_a_batch_add_up_to_the_batch() -> None:
    found = []
    for accumulate in (1, 3):
        line = Line()
        line.network[0] = torch.nn.Identity()
        fine_tune(line, plan(accumulate=accumulate), np.random.default_rng(3))
        found.append(line.learned())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_the_rate_rises_and_falls() -> None:
    schedule = plan(warmup=0.25)
    shares = [schedule.share_of_rate(step, 8) for step in range(8)]
    # 2 steps up; then 6 of 6, 5 of 6, ... 1 of 6
    assert shares == pytest.approx([0.5, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6])
    assert plan(warmup=0).share_of_rate(0, 8) == 1


def test_the_random_state_of_the_process_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    fine_tune(Line(), plan(), np.random.default_rng(3))
    assert torch.equal(before, torch.random.get_rng_state())


def test_steps_are_reported_and_the_speed_is_stated() -> None:
    heard: list[tuple[str, int, int]] = []
    with stage_context(on_progress=lambda *each: heard.append(each)), collect_facts() as facts:
        fine_tune(Line(), plan(epochs=1), np.random.default_rng(3))
    assert heard == [("Line steps", step, 4) for step in (1, 2, 3, 4)]
    assert facts["tokens_per_second"]


def test_divergence_names_the_epoch_the_loss_and_the_setting() -> None:
    with pytest.raises(OutOfRange, match="Line diverged in epoch 1 of 4: the loss is") as caught:
        fine_tune(Line(), plan(learning_rate=1e30, max_norm=1e30), np.random.default_rng(3))
    assert caught.value.remedy == "lower learning_rate, which is 1e+30"


def test_too_little_memory_says_what_would_do() -> None:
    class Hungry(Line):
        def loss(self, rows: AnyArray) -> Any:
            raise torch.cuda.OutOfMemoryError

    with pytest.raises(TooLittleMemory) as caught:
        fine_tune(Hungry(), plan(), np.random.default_rng(3))
    assert caught.value.remedy == "raise accumulate, which is 1, or lower max_length"


@given(st.lists(st.integers(1, 9), max_size=60), st.integers(1, 7), st.integers(0, 5))
def test_batches_hold_every_text_once(lengths: list[int], size: int, seed: int) -> None:
    batches = bucketed(np.array(lengths, dtype=int), size, np.random.default_rng(seed))
    assert sorted(each for batch in batches for each in batch.tolist()) == list(
        range(len(lengths))
    )
    assert all(1 <= batch.size <= size for batch in batches)


def test_the_head_has_steps_of_its_own_length() -> None:
    # the first step of Adam is as long as its rate: 0.1 (no warm-up), and 5 times that in the head
    class Headed(Line):
        def __init__(self) -> None:
            super().__init__(judges=False)
            parts = {name: torch.nn.Linear(1, 1, bias=False) for name in ("encoder", "head")}
            for each in parts.values():
                torch.nn.init.ones_(each.weight)
            self.network = torch.nn.ModuleDict(parts)  # type: ignore[assignment]

        def loss(self, rows: AnyArray) -> Any:
            return sum(part(torch.ones(len(rows), 1)).sum() for part in self.network.values())  # type: ignore[operator]

    headed = Headed()
    once = plan(epochs=1, batch_size=20, warmup=0, weight_decay=0.0, head_rate=5.0)
    fine_tune(headed, once, np.random.default_rng(3))
    assert headed.learned() == pytest.approx([0.9, 0.5])
