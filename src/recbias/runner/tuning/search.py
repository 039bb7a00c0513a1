"""The search for a model's settings: the best of its trials, and what it is of use for.

The trials are stages of their own, each stored when it is done; the search is the stage that
chooses of them, and what is fitted and asked behind it takes the settings that it chose.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from recbias.config.plugin_spec import Dimension
from recbias.core.errors import StageError, UserError
from recbias.core.measurements.scores import Direction, to_loss
from recbias.core.records import Failure
from recbias.runner.stage import Keys, Stage, compute_address
from recbias.runner.stages.model import AnswerQueries, FitModel
from recbias.runner.tuning.optuna_sampler import combinations, importances
from recbias.runner.tuning.run_trial import RunTrial, prunes, with_settings
from recbias.runner.tuning.trial import Trial, load_trials, or_nan, or_none, save_trials

FILE = "importances.json"
"""The file of a stored search beside its trials."""

IMPORTANCES = ("dataset", "model", "seed", "fold", "setting", "importance")
"""The columns of ``importances.csv``."""


@dataclass(frozen=True)
class Found:
    """What a search found.

    Args:
        best: The trial with the best figure, the first of several.
        trials: All of them, in order.
        importances: How much of the figure's variation each setting explains, NaN where that
            cannot be told.
    """

    best: Trial
    trials: tuple[Trial, ...]
    importances: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ChooseBest:
    """Choose the best of the trials, and say which settings mattered.

    Args:
        direction: Which way is better.
        space: What was searched.
        seed: The seed of what is drawn to tell which settings mattered.
    """

    direction: Direction
    space: tuple[Dimension, ...] = ()
    seed: int = 0

    def __call__(self, *trials: Trial) -> Found:
        """Return the best trial of those that were done.

        Raises:
            UserError: All of them failed because of the user's input.
            StageError: All of them failed.
        """
        done = [each for each in trials if each.state == "done"]
        if not done:
            raise _all_failed([each.failure for each in trials if each.failure is not None])
        best = min(done, key=lambda each: to_loss(each.value, self.direction))
        weights = importances(self.space, trials, self.direction, self.seed)
        return Found(best, trials, weights)


def _all_failed(failures: Sequence[Failure]) -> UserError | StageError:
    first = failures[0]
    found = f"all {len(failures)} trials failed, the first with: {first.message}"
    if all(each.user for each in failures):
        return UserError(found, remedy="search other ranges")
    return StageError(found)


@dataclass(frozen=True)
class WithBest:
    """Do the work of a stage with the settings that a search chose.

    Args:
        work: Fits or asks the model.
        space: What was searched.
    """

    work: FitModel | AnswerQueries
    space: tuple[Dimension, ...]

    def __call__(self, found: Found, *inputs: Any) -> Any:
        """Return what the work returns."""
        model = with_settings(self.work.model, self.space, found.best.settings)
        return replace(self.work, model=model)(*inputs)


def trial_stages(
    work: RunTrial, identity: Mapping[str, object], shared: tuple[Stage, ...], keys: Keys
) -> tuple[Stage, ...]:
    """Return a stage for each trial.

    Trials come in batches of ``tune.parallel``. A trial is drawn from the trials of the batches
    before its own, so that those of a batch can run at the same time and come out the same in any
    order. The address of a trial is made of those of the batch before, and so of all before it.
    A search that goes through every combination once ends with the last of them.

    Args:
        work: Runs one.
        identity: What tells this search from another, but for the number of its trials.
        shared: The dataset, the split and the labels.
        keys: Where it belongs.
    """
    libraries = (*work.model.libraries, "optuna")
    pruning = work.tune.pruning if prunes(work.tune) else "none"
    who, batch = {**identity, "pruning": pruning}, work.tune.parallel
    many = work.tune.trials
    if work.covering:
        who["covering"] = True
        many = min(many, combinations(work.tune.space) or many)
    made: list[Stage] = []
    for number in range(1, many + 1):
        earlier = made[: (number - 1) // batch * batch]
        inputs, me = (*shared, *earlier[-batch:]), {**who, "number": number}
        made.append(
            Stage(
                "trial",
                f"trial {number} of {keys.model}",
                compute_address(
                    "trial", work=work, identity=me, inputs=inputs, libraries=libraries
                ),
                replace(work, number=number),
                (*shared, *earlier),
                keys,
            )
        )
    return tuple(made)


def search_stage(trials: tuple[Stage, ...], work: RunTrial, keys: Keys) -> Stage:
    """Return the stage that chooses of all the trials."""
    tune = work.tune
    choose = ChooseBest(tune.metric.direction, tune.space, work.seed_of("importances"))
    where = compute_address(
        "search",
        work=choose,
        identity={"direction": choose.direction},
        inputs=trials[-tune.parallel :],
        libraries=("optuna", "scikit-learn"),
    )
    return Stage("search", f"search {keys.model}", where, choose, trials, keys)


def importance_rows(found: Found, place: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of ``importances.csv``.

    Args:
        found: What a search found.
        place: Its dataset, model, seed and fold.
    """
    return [
        {**place, "setting": name, "importance": weight}
        for name, weight in found.importances.items()
    ]


def save_found(found: Found, folder: Path) -> None:
    """Write what a search found: the best trial, then all of them, and the importances."""
    save_trials((found.best, *found.trials), folder)
    weights = {name: or_none(each) for name, each in found.importances.items()}
    (folder / FILE).write_text(json.dumps(weights, ensure_ascii=False), encoding="utf-8")


def load_found(folder: Path) -> Found:
    """Read what a search found."""
    best, *trials = load_trials(folder)
    weights = json.loads((folder / FILE).read_text(encoding="utf-8"))
    return Found(best, tuple(trials), {name: or_nan(each) for name, each in weights.items()})
