"""Wide tables: one row a model, one column a metric; the best by the metric's own direction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import pandas as pd

from recbias.core.measurements.columns import DATASET
from recbias.reports.views.definitions import WORDS, Definition, best, definitions, title_of
from recbias.reports.views.grid import Cell, Column, Table
from recbias.reports.views.headline import all_first, datasets, headline, models, varying
from recbias.reports.views.rounding import decimals, shown
from recbias.reports.views.run_tables import RunTables, rows_of
from recbias.reports.views.significance_marks import marked

_PLACE = ("dataset", "seed", "fold")
_PART = ("group", "target")


@lru_cache(maxsize=2)
def summary(run: RunTables) -> Table:
    """Return the headline: a row a model (and dataset), the mean over seeds and folds."""
    frame = headline(run, _whole(run.metrics))
    frame = frame[frame["model"] != DATASET]
    table = _wide(run, frame, title="Results", keys=varying(frame, ["dataset"]))
    return marked(table, run, frame)


def parts(run: RunTables) -> Table | None:
    """Return every dataset, seed and fold, ``all`` first; None where there is but one."""
    frame = _whole(run.metrics)
    frame = frame[frame["model"] != DATASET]
    keys = varying(frame, _PLACE)
    if not keys:
        return None
    place = {label: number for number, label in enumerate(datasets(run))}
    order = frame["dataset"].map(place)
    frame = frame.assign(order=order).sort_values("order", kind="stable")
    frame = frame.sort_values("seed", kind="stable", key=_keys)
    frame = frame.sort_values("fold", kind="stable", key=_keys).sort_values("order", kind="stable")
    return _wide(run, frame, title="Each dataset, seed and fold", keys=keys)


def by_part(run: RunTables) -> list[Table]:
    """Return a table for each metric that is measured per query label or item attribute value."""
    frame = headline(run, run.metrics)
    found = _of_dataset(run, frame[frame["model"] == DATASET])
    frame = frame[((frame["group"] != "") | (frame["target"] != "")) & (frame["model"] != DATASET)]
    titles = pd.Series([_title(row) for row in rows_of(frame)], index=frame.index, dtype="str")
    for title, rows in frame.groupby(titles, sort=False):
        keys = [*varying(rows, ["dataset"]), *(each for each in _PART if (rows[each] != "").any())]
        found.append(_across(run, rows, title=str(title), keys=keys))
    return found


def _of_dataset(run: RunTables, frame: pd.DataFrame) -> list[Table]:
    """Return the table of what is measured of a dataset by itself; none where nothing is."""
    if frame.empty:
        return []
    keys = [each for each in ("dataset", *_PART) if (frame[each] != "").any()]
    keys = [each for each in keys if each != "dataset" or len(datasets(run)) > 1]
    records = rows_of(frame)
    places = decimals(row["value"] for row in records)
    rows = [
        (
            Cell(_title(row)),
            *map(Cell, _key(row, keys)),
            Cell(f"{row['n']:,.0f}", row["n"]),
            _cell(row, places, best=False),
        )
        for row in records
    ]
    heads = (Column("metric"), *map(Column, keys))
    columns = (*heads, Column("n", numeric=True), Column("value", numeric=True))
    return [Table("Of the dataset itself", columns, tuple(rows), ())]


def _keys(column: pd.Series) -> pd.Series:
    return column.map({text: all_first(text) for text in column.unique()})


def _whole(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[(frame["group"] == "") & (frame["target"] == "")]


def _wide(run: RunTables, frame: pd.DataFrame, *, title: str, keys: Sequence[str]) -> Table:
    """Return models (within keys) down and metrics across."""
    known = definitions(run)
    records = rows_of(frame)
    figures = {(_key(row, keys), row["model"], _title(row)): row for row in records}
    blocks = list(dict.fromkeys(key for key, _, _ in figures))
    titles = [each for each in known if any(each == key[2] for key in figures)]
    names = [each for each in models(run) if any(each == key[1] for key in figures)]
    heads = [(block, name) for block in blocks for name in names]
    heads = [head for head in heads if any((*head, each) in figures for each in titles)]
    columns = [
        _column([figures.get((*head, each)) for head in heads], known[each], [h[0] for h in heads])
        for each in titles
    ]
    rows = [
        (*map(Cell, block), Cell(name), *(column[number] for column in columns))
        for number, (block, name) in enumerate(heads)
    ]
    head_columns = [Column(each) for each in (*keys, "model")]
    notes = [_best_note([known[each] for each in titles]), *_undefined(records, titles)]
    return Table(
        title,
        (*head_columns, *(_head(known[each]) for each in titles)),
        tuple(rows),
        tuple(filter(None, notes)),
    )


def _across(run: RunTables, frame: pd.DataFrame, *, title: str, keys: Sequence[str]) -> Table:
    """Return groups and targets down and models across, each row's best in bold."""
    known = definitions(run)[title]
    records = rows_of(frame)
    figures = {(_key(row, keys), row["model"]): row for row in records}
    names = [each for each in models(run) if any(each == key[1] for key in figures)]
    places = decimals(row["value"] for row in records)
    counts = any(row["group"] for row in records)
    rows = []
    for block in dict.fromkeys(key for key, _ in figures):
        found = [figures.get((block, name)) for name in names]
        wins = best([row["value"] if row else math.nan for row in found], known.direction)
        cells = [_cell(row, places, best=win) for row, win in zip(found, wins, strict=True)]
        rows.append((*map(Cell, block), *(_counted(found) if counts else ()), *cells))
    return Table(
        f"{title} by {' and '.join(each for each in keys if each in _PART)}",
        (
            *map(Column, keys),
            *([Column("n", numeric=True)] if counts else []),
            *(Column(each, numeric=True) for each in names),
        ),
        tuple(rows),
        tuple(
            filter(None, [f"{title}: {WORDS[known.direction]}.", *_undefined(records, [title])])
        ),
    )


def _counted(rows: Sequence[Mapping[str, Any] | None]) -> list[Cell]:
    """Return the cell of n: one number, or the range over the models."""
    found = sorted({row["n"] for row in rows if row and not math.isnan(row["n"])})
    text = " to ".join(f"{each:,.0f}" for each in dict.fromkeys([*found[:1], *found[-1:]]))
    return [Cell(text, found[0] if found else math.nan)]


def _column(
    rows: Sequence[Mapping[str, Any] | None], known: Definition, blocks: Sequence[object]
) -> list[Cell]:
    """Return a metric's cells; the best is looked for within each block."""
    values = [row["value"] if row else math.nan for row in rows]
    places = decimals(values)
    wins = [False] * len(values)
    for block in set(blocks):
        inside = [number for number, each in enumerate(blocks) if each == block]
        found = best([values[number] for number in inside], known.direction)
        for number, win in zip(inside, found, strict=True):
            wins[number] = win
    return [_cell(row, places, best=win) for row, win in zip(rows, wins, strict=True)]


def _cell(row: Mapping[str, Any] | None, places: int, *, best: bool) -> Cell:
    if row is None:
        return Cell("", note="not measured")
    interval = ""
    if not math.isnan(row["ci_low"]) and not math.isnan(row["ci_high"]):
        interval = f"{shown(row['ci_low'], places)} to {shown(row['ci_high'], places)}"
    said = [
        f"95% interval {interval}" if interval else "",
        "" if math.isnan(row["std"]) else f"standard deviation {shown(row['std'], places)}",
        "" if math.isnan(row["n"]) else f"n {row['n']:,.0f}",
        f"undefined {row['undefined']:,.0f}" if row["undefined"] > 0 else "",
    ]
    note = ", ".join(filter(None, said))
    return Cell(shown(row["value"], places), row["value"], best, "", interval, note)


def _key(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(row[each]) for each in keys)


def _title(row: Mapping[str, Any]) -> str:
    return title_of(row["metric"], row["k"])


def _head(known: Definition) -> Column:
    said = f"{known.summary} ({WORDS[known.direction]})" if known.summary else ""
    note = said or WORDS[known.direction].capitalize()
    return Column(known.title, numeric=True, direction=known.direction, note=note)


def _best_note(known: Sequence[Definition]) -> str:
    if all(each.direction == "none" for each in known):
        return ""
    return "Bold: the best of the column, by the metric's own direction."


def _undefined(records: Sequence[Mapping[str, Any]], titles: Sequence[str]) -> list[str]:
    """Return a footnote for each metric with undefined values."""
    notes = []
    for title in titles:
        counts: dict[str, float] = {}
        for row in records:
            if _title(row) == title and row["undefined"] > 0:
                counts[row["model"]] = max(counts.get(row["model"], 0), row["undefined"])
        if counts:
            said = [f"{count:,.0f} for {model}" for model, count in list(counts.items())[:4]]
            more = f" and {len(counts) - 4} more models" if len(counts) > 4 else ""
            notes.append(
                f"{title}: values that are undefined are left out of its figures "
                f"({', '.join(said)}{more})."
            )
    return notes
