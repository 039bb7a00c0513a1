"""Wide tables: one row per model, one column per metric, the best value of a column in bold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pandas as pd

from recbias.core.measurements.columns import DATASET
from recbias.reports.views.definitions import (
    DIRECTION_LABELS,
    Definition,
    collect_definitions,
    flag_best,
    format_title,
)
from recbias.reports.views.grid import Cell, Column, Table, make_columns
from recbias.reports.views.headline import (
    list_datasets,
    list_models,
    rank_label,
    select_headline,
    select_varying,
)
from recbias.reports.views.rounding import (
    UNDEFINED,
    count_decimals,
    format_interval,
    format_value,
)
from recbias.reports.views.run_tables import RunTables, to_records
from recbias.reports.views.significance import add_significance_marks
from recbias.reports.views.undefined_values import (
    MissingOutputs,
    collect_missing_outputs,
    count_undefined,
    describe_missing_outputs,
)

Row = Mapping[str, Any]

_PLACE = ("dataset", "seed", "fold")
_PART = ("group", "target")


@lru_cache(maxsize=2)
def build_summary(run: RunTables) -> Table:
    """Return the headline results: one row per model (and dataset), means over seeds and folds."""
    frame = select_headline(run, _select_overall(run.metrics))
    table = _build_table(run, frame, title="Results", keys=select_varying(frame, ["dataset"]))
    table = replace(table, notes=(*table.notes, *describe_missing_outputs(run)))
    return add_significance_marks(table, run, frame)


def build_fold_table(run: RunTables) -> Table | None:
    """Return every dataset, seed and fold, means first; None if the run has one of each."""
    frame = _select_overall(run.metrics)
    keys = select_varying(frame, _PLACE)
    if not keys:
        return None
    position = {label: number for number, label in enumerate(list_datasets(run))}
    ranks = frame[["dataset", "fold", "seed"]].copy()
    ranks["dataset"] = ranks["dataset"].map(position)
    for column in ("fold", "seed"):
        ranks[column] = ranks[column].map(rank_label)
    frame = frame.loc[ranks.sort_values(["dataset", "fold", "seed"], kind="stable").index]
    return _build_table(run, frame, title="Each dataset, seed and fold", keys=keys)


def build_group_tables(run: RunTables) -> list[Table]:
    """Return one table per metric that has values by query label or item attribute."""
    if len(_select_overall(run.metrics)) == len(run.metrics):
        return []
    frame = select_headline(run, run.metrics)
    of_dataset = frame["model"] == DATASET
    tables = _build_dataset_tables(run, frame[of_dataset])
    frame = frame[((frame["group"] != "") | (frame["target"] != "")) & ~of_dataset]
    titles = pd.Series([_get_title(row) for row in to_records(frame)], frame.index, dtype="str")
    for title, rows in frame.groupby(titles, sort=False):
        parts = [column for column in _PART if (rows[column] != "").any()]
        keys = [*select_varying(rows, ["dataset"]), *parts]
        tables.append(_build_group_table(run, rows, title=str(title), keys=keys))
    return tables


def _select_overall(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of models over all groups and targets."""
    overall = (frame["group"] == "") & (frame["target"] == "")
    return frame[overall & (frame["model"] != DATASET)]


def _build_dataset_tables(run: RunTables, frame: pd.DataFrame) -> list[Table]:
    """Return the table of values that describe a dataset by itself, if there are any."""
    if frame.empty:
        return []
    columns = ("dataset", *_PART) if len(list_datasets(run)) > 1 else _PART
    keys = [column for column in columns if (frame[column] != "").any()]
    records = to_records(frame)
    places = count_decimals(row["value"] for row in records)
    rows = tuple(
        (
            Cell(_get_title(row)),
            *map(Cell, _get_key(row, keys)),
            Cell(f"{row['n']:,.0f}", row["n"]),
            _build_cell(row, places, best=False),
        )
        for row in records
    )
    heads = make_columns(("metric", *keys, "n", "value"), numeric={"n", "value"})
    return [Table("Properties of the dataset", heads, rows)]


def _build_table(run: RunTables, frame: pd.DataFrame, *, title: str, keys: Sequence[str]) -> Table:
    """Return one row per block of key values and model, and one column per metric."""
    records = to_records(frame)
    cells = {(_get_key(row, keys), row["model"], _get_title(row)): row for row in records}
    missing = collect_missing_outputs(run)
    present = {metric for _, model, metric in cells if (metric, model) not in missing}
    metrics = [metric for title, metric in collect_definitions(run).items() if title in present]
    models = list_models(run)
    pairs = {(block, model) for block, model, _ in cells}
    blocks = dict.fromkeys(block for block, _, _ in cells)
    heads = [head for head in itertools.product(blocks, models) if head in pairs]
    columns = [
        _build_column([cells.get((*head, metric.title)) for head in heads], metric, heads, missing)
        for metric in metrics
    ]
    rows = tuple(
        (*map(Cell, block), Cell(model), *(column[number] for column in columns))
        for number, (block, model) in enumerate(heads)
    )
    notes = ["Bold: the best value of the column in the metric's direction."]
    notes *= any(metric.direction != "none" for metric in metrics)
    return Table(
        title,
        (*map(Column, (*keys, "model")), *map(_build_header, metrics)),
        rows,
        (*notes, *count_undefined(records, [metric.title for metric in metrics], missing)),
    )


def _build_group_table(
    run: RunTables, frame: pd.DataFrame, *, title: str, keys: Sequence[str]
) -> Table:
    """Return one row per group and target and one column per model, each row's best in bold."""
    metric = collect_definitions(run)[title]
    records = to_records(frame)
    cells = {(_get_key(row, keys), row["model"]): row for row in records}
    present = {model for _, model in cells}
    models = [model for model in list_models(run) if model in present]
    places = count_decimals(row["value"] for row in records)
    has_groups = any(row["group"] for row in records)
    rows = []
    for block in dict.fromkeys(block for block, _ in cells):
        values = [cells.get((block, model)) for model in models]
        wins = flag_best([row["value"] if row else math.nan for row in values], metric.direction)
        counts = [_count_units(values)] if has_groups else []
        row = [
            _build_cell(value, places, best=win) for value, win in zip(values, wins, strict=True)
        ]
        rows.append((*map(Cell, block), *counts, *row))
    heads = [*keys, *(["n"] if has_groups else []), *models]
    label = f"{title}: {DIRECTION_LABELS[metric.direction]}."
    return Table(
        f"{title} by {' and '.join(key for key in keys if key in _PART)}",
        tuple(Column(head, numeric=at >= len(keys)) for at, head in enumerate(heads)),
        tuple(rows),
        (label, *count_undefined(records, [title], {})),
    )


def _count_units(rows: Sequence[Row | None]) -> Cell:
    """Return n, or its range over the models."""
    counts = sorted({row["n"] for row in rows if row and not math.isnan(row["n"])})
    text = " to ".join(f"{count:,.0f}" for count in dict.fromkeys([*counts[:1], *counts[-1:]]))
    return Cell(text, counts[0] if counts else math.nan)


def _build_column(
    rows: Sequence[Row | None],
    metric: Definition,
    heads: Sequence[tuple[tuple[str, ...], str]],
    missing: MissingOutputs,
) -> list[Cell]:
    """Return the cells of a metric; the best value is determined within each block."""
    values = [row["value"] if row else math.nan for row in rows]
    places = count_decimals(values)
    wins = [False] * len(values)
    for block in dict.fromkeys(block for block, _ in heads):
        inside = [number for number, head in enumerate(heads) if head[0] == block]
        flags = flag_best([values[number] for number in inside], metric.direction)
        for number, win in zip(inside, flags, strict=True):
            wins[number] = win
    outputs = [missing.get((metric.title, model), "") for _, model in heads]
    return [
        _build_cell(row, places, best=win, missing=output)
        for row, win, output in zip(rows, wins, outputs, strict=True)
    ]


def _build_cell(row: Row | None, places: int, *, best: bool, missing: str = "") -> Cell:
    if row is None:
        return Cell("", note="not measured")
    if missing:
        return Cell(UNDEFINED, note=f"undefined: the model provides no {missing}")
    interval = format_interval(row["ci_low"], row["ci_high"], places)
    texts = [
        f"95% interval {interval}" if interval else "",
        "" if math.isnan(row["std"]) else f"standard deviation {format_value(row['std'], places)}",
        "" if math.isnan(row["n"]) else f"n {row['n']:,.0f}",
        f"undefined {row['undefined']:,.0f}" if row["undefined"] > 0 else "",
    ]
    note, text = ", ".join(filter(None, texts)), format_value(row["value"], places)
    return Cell(text, row["value"], best, interval=interval, note=note)


def _get_key(row: Row, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(row[key]) for key in keys)


def _get_title(row: Row) -> str:
    return format_title(row["metric"], row["k"])


def _build_header(metric: Definition) -> Column:
    label = DIRECTION_LABELS[metric.direction]
    note = f"{metric.summary} ({label})" if metric.summary else label.capitalize()
    return Column(metric.title, numeric=True, direction=metric.direction, note=note)
