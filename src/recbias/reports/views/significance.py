"""How tables show significance: superscript marks, and one row per comparison."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from recbias.core.measurements.columns import DATASET
from recbias.reports.views.comparisons import (
    Comparisons,
    Row,
    collect_comparisons,
    describe_methods,
    describe_test,
    find_wins,
    is_significant,
)
from recbias.reports.views.conclusions.effects import (
    compute_effect,
    explain_zero,
    rank_effect,
)
from recbias.reports.views.definitions import format_title
from recbias.reports.views.grid import Cell, Table, make_columns
from recbias.reports.views.headings import make_heading
from recbias.reports.views.headline import ALL, get_place, list_models
from recbias.reports.views.rounding import (
    count_decimals,
    format_interval,
    format_p_value,
    format_value,
)
from recbias.reports.views.run_tables import RunTables, to_records

MAX_LETTERS = 8
"""With more models than this, significance is marked by stars instead of letters."""


@dataclass(frozen=True, eq=False)
class _Wins:
    """The models that each model is significantly better than, and the comparisons behind it."""

    by_model: Mapping[str, set[str]]
    comparisons: Comparisons


def add_significance_marks(table: Table, run: RunTables, frame: pd.DataFrame) -> Table:
    """Return the table with a mark in each cell that is significantly better than others.

    Args:
        table: A table with the column ``model``, and optionally ``dataset`` before it.
        run: The run.
        frame: The rows of ``metrics.csv`` in the table.
    """
    wins = _collect_wins(run)
    names = [name for name in list_models(run) if name != DATASET]
    name_column = [column.title for column in table.columns].index("model")
    places = {row["dataset"]: get_place(row) for row in to_records(frame)}
    rows: list[tuple[Cell, ...]] = []
    used: list[_Wins] = []
    for row in table.rows:
        location = places[row[0].text if name_column else next(iter(places))]
        row_wins = [wins.get((location, column.title)) for column in table.columns]
        used.extend(filter(None, row_wins))
        model = row[name_column].text
        cells = [
            _mark(cell, metric_wins, model, names)
            for cell, metric_wins in zip(row, row_wins, strict=True)
        ]
        cells[name_column] = replace(cells[name_column], mark=_get_letter(model, names))
        rows.append(tuple(cells))
    notes = (*table.notes, *_explain_marks(names, used), *_explain_missing(run, frame, used))
    return replace(table, rows=tuple(rows) if used else table.rows, notes=notes)


def _collect_wins(run: RunTables) -> dict[tuple[tuple[str, str, str], str], _Wins]:
    """Return the wins in each place and metric by the first test of the run."""
    wins: dict[tuple[tuple[str, str, str], str], _Wins] = {}
    for group in collect_comparisons(run):
        if group.compares_models and not group.part:
            wins.setdefault((group.place, group.title), _Wins(find_wins(group), group))
    return wins


def _mark(cell: Cell, wins: _Wins | None, model: str, names: Sequence[str]) -> Cell:
    if wins is None:
        return cell
    worse = wins.by_model.get(model, set())
    if len(names) <= MAX_LETTERS:
        letters = (_get_letter(name, names) for name in names if name in worse)
        return replace(cell, mark="".join(letters))
    beats_all = len(worse) == len(wins.by_model) - 1
    return replace(cell, mark="*" if beats_all else "")


def _get_letter(model: str, names: Sequence[str]) -> str:
    if len(names) > MAX_LETTERS or model not in names:
        return ""
    return string.ascii_lowercase[names.index(model)]


def _explain_marks(names: Sequence[str], used: Sequence[_Wins]) -> list[str]:
    if not used:
        return []
    meaning = "Letters: significantly better than the model with that letter"
    if len(names) > MAX_LETTERS:
        most = max(len(wins.by_model) for wins in used)
        compared = "the other compared model" if most == 2 else "every other compared model"
        meaning = f"Star: significantly better than {compared}"
    methods = describe_methods([wins.comparisons for wins in used])
    return [f"{meaning} ({methods})."]


def _explain_missing(run: RunTables, frame: pd.DataFrame, used: Sequence[_Wins]) -> list[str]:
    """Return notes on the means of metrics that are compared, but not over datasets or seeds."""
    of_models = run.significance["between"].str.startswith("model").to_numpy(dtype=bool)
    rows = to_records(run.significance[of_models])
    tested = {_get_title(row) for row in rows if not row["group"] and not row["target"]}
    compared = {(wins.comparisons.place, wins.comparisons.title) for wins in used}
    titles: dict[str, dict[str, None]] = {}
    for row in to_records(frame):
        location, title = get_place(row), _get_title(row)
        if ALL in location and title in tested and (location, title) not in compared:
            over = "datasets" if location[0] == ALL else "seeds or folds"
            titles.setdefault(over, {})[title] = None
    notes = []
    for over, missing in titles.items():
        subject = f"Means over {over}"
        if tested - missing.keys():
            subject = f"{', '.join(map(make_heading, missing))}: means over {over}"
        notes.append(f"{subject} have no marks: they were not compared.")
    return notes


def _get_title(row: Row) -> str:
    return format_title(row["metric"], row["k"])


def tabulate_comparisons(run: RunTables) -> Table:
    """Return one row per headline comparison of all metrics and tests, the largest effect first.

    The effect is in standard deviations, see ``compute_effect``.
    """
    groups = collect_comparisons(run)
    several = len({group.place[0] for group in groups}) > 1
    ranked: list[tuple[float, tuple[Cell, ...]]] = []
    for group in groups:
        places = count_decimals(row["difference"] for row in group.rows)
        title = f"{group.heading}, {group.place[0]}" if several else group.heading
        test = describe_test(group.test)
        for row in group.rows:
            effect = compute_effect(row)
            cells = _tabulate_comparison(row, effect, places)
            ranked.append((effect, (Cell(title), *cells, Cell(test))))
    ranked.sort(key=lambda pair: rank_effect(pair[0]), reverse=True)
    numbers = ("difference", "interval", "adjusted p", "effect (SD)")
    columns = make_columns(("metric", "a", "b", *numbers, "significant", "test"), numeric=numbers)
    rows = tuple(cells for _, cells in ranked)
    note = explain_zero([row for group in groups for row in group.rows])
    notes = (note,) if note else ()
    return Table("Comparisons, the largest effect first", columns, rows, notes)


def _decide(row: Row) -> str:
    if math.isnan(row["p_adjusted"]):
        return "undefined"
    return "yes" if is_significant(row) else "no"


def _tabulate_comparison(row: Row, effect: float, places: int) -> tuple[Cell, ...]:
    model = f"{row['model']}: " if row["model"] else ""
    return (
        Cell(f"{model}{row['a']}"),
        Cell(str(row["b"])),
        Cell(format_value(row["difference"], places), row["difference"]),
        Cell(format_interval(row["ci_low"], row["ci_high"], places), row["ci_low"]),
        Cell(format_p_value(row["p_adjusted"], row["alpha"]), row["p_adjusted"]),
        Cell(format_value(effect, 2), effect),
        Cell(_decide(row)),
    )
