"""Sampling and pruning by Optuna, each time in a new study of the earlier trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recbias.config.plugin_spec import Choice, Dimension, Tune
from recbias.core.measurements.scores import to_loss
from recbias.core.stage_context import Pruned
from recbias.runner.tuning.search_space import find_choice
from recbias.runner.tuning.trial import Trial

MIN_COMPLETE_TRIALS = 5
"""No trial is pruned before this many are complete."""

MIN_EPOCHS = 10
"""No training is pruned before this epoch: a small learning rate starts slowly."""


def import_optuna() -> Any:
    """Return the package, which logs warnings only."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def sample_settings(tune: Tune, trials: Sequence[Trial], seed: int) -> dict[str, Any]:
    """Return the settings of the next trial, by the tree-structured Parzen estimator (TPE).

    The settings of the first ten trials are sampled at random. Of the earlier trials, pruned ones
    rank below complete ones, and failed ones are ignored.

    Source:
        Bergstra, Bardenet, Bengio and Kégl, "Algorithms for Hyper-Parameter Optimization",
        NeurIPS 2011, section 4; as Optuna implements it.
    """
    sampler = import_optuna().samplers.TPESampler(seed=seed % 2**32)
    study = _create_study(tune, trials, sampler=sampler)
    params = study.ask(_make_distributions(tune.space)).params
    settings = {dimension.parameter: params[dimension.parameter] for dimension in tune.space}
    choices = [dimension for dimension in tune.space if isinstance(dimension, Choice)]
    return settings | {
        choice.parameter: choice.values[params[choice.parameter]] for choice in choices
    }


class MedianPruner:
    """Stops a training that is worse than earlier trials: the median rule.

    A training stops after an epoch if its best nDCG@10 on the validation set so far is below the
    median of the complete trials' nDCG@10 at the same epoch. A trial that had fewer epochs counts
    with its best. No training stops in its first nine epochs or before five trials are complete.

    Source:
        Golovin et al., "Google Vizier: A Service for Black-Box Optimization", KDD 2017, section
        3.2.2; as Optuna implements it.
    """

    def __init__(self, tune: Tune, trials: Sequence[Trial]) -> None:
        median_pruner = import_optuna().pruners.MedianPruner
        pruner = median_pruner(n_startup_trials=MIN_COMPLETE_TRIALS, n_warmup_steps=MIN_EPOCHS)
        self._trial = _create_study(tune, trials, pruner=pruner).ask()
        self.curve: list[float] = []

    def __call__(self, epoch: int, score: float) -> None:
        """Record the validation score of an epoch; several trainings of one fit count on.

        Raises:
            Pruned: The training should stop.
        """
        self.curve.append(score)
        self._trial.report(score, len(self.curve))
        if self._trial.should_prune():
            raise Pruned


def _create_study(tune: Tune, trials: Sequence[Trial], **options: Any) -> Any:
    optuna = import_optuna()
    study = optuna.create_study(direction="maximize", **options)
    distributions, states = _make_distributions(tune.space), optuna.trial.TrialState
    n_epochs = max((len(trial.curve) for trial in trials if trial.state == "done"), default=0)
    for trial in (trial for trial in trials if trial.state != "failed"):
        done = trial.state == "done"
        study.add_trial(
            optuna.trial.create_trial(
                state=states.COMPLETE if done else states.PRUNED,
                value=-to_loss(trial.value, tune.direction) if done else None,
                params={
                    dimension.parameter: _encode(dimension, trial.settings)
                    for dimension in tune.space
                },
                distributions=distributions,
                intermediate_values=_extend_curve(trial, n_epochs if done else 0),
            )
        )
    return study


def _extend_curve(trial: Trial, n_epochs: int) -> dict[int, float]:
    """Return the validation score by epoch, with the best one for epochs after the last."""
    best = [max(trial.curve)] * (n_epochs - len(trial.curve)) if trial.curve else []
    return dict(enumerate((*trial.curve, *best), start=1))


def _make_distributions(space: Sequence[Dimension]) -> dict[str, Any]:
    """Return the distribution of each setting, by name, so that their order in a spec is free."""
    dimensions = sorted(space, key=lambda dimension: dimension.parameter)
    return {dimension.parameter: make_distribution(dimension) for dimension in dimensions}


def make_distribution(dimension: Dimension) -> Any:
    """Return the Optuna distribution of a setting; of a choice, of the position of its value."""
    distributions = import_optuna().distributions
    if isinstance(dimension, Choice):
        return distributions.CategoricalDistribution(range(len(dimension.values)))
    low, high, log = dimension.low, dimension.high, dimension.log
    if dimension.integer:
        return distributions.IntDistribution(int(low), int(high), log=log)
    return distributions.FloatDistribution(float(low), float(high), log=log)


def _encode(dimension: Dimension, settings: Mapping[str, Any]) -> Any:
    value = settings[dimension.parameter]
    return find_choice(dimension, value) if isinstance(dimension, Choice) else value
