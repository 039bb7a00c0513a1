"""The search for a model's settings: the best of its trials, and what it is of use for.

The trials are stages of their own, each stored when it is done; the search is the stage that
chooses of them, and what is fitted and asked behind it takes the settings that it chose.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from recbias.config.chosen import Dimension
from recbias.core.errors import StageError, UserError
from recbias.core.records import Failure
from recbias.core.scores import Direction
from recbias.runner.stage import Keys, Stage, address
from recbias.runner.trials import VERSION, RunTrial, Trial, score, with_settings
from recbias.runner.work import AnswerQueries, FitModel

FILE = "trials.json"
"""The file of a stored trial, and of a stored search."""

TRIALS = ("dataset", "model", "seed", "fold", "trial", "value", "state", "seconds", "settings")
"""The columns of ``trials.csv``."""


@dataclass(frozen=True)
class Found:
    """What a search found.

    Args:
        best: The trial with the best figure, the first of several.
        trials: All of them, in order.
    """

    best: Trial
    trials: tuple[Trial, ...]


@dataclass(frozen=True)
class ChooseBest:
    """Choose the best of the trials.

    Args:
        direction: Which way is better.
    """

    direction: Direction

    def __call__(self, *trials: Trial) -> Found:
        """Return the best trial.

        Raises:
            UserError: All of them failed because of the user's input.
            StageError: All of them failed.
        """
        done = [each for each in trials if each.failure is None]
        if not done:
            raise _all_failed([each.failure for each in trials if each.failure is not None])
        return Found(max(done, key=lambda each: score(each.value, self.direction)), trials)


def _all_failed(failures: Sequence[Failure]) -> UserError | StageError:
    first = failures[0]
    found = f"all {len(failures)} trials failed, the first with: {first.message}"
    if all(each.user for each in failures):
        return UserError(found, remedy=first.help or "search other ranges")
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

    The address of a trial is made of that of the trial before it, and so of all before it.

    Args:
        work: Runs one.
        identity: What tells this search from another, but for the number of its trials.
        shared: The dataset and the split.
        keys: Where it belongs.
    """
    libraries = (*work.model.libraries, "optuna")
    who, made = {**identity, "version": VERSION}, list[Stage]()
    for number in range(1, work.tune.trials + 1):
        before = (*shared, *made[-1:])
        made.append(
            Stage(
                "trial",
                f"trial {number} of {keys.model}",
                address("trial", identity=who, inputs=before, libraries=libraries),
                work,
                (*shared, *made),
                keys,
            )
        )
    return tuple(made)


def search_stage(trials: tuple[Stage, ...], direction: Direction, keys: Keys) -> Stage:
    """Return the stage that chooses of all the trials."""
    where = address("search", identity={"direction": direction}, inputs=trials[-1:])
    work = ChooseBest(direction)
    return Stage("search", f"search {keys.model}", where, work, trials, keys)


def rows(found: Found, place: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of ``trials.csv``.

    Args:
        found: What a search found.
        place: Its dataset, model, seed and fold.
    """
    return [
        {
            **place,
            "trial": each.number,
            "value": each.value,
            "state": each.state,
            "seconds": round(each.seconds, 3),
            "settings": json.dumps(each.settings, ensure_ascii=False),
        }
        for each in found.trials
    ]


def save_trials(trials: Sequence[Trial], folder: Path) -> None:
    """Write trials."""
    records = [asdict(each) | {"value": or_none(each.value)} for each in trials]
    text = json.dumps(records, ensure_ascii=False)
    (folder / FILE).write_text(text, encoding="utf-8")


def load_trials(folder: Path) -> tuple[Trial, ...]:
    """Read trials."""
    records = json.loads((folder / FILE).read_text(encoding="utf-8"))
    return tuple(_trial(each) for each in records)


def save_found(found: Found, folder: Path) -> None:
    """Write what a search found: the best trial, then all of them."""
    save_trials((found.best, *found.trials), folder)


def load_found(folder: Path) -> Found:
    """Read what a search found."""
    best, *trials = load_trials(folder)
    return Found(best, tuple(trials))


def or_none(value: float) -> float | None:
    """Return a figure as JSON has it: null where it is undefined."""
    return None if math.isnan(value) else value


def _trial(record: dict[str, Any]) -> Trial:
    failure, value = record["failure"], record["value"]
    told = None if failure is None else Failure(**failure)
    return Trial(**record | {"failure": told, "value": math.nan if value is None else value})
