"""Search spaces, metrics and models for tests of the hyperparameter search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from recbias.config.specs import Choice, PluginSpec, Range, Tune
from recbias.core.context import has_validation_listener, report_validation
from recbias.core.dataset import Dataset, Split, TrainingData
from recbias.metrics.accuracy import NDCG
from recbias.models.baselines import MostPop
from recbias.testing import make_checkerboard

SPACE = (
    Range("neighbors", 1, 20, log=False, integer=True),
    Range("shrink", 0.1, 10, log=True, integer=False),
    Choice("similarity", ("cosine", "dice"), ("cosine", "dice")),
)

PLACE = (Range("place", 0.0, 1.0, log=False, integer=False),)


def make_metric_spec(plugin: Any = None) -> PluginSpec:
    """Return the metric to optimize, nDCG@4 by default."""
    return PluginSpec("metrics", "nDCG", "nDCG", plugin or NDCG(k=4), {"k": 4}, ())


def make_search(space: tuple[Any, ...] = SPACE, plugin: Any = None, **options: Any) -> Tune:
    """Return a search."""
    return Tune(make_metric_spec(plugin), 30, space, {}, **options)


def make_split() -> tuple[Dataset, Split]:
    """Return the checkerboard, with 5 training, 1 validation and 2 test rows of every user."""
    train = make_checkerboard().train
    position = np.arange(len(train)) % 8
    parts = [
        train.take(np.flatnonzero(mask)) for mask in (position < 5, position == 5, position > 5)
    ]
    return Dataset(train), Split(parts[0], parts[1], parts[2])


@dataclass(frozen=True, kw_only=True)
class Stepwise:
    """MostPop that reports the validation score ``place`` after every epoch; fails below 0.1."""

    provides: ClassVar[frozenset[str]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ()
    place: float = 0.5
    epochs: int = 13

    def fit(self, data: TrainingData, rng: np.random.Generator) -> Any:
        """Report a score for every epoch."""
        if self.place < 0.1:
            raise FloatingPointError("the loss is NaN")
        for epoch in range(1, self.epochs + 1):
            if has_validation_listener():
                report_validation(epoch, self.place)
        return MostPop().fit(data, rng)
