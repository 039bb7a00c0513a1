"""The hyperparameter searches of a run: trials, chosen settings and their importance."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from recbias.core.errors import MissingRun
from recbias.core.measurements.columns import FIT_COLUMNS
from recbias.core.measurements.scores import Direction
from recbias.reports.views.definitions import DIRECTION_LABELS, format_title
from recbias.reports.views.rounding import count_decimals
from recbias.reports.views.run_tables import REMEDY, RunTables, to_records

Key: TypeAlias = tuple[str, ...]
"""Dataset, model, seed and fold."""


@dataclass(frozen=True)
class Trial:
    """A trial of a search.

    Args:
        number: Its position in the search, from 1.
        settings: The sampled hyperparameters.
        value: The validation score; of a pruned trial the score that it was pruned by.
        state: ``done``, ``pruned`` or ``failed``.
        seconds: The duration; 0 if the same settings had been evaluated before.
        epochs: The epoch after which it was evaluated, 0 if it has no epochs.
    """

    number: int
    settings: Mapping[str, Any]
    value: float
    state: str
    seconds: float
    epochs: int


@dataclass(frozen=True, eq=False)
class Search:
    """A hyperparameter search.

    Args:
        metric: The title of the optimized metric.
        direction: Which values are better.
        best: The number of the chosen trial.
        trials: The trials in order.
        importances: The importance of each setting, NaN if it cannot be determined.
        title: The model, and what distinguishes the search from the others of the run.
    """

    metric: str
    direction: Direction
    best: int
    trials: tuple[Trial, ...]
    importances: Mapping[str, float]
    title: str

    @cached_property
    def done(self) -> list[Trial]:
        """The trials that were evaluated completely."""
        return [trial for trial in self.trials if trial.state == "done"]

    @cached_property
    def chosen(self) -> Trial:
        """The best trial."""
        return next(trial for trial in self.trials if trial.number == self.best)

    @property
    def places(self) -> int:
        """The number of decimals of the validation scores."""
        return count_decimals(trial.value for trial in self.trials)

    def count(self, state: str) -> int:
        """Return the number of trials in a state."""
        return sum(trial.state == state for trial in self.trials)


def collect_searches(run: RunTables) -> tuple[Search, ...]:
    """Return the searches of a run in its order.

    Raises:
        MissingRun: ``trials.csv`` is not a file that a run writes.
    """
    outcomes = {_get_key(search): search for search in run.manifest.get("searches", [])}
    trials: dict[Key, list[Trial]] = {}
    for row in read_trials(run):
        if _get_key(row) in outcomes:
            trials.setdefault(_get_key(row), []).append(_build_trial(row))
    importances = _collect_importances(run)
    titles = _build_titles([*trials])
    return tuple(
        _build_search(outcomes[key], trials[key], importances.get(key, {}), titles[key])
        for key in trials
    )


def read_trials(run: RunTables) -> list[dict[str, Any]]:
    """Return the rows of ``trials.csv`` with the settings as a mapping.

    Raises:
        MissingRun: It is not a file that a run writes.
    """
    rows = [] if run.trials is None else to_records(run.trials)
    try:
        return [row | {"settings": dict(json.loads(row["settings"]))} for row in rows]
    except (ValueError, KeyError, TypeError) as error:
        path = str(run.folder / "trials.csv")
        message = f"its settings cannot be read: {error}"
        raise MissingRun(message, where=path, remedy=REMEDY) from error


def _build_search(
    outcome: Mapping[str, Any],
    trials: Sequence[Trial],
    importances: Mapping[str, float],
    title: str,
) -> Search:
    k, direction = outcome.get("k"), outcome.get("direction")
    return Search(
        metric=format_title(
            str(outcome.get("metric") or "value"), None if k is None else float(k)
        ),
        direction=next((name for name in DIRECTION_LABELS if name == direction), "none"),
        best=int(outcome["trial"]),
        trials=tuple(trials),
        importances=importances,
        title=title,
    )


def _build_trial(row: Mapping[str, Any]) -> Trial:
    epochs = row.get("epochs", math.nan)
    return Trial(
        int(row["trial"]),
        row["settings"],
        row["value"],
        row["state"],
        row["seconds"],
        0 if math.isnan(epochs) else int(epochs),
    )


def _get_key(row: Mapping[str, Any]) -> Key:
    return tuple(str(row[column]) for column in FIT_COLUMNS)


def _collect_importances(run: RunTables) -> dict[Key, dict[str, float]]:
    importances: dict[Key, dict[str, float]] = {}
    for row in to_records(run.importances) if run.importances is not None else ():
        importances.setdefault(_get_key(row), {})[str(row["setting"])] = row["importance"]
    return importances


def _build_titles(keys: Sequence[Key]) -> dict[Key, str]:
    """Return the model of each search, with its dataset, seed and fold where these vary."""
    varying = {at for at in range(len(FIT_COLUMNS)) if len({key[at] for key in keys}) > 1}
    prefixes = {0: "", 2: "seed ", 3: "fold "}
    titles = {}
    for key in keys:
        parts = [f"{prefix}{key[at]}" for at, prefix in prefixes.items() if at in varying]
        titles[key] = ", ".join([key[1], *parts])
    return titles
