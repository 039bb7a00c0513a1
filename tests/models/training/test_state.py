from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from recbias.core.context import stage_context
from recbias.core.dataset import AnyArray, Attributes, TrainingData
from recbias.models.convmf import ConvMF
from recbias.models.factorization import AMF, BPRMF, MF, MF2020, PMF, FunkSVD
from recbias.models.fitted import FittedFactors
from recbias.models.gpu import copy_to_array, create_parameter, create_torch_generator
from recbias.models.multivae import MultiVAE
from recbias.models.sequential import BERT4Rec, GRU4Rec, SASRec
from recbias.models.training import Learner, Schedule, train
from support.models.checkpoints import Interrupted, MemoryStore, save_always
from support.models.sequence_worlds import make_chain
from support.worlds.small_worlds import make_interactions

DATA = TrainingData(
    make_interactions([(0, 0), (0, 1), (1, 1), (1, 2)], n_items=4),
    make_interactions([(0, 2), (1, 3)], n_items=4),
)
CPU = torch.device("cpu")


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


@pytest.fixture(autouse=True)
def _write_checkpoint_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    save_always(monkeypatch)


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.parametrize("patience", [0, 5, 9])
@pytest.mark.parametrize("interrupt_at", [1, 2, 5])
def test_resumed_training_gives_the_same_factors(interrupt_at: int, patience: int) -> None:
    schedule = Schedule(
        name="Noisy",
        epochs=8,
        batch_size=2,
        learning_rate=0.05,
        patience=patience,
    )
    uninterrupted = train(Noisy(), schedule, DATA, np.random.default_rng(3))
    store = MemoryStore()
    with stage_context(checkpoint_store=store):
        with pytest.raises(Interrupted):
            train(Noisy(interrupt_at), schedule, DATA, np.random.default_rng(3))
        resumed = Noisy()
        fitted = train(resumed, schedule, DATA, np.random.default_rng(99))
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
