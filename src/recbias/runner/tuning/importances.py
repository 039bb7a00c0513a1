"""The importance of each setting in a search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from recbias.config.plugin_spec import Choice, Dimension
from recbias.core.measurements.scores import Direction, to_loss
from recbias.runner.tuning.optuna_sampler import import_optuna, make_distribution
from recbias.runner.tuning.search_space import find_choice
from recbias.runner.tuning.trial import Trial

MIN_TRIALS = 8
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
    scores = _collect_scores(trials, direction)
    names = [dimension.parameter for dimension in space]
    if len(scores) < MIN_TRIALS or len({score for _, score in scores}) == 1:
        return dict.fromkeys(names, math.nan)
    optuna = import_optuna()
    study, create_trial = optuna.create_study(direction="maximize"), optuna.trial.create_trial
    distributions = {dimension.parameter: _make_linear(dimension) for dimension in space}
    for trial, score in scores:
        params = {
            dimension.parameter: _scale(dimension, trial.settings[dimension.parameter])
            for dimension in space
        }
        study.add_trial(create_trial(value=score, params=params, distributions=distributions))
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=seed % 2**32)
    shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {name: float(shares[name]) for name in names}


def _collect_scores(trials: Sequence[Trial], direction: Direction) -> list[tuple[Trial, float]]:
    """Return the trials that have a score, all by the metric or all by nDCG@10."""
    if any(trial.pruned for trial in trials):
        return [(trial, max(trial.curve)) for trial in trials if trial.curve]
    return [(trial, -to_loss(trial.value, direction)) for trial in trials if trial.state == "done"]


def _make_linear(dimension: Dimension) -> Any:
    if isinstance(dimension, Choice) or not dimension.log:
        return make_distribution(dimension)
    low, high = math.log(dimension.low), math.log(dimension.high)
    return import_optuna().distributions.FloatDistribution(low, high)


def _scale(dimension: Dimension, value: Any) -> Any:
    """Return a value on the scale on which it is sampled uniformly."""
    if isinstance(dimension, Choice):
        return find_choice(dimension, value)
    if not dimension.log:
        return value
    low, high = math.log(dimension.low), math.log(dimension.high)
    return min(max(math.log(value), low), high)
