"""Tables and sentences on hyperparameter searches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from recbias.reports.views.definitions import DIRECTION_LABELS
from recbias.reports.views.facts import format_setting
from recbias.reports.views.grid import Cell, Column, Table
from recbias.reports.views.rounding import format_duration, format_value
from recbias.reports.views.trials import Search, Trial


def tabulate_searches(searches: Iterable[Search]) -> Table:
    """Return one row per search: the metric, the best score and the chosen settings."""
    numbers = ("best", "trials", "pruned", "failed", "time")
    columns = (
        *map(Column, ("model", "metric")),
        *(Column(title, numeric=True) for title in numbers),
        Column("chosen settings"),
    )
    note = "Values are scores on the validation set, which the settings are chosen by."
    return Table("Searches", columns, tuple(map(_tabulate_search, searches)), (note,))


def _tabulate_search(search: Search) -> tuple[Cell, ...]:
    seconds = math.fsum(trial.seconds for trial in search.trials)
    counts = (len(search.trials), search.count("pruned"), search.count("failed"))
    return (
        Cell(search.title),
        Cell(search.metric),
        Cell(_format_best(search), search.chosen.value),
        *(Cell(f"{count:,}", float(count)) for count in counts),
        Cell(format_duration(seconds), seconds),
        Cell(format_setting(dict(search.chosen.settings))),
    )


def tabulate_trials(search: Search) -> Table:
    """Return one row per trial, with a column for each setting."""
    names = list(search.chosen.settings)
    has_epochs = any(trial.epochs for trial in search.trials)
    columns = (
        Column("trial"),
        Column(search.metric, numeric=True, direction=search.direction),
        *(Column(name, numeric=_is_numeric(search, name)) for name in names),
        Column("outcome"),
        *([Column("epochs", numeric=True)] if has_epochs else []),
        Column("time", numeric=True),
    )
    rows = tuple(
        _tabulate_trial(search, trial, names, has_epochs=has_epochs) for trial in search.trials
    )
    note = (
        "p: pruned, because its score was below the median of the earlier trials; the value is "
        "the validation nDCG@10 after its last epoch."
    )
    return Table(
        f"Trials of {search.title}", columns, rows, (note,) * bool(search.count("pruned"))
    )


def _tabulate_trial(
    search: Search, trial: Trial, names: Sequence[str], *, has_epochs: bool
) -> tuple[Cell, ...]:
    best, done = trial.number == search.best, trial.state == "done"
    text = "" if trial.state == "failed" else format_value(trial.value, search.places)
    value = trial.value if done else math.nan
    epochs = Cell(f"{trial.epochs:,}" if trial.epochs else "", trial.epochs)
    duration = format_duration(trial.seconds) if trial.seconds else "repeated"
    return (
        Cell(f"{trial.number}"),
        Cell(text, value, best=best, mark="p" if text and not done else ""),
        *(_tabulate_setting(trial.settings.get(name)) for name in names),
        Cell("best" if best else trial.state),
        *([epochs] if has_epochs else []),
        Cell(duration, trial.seconds),
    )


def _tabulate_setting(value: Any) -> Cell:
    if _is_number(value):
        text = f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
        return Cell(text, float(value))
    return Cell("none" if value is None else format_setting(value))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_numeric(search: Search, name: str) -> bool:
    return all(_is_number(trial.settings.get(name)) for trial in search.trials)


def summarize_search(search: Search) -> str:
    """Return the result of a search: ``nDCG@10 0.3412 in trial 17 of 20``."""
    return (
        f"{search.metric} {_format_best(search)} in trial {search.best} of {len(search.trials):,}"
    )


def describe_search(search: Search) -> str:
    """Return the result of a search and its settings as a sentence."""
    counts = {state: search.count(state) for state in ("done", "pruned", "failed")}
    outcomes = ", ".join(f"{count:,} {state}" for state, count in counts.items() if count)
    settings = format_setting(dict(search.chosen.settings))
    label = DIRECTION_LABELS[search.direction]
    direction = f" ({label})" if search.direction != "none" else ""
    return (
        f"Validation {search.metric}{direction}: {_format_best(search)} in trial {search.best} of "
        f"{len(search.trials):,} ({outcomes}), with {settings}."
    )


def explain_missing_importances(search: Search) -> str:
    """Return why the importance of the settings is unknown; blank if it is known."""
    if not all(map(math.isnan, search.importances.values())):
        return ""
    scored = len(search.done) + search.count("pruned")
    return (
        "The importance of the settings cannot be determined: too few trials have a score "
        f"({scored:,}), or all scores are equal."
    )


def _format_best(search: Search) -> str:
    return format_value(search.chosen.value, search.places)
