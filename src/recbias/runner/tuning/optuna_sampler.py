"""How a search draws settings, ends hopeless trainings and weighs the settings: by Optuna.

Each call makes a study of its own from the trials that it is told of, so that its answer follows
from them and the seed, whatever ran before and in which process.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recbias.config.plugin_spec import Choice, Dimension, Tune
from recbias.core.errors import BrokenContract
from recbias.core.measurements.scores import Direction, to_loss
from recbias.core.stage_context import Pruned
from recbias.runner.tuning.trial import Trial

FIRST_TRIALS = 5
"""So many trials are done before one is pruned."""

FIRST_EPOCHS = 10
"""A training is not ended before so many epochs: small steps begin slowly and may end well."""

FEWEST = 8
"""The importance of a setting is undefined below so many trials that have a figure."""


def has_optuna() -> bool:
    """Return whether the package that draws settings is installed."""
    return importlib.util.find_spec("optuna") is not None


def draw(tune: Tune, earlier: Sequence[Trial], seed: int) -> dict[str, Any]:
    """Return the next settings to try, by the tree-structured Parzen estimator (TPE).

    The first ten are drawn at random. The earlier trials are told to a sampler that has a seed of
    its own, so that what is drawn follows from them and the seed.

    Args:
        tune: What is searched, and by which metric.
        earlier: The trials so far; those that were pruned are worse than those that were done, and
            of those that failed nothing is learned.
        seed: The seed of this draw.

    Source:
        Bergstra, Bardenet, Bengio and Kégl, "Algorithms for Hyper-Parameter Optimization",
        NeurIPS 2011, section 4; as Optuna implements it.
    """
    optuna = _optuna()
    study = _study(tune, earlier, sampler=optuna.samplers.TPESampler(seed=seed % 2**32))
    drawn = study.ask(_distributions(tune.space)).params
    return {each.parameter: _drawn(each, drawn[each.parameter]) for each in tune.space}


def covers(tune: Tune) -> bool:
    """Return whether a search has a trial for every combination of settings that can be drawn.

    It then goes through them once each: what is drawn from the earlier trials comes up again, and
    leaves out others.
    """
    many = combinations(tune.space)
    return many is not None and many <= tune.trials


def combinations(space: Sequence[Dimension]) -> int | None:
    """Return how many combinations of settings a space has; None where they cannot be counted.

    A choice has as many as it names different values, and a range of whole numbers those between
    its ends; of other numbers there is no count.

    Args:
        space: What is searched.

    >>> from recbias.config.plugin_spec import Range
    >>> rates, sizes = Choice("rate", (0.1, 0.2, 0.1)), Range("size", 2, 4, log=True, whole=True)
    >>> combinations((rates, sizes)), combinations((Range("rate", 0, 1, log=False, whole=False),))
    (6, None)
    """
    counts = [_count(each) for each in space]
    known = [each for each in counts if each is not None]
    return math.prod(known) if len(known) == len(counts) else None


def combination(space: Sequence[Dimension], number: int, seed: int) -> dict[str, Any]:
    """Return the settings of one trial of those that have every combination once.

    The order is one of chance, so that the first few of them are of all parts of the space. Which
    comes when follows from the space, whatever order its settings have, and the seed: not from
    what became of the trials before it, so that those of a batch never have the same.

    Args:
        space: What is searched, with combinations that can be counted.
        number: The place of the trial, from 1 to the number of combinations.
        seed: The seed of the search, the same for all of its trials.

    >>> from recbias.config.plugin_spec import Range
    >>> space = (Choice("a", ("x", "y")), Range("b", 1, 2, log=False, whole=True))
    >>> sorted(tuple(combination(space, number, 7).values()) for number in (1, 2, 3, 4))
    [('x', 1), ('x', 2), ('y', 1), ('y', 2)]
    """
    values = {each.parameter: _values(each) for each in space}
    sizes = [len(values[name]) for name in sorted(values)]
    place = np.random.default_rng(seed).permutation(math.prod(sizes))[number - 1]
    places = dict(zip(sorted(values), np.unravel_index(place, sizes), strict=True))
    return {name: values[name][int(places[name])] for name in values}


def _count(dimension: Dimension) -> int | None:
    if isinstance(dimension, Choice):
        return len(_values(dimension))
    return int(dimension.high) - int(dimension.low) + 1 if dimension.integer else None


def _values(dimension: Dimension) -> Sequence[Any]:
    """Return the different values that a setting may be drawn as."""
    if isinstance(dimension, Choice):
        places = {place_of(dimension, each): None for each in dimension.values}
        return [dimension.values[each] for each in places]
    return range(int(dimension.low), int(dimension.high) + 1)


class Watch:
    """Ends a training that is behind the earlier trials: the median rule.

    A training is ended after an epoch where its best nDCG@10 on the validation part so far is
    below the median of what the trials that are done had after as many epochs; one that had
    stopped by itself before is still as good as it was at best. Nothing is ended in its first nine
    epochs, nor before five trials are done.

    Args:
        tune: What is searched.
        earlier: The trials so far.

    Source:
        Golovin et al., "Google Vizier: A Service for Black-Box Optimization", KDD 2017, section
        3.2.2; as Optuna implements it.
    """

    def __init__(self, tune: Tune, earlier: Sequence[Trial]) -> None:
        median = _optuna().pruners.MedianPruner
        pruner = median(n_startup_trials=FIRST_TRIALS, n_warmup_steps=FIRST_EPOCHS)
        self._trial = _study(tune, earlier, pruner=pruner).ask()
        self.curve: list[float] = []

    def __call__(self, epoch: int, figure: float) -> None:
        """Take the figure of an epoch; a model that is trained in rounds goes on counting.

        Raises:
            Pruned: The training need not go on.
        """
        self.curve.append(figure)
        self._trial.report(figure, len(self.curve))
        if self._trial.should_prune():
            raise Pruned


def importances(
    space: Sequence[Dimension], trials: Sequence[Trial], direction: Direction, seed: int
) -> dict[str, float]:
    """Return how much of the figure's variation each setting alone explains: shares of 1.

    A functional analysis of variance of a random forest that is fitted to the figures of the
    trials. Where some were pruned, the figure of each is the best nDCG@10 of its epochs: without
    those that were pruned, what they were pruned for would seem not to matter. Those that failed
    have no figure. A setting that is drawn on a logarithmic scale is weighed on that scale. NaN
    where fewer than eight trials have a figure, or where all are alike.

    Args:
        space: What was searched.
        trials: The trials of the search.
        direction: Which way the metric is better.
        seed: The seed of the forest.

    Source:
        Hutter, Hoos and Leyton-Brown, "An Efficient Approach for Assessing Hyperparameter
        Importance", ICML 2014; as Optuna implements it.
    """
    figures = _figures(trials, direction)
    if len(figures) < FEWEST or len({figure for _, figure in figures}) == 1:
        return {each.parameter: math.nan for each in space}
    optuna = _optuna()
    study = optuna.create_study(direction="maximize")
    kinds = {each.parameter: _even(each, optuna.distributions) for each in space}
    for trial, value in figures:
        told = {each.parameter: _evened(each, trial.settings[each.parameter]) for each in space}
        study.add_trial(optuna.trial.create_trial(value=value, params=told, distributions=kinds))
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=seed % 2**32)
    found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {each.parameter: float(found[each.parameter]) for each in space}


def _figures(trials: Sequence[Trial], direction: Direction) -> list[tuple[Trial, float]]:
    """Return how good each trial was that has a figure, all of one kind."""
    if any(each.pruned for each in trials):
        return [(each, max(each.curve)) for each in trials if each.curve]
    return [(each, -to_loss(each.value, direction)) for each in trials if each.state == "done"]


def place_of(choice: Choice, drawn: Any) -> int:
    """Return the place of a value among those that a search draws from.

    Raises:
        BrokenContract: It is not among them.
    """
    for place, each in enumerate(choice.values):
        if type(each) is type(drawn) and each == drawn:
            return place
    raise BrokenContract(f"{drawn!r} is not among the values of {choice.parameter}")


def _optuna() -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _study(tune: Tune, earlier: Sequence[Trial], **how: Any) -> Any:
    """Return a study that knows the earlier trials."""
    optuna = _optuna()
    study = optuna.create_study(direction="maximize", **how)
    kinds, states = _distributions(tune.space), optuna.trial.TrialState
    longest = max((len(each.curve) for each in earlier if each.state == "done"), default=0)
    for each in earlier:
        if each.state != "failed":
            done = each.state == "done"
            study.add_trial(
                optuna.trial.create_trial(
                    state=states.COMPLETE if done else states.PRUNED,
                    value=-to_loss(each.value, tune.metric.direction) if done else None,
                    params={one.parameter: _told(one, each.settings) for one in tune.space},
                    distributions=kinds,
                    intermediate_values=_by_epoch(each, longest if done else 0),
                )
            )
    return study


def _by_epoch(trial: Trial, until: int) -> dict[int, float]:
    """Return a trial's figure after each epoch, and behind its last up to another the best."""
    after = [max(trial.curve)] * (until - len(trial.curve)) if trial.curve else []
    return dict(enumerate((*trial.curve, *after), start=1))


def _distributions(space: Sequence[Dimension]) -> dict[str, Any]:
    """Return how each setting is drawn, in an order that does not hang on the spec's."""
    kinds = _optuna().distributions
    ordered = sorted(space, key=lambda each: each.parameter)
    return {each.parameter: _distribution(each, kinds) for each in ordered}


def _distribution(dimension: Dimension, kinds: Any) -> Any:
    if isinstance(dimension, Choice):
        return kinds.CategoricalDistribution(range(len(dimension.values)))
    low, high, log = dimension.low, dimension.high, dimension.log
    if dimension.integer:
        return kinds.IntDistribution(int(low), int(high), log=log)
    return kinds.FloatDistribution(float(low), float(high), log=log)


def _drawn(dimension: Dimension, told: Any) -> Any:
    """Return a value as a spec has it; of a choice, the sampler draws the place."""
    return dimension.values[told] if isinstance(dimension, Choice) else told


def _told(dimension: Dimension, settings: Mapping[str, Any]) -> Any:
    drawn = settings[dimension.parameter]
    return place_of(dimension, drawn) if isinstance(dimension, Choice) else drawn


def _even(dimension: Dimension, kinds: Any) -> Any:
    """Return a distribution in which all values are as likely as they were to be drawn."""
    if isinstance(dimension, Choice) or not dimension.log:
        return _distribution(dimension, kinds)
    return kinds.FloatDistribution(math.log(dimension.low), math.log(dimension.high))


def _evened(dimension: Dimension, drawn: Any) -> Any:
    if isinstance(dimension, Choice):
        return place_of(dimension, drawn)
    if not dimension.log:
        return drawn
    low, high = math.log(dimension.low), math.log(dimension.high)
    return min(max(math.log(drawn), low), high)
