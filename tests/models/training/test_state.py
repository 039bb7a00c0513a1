from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core import stage_context as context_module
from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.core.stage_context import stage_context
from recbias.models.factorization.bpr import BPRMF
from recbias.models.factorization.funk_svd import MF, FunkSVD
from recbias.models.factorization.mf2020 import MF2020
from recbias.models.ranking.factor_model import FittedFactors
from recbias.models.ranking.tensors import array_of, parameter, torch_generator
from recbias.models.training.loop import train
from recbias.models.training.schedule import Schedule
from recbias.models.training.state import Remembers, memory_of
from support.recommending import checkerboard
from support.worlds import rows

DATA = TrainingData(
    rows([(0, 0), (0, 1), (1, 1), (1, 2)], n_items=4), rows([(0, 2), (1, 3)], n_items=4)
)
CPU = torch.device("cpu")


class Killed(Exception):
    """What takes the place of a kill inside a test."""


class Noisy:
    """Item scores that follow noise, and a count of the steps so far."""

    def __init__(self, dies_in: int = 0) -> None:
        self.weight = parameter(np.zeros(4), CPU)
        self.count = torch.zeros(1)
        self.dies_in, self.epochs = dies_in, 0
        self.noise: Any = None

    def parameters(self) -> Sequence[Any]:
        return [self.weight]

    def memory(self) -> Sequence[Any]:
        return [self.count]

    def epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        self.epochs += 1
        if self.epochs == self.dies_in:
            raise Killed
        self.noise = torch_generator(rng, CPU)
        return [rng.standard_normal((6, 4)).astype(np.float32)]

    def loss(self, *batch: Any) -> Any:
        self.count += 1
        shaken = batch[0] + torch.rand(4, generator=self.noise) / self.count
        return (self.weight - shaken).square().sum()

    def fitted(self) -> FittedFactors:
        return FittedFactors(np.ones((2, 1), "f4"), array_of(self.weight)[:, None])


class Disk:
    """Keeps what survives."""

    def __init__(self) -> None:
        self.arrays: Mapping[str, AnyArray] | None = None

    def load(self) -> Mapping[str, AnyArray] | None:
        return self.arrays

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        self.arrays = {name: each.copy() for name, each in arrays.items()}


@pytest.fixture(autouse=True)
def _at_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_module, "MIN_CHECKPOINT_INTERVAL", 0.0)
    monkeypatch.setattr(context_module, "CHECKPOINT_TIME_SHARE", np.inf)


@pytest.mark.parametrize("patience", [0, 5, 9])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("dies_in", [1, 2, 5])
def test_what_was_cut_off_ends_in_the_same_figures(
    dies_in: int, optimizer: Any, patience: int
) -> None:
    schedule = Schedule(
        name="Noisy",
        epochs=8,
        batch_size=2,
        learning_rate=0.05,
        optimizer=optimizer,
        patience=patience,
    )
    whole = train(Noisy(), schedule, DATA, np.random.default_rng(3))
    disk = Disk()
    with stage_context(checkpoint_store=disk):
        with pytest.raises(Killed):
            train(Noisy(dies_in), schedule, DATA, np.random.default_rng(3))
        again = Noisy()
        found = train(again, schedule, DATA, np.random.default_rng(99))
    if dies_in > 1:
        assert again.epochs <= 8 - (dies_in - 1)
        np.testing.assert_array_equal(whole.item_factors, found.item_factors)
    else:
        assert disk.arrays is not None


def test_what_has_stopped_early_does_not_go_on() -> None:
    schedule = Schedule(name="Noisy", epochs=99, batch_size=2, learning_rate=0.1, patience=1)
    disk = Disk()
    with stage_context(checkpoint_store=disk):
        first = Noisy()
        whole = train(first, schedule, DATA, np.random.default_rng(3))
        again = Noisy()
        found = train(again, schedule, DATA, np.random.default_rng(3))
    assert 1 < first.epochs < 99
    assert again.epochs == 0
    np.testing.assert_array_equal(whole.item_factors, found.item_factors)


@pytest.mark.parametrize(
    "model",
    [
        BPRMF(embedding_size=4, epochs=6, device="cpu"),
        MF2020(embedding_size=4, epochs=6, device="cpu"),
        MF(embedding_size=4, epochs=6, device="cpu"),
        FunkSVD(embedding_size=4, epochs=6, device="cpu"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_single_steps_go_on_where_they_were_cut_off(model: Any) -> None:
    data, _ = checkerboard(12)

    def killed(_: str, done: int, __: int) -> None:
        if done == 4:
            raise Killed

    whole = model.fit(data, np.random.default_rng(3))
    with stage_context(checkpoint_store=Disk()):
        with pytest.raises(Killed), stage_context(on_progress=killed):
            model.fit(data, np.random.default_rng(3))
        heard: list[int] = []
        with stage_context(on_progress=lambda _, done, __: heard.append(done)):
            found = model.fit(data, np.random.default_rng(99))
    assert heard == [3, 4, 5, 6]
    for name, each in whole.state().items():
        np.testing.assert_array_equal(each, found.state()[name])


def test_only_some_learners_remember() -> None:
    assert isinstance(Noisy(), Remembers)
    assert memory_of(object()) == ()
