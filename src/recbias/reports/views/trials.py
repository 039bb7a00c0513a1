"""The searches of a run: what was tried, what was chosen, and which settings mattered."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from recbias.core.errors import MissingRun
from recbias.core.measurements.columns import FIT_COLUMNS
from recbias.core.measurements.scores import Direction
from recbias.reports.views.definitions import WORDS, title_of
from recbias.reports.views.findings import phrase
from recbias.reports.views.grid import Cell, Column, Table
from recbias.reports.views.rounding import decimals, duration, shown
from recbias.reports.views.run_tables import REMEDY, RunTables, rows_of

Place: TypeAlias = tuple[str, ...]
"""Dataset, model, seed and fold."""


@dataclass(frozen=True)
class Tried:
    """One trial.

    Args:
        number: Its place in the search, from 1.
        settings: What was drawn.
        value: The figure on the validation rows; of a pruned trial the one that it was judged by.
        state: ``done``, ``pruned`` or ``failed``.
        seconds: What it took; 0 where the same settings were tried before.
        epochs: After how many epochs it was judged, 0 where it was not.
    """

    number: int
    settings: Mapping[str, Any]
    value: float
    state: str
    seconds: float
    epochs: int


@dataclass(frozen=True, eq=False)
class Search:
    """One search.

    Args:
        place: Its dataset, model, seed and fold.
        metric: The title of what was made best.
        direction: Which way that is better.
        best: The number of the trial that was chosen.
        trials: What was tried, in order.
        importances: How much each setting explains, NaN where that cannot be told.
        title: The model, and what else tells it from the other searches of the run.
    """

    place: Place
    metric: str
    direction: Direction
    best: int
    trials: tuple[Tried, ...]
    importances: Mapping[str, float]
    title: str

    @cached_property
    def done(self) -> list[Tried]:
        """The trials that have a figure of the metric."""
        return [each for each in self.trials if each.state == "done"]

    @cached_property
    def chosen(self) -> Tried:
        """The best trial."""
        return next(each for each in self.trials if each.number == self.best)

    @property
    def places(self) -> int:
        """How many decimals the figures have."""
        return decimals(each.value for each in self.trials)

    def count(self, state: str) -> int:
        """Return how many trials came to an end of this kind."""
        return sum(each.state == state for each in self.trials)


def searches(run: RunTables) -> tuple[Search, ...]:
    """Return the searches of a run, in its order.

    Raises:
        MissingRun: ``trials.csv`` is not what a run writes.
    """
    told = {_place(each): each for each in run.manifest.get("searches", [])}
    tried: dict[Place, list[Tried]] = {}
    for row in trial_rows(run):
        tried.setdefault(_place(row), []).append(_tried(row))
    titles = _titles([each for each in tried if each in told])
    weights = _importances(run)
    return tuple(
        _search(told[place], place, trials, weights.get(place, {}), titles[place])
        for place, trials in tried.items()
        if place in told
    )


def trial_rows(run: RunTables) -> list[dict[str, Any]]:
    """Return the rows of ``trials.csv`` with the settings as a mapping.

    Raises:
        MissingRun: It is not what a run writes.
    """
    rows = [] if run.trials is None else rows_of(run.trials)
    try:
        return [row | {"settings": dict(json.loads(row["settings"]))} for row in rows]
    except (ValueError, KeyError, TypeError) as error:
        where = str(run.folder / "trials.csv")
        found = f"its settings cannot be read: {error}"
        raise MissingRun(found, where=where, remedy=REMEDY) from error


def overview(found: Sequence[Search]) -> Table:
    """Return one row a search: what was made best, how good it got, and by which settings."""
    columns = [Column("model"), Column("metric"), Column("best", numeric=True)]
    columns += [Column(each, numeric=True) for each in ("trials", "pruned", "failed", "time")]
    rows = []
    for each in found:
        seconds = math.fsum(one.seconds for one in each.trials)
        counts = (len(each.trials), each.count("pruned"), each.count("failed"))
        rows.append(
            (
                Cell(each.title),
                Cell(each.metric),
                Cell(shown(each.chosen.value, each.places), each.chosen.value),
                *(Cell(f"{one:,}", float(one)) for one in counts),
                Cell(duration(seconds), seconds),
                Cell(phrase(dict(each.chosen.settings))),
            )
        )
    note = "Figures are of the validation rows, which the settings were chosen by."
    return Table("Searches", (*columns, Column("chosen")), tuple(rows), (note,))


def trials_table(search: Search) -> Table:
    """Return one row a trial, with a column for each setting."""
    names = list(search.chosen.settings)
    watched = any(each.epochs for each in search.trials)
    columns = (
        Column("trial"),
        Column(search.metric, numeric=True, direction=search.direction),
        *(Column(name, numeric=_is_numeric(search, name)) for name in names),
        Column("came to"),
        *([Column("epochs", numeric=True)] if watched else []),
        Column("time", numeric=True),
    )
    rows = tuple(_row(search, each, names, watched=watched) for each in search.trials)
    return Table(f"Trials of {search.title}", columns, rows, tuple(_notes(search)))


def brief(search: Search) -> str:
    """Return what a search found in a few words: ``nDCG@10 0.3412 in trial 17 of 20``."""
    best = shown(search.chosen.value, search.places)
    return f"{search.metric} {best} in trial {search.best} of {len(search.trials):,}"


def said(search: Search) -> str:
    """Return a search in a sentence."""
    counts = {each: search.count(each) for each in ("done", "pruned", "failed")}
    ends = ", ".join(f"{n:,} {state}" for state, n in counts.items() if n)
    how = f" ({WORDS[search.direction]})" if search.direction != "none" else ""
    best = shown(search.chosen.value, search.places)
    return (
        f"{search.metric} on the validation rows{how}: {best} in trial {search.best} of "
        f"{len(search.trials):,} ({ends}), by {phrase(dict(search.chosen.settings))}."
    )


def untold(search: Search) -> str:
    """Return why it is not known which settings mattered, blank where it is."""
    if search.importances and not all(map(math.isnan, search.importances.values())):
        return ""
    return (
        "Which settings mattered cannot be told: too few trials have a figure "
        f"({len(search.done) + search.count('pruned'):,}), or all of them came out alike."
    )


def _search(
    told: Mapping[str, Any],
    place: Place,
    trials: Sequence[Tried],
    importances: Mapping[str, float],
    title: str,
) -> Search:
    metric, k = str(told.get("metric") or "value"), told.get("k")
    return Search(
        place,
        title_of(metric, None if k is None else float(k)),
        next((each for each in WORDS if each == told.get("direction")), "none"),
        int(told["trial"]),
        tuple(trials),
        importances,
        title,
    )


def _place(row: Mapping[str, Any]) -> Place:
    return tuple(str(row[each]) for each in FIT_COLUMNS)


def _tried(row: Mapping[str, Any]) -> Tried:
    epochs = row.get("epochs", math.nan)
    return Tried(
        int(row["trial"]),
        row["settings"],
        row["value"],
        row["state"],
        row["seconds"],
        0 if math.isnan(epochs) else int(epochs),
    )


def _importances(run: RunTables) -> dict[Place, dict[str, float]]:
    found: dict[Place, dict[str, float]] = {}
    for row in rows_of(run.importances) if run.importances is not None else ():
        found.setdefault(_place(row), {})[str(row["setting"])] = row["importance"]
    return found


def _titles(places: Sequence[Place]) -> dict[Place, str]:
    """Return the model of each search, with its dataset, seed and fold where there are several."""
    several = [len({each[at] for each in places}) > 1 for at in range(len(FIT_COLUMNS))]
    words = ("", "", "seed ", "fold ")
    return {
        place: ", ".join(
            [place[1]] + [f"{words[at]}{place[at]}" for at in (0, 2, 3) if several[at]]
        )
        for place in places
    }


def _row(search: Search, each: Tried, names: Sequence[str], *, watched: bool) -> tuple[Cell, ...]:
    best = each.number == search.best
    known = each.state == "done"
    value = "" if each.state == "failed" else shown(each.value, search.places)
    time = duration(each.seconds) if each.seconds else "tried before"
    return (
        Cell(f"{each.number}"),
        Cell(
            value,
            each.value if known else math.nan,
            best=best,
            mark="" if known else "p" * bool(value),
        ),
        *(_setting(each.settings.get(name)) for name in names),
        Cell("the best" if best else each.state),
        *([Cell(f"{each.epochs:,}" if each.epochs else "", each.epochs)] if watched else []),
        Cell(time, each.seconds),
    )


def _setting(value: Any) -> Cell:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        text = f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
        return Cell(text, float(value))
    return Cell("none" if value is None else phrase(value))


def _is_numeric(search: Search, name: str) -> bool:
    values = [each.settings.get(name) for each in search.trials]
    return all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values)


def _notes(search: Search) -> Iterator[str]:
    if search.count("pruned"):
        yield (
            "p: ended before its time, because it was behind half of the earlier trials; the "
            "figure is the one it was judged by, nDCG@10 after its last epoch."
        )
