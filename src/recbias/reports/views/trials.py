"""The hyperparameter searches of a run, and their tables and sentences."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from recbias.core.errors import MissingRun
from recbias.core.measurements.columns import FIT_COLUMNS
from recbias.core.measurements.scores import Direction
from recbias.reports.model_settings import is_number
from recbias.reports.run_files import REMEDY
from recbias.reports.views.definitions import DIRECTION_LABELS, format_title
from recbias.reports.views.facts import format_setting
from recbias.reports.views.grid import Cell, Column, Table, make_columns
from recbias.reports.views.rounding import count_decimals, format_duration, format_value
from recbias.reports.views.run_tables import RunTables, to_records

Key: TypeAlias = tuple[str, ...]
"""Dataset, model, seed and fold."""


UNFINISHED = ("pruned", "excluded", "failed")
"""The states of trials that cannot be chosen."""

SEARCH_NOTE = "Values are scores on the validation set, which the settings are chosen by."
NOTES = {
    "pruned": "p: pruned, because its score was below the median of the earlier trials; the value "
    "is the validation nDCG@10 after its last epoch.",
    "excluded": "e: excluded, because the perplexity increased too much.",
}
"""The notes of marks in the table of trials."""


@dataclass(frozen=True)
class Trial:
    """A trial of a search, ``done``, ``pruned``, ``excluded`` or ``failed``.

    Numbers start at 1. The value is the validation score; of a pruned trial the score that it was
    pruned by. The duration is 0 if the same settings had been evaluated before. ``epochs`` is the
    epoch after which it was evaluated, 0 if it has no epochs.
    """

    number: int
    settings: Mapping[str, Any]
    value: float
    state: str
    seconds: float
    epochs: int


@dataclass(frozen=True, eq=False)
class Search:
    """A hyperparameter search: its trials in order, and the number of the best.

    The title is the model, and what distinguishes the search from the others of the run. The
    importance of a setting is NaN if it cannot be determined.
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
    trials: dict[Key, list[Trial]] = defaultdict(list)
    for row in read_trials(run):
        if _get_key(row) in outcomes:
            epochs = row.get("epochs", math.nan)
            values = {name: row[name] for name in ("settings", "value", "state", "seconds")}
            epoch = 0 if math.isnan(epochs) else int(epochs)
            trials[_get_key(row)].append(Trial(int(row["trial"]), epochs=epoch, **values))
    importances: dict[Key, dict[str, float]] = defaultdict(dict)
    for row in to_records(run.importances) if run.importances is not None else ():
        importances[_get_key(row)][str(row["setting"])] = row["importance"]
    titles = _build_titles([*trials])
    searches = []
    for key, rows in trials.items():
        k, direction = outcomes[key].get("k"), outcomes[key].get("direction")
        metric = str(outcomes[key].get("metric") or "value")
        searches.append(
            Search(
                metric=format_title(metric, None if k is None else float(k)),
                direction=next((name for name in DIRECTION_LABELS if name == direction), "none"),
                best=int(outcomes[key]["trial"]),
                trials=tuple(rows),
                importances=importances[key],
                title=titles[key],
            )
        )
    return tuple(searches)


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


def _get_key(row: Mapping[str, Any]) -> Key:
    return tuple(str(row[column]) for column in FIT_COLUMNS)


def _build_titles(keys: Sequence[Key]) -> dict[Key, str]:
    """Return the model of each search, with its dataset, seed and fold where these vary."""
    prefixes = {0: "", 2: "seed ", 3: "fold "}
    varying = [at for at in prefixes if len({key[at] for key in keys}) > 1]
    return {
        key: ", ".join([key[1], *(f"{prefixes[at]}{key[at]}" for at in varying)]) for key in keys
    }


def tabulate_searches(searches: Iterable[Search]) -> Table:
    """Return one row per search: the metric, the best score and the chosen settings."""
    searches = [*searches]
    rare = {"excluded"} - {trial.state for search in searches for trial in search.trials}
    states = [state for state in UNFINISHED if state not in rare]
    numbers = ("best", "trials", *states, "time")
    columns = make_columns(("model", "metric", *numbers, "chosen settings"), numeric=numbers)
    rows = tuple(_tabulate_search(search, states) for search in searches)
    return Table("Searches", columns, rows, (SEARCH_NOTE,))


def _tabulate_search(search: Search, states: Sequence[str]) -> tuple[Cell, ...]:
    seconds = math.fsum(trial.seconds for trial in search.trials)
    counts = (len(search.trials), *map(search.count, states))
    return (
        Cell(search.title),
        Cell(search.metric),
        Cell(format_value(search.chosen.value, search.places), search.chosen.value),
        *(Cell(f"{count:,}", float(count)) for count in counts),
        Cell(format_duration(seconds), seconds),
        Cell(format_setting(dict(search.chosen.settings))),
    )


def tabulate_trials(search: Search) -> Table:
    """Return one row per trial, with a column for each setting."""
    names = list(search.chosen.settings)
    numeric = {
        name: all(is_number(trial.settings.get(name)) for trial in search.trials) for name in names
    }
    has_epochs = any(trial.epochs for trial in search.trials)
    columns = (
        Column("trial"),
        Column(search.metric, numeric=True, direction=search.direction),
        *(Column(name, numeric=numeric[name]) for name in names),
        Column("outcome"),
        *([Column("epochs", numeric=True)] if has_epochs else []),
        Column("time", numeric=True),
    )
    rows = [_tabulate_trial(search, trial, names, has_epochs) for trial in search.trials]
    notes = tuple(note for state, note in NOTES.items() if search.count(state))
    return Table(f"Trials of {search.title}", columns, tuple(rows), notes)


def _tabulate_trial(
    search: Search, trial: Trial, names: Sequence[str], has_epochs: object
) -> tuple[Cell, ...]:
    best, done = trial.number == search.best, trial.state == "done"
    text = "" if trial.state == "failed" else format_value(trial.value, search.places)
    value = trial.value if done else math.nan
    epochs = Cell(f"{trial.epochs:,}" if trial.epochs else "", trial.epochs)
    duration = format_duration(trial.seconds) if trial.seconds else "repeated"
    return (
        Cell(f"{trial.number}"),
        Cell(text, value, best=best, mark=trial.state[0] if text and not done else ""),
        *(_tabulate_setting(trial.settings.get(name)) for name in names),
        Cell("best" if best else trial.state),
        *([epochs] if has_epochs else []),
        Cell(duration, trial.seconds),
    )


def _tabulate_setting(value: Any) -> Cell:
    if is_number(value):
        text = f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
        return Cell(text, float(value))
    return Cell("none" if value is None else format_setting(value))


def summarize_search(search: Search) -> str:
    """Return the result of a search: ``nDCG@10 0.3412 in trial 17 of 20``."""
    best = format_value(search.chosen.value, search.places)
    return f"{search.metric} {best} in trial {search.best} of {len(search.trials):,}"


def describe_search(search: Search) -> str:
    """Return the result of a search and its settings as a sentence."""
    counts = {state: search.count(state) for state in ("done", *UNFINISHED)}
    outcomes = ", ".join(f"{count:,} {state}" for state, count in counts.items() if count)
    settings = format_setting(dict(search.chosen.settings))
    known = search.direction != "none"
    direction = f" ({DIRECTION_LABELS[search.direction]})" if known else ""
    best, n_trials = format_value(search.chosen.value, search.places), len(search.trials)
    place = f"trial {search.best} of {n_trials:,} ({outcomes})"
    return f"Validation {search.metric}{direction}: {best} in {place}, with {settings}."


def explain_missing_importances(search: Search) -> str:
    """Return why the importance of the settings is unknown; blank if it is known."""
    if not all(map(math.isnan, search.importances.values())):
        return ""
    scored = len(search.done) + search.count("pruned")
    return (
        "The importance of the settings cannot be determined: too few trials have a score "
        f"({scored:,}), or all scores are equal."
    )
