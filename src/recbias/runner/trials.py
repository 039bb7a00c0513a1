"""One trial of a search: settings are drawn, a model is fitted with them and judged.

It is judged on the validation rows only: what is drawn, fitted and measured is handed
``TrainingData``, which has no test part. A trial depends on its number, the seed and the trials
before it and on nothing else, so that a search that was killed goes on as if it had not been.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from recbias.config.chosen import Choice, Chosen, Dimension, Range, Tune
from recbias.config.settings import settings
from recbias.core.attributes import Attributes
from recbias.core.dataset import Dataset
from recbias.core.errors import BrokenContract, MissingEvidence
from recbias.core.notes import warn
from recbias.core.protocols import ChecksEarly
from recbias.core.queries import Queries
from recbias.core.records import Failure
from recbias.core.scores import Direction, Measurement
from recbias.core.seeds import derived_seed
from recbias.core.split import Split, TrainingData
from recbias.runner.boundary import attempt
from recbias.runner.splitting import SplitFigures
from recbias.runner.work import AnswerQueries, MeasureAnswers, evidence_of, training_data

VERSION = 1
"""Raised when trials come out differently; part of the address of each."""


@dataclass(frozen=True)
class Trial:
    """What became of one setting.

    Args:
        number: Its place in the search, from 1.
        settings: What was drawn, by setting, as a spec has it.
        value: The metric on the validation rows; NaN where it failed.
        seconds: Wall time; 0 where the same settings were tried before.
        failure: Why it failed, or None.
    """

    number: int
    settings: Mapping[str, Any]
    value: float
    seconds: float = 0.0
    failure: Failure | None = None

    @property
    def state(self) -> str:
        """``done`` or ``failed``."""
        return "done" if self.failure is None else "failed"


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
    """

    model: Any
    name: str
    tune: Tune
    k: int
    seed: int
    fold: int

    def __call__(self, dataset: Dataset, split: Split, *earlier: Trial) -> Trial:
        """Return the next trial; the test part goes no further than this line."""
        return self.trial(training_data(dataset, split), earlier)

    def trial(self, data: TrainingData, earlier: Sequence[Trial]) -> Trial:
        """Return the next trial.

        Raises:
            MissingEvidence: No user has validation rows.
            UserError: The metric cannot be measured on this data.
        """
        number = len(earlier) + 1
        name = self.name.rpartition(":")[2]  # of a file's plug-in, without where the file lies
        seed = derived_seed(self.seed, "search", name, self.fold, number)
        drawn = draw(self.tune, earlier, seed)
        known = next((each for each in earlier if each.settings == drawn), None)
        if known is not None:
            return replace(known, number=number, seconds=0.0)
        judge = Judge(data, self.tune.metric)
        judge.check()
        began = time.perf_counter()
        value, failure = attempt(lambda: self._value(judge, drawn))
        seconds = time.perf_counter() - began
        if failure is not None:
            warn(f"failed with {drawn}: {failure.message}")
            return Trial(number, drawn, math.nan, seconds, failure)
        return Trial(number, drawn, value, seconds)

    def _value(self, judge: Judge, drawn: Mapping[str, Any]) -> float:
        model = with_settings(self.model, self.tune.space, drawn)
        return judge.value(AnswerQueries(model, self.name, self.k, self.seed, self.fold))


@dataclass(frozen=True)
class Judge:
    """Measures a model on the validation rows of every user who has some.

    Args:
        data: Training and validation rows.
        metric: What is measured; to it the validation rows are the test part.
    """

    data: TrainingData
    metric: Chosen

    def check(self) -> None:
        """Raise what the data alone shows to be amiss with the metric, before anything is fitted.

        Raises:
            UserError: No user has validation rows, or the metric lacks a column.
        """
        evidence = evidence_of(self._world, self._judged, self._queries, ())
        if isinstance(self.metric.plugin, ChecksEarly):
            self.metric.plugin.check(evidence)

    def value(self, ask: AnswerQueries) -> float:
        """Return the figure of a model that is fitted here, on the training rows.

        Raises:
            MissingEvidence: The figure is undefined, or is not one but several.
        """
        fitted_on = Split(self.data.train, None, self.data.validation)
        answers = ask(self._world, fitted_on, self._queries)
        measure = MeasureAnswers(self.metric.plugin, self.metric.name)
        figures = measure(self._world, self._judged, self._queries, answers)
        if self.metric.grouping is not None:
            split = SplitFigures(self.metric.name, self.metric.grouping)
            figures = split(self._queries, figures)
        return self._one(figures)

    def _one(self, figures: Sequence[Measurement]) -> float:
        if len(figures) != 1:
            found = f"{self.metric.label} gives {len(figures)} figures, and a search needs one"
            raise MissingEvidence(found, remedy="choose a metric such as nDCG")
        if math.isnan(figures[0].value):
            found = f"{self.metric.label} is undefined on the validation rows"
            raise MissingEvidence(found, remedy="choose a metric such as nDCG")
        return float(figures[0].value)

    @cached_property
    def _world(self) -> Dataset:
        data = self.data
        return Dataset(data.train, data.users, data.items, data.reviews)

    @cached_property
    def _judged(self) -> Split:
        return Split(self.data.train, self.data.validation)

    @cached_property
    def _queries(self) -> Queries:
        rows = self.data.validation
        users = np.unique(rows.users) if rows is not None else np.empty(0, dtype=np.int32)
        if not users.size:
            remedy = "give the split a larger validation part"
            raise MissingEvidence("no user has validation rows to tune on", remedy=remedy)
        ids = self.data.train.user_ids.take(users)
        labels = Attributes(ids, pd.DataFrame(index=range(users.size)), "user")
        if self.data.users is not None:
            labels = self.data.users.take(users, ids)
        return Queries(ids, labels, users.astype(np.int32))


def score(value: float, direction: Direction) -> float:
    """Return how good a figure is, more being better.

    >>> score(0.3, "higher"), score(0.3, "lower"), score(-0.3, "zero")
    (0.3, -0.3, -0.3)
    """
    if direction == "zero":
        return -abs(value)
    return -value if direction == "lower" else value


def has_optuna() -> bool:
    """Return whether the package that draws settings is installed."""
    return importlib.util.find_spec("optuna") is not None


def draw(tune: Tune, earlier: Sequence[Trial], seed: int) -> dict[str, Any]:
    """Return the next settings to try, by the tree-structured Parzen estimator (TPE).

    The first ten are drawn at random. The earlier trials are told to a sampler that has a seed of
    its own, so that what is drawn follows from them and the seed.

    Args:
        tune: What is searched, and by which metric.
        earlier: The trials so far; of those that failed nothing is learned.
        seed: The seed of this draw.

    Source:
        Bergstra, Bardenet, Bengio and Kégl, "Algorithms for Hyper-Parameter Optimization",
        NeurIPS 2011, section 4; as Optuna implements it.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = sorted(tune.space, key=lambda each: each.parameter)
    kinds = {each.parameter: _distribution(each, optuna.distributions) for each in space}
    sampler = optuna.samplers.TPESampler(seed=seed % 2**32)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for each in earlier:
        if each.failure is None:
            told = {one.parameter: _told(one, each.settings[one.parameter]) for one in tune.space}
            value = score(each.value, tune.metric.direction)
            study.add_trial(
                optuna.trial.create_trial(value=value, params=told, distributions=kinds)
            )
    drawn = study.ask(kinds).params
    return {each.parameter: _drawn(each, drawn[each.parameter]) for each in tune.space}


def with_settings(model: Any, space: Sequence[Dimension], drawn: Mapping[str, Any]) -> Any:
    """Return a model with the settings that were drawn, the others as they are."""
    known = settings(type(model))
    values = {each.parameter: _built(each, drawn[each.parameter]) for each in space}
    return replace(model, **{known[name].field.name: each for name, each in values.items()})


def _distribution(dimension: Dimension, distributions: Any) -> Any:
    if isinstance(dimension, Choice):
        return distributions.CategoricalDistribution(range(len(dimension.values)))
    low, high, log = dimension.low, dimension.high, dimension.log
    if dimension.whole:
        return distributions.IntDistribution(int(low), int(high), log=log)
    return distributions.FloatDistribution(float(low), float(high), log=log)


def _drawn(dimension: Dimension, told: Any) -> Any:
    """Return a value as a spec has it; of a choice, the sampler draws the place."""
    return dimension.values[told] if isinstance(dimension, Choice) else told


def _told(dimension: Dimension, drawn: Any) -> Any:
    return _place(dimension, drawn) if isinstance(dimension, Choice) else drawn


def _built(dimension: Dimension, drawn: Any) -> Any:
    """Return a value as the plug-in takes it."""
    if isinstance(dimension, Range):
        return drawn
    return dimension.built[_place(dimension, drawn)]


def _place(choice: Choice, drawn: Any) -> int:
    for place, each in enumerate(choice.values):
        if type(each) is type(drawn) and each == drawn:
            return place
    raise BrokenContract(f"{drawn!r} is not among the values of {choice.parameter}")
