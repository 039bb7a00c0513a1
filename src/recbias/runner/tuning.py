"""The hyperparameter search of a model or re-ranker: its trials, and the selection of the best.

A trial receives no test set, and depends on its number, the seed and the earlier trials only.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from recbias.config.settings import read_settings
from recbias.config.specs import Choice, Dimension, Objective, PluginSpec, Tune
from recbias.core.context import Failure, Pruned, stage_context, warn
from recbias.core.dataset import (
    Attributes,
    Dataset,
    Queries,
    Reviews,
    Split,
    TrainingData,
    make_sentence_queries,
)
from recbias.core.errors import MissingEvidence, StageError, UserError
from recbias.core.files import derive_seed
from recbias.core.measures import Direction, Measurement, to_loss
from recbias.core.plugins import OUTPUTS, ChecksEarly
from recbias.runner.boundary import attempt
from recbias.runner.grouping import GroupMeasurements
from recbias.runner.stages import (
    TEXT_OUTPUTS,
    AnswerQueries,
    ComputeMetric,
    FitModel,
    ItemLabels,
    ModelOutputs,
    RerankLists,
    add_labels,
    align_dataset,
    build_evidence,
    make_training_data,
)


def is_exhaustive(tune: Tune) -> bool:
    """Return whether a search has enough trials for every combination of settings.

    It then tries each combination once, since sampling would repeat some and miss others.
    """
    n_combinations = count_combinations(tune.space)
    return n_combinations is not None and n_combinations <= tune.trials


def count_combinations(space: Sequence[Dimension]) -> int | None:
    """Return the number of combinations of distinct values; None if a setting is a real number.

    >>> from recbias.config.specs import Range
    >>> rates, sizes = Choice("rate", (0.1, 0.2, 0.1)), Range("size", 2, 4, log=True, integer=True)
    >>> count_combinations((rates, sizes))
    6
    >>> count_combinations((Range("rate", 0, 1, log=False, integer=False),)) is None
    True
    """
    counts = []
    for dimension in space:
        if isinstance(dimension, Choice):
            counts.append(len(_list_values(dimension)))
        elif dimension.integer:
            counts.append(int(dimension.high) - int(dimension.low) + 1)
        else:
            return None
    return math.prod(counts)


def _select_combination(space: Sequence[Dimension], number: int, seed: int) -> dict[str, Any]:
    """Return the settings of one trial of a search that tries every combination once.

    The combinations are in random order, so that the first ones come from all of the space; trials
    count from 1. The order depends on the finite space and on the seed of the search only, so the
    trials of a batch never share a combination.

    >>> from recbias.config.specs import Range
    >>> space = (Choice("a", ("x", "y")), Range("b", 1, 2, log=False, integer=True))
    >>> sorted(tuple(_select_combination(space, number, 7).values()) for number in (1, 2, 3, 4))
    [('x', 1), ('x', 2), ('y', 1), ('y', 2)]
    """
    values = {dimension.parameter: _list_values(dimension) for dimension in space}
    names = sorted(values)
    sizes = [len(values[name]) for name in names]
    combination = np.random.default_rng(seed).permutation(math.prod(sizes))[number - 1]
    positions = dict(zip(names, np.unravel_index(combination, sizes), strict=True))
    return {name: values[name][int(positions[name])] for name in values}


def _list_values(dimension: Dimension) -> Sequence[Any]:
    if isinstance(dimension, Choice):
        positions = dict.fromkeys(find_choice(dimension, value) for value in dimension.values)
        return [dimension.values[position] for position in positions]
    return range(int(dimension.low), int(dimension.high) + 1)


def find_choice(choice: Choice, value: Any) -> int:
    """Return the position of a value among those of a choice, compared with its type."""
    return [(type(each), each) for each in choice.values].index((type(value), value))


@dataclass(frozen=True)
class Trial:
    """The result of one combination of settings.

    Args:
        number: Its number in the search, from 1.
        value: The metric on the validation set; for a pruned trial its last nDCG@10, NaN if it
            failed.
        seconds: Wall time; 0 if an earlier trial had the same settings.
        curve: nDCG@10 on the validation set after each epoch, if it could be pruned.
        pruned: Whether it was stopped because earlier trials were better.
        excluded: Whether the perplexity increased by more than the search allows.
    """

    number: int
    settings: Mapping[str, Any]
    value: float
    seconds: float = 0.0
    failure: Failure | None = None
    curve: tuple[float, ...] = ()
    pruned: bool = False
    excluded: bool = False

    @property
    def state(self) -> str:
        """``done``, ``pruned``, ``excluded`` or ``failed``."""
        if self.failure is not None:
            return "failed"
        if self.excluded:
            return "excluded"
        return "pruned" if self.pruned else "done"


_MIN_COMPLETE_TRIALS = 5
"""No trial is pruned before this many are complete."""

_MIN_EPOCHS = 10
"""No training is pruned before this epoch: a small learning rate starts slowly."""


class MedianPruner:
    """Stops a training that is worse than earlier trials: the median rule.

    A training stops after an epoch if its best nDCG@10 on the validation set so far is below the
    median of the complete trials' nDCG@10 at the same epoch. A trial that had fewer epochs counts
    with its best. No training stops in its first nine epochs or before five trials are complete.

    Source:
        Golovin et al., "Google Vizier: A Service for Black-Box Optimization", KDD 2017, section
        3.2.2; as Optuna implements it.
    """

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._curves = [trial.curve for trial in trials if trial.state == "done"]
        self._n_epochs = max(map(len, self._curves), default=0)
        self.curve: list[float] = []

    def __call__(self, epoch: int, score: float) -> None:
        """Record the validation score of an epoch; several trainings of one fit count on.

        Raises:
            Pruned: The training should stop.
        """
        self.curve.append(score)
        n = len(self.curve)
        is_early = n < _MIN_EPOCHS or len(self._curves) < _MIN_COMPLETE_TRIALS
        if is_early or n > self._n_epochs:
            return
        others = [(*curve, max(curve))[min(n - 1, len(curve))] for curve in self._curves if curve]
        if max(self.curve) < np.median(others):
            raise Pruned


def sample_settings(tune: Tune, trials: Sequence[Trial], seed: int) -> dict[str, Any]:
    """Return the settings of the next trial, by the tree-structured Parzen estimator (TPE).

    The settings of the first ten trials are sampled at random. Of the earlier trials, pruned ones
    rank below complete ones, and failed ones are ignored.

    Source:
        Bergstra, Bardenet, Bengio and Kégl, "Algorithms for Hyper-Parameter Optimization",
        NeurIPS 2011, section 4; as Optuna implements it.
    """
    scores = {
        trial.number: -to_loss(trial.value, tune.direction) if trial.state == "done" else None
        for trial in trials
        if trial.state != "failed"
    }
    study = _create_study(tune.space, trials, scores, sampler_seed=seed)
    drawn = study.ask(_make_distributions(tune.space, linear=False)).params
    return {
        each.parameter: (
            each.values[drawn[each.parameter]]
            if isinstance(each, Choice)
            else drawn[each.parameter]
        )
        for each in tune.space
    }


_MIN_TRIALS = 8
"""Importances are undefined with fewer trials that have a value."""


def estimate_importances(
    space: Sequence[Dimension], trials: Sequence[Trial], direction: Direction, seed: int
) -> dict[str, float]:
    """Return the share of the variance of the values that each setting alone explains.

    A functional analysis of variance (fANOVA) of a random forest fitted to the values of the
    trials. If some were pruned, the value of each trial is the best nDCG@10 of its epochs: without
    pruned trials, the settings that caused pruning would seem unimportant. Failed trials are
    excluded. A setting sampled on a logarithmic scale is analysed on that scale. The shares sum
    to 1; they are NaN with fewer than eight values, or if all are equal.

    Source:
        Hutter, Hoos and Leyton-Brown, "An Efficient Approach for Assessing Hyperparameter
        Importance", ICML 2014; as Optuna implements it.
    """
    if any(trial.pruned for trial in trials):
        scores = {trial.number: max(trial.curve) for trial in trials if trial.curve}
    else:
        done = [trial for trial in trials if trial.state == "done"]
        scores = {trial.number: -to_loss(trial.value, direction) for trial in done}
    names = [dimension.parameter for dimension in space]
    if len(scores) < _MIN_TRIALS or len({*scores.values()}) == 1:
        return dict.fromkeys(names, math.nan)
    study = _create_study(space, trials, scores, linear=True)
    importance = _import_optuna().importance
    evaluator = importance.FanovaImportanceEvaluator(seed=seed % 2**32)
    shares = importance.get_param_importances(study, evaluator=evaluator)
    return {name: float(shares[name]) for name in names}


def _import_optuna() -> Any:
    """Return the package, which logs warnings only."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _create_study(
    space: Sequence[Dimension],
    trials: Sequence[Trial],
    scores: Mapping[int, float | None],
    *,
    linear: bool = False,
    sampler_seed: int = 0,
) -> Any:
    """Return the study of the trials that have a score by their number; None is a pruned one's."""
    optuna, distributions = _import_optuna(), _make_distributions(space, linear=linear)
    sampler = optuna.samplers.TPESampler(seed=sampler_seed % 2**32)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    states = optuna.trial.TrialState
    for trial in (trial for trial in trials if trial.number in scores):
        score = scores[trial.number]
        study.add_trial(
            optuna.trial.create_trial(
                state=states.PRUNED if score is None else states.COMPLETE,
                value=score,
                params={each.parameter: _encode(each, trial, linear=linear) for each in space},
                distributions=distributions,
                intermediate_values=dict(enumerate(trial.curve, start=1)),
            )
        )
    return study


def _make_distributions(space: Sequence[Dimension], *, linear: bool) -> dict[str, Any]:
    """Return Optuna's distribution of each setting, by name, so that their order is free."""
    dimensions = sorted(space, key=lambda dimension: dimension.parameter)
    return {each.parameter: _make_distribution(each, linear=linear) for each in dimensions}


def _make_distribution(dimension: Dimension, *, linear: bool) -> Any:
    """Return the distribution of a setting; of a choice, that of the position of its value.

    If it is ``linear``, that of the logarithm of a setting on a logarithmic scale.
    """
    distributions = _import_optuna().distributions
    if isinstance(dimension, Choice):
        return distributions.CategoricalDistribution(range(len(dimension.values)))
    low, high, log = dimension.low, dimension.high, dimension.log
    if linear and log:
        return distributions.FloatDistribution(math.log(low), math.log(high))
    if dimension.integer:
        return distributions.IntDistribution(int(low), int(high), log=log)
    return distributions.FloatDistribution(float(low), float(high), log=log)


def _encode(dimension: Dimension, trial: Trial, *, linear: bool) -> Any:
    value = trial.settings[dimension.parameter]
    if isinstance(dimension, Choice):
        return find_choice(dimension, value)
    if not (linear and dimension.log):
        return value
    return min(max(math.log(value), math.log(dimension.low)), math.log(dimension.high))


@dataclass(frozen=True)
class ValidationScorer:
    """Computes the metric of a search for every user with validation rows, or its sentences.

    Args:
        data: The training and validation rows.
        metric: The metric; the validation rows are its relevant items.
        labels: Labels of the items of ``data`` by detectors, which models do not see.
    """

    data: TrainingData
    metric: PluginSpec
    labels: Sequence[ItemLabels] = ()

    def check(self) -> None:
        """Check before any training that the metric can be computed on the data.

        Raises:
            UserError: No user has validation rows, or the metric lacks a column.
        """
        evidence = build_evidence(self._dataset, self._split, self.queries, self.labels)
        if isinstance(self.metric.plugin, ChecksEarly):
            self.metric.plugin.check(evidence)

    @property
    def inputs(self) -> tuple[Dataset, Split, Queries]:
        """What a model is fitted on, and asked: the inputs of ``AnswerQueries``."""
        return self._dataset, Split(self.data.train, None, self.data.validation), self.queries

    def measure(self, outputs: ModelOutputs, objective: Objective = "value") -> float:
        """Return the value of the metric, or the p-value of its first test.

        Raises:
            MissingEvidence: The metric is undefined, returns several values, or has no test.
        """
        measurements = self._compute(outputs)
        fault, remedy = "", "choose a metric such as nDCG"
        if len(measurements) != 1:
            fault = f"returns {len(measurements)} values, and a search needs one"
        elif objective == "largest_p" and not measurements[0].contrasts:
            fault = "has no test within a model"
            remedy = "choose perplexity_gap, or remove objective"
        elif math.isnan(measurements[0].value):
            fault = "is undefined on the validation rows"
        if fault:
            raise MissingEvidence(f"{self.metric.label} {fault}", remedy=remedy)
        if objective == "largest_p":
            return float(measurements[0].contrasts[0].p)
        return float(measurements[0].value)

    def _compute(self, outputs: ModelOutputs) -> Sequence[Measurement]:
        """Return the values of the metric; that of all units, if there is one beside others."""
        plugin, grouping = self.metric.plugin, self.metric.grouping
        compute = ComputeMetric(plugin, self.metric.name)
        values = compute(self._dataset, self._split, self.queries, outputs, *self.labels)
        if grouping is not None:
            group = GroupMeasurements(self.metric.name, grouping, plugin.direction)
            values = group(self.queries, values)
        overall = [each for each in values if not each.group and not each.target]
        return overall if len(overall) == 1 else values

    @property
    def labelled_data(self) -> TrainingData:
        """The training and validation rows, with the labels of the items."""
        return replace(self.data, items=add_labels(self._dataset, self.labels).items)

    @cached_property
    def _dataset(self) -> Dataset:
        data, reviews = self.data, self.data.reviews
        if reviews is not None and data.validation_reviews is not None:
            # the split separates them again
            parts = vars(reviews), vars(data.validation_reviews)
            reviews = Reviews(
                **{name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            )
        return Dataset(data.train, data.users, data.items, reviews, sentences=data.sentences)

    @cached_property
    def _split(self) -> Split:
        return Split(self.data.train, self.data.validation)

    @cached_property
    def queries(self) -> Queries:
        """The users with validation rows, or the validation sentences."""
        rows, sentences = self.data.validation, self.data.sentences
        if sentences is not None and self.metric.needs & TEXT_OUTPUTS.keys():
            return make_sentence_queries(sentences, "validation")
        users = np.unique(rows.users) if rows is not None else np.empty(0, dtype=np.int32)
        if not users.size:
            remedy = "give the split a larger validation set"
            raise MissingEvidence("no user has validation rows to tune on", remedy=remedy)
        ids = self.data.train.user_ids.take(users)
        labels = Attributes(ids, pd.DataFrame(index=range(users.size)), "user")
        if self.data.users is not None:
            labels = self.data.users.take(users, ids)
        return Queries(ids, labels, users.astype(np.int32))


@dataclass(frozen=True)
class RunTrial:
    """Sample settings and score the model, or the re-ranker, with them.

    Args:
        model: The model or re-ranker, whose other settings stay.
        fold: The fold, from 1.
        number: The number of the trial, from 1.
        reranks: Whether ``model`` is a re-ranker.
        exhaustive: Whether the search tries every combination once instead of sampling.
    """

    model: Any
    name: str
    tune: Tune
    k: int
    seed: int
    fold: int
    number: int = 1
    reranks: bool = False
    exhaustive: bool = False

    def __call__(self, dataset: Dataset, split: Split, *inputs: Any) -> Trial:
        """Return the trial.

        Args:
            dataset: The dataset.
            split: The split, of which the test set is not used.
            inputs: The labels of items, the earlier trials, and the outputs of a model: the
                candidates of a re-ranker, or those of the baseline without training.

        Raises:
            MissingEvidence: No user has validation rows.
            UserError: The metric cannot be computed on these data.
        """
        trials = [each for each in inputs if isinstance(each, Trial)]
        settings = self._choose_settings(trials)
        for trial in trials:
            if trial.settings == settings:
                return replace(trial, number=self.number, seconds=0.0)
        labels = _align_labels(dataset, split, [x for x in inputs if isinstance(x, ItemLabels)])
        given = next((each for each in inputs if isinstance(each, ModelOutputs)), None)
        scorer = ValidationScorer(make_training_data(dataset, split), self.tune.metric, labels)
        scorer.check()
        pruner = MedianPruner(trials) if can_prune(self.tune) else None
        start = time.perf_counter()
        score, failure = attempt(lambda: self._score(scorer, settings, pruner, given))
        seconds = time.perf_counter() - start
        if failure is not None:
            warn(f"failed with {settings}: {failure.message}")
            return Trial(self.number, settings, math.nan, seconds, failure)
        curve = tuple(pruner.curve) if pruner is not None else ()
        if score is None:
            return Trial(self.number, settings, curve[-1], seconds, curve=curve, pruned=True)
        value, excluded = score
        return Trial(self.number, settings, value, seconds, curve=curve, excluded=excluded)

    def derive_seed(self, purpose: str, *names: object) -> int:
        """Return a seed for one purpose in this search."""
        name = self.name.rpartition(":")[2]  # a plug-in of a file, without the path of the file
        return derive_seed(self.seed, purpose, name, self.fold, *names)

    def _choose_settings(self, trials: Sequence[Trial]) -> dict[str, Any]:
        if self.exhaustive:
            return _select_combination(self.tune.space, self.number, self.derive_seed("search"))
        return sample_settings(self.tune, trials, self.derive_seed("search", self.number))

    def _score(
        self,
        scorer: ValidationScorer,
        settings: Mapping[str, Any],
        pruner: MedianPruner | None,
        given: ModelOutputs | None,
    ) -> tuple[float, bool] | None:
        """Return the value on the validation set and whether the trial is excluded."""
        model = _apply_settings(self.model, self.tune.space, settings)
        with suppress(Pruned), stage_context(on_validation=pruner) if pruner else nullcontext():
            if self.reranks:
                candidates: Any = given and given.lists
                rerank = RerankLists(model, self.k).rerank
                lists = rerank(candidates, scorer.queries, scorer.labelled_data)
                outputs = ModelOutputs(lists, None)
            else:
                outputs = self._make_answer(model)(*scorer.inputs)
            value = scorer.measure(outputs, self.tune.objective)
            limit = find_perplexity_limit(self.tune, model)
            if limit is None:
                return value, False
            untrained = self.answer_baseline(model)
            if given is None or untrained != self.answer_baseline(self.model):
                given = untrained(*scorer.inputs)
            increase = _compute_perplexity_increase(given, outputs)
            if increase > limit:
                message = f"the perplexity of the validation sentences increases by {increase:.0%}"
                warn(f"excluded with {settings}: {message}, more than {limit:.0%}")
            return value, increase > limit
        return None

    def answer_baseline(self, model: Any) -> AnswerQueries:
        """Return what scores the sentences by a model without its training."""
        return self._make_answer(model.without_training())

    def _make_answer(self, model: Any) -> AnswerQueries:
        return AnswerQueries(
            *(model, self.name, self.k, self.seed, self.fold),
            split_part="validation",
            outputs=self.tune.metric.needs & OUTPUTS,
        )


def _align_labels(
    dataset: Dataset, split: Split, labels: Sequence[ItemLabels]
) -> Sequence[ItemLabels]:
    items = align_dataset(add_labels(dataset, labels), split).items
    if items is None or not labels:
        return ()
    names = [name for table in labels for name in table.frame.columns]
    return [ItemLabels(items.frame[names].reset_index(drop=True))]


def _compute_perplexity_increase(before: ModelOutputs, after: ModelOutputs) -> float:
    """Return the increase of the perplexity of sentences, as a share of that before."""
    if before.sentence_scores is None or after.sentence_scores is None:
        return math.nan
    values = [scores.perplexity for scores in (before.sentence_scores, after.sentence_scores)]
    is_defined = ~np.isnan(values[0])
    if not is_defined.any():
        return math.nan
    if np.isnan(values[1][is_defined]).any():
        return math.inf
    return float(np.exp(np.mean(np.log(values[1] / values[0])[is_defined]))) - 1


_DEFAULT_INCREASE = 0.1
"""The largest increase of perplexity in a search for the best value."""


def find_perplexity_limit(tune: Tune, model: Any) -> float | None:
    """Return the largest increase of perplexity that a search allows; None for any.

    Only models that train a pretrained language model further have a limit.
    """
    is_limited = hasattr(model, "without_training") and "sentence_scores" in tune.metric.needs
    if not is_limited or tune.max_perplexity_increase is not None:
        return tune.max_perplexity_increase if is_limited else None
    return _DEFAULT_INCREASE if tune.objective == "value" else None


def can_prune(tune: Tune) -> bool:
    """Return whether a search stops trainings early, by nDCG@10: if its metric is of accuracy."""
    metric = tune.metric
    is_accuracy = metric.direction == "higher" and metric.needs == {"lists", "test"}
    return tune.pruning == "median" and is_accuracy and metric.grouping is None


def _apply_settings(model: Any, space: Sequence[Dimension], settings: Mapping[str, Any]) -> Any:
    """Return a model with the settings of a trial."""
    cls: type = type(model)
    declared = read_settings(cls)
    values = {}
    for dimension in space:
        value = settings[dimension.parameter]
        if isinstance(dimension, Choice):
            value = dimension.parsed_values[find_choice(dimension, value)]
        values[declared[dimension.parameter].field.name] = value
    return replace(model, **values)


@dataclass(frozen=True)
class SearchResult:
    """The result of a search; the first of equally good trials is the best.

    Args:
        importances: The share of the variance that each setting explains, or NaN.
    """

    best: Trial
    trials: tuple[Trial, ...]
    importances: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SelectBestTrial:
    """Select the best trial and estimate the importance of each setting."""

    direction: Direction
    space: tuple[Dimension, ...] = ()
    seed: int = 0

    def __call__(self, *trials: Trial) -> SearchResult:
        """Return the best of the complete trials; raise an error if all of them failed."""
        done = [trial for trial in trials if trial.state == "done"]
        if not done and any(trial.excluded for trial in trials):
            n_excluded = sum(trial.excluded for trial in trials)
            message = f"{n_excluded} of {len(trials)} trials increase the perplexity too much, "
            message += "and no other has a value"
            remedy = "search smaller weights and learning rates, or raise max_perplexity_increase"
            raise UserError(message, where="tune.max_perplexity_increase", remedy=remedy)
        if not done:
            failures = [trial.failure for trial in trials if trial.failure is not None]
            message = f"all {len(failures)} trials failed, the first with: {failures[0].message}"
            if all(failure.user for failure in failures):
                raise UserError(message, remedy="change the search space")
            raise StageError(message)
        best = min(done, key=lambda trial: to_loss(trial.value, self.direction))
        importances = estimate_importances(self.space, trials, self.direction, self.seed)
        return SearchResult(best, trials, importances)


TunedWork: TypeAlias = FitModel | AnswerQueries | RerankLists
"""The work of a stage whose model may be searched."""


@dataclass(frozen=True)
class UseBestSettings:
    """Execute a stage with the best settings of a search."""

    work: TunedWork
    space: tuple[Dimension, ...]

    def __call__(self, search: SearchResult, *inputs: Any) -> Any:
        """Return the result of the stage."""
        model = _apply_settings(self.work.model, self.space, search.best.settings)
        return replace(self.work, model=model)(*inputs)


@dataclass(frozen=True)
class AnswerValidationQueries:
    """Ask a model on the validation part of the data, by which a search compares trials."""

    ask: Callable[..., Any]
    metric: PluginSpec

    def __call__(self, *inputs: Any) -> Any:
        """Return the outputs; ``inputs`` are a search, if any, the data, the split, a state."""
        search = [each for each in inputs if isinstance(each, SearchResult)]
        dataset, split, *state = inputs[len(search) :]
        scorer = ValidationScorer(make_training_data(dataset, split), self.metric)
        return self.ask(*search, *scorer.inputs, *state)
