"""What is searched in the tests of searches, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from recbias.config.plugin_spec import Choice, PluginSpec, Range, Tune
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.split import Split, TrainingData
from recbias.core.stage_context import has_validation_listener, report_validation
from recbias.metrics.accuracy.ranking import NDCG
from recbias.models.unpersonalised import MostPop
from recbias.testing.small_world import checkerboard

SPACE = (
    Range("neighbors", 1, 20, log=False, integer=True),
    Range("shrink", 0.1, 10, log=True, integer=False),
    Choice("similarity", ("cosine", "dice"), ("cosine", "dice")),
)

PLACE = (Range("place", 0.0, 1.0, log=False, integer=False),)


def metric(plugin: Any = None) -> PluginSpec:
    """The metric that is made best: nDCG@4 unless given."""
    return PluginSpec("metrics", "nDCG", "nDCG", plugin or NDCG(k=4), {"k": 4}, ())


def tune(space: tuple[Any, ...] = SPACE, plugin: Any = None, **more: Any) -> Tune:
    """A search."""
    return Tune(metric(plugin), 30, space, {}, **more)


def directed(direction: str) -> Any:
    """A metric that is only a direction."""
    return type("Figure", (), {"direction": direction})()


def a_world() -> tuple[Dataset, Split]:
    """The checkerboard; two of each user's eight rows are validation, one is test."""
    train = checkerboard().train
    place = np.arange(len(train)) % 8
    parts = [train.take(np.flatnonzero(which)) for which in (place < 5, place == 5, place > 5)]
    return Dataset(train), Split(parts[0], parts[1], parts[2])


@dataclass(frozen=True, kw_only=True)
class Stepwise:
    """Popular items; after each epoch it says that it is ``place`` good; below 0.1 it fails."""

    provides: ClassVar[frozenset[str]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ()
    place: float = 0.5
    epochs: int = 13

    def fit(self, data: TrainingData, rng: np.random.Generator) -> Any:
        """Learn nothing, step by step."""
        if self.place < 0.1:
            raise FloatingPointError("the loss is NaN")
        for epoch in range(1, self.epochs + 1):
            if has_validation_listener():
                report_validation(epoch, self.place)
        return MostPop().fit(data, rng)
