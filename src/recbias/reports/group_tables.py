"""The values of metrics by group and target, and the gaps between groups, as tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from recbias.core.measures import ALL, DATASET, SERVED, Direction
from recbias.reports import views, wording
from recbias.reports.questions import Question, collect_questions, find_worst_groups
from recbias.reports.run import RunTables
from recbias.reports.tables import (
    BEST,
    FilledColumn,
    Head,
    build_cell,
    count_undefined,
    get_key,
    lay_out,
    rank_cells,
    sort_heads,
    sort_models,
)
from recbias.reports.views import (
    DIRECTION_LABELS,
    Definition,
    Row,
    collect_definitions,
    get_title,
    select_varying,
)
from recbias.reports.wording import (
    Cell,
    Column,
    Table,
    count_decimals,
    format_value,
    get_label_name,
    get_label_value,
    make_heading,
    pick,
    tabulate,
)
from recbias.statistics import trend
from recbias.statistics.groups import mark_few_beside_many

_PART = ("group", "target")
WORST = "w"
"""The mark of the worst-off group."""

MOST_GROUPS = 6
"""With more groups than this they are the rows of a table, and models its columns."""


def build_group_tables(run: RunTables) -> list[Table]:
    """Return the properties of the dataset, and the values by group and target of each metric."""
    definitions, questions = collect_definitions(run), _group_questions(run)
    rows: dict[str, list[Row]] = {}
    for (title, _), own in views.list_headline(run).items():
        parts = [row for row in own if row["group"] or row["target"]]
        rows.setdefault(title, []).extend(row for row in parts if row["model"] != DATASET)
    tables = build_dataset_tables(run)
    for title, metric in definitions.items():
        own = rows.get(title, [])
        if values := [row for row in own if row["group"] != SERVED] or own:
            keys = select_varying(pd.DataFrame(values), ["dataset"])
            tables.append(_build_groups(run, metric, values, questions.get(title, []), keys))
    return tables


def _group_questions(run: RunTables) -> dict[str, list[Question]]:
    """Return the questions about groups by the metric's title."""
    questions: dict[str, list[Question]] = {}
    for question in collect_questions(run):
        if question.between == "groups" and question.comparisons[0].test != trend.NAME:
            questions.setdefault(question.metric.title, []).append(question)
    return questions


def build_dataset_tables(run: RunTables) -> list[Table]:
    """Return the table of values that describe a dataset by itself, if there are any."""
    rows = [
        row for own in views.list_headline(run).values() for row in own if row["model"] == DATASET
    ]
    columns = ("dataset", *_PART) if len(views.list_datasets(run)) > 1 else _PART
    kinds: dict[str, list[float]] = {}
    for row in rows:
        kinds.setdefault(_identify_kind(run, get_title(row)), []).append(row["value"])
    places = {kind: count_decimals(values) for kind, values in kinds.items()}
    table = tabulate(
        "Properties of the dataset",
        rows,
        {
            "metric": lambda row: make_heading(get_title(row)),
            **pick(*(name for name in columns if any(row[name] for row in rows))),
            "n": lambda row: Cell(f"{row['n']:,.0f}", row["n"]),
            "value": lambda row: build_cell(row, places[_identify_kind(run, get_title(row))]),
        },
    )
    return [table] * bool(rows)


def _identify_kind(run: RunTables, title: str) -> str:
    """Return the metric and its settings besides the label, of which all values have one unit."""
    metric = collect_definitions(run)[title]
    settings = {key: value for key, value in metric.parameters.items() if key != "label"}
    return f"{metric.name} {settings}"


def _build_groups(
    run: RunTables,
    metric: Definition,
    records: Sequence[Row],
    questions: Sequence[Question],
    keys: Sequence[str],
) -> Table:
    """Return models in rows and groups in columns; many groups, and targets, are rows instead.

    The gap between the groups is the last column, or the last row.
    """
    parts = [name for name in _PART if any(row[name] for row in records)]
    worst, labels = _find_worst_rows(records, metric), _label_groups(metric, records)
    rows = [{**row, "group": labels[row["group"]], "worst": id(row) in worst} for row in records]
    gaps = {}
    if parts == ["group"]:
        gaps = _measure_gaps(metric, rows, questions, (*keys, "model"))
    models = sort_models(run, rows)
    shared = get_label_name(labels) or "group"
    if parts == ["group"] and len(labels) <= MOST_GROUPS:
        names = [*keys, "model"]
        heads = sort_heads(run, rows, names)
        direction = metric.group_direction if len(models) > 1 else "none"
        columns = _pivot(rows, names, "group", labels.values(), direction)
        if gaps:
            columns.append((Column("gap", numeric=True), gaps))
    else:
        names = [*keys, *parts]
        columns = _pivot(rows, names, "model", models, "none")
        heads = [*dict.fromkeys(get_key(row, names) for row in rows)]
        if parts[0] == "group":
            counts = {
                head: _count_units(inside) for head, inside in _group_by(rows, names).items()
            }
            columns.insert(0, (Column("n", numeric=True), counts))
        if gaps:
            for *dataset, model in gaps:
                columns[1 + models.index(model)][1][*dataset, "gap"] = gaps[*dataset, model]
            heads += dict.fromkeys((*head[:-1], "gap") for head in heads)
        names = [shared if name == "group" else name for name in names]
    title = metric.groups_heading
    if "by" not in metric.parameters:
        title = f"{metric.heading} by {' and '.join(parts)}"
    notes = _explain_groups(metric, rows, questions, has_gaps=bool(gaps))
    heading = metric.groups_heading if parts[0] == "group" else metric.heading
    notes += count_undefined(records, [metric.title], {}, heading)
    notes += views.describe_means(run) if parts[0] == "group" else []
    has_best = any(cell.best for _, cells in columns for cell in cells.values())
    return lay_out(title, names, heads, columns, [*[BEST] * has_best, *notes])


def _group_by(rows: Sequence[Row], names: Sequence[str]) -> dict[Head, list[Row]]:
    groups: dict[Head, list[Row]] = {}
    for row in rows:
        groups.setdefault(get_key(row, names), []).append(row)
    return groups


def _pivot(
    rows: Sequence[Row],
    names: Sequence[str],
    across: str,
    order: Iterable[str],
    direction: Direction,
) -> list[FilledColumn]:
    """Return a column for each value of ``across``, with the cells by the values of ``names``."""
    columns = []
    for name in order:
        inside = {get_key(row, names): row for row in rows if row[across] == name}
        cells = rank_cells(inside, direction)
        for head in [head for head, row in inside.items() if row["worst"]]:
            cells[head] = replace(cells[head], mark=WORST)
        counts = _count_units(inside.values()).text if across == "group" else ""
        title = f"{name} (n {counts})" if counts else name
        columns.append((Column(title, numeric=True), cells))
    return columns


def _label_groups(metric: Definition, rows: Sequence[Row]) -> dict[str, str]:
    """Return each group as a table names it: without the label that all groups share."""
    by = str(metric.parameters.get("by", ""))
    groups = [*dict.fromkeys(row["group"] for row in rows)]
    parts = {group: wording.split_group(group, by) for group in groups}
    short = {group: ", ".join(map(get_label_value, parts[group])) for group in groups}
    if get_label_name(groups) and len({*short.values()}) == len(groups):
        return short
    return {group: "&".join(parts[group]) for group in groups}


def _measure_gaps(
    metric: Definition,
    rows: Sequence[Row],
    questions: Sequence[Question],
    names: Sequence[str],
) -> dict[Head, Cell]:
    """Return the largest minus the smallest mean of the groups, with its test if it has one."""
    tests = {get_key(row, names): row for row in _find_largest_gaps(questions).values()}
    least = int(metric.parameters.get("min_group") or 0)
    # the gap over datasets is the mean of their gaps: no difference of the means shown here
    compared = _group_by(
        [row for row in rows if not row["n"] < least and row["dataset"] != ALL], names
    )
    means = {head: [row["value"] for row in inside] for head, inside in compared.items()}
    spreads = {
        head: max(values) - min(values) for head, values in means.items() if len(values) > 1
    }
    places = count_decimals(spreads.values())
    return {head: _build_gap(spread, tests.get(head), places) for head, spread in spreads.items()}


def _build_gap(spread: float, test: Row | None, places: int) -> Cell:
    """Return a gap, marked if it is significant, with the interval and p of the largest one."""
    text = format_value(spread, places)
    if test is None:
        return Cell(text, spread)
    sign = -1.0 if test["difference"] < 0 else 1.0
    low, high = sorted((sign * test["ci_low"], sign * test["ci_high"]))
    interval = wording.format_interval(low, high, places)
    higher, lower = (test["b"], test["a"]) if sign < 0 else (test["a"], test["b"])
    p = wording.format_p_value(test["p_adjusted"], test["alpha"])
    return Cell(
        text,
        spread,
        mark="*" if views.is_significant(test) else "",
        interval=interval,
        note=f"{higher} less {lower}, 95% interval {interval or 'unknown'}, adjusted p {p}",
    )


def _explain_groups(
    metric: Definition, rows: Sequence[Row], questions: Sequence[Question], *, has_gaps: bool
) -> list[str]:
    """Return the direction, which group is marked, and what the gap is."""
    direction = metric.group_direction if rows[0]["group"] else metric.direction
    notes = [f"{DIRECTION_LABELS[direction].capitalize()}."]
    least = metric.least_marked
    if any(row["worst"] for row in rows):
        small = any(row["n"] < least for row in rows)
        of = f" of the groups with n of at least {least:,}" if small else ""
        notes.append(f"{WORST}: the worst-off group of the model{of}.")
    if has_gaps:
        least = int(metric.parameters.get("min_group") or 0)
        of = f" with n of at least {least:,}" if least else ""
        tests = [part for question in questions for part in question.comparisons]
        mark = f"; *: significant ({views.describe_methods(tests)})" if tests else ", not tested"
        notes.append(f"Gap: the largest minus the smallest mean of the groups{of}{mark}.")
        sizes = {row["group"]: row["n"] for row in rows if not row["n"] < least}
        is_few = mark_few_beside_many(np.array([*sizes.values()]))
        if is_few.any() and any(part.test != "newcombe" for part in tests):
            names = _label_groups(metric, rows)
            few = ", ".join(
                names[group] for group, flag in zip(sizes, is_few, strict=True) if flag
            )
            notes.append(
                f"Few values beside many ({few}): if they are skewed, fewer than 93 of 100"
            )
            notes.append("intervals of the gap hold the truth.")
    return [" ".join(notes)]


def _find_worst_rows(records: Sequence[Row], metric: Definition) -> set[int]:
    """Return the ids of the rows of the worst-off groups of each model, dataset and target."""
    keys = ("dataset", "model", "target")
    blocks = _group_by([row for row in records if row["group"]], keys)
    return {id(row) for rows in blocks.values() for row in find_worst_groups(rows, metric)}


def _count_units(rows: Iterable[Row]) -> Cell:
    """Return n, or its range over the models."""
    counts = sorted({row["n"] for row in rows if not math.isnan(row["n"])})
    text = " to ".join(f"{count:,.0f}" for count in dict.fromkeys([*counts[:1], *counts[-1:]]))
    return Cell(text, counts[0] if counts else math.nan)


def _find_largest_gaps(questions: Sequence[Question]) -> dict[Head, Row]:
    """Return the largest tested difference between two groups, by dataset and model."""
    pairs: dict[Head, Row] = {}
    for question in questions:
        for row in (row for comparison in question.comparisons for row in comparison.rows):
            key = row["dataset"], row["model"]
            if key not in pairs or abs(row["difference"]) > abs(pairs[key]["difference"]):
                pairs[key] = row
    return pairs
