"""Raised letters and stars: which model is significantly better than which."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from recbias.core.measurements.columns import DATASET
from recbias.reports.views.comparisons import Comparisons, beaten, comparisons
from recbias.reports.views.definitions import title_of
from recbias.reports.views.grid import Cell, Table
from recbias.reports.views.headline import ALL, models, place_of
from recbias.reports.views.run_tables import RunTables, rows_of

LETTERS = 8
"""With more models than this, marks are stars instead of letters."""


@dataclass(frozen=True, eq=False)
class _Wins:
    """What each model is significantly better than, and how that was found."""

    by_model: Mapping[str, set[str]]
    message: Comparisons


def marked(table: Table, run: RunTables, frame: pd.DataFrame) -> Table:
    """Return the table with a mark in each cell that is significantly better than others.

    Args:
        table: A table with a column ``model`` and perhaps ``dataset`` in front.
        run: The run.
        frame: The rows of ``metrics.csv`` that the table shows.
    """
    wins = _wins(run)
    names = [each for each in models(run) if each != DATASET]
    at = [each.title for each in table.columns].index("model")
    places = {row["dataset"]: place_of(row) for row in rows_of(frame)}
    rows: list[tuple[Cell, ...]] = []
    used: list[_Wins] = []
    for row in table.rows:
        place = places[row[0].text if at else next(iter(places))]
        found = [wins.get((place, column.title)) for column in table.columns]
        used.extend(each for each in found if each)
        cells = [
            _mark(cell, each, row[at].text, names) for cell, each in zip(row, found, strict=True)
        ]
        rows.append(_lettered(cells, at, names))
    if not used:
        return replace(table, notes=(*table.notes, *_unmarked(run, frame, used)))
    notes = (*table.notes, _note(names, used), *_unmarked(run, frame, used))
    return replace(table, rows=tuple(rows), notes=notes)


def _wins(run: RunTables) -> dict[tuple[tuple[str, str, str], str], _Wins]:
    """Return the wins of each place and metric, by the first test that was made."""
    wins: dict[tuple[tuple[str, str, str], str], _Wins] = {}
    for each in comparisons(run):
        if each.of_models and not each.part:
            wins.setdefault((each.place, each.title), _Wins(beaten(each), each))
    return wins


def _mark(cell: Cell, wins: _Wins | None, model: str, names: Sequence[str]) -> Cell:
    if wins is None:
        return cell
    worse = wins.by_model.get(model, set())
    if len(names) <= LETTERS:
        return replace(cell, mark="".join(_letter(names, each) for each in names if each in worse))
    beats_all = len(worse) == len(wins.by_model) - 1
    return replace(cell, mark="*" if beats_all else "")


def _letter(names: Sequence[str], model: str) -> str:
    return string.ascii_lowercase[names.index(model)]


def _lettered(cells: Sequence[Cell], at: int, names: Sequence[str]) -> tuple[Cell, ...]:
    known = len(names) <= LETTERS and cells[at].text in names
    letter = _letter(names, cells[at].text) if known else ""
    return (*cells[:at], replace(cells[at], mark=letter), *cells[at + 1 :])


def _note(names: Sequence[str], used: Sequence[_Wins]) -> str:
    what = "Letters: significantly better than the model with that letter"
    if len(names) > LETTERS:
        what = "Star: significantly better than every other model"
    methods = "; ".join(dict.fromkeys(each.message.method() for each in used))
    return f"{what} ({methods})."


def _unmarked(run: RunTables, frame: pd.DataFrame, used: Sequence[_Wins]) -> list[str]:
    """Return a note where the table shows means that nothing was compared on."""
    if run.significance.empty:
        return []
    shown = {(place_of(row), title_of(row["metric"], row["k"])) for row in rows_of(frame)}
    compared = {(each.message.place, each.message.title) for each in used}
    if not any(ALL in place for place, _ in shown - compared):
        return []
    return ["Without letters or stars: there is no comparison of these means, so none is claimed."]
