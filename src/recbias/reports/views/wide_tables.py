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
from recbias.reports.views.comparisons import collect_comparisons
from recbias.reports.views.definitions import (
    DIRECTION_LABELS,
    Definition,
    collect_definitions,
    flag_best,
    format_title,
)
from recbias.reports.views.grid import Cell, Column, Table
from recbias.reports.views.headline import (
    collect_estimates,
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


@lru_cache(maxsize=2)
def build_summary(run: RunTables) -> Table:
    """Return the headline results: one row per model (and dataset), means over seeds and folds."""
    frame = select_headline(run, select_overall(collect_estimates(run)))
    table = _build_table(run, frame, title="Results", keys=select_varying(frame, ["dataset"]))
    table = replace(table, notes=(*table.notes, *describe_missing_outputs(run)))
    return _name_columns(add_significance_marks(table, run, frame), run)


def build_fold_table(run: RunTables) -> Table | None:
    """Return every dataset, seed and fold, means first; None if the run has one of each."""
    frame = select_overall(collect_estimates(run))
    keys = select_varying(frame, _PLACE)
    if not keys:
        return None
    position = {label: number for number, label in enumerate(list_datasets(run))}
    ranks = frame[["dataset", "fold", "seed"]].copy()
    ranks["dataset"] = ranks["dataset"].map(position)
    for column in ("fold", "seed"):
        ranks[column] = ranks[column].map(rank_label)
    frame = frame.loc[ranks.sort_values(["dataset", "fold", "seed"], kind="stable").index]
    table = _build_table(run, frame, title="Each dataset, seed and fold", keys=keys)
    return _name_columns(table, run)


def _name_columns(table: Table, run: RunTables) -> Table:
    """Return the table with the headings of the metrics, whose titles identify them before."""
    headings = {title: metric.heading for title, metric in collect_definitions(run).items()}
    columns = tuple(
        replace(column, title=headings.get(column.title, column.title)) for column in table.columns
    )
    return replace(table, columns=columns)


def select_overall(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of models over all groups and targets."""
    overall = (frame["group"] == "") & (frame["target"] == "")
    return frame[overall & (frame["model"] != DATASET)]


def _build_table(run: RunTables, frame: pd.DataFrame, *, title: str, keys: Sequence[str]) -> Table:
    """Return one row per block of key values and model, and one column per metric.

    The best gap between groups is not marked where no test compares the models: the smallest of
    several gaps may be so by chance.
    """
    records = to_records(frame)
    cells = {(get_key(row, keys), row["model"], get_title(row)): row for row in records}
    missing = collect_missing_outputs(run)
    present = {metric for _, model, metric in cells if (metric, model) not in missing}
    metrics = [metric for title, metric in collect_definitions(run).items() if title in present]
    models = list_models(run)
    pairs = {(block, model) for block, model, _ in cells}
    blocks = dict.fromkeys(block for block, _, _ in cells)
    heads = [head for head in itertools.product(blocks, models) if head in pairs]
    tested = {group.title for group in collect_comparisons(run) if group.compares_models}
    ranked = [
        replace(metric, direction="none") if metric.gap and metric.title not in tested else metric
        for metric in metrics
    ]
    columns = [
        _build_column([cells.get((*head, metric.title)) for head in heads], metric, heads, missing)
        for metric in ranked
    ]
    rows = tuple(
        (*map(Cell, block), Cell(model), *(column[number] for column in columns))
        for number, (block, model) in enumerate(heads)
    )
    notes = ["Bold: the best value of the column in the metric's direction."]
    notes *= len(models) > 1 and any(metric.direction != "none" for metric in ranked)
    return Table(
        title,
        (*map(Column, (*keys, "model")), *map(_build_header, metrics)),
        rows,
        (*notes, *count_undefined(records, [metric.title for metric in metrics], missing)),
    )


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
        build_cell(row, places, best=win, missing=output)
        for row, win, output in zip(rows, wins, outputs, strict=True)
    ]


def build_cell(row: Row | None, places: int, *, best: bool = False, missing: str = "") -> Cell:
    """Return a value with its interval, standard deviation and counts."""
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


def get_key(row: Row, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the values of a row that head it in a table."""
    return tuple(str(row[key]) for key in keys)


def get_title(row: Row) -> str:
    """Return the title of the metric of a row."""
    return format_title(row["metric"], row["k"])


def _build_header(metric: Definition) -> Column:
    label = DIRECTION_LABELS[metric.direction]
    note = f"{metric.summary} ({label})" if metric.summary else label.capitalize()
    return Column(metric.title, numeric=True, direction=metric.direction, note=note)
