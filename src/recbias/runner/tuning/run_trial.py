"""One trial of a search: settings are drawn, a model is fitted with them and judged.

It is judged on the validation rows only: what is drawn, fitted and measured is handed
``TrainingData``, which has no test part. A trial depends on its number, the seed and the trials
before it and on nothing else, so that a search that was killed goes on as if it had not been.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from recbias.config.plugin_spec import Dimension, Range, Tune
from recbias.config.settings import read_settings
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.split import Split, TrainingData
from recbias.core.protocols import OUTPUTS
from recbias.core.seeds import derive_seed
from recbias.core.stage_context import Pruned, stage_context, warn
from recbias.runner.boundary import attempt
from recbias.runner.stages.model import AnswerQueries
from recbias.runner.stages.requirements import needs
from recbias.runner.stages.shared import over, training_data, with_labels
from recbias.runner.tuning.optuna_sampler import Watch, combination, draw, place_of
from recbias.runner.tuning.trial import Trial
from recbias.runner.tuning.validation import Judge

ACCURACY = frozenset({"lists", "test"})
"""What a metric needs that says how accurate lists are, and nothing else."""


@dataclass(frozen=True)
class RunTrial:
    """Draw settings by what the earlier trials found, and judge the model that has them.

    Args:
        model: The model, whose other settings stay.
        name: Its name.
        tune: What is searched, and by which metric.
        k: The length of the lists.
        seed: The experiment's seed.
        fold: The fold, from 1.
        number: The place of the trial in the search, from 1.
        labels: How many detectors' labels stand before the earlier trials.
        covering: Whether the search goes through every combination of settings once, instead of
            drawing them by what the earlier trials found.
    """

    model: Any
    name: str
    tune: Tune
    k: int
    seed: int
    fold: int
    number: int = 1
    labels: int = 0
    covering: bool = False

    def __call__(self, dataset: Dataset, split: Split, *others: Any) -> Trial:
        """Return the trial; the test part goes no further than this line.

        Args:
            dataset: The dataset.
            split: Its parts.
            others: The labels of the items, then the trials that are drawn from.
        """
        labels, earlier = others[: self.labels], others[self.labels :]
        data = training_data(dataset, split)
        return self.trial(data, earlier, _over(dataset, split, labels))

    def trial(
        self, data: TrainingData, earlier: Sequence[Trial], labels: Sequence[pd.DataFrame] = ()
    ) -> Trial:
        """Return the trial.

        Args:
            data: What is fitted and judged on.
            earlier: The trials that are drawn from.
            labels: The labels of the items that the metric may read.

        Raises:
            MissingEvidence: No user has validation rows.
            UserError: The metric cannot be measured on this data.
        """
        drawn = self._drawn(earlier)
        known = next((each for each in earlier if each.settings == drawn), None)
        if known is not None:
            return replace(known, number=self.number, seconds=0.0)
        judge = Judge(data, self.tune.metric, labels)
        judge.check()
        watch = Watch(self.tune, earlier) if prunes(self.tune) else None
        began = time.perf_counter()
        value, failure = attempt(lambda: self._value(judge, drawn, watch))
        seconds = time.perf_counter() - began
        if failure is not None:
            warn(f"failed with {drawn}: {failure.message}")
            return Trial(self.number, drawn, math.nan, seconds, failure)
        curve = tuple(watch.curve) if watch is not None else ()
        if value is None:
            return Trial(self.number, drawn, curve[-1], seconds, curve=curve, pruned=True)
        return Trial(self.number, drawn, value, seconds, curve=curve)

    def seed_of(self, *names: object) -> int:
        """Return a seed that belongs to this search and the names."""
        what, *rest = names
        name = self.name.rpartition(":")[2]  # of a file's plug-in, without where the file lies
        return derive_seed(self.seed, what, name, self.fold, *rest)

    def _drawn(self, earlier: Sequence[Trial]) -> dict[str, Any]:
        if self.covering:
            return combination(self.tune.space, self.number, self.seed_of("search"))
        return draw(self.tune, earlier, self.seed_of("search", self.number))

    def _value(self, judge: Judge, drawn: Mapping[str, Any], watch: Watch | None) -> float | None:
        """Return the figure on the validation rows, None where the training was ended."""
        model = with_settings(self.model, self.tune.space, drawn)
        wanted = needs(self.tune.metric) & OUTPUTS
        ask = AnswerQueries(
            model, self.name, self.k, self.seed, self.fold, held="validation", wanted=wanted
        )
        if watch is None:
            return judge.value(ask)
        try:
            with stage_context(on_validation=watch):
                return judge.value(ask)
        except Pruned:
            return None


def prunes(tune: Tune) -> bool:
    """Return whether a search ends trainings before their time.

    They are judged by nDCG@10, so it does where the metric says the same in another way: how
    accurate the lists are, of all users together.
    """
    metric = tune.metric
    is_accuracy = metric.direction == "higher" and needs(metric) == ACCURACY
    return tune.pruning == "median" and is_accuracy and metric.grouping is None


def with_settings(model: Any, space: Sequence[Dimension], drawn: Mapping[str, Any]) -> Any:
    """Return a model with the settings that were drawn, the others as they are."""
    known = read_settings(type(model))
    values = {each.parameter: _built(each, drawn[each.parameter]) for each in space}
    return replace(model, **{known[name].field.name: each for name, each in values.items()})


def _built(dimension: Dimension, drawn: Any) -> Any:
    """Return a value as the plug-in takes it."""
    if isinstance(dimension, Range):
        return drawn
    return dimension.parsed_values[place_of(dimension, drawn)]


def _over(
    dataset: Dataset, split: Split, labels: Sequence[pd.DataFrame]
) -> tuple[pd.DataFrame, ...]:
    """Return the labels of the items over the items of the split."""
    items = over(with_labels(dataset, labels), split).items
    if items is None or not labels:
        return ()
    names = [name for each in labels for name in each.columns]
    return (items.frame[names].reset_index(drop=True),)
