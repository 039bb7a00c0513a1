"""Tables of values by query label or item attribute: one row per group, one column per model."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import replace

import pandas as pd

from recbias.core.measurements.columns import DATASET
from recbias.reports.views.conclusions.questions import find_worst_groups
from recbias.reports.views.definitions import DIRECTION_LABELS, Definition, collect_definitions
from recbias.reports.views.grid import Cell, Column, Table, make_columns
from recbias.reports.views.headings import make_heading
from recbias.reports.views.headline import (
    collect_estimates,
    describe_means,
    list_datasets,
    list_models,
    select_headline,
    select_varying,
)
from recbias.reports.views.rounding import count_decimals
from recbias.reports.views.run_tables import RunTables, to_records
from recbias.reports.views.undefined_values import count_undefined
from recbias.reports.views.wide_tables import (
    Row,
    build_cell,
    get_key,
    get_title,
    select_overall,
)

_PART = ("group", "target")
WORST = "w"
"""The mark of the worst-off group."""


def build_group_tables(run: RunTables, omitted: Container[str] = ()) -> list[Table]:
    """Return one table per metric that has values by query label or item attribute.

    Metrics whose titles are ``omitted`` have none.
    """
    estimates = collect_estimates(run)
    if len(select_overall(estimates)) == len(estimates):
        return []
    frame = select_headline(run, estimates)
    of_dataset = frame["model"] == DATASET
    tables = _build_dataset_tables(run, frame[of_dataset])
    frame = frame[((frame["group"] != "") | (frame["target"] != "")) & ~of_dataset]
    titles = pd.Series([get_title(row) for row in to_records(frame)], frame.index, dtype="str")
    for title, rows in frame.groupby(titles, sort=False):
        if title in omitted:
            continue
        parts = [column for column in _PART if (rows[column] != "").any()]
        keys = [*select_varying(rows, ["dataset"]), *parts]
        tables.append(_build_group_table(run, rows, title=str(title), keys=keys))
    return tables


def _build_dataset_tables(run: RunTables, frame: pd.DataFrame) -> list[Table]:
    """Return the table of values that describe a dataset by itself, if there are any."""
    if frame.empty:
        return []
    columns = ("dataset", *_PART) if len(list_datasets(run)) > 1 else _PART
    keys = [column for column in columns if (frame[column] != "").any()]
    records = to_records(frame)
    kinds = [_identify_kind(run, get_title(row)) for row in records]
    by_kind = frame["value"].groupby(pd.Series(kinds, frame.index, dtype="str"), sort=False)
    places = {str(kind): count_decimals(values) for kind, values in by_kind}
    rows = tuple(
        (
            Cell(make_heading(get_title(row))),
            *map(Cell, get_key(row, keys)),
            Cell(f"{row['n']:,.0f}", row["n"]),
            build_cell(row, places[kind]),
        )
        for row, kind in zip(records, kinds, strict=True)
    )
    heads = make_columns(("metric", *keys, "n", "value"), numeric={"n", "value"})
    return [Table("Properties of the dataset", heads, rows)]


def _identify_kind(run: RunTables, title: str) -> str:
    """Return the metric and its settings besides the label, of which all values have one unit."""
    metric = collect_definitions(run)[title]
    settings = {key: value for key, value in metric.parameters.items() if key != "label"}
    return f"{metric.name} {settings}"


def _build_group_table(
    run: RunTables, frame: pd.DataFrame, *, title: str, keys: Sequence[str]
) -> Table:
    """Return one row per group and target and one column per model."""
    metric = collect_definitions(run)[title]
    records = to_records(frame)
    cells = {(get_key(row, keys), row["model"]): row for row in records}
    present = {model for _, model in cells}
    models = [model for model in list_models(run) if model in present]
    places = count_decimals(row["value"] for row in records)
    has_groups = any(row["group"] for row in records)
    worst = find_worst_rows(records, metric)
    rows = []
    for block in dict.fromkeys(block for block, _ in cells):
        values = [cells.get((block, model)) for model in models]
        counts = [_count_units(values)] if has_groups else []
        marks = [WORST if id(row) in worst else "" for row in values]
        row = [
            replace(build_cell(value, places), mark=mark)
            for value, mark in zip(values, marks, strict=True)
        ]
        rows.append((*map(Cell, block), *counts, *row))
    heads = [*keys, *(["n"] if has_groups else []), *models]
    marked = f" {WORST}: the worst-off group of the model." if worst else ""
    heading = metric.groups_heading if has_groups else metric.heading
    direction = metric.group_direction if has_groups else metric.direction
    label = f"{heading}: {DIRECTION_LABELS[direction]}.{marked}"
    parts = " and ".join(key for key in keys if key in _PART)
    return Table(
        heading if "by" in metric.parameters else f"{heading} by {parts}",
        tuple(Column(head, numeric=at >= len(keys)) for at, head in enumerate(heads)),
        tuple(rows),
        (
            label,
            *count_undefined(records, [title], {}, heading),
            *(describe_means(run) if has_groups else ()),
        ),
    )


def find_worst_rows(records: Sequence[Row], metric: Definition) -> set[int]:
    """Return the ids of the rows of the worst-off groups of each model, dataset and target."""
    keys = ("dataset", "model", "target")
    blocks: dict[tuple[str, ...], list[Row]] = {}
    for row in records:
        if row["group"]:
            blocks.setdefault(get_key(row, keys), []).append(row)
    return {id(row) for rows in blocks.values() for row in find_worst_groups(rows, metric)}


def _count_units(rows: Sequence[Row | None]) -> Cell:
    """Return n, or its range over the models."""
    counts = sorted({row["n"] for row in rows if row and not math.isnan(row["n"])})
    text = " to ".join(f"{count:,.0f}" for count in dict.fromkeys([*counts[:1], *counts[-1:]]))
    return Cell(text, counts[0] if counts else math.nan)
