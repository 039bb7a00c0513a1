"""The tables of a report: results, settings, checks, comparisons.

The best value of a column is bold, superscript marks show what is significant, and footnotes count
undefined values.
"""

from __future__ import annotations

import itertools
import math
import string
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.measures import DATASET, Direction
from recbias.reports import views, wording
from recbias.reports.questions import (
    compute_effect,
    explain_equal,
    explain_zero,
    rank_effect,
)
from recbias.reports.run import RunTables, to_records
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
    interval_cell,
    make_heading,
    number_cell,
    pick,
    state_cutoff_once,
    tabulate,
)
from recbias.statistics.agreement import Agreement, kendall_tau

_PLACE = ("dataset", "group", "target")
_BOUNDS = ("value", "ci_low", "ci_high")

Head: TypeAlias = tuple[str, ...]
"""The texts that head a row."""

FilledColumn: TypeAlias = tuple[Column, dict[Head, Cell]]
"""A column with its cells by the head of the row."""


def build_check_table(run: RunTables) -> Table | None:
    """Return one row for each check, model and value, failed checks first; None without checks."""
    rows = [dict(check) for check in run.manifest.get("checks", [])]
    if not rows:
        return None
    rows.sort(key=lambda row: (not row["failed"], row["verdict"] != "undecided"))
    for row in rows:
        ends = {name: math.nan if row[name] is None else row[name] for name in _BOUNDS}
        row.update(ends, places=count_decimals(ends.values()))
    varying = [name for name in _PLACE if len({row[name] for row in rows}) > 1]
    table = tabulate(
        "Checks",
        rows,
        {
            **pick("model"),
            "metric": lambda row: make_heading(get_title(row)),
            **pick(*varying),
            "value": lambda row: number_cell(row["value"], row["places"]),
            "95% interval": lambda row: interval_cell(
                row["ci_low"], row["ci_high"], row["places"], "none"
            ),
            **pick("limit"),
            "verdict": _name_verdict,
        },
        _explain(rows),
    )
    return state_cutoff_once(table)


def _name_verdict(row: Row) -> Cell:
    is_strict = row["failed"] and row["verdict"] == "undecided"
    return Cell(f"{row['verdict']}{' (strict)' * is_strict}", best=row["failed"])


def _explain(rows: Sequence[Row]) -> list[str]:
    n_failed = sum(row["failed"] for row in rows)
    undecided = sum(row["verdict"] == "undecided" and not row["failed"] for row in rows)
    notes = [f"{n_failed:,} of {len(rows):,} failed, {undecided:,} undecided."]
    if any(row["baseline"] for row in rows):
        notes.append("Below or above a model: the value is the difference from that model.")
    if any(row["verdict"] == "undecided" for row in rows):
        notes.append("Undecided: the interval contains the limit, or the value is undefined.")
    if any(row["basis"] == "value" for row in rows):
        notes.append("Without an interval the value itself decides.")
    return notes


_MAX_LETTERS = 8  # with more models than this, significance is marked by stars instead of letters


def _add_significance_marks(table: Table, run: RunTables, frame: pd.DataFrame) -> Table:
    """Return the table with a mark in each cell that is significantly better than others.

    The marks are those of the first test of the run.
    """
    groups = {
        (group.place, group.title): group
        for group in reversed(views.collect_comparisons(run))
        if group.compares_models and not group.part
    }
    names = [name for name in views.list_models(run) if name != DATASET]
    letters = dict(zip(names, string.ascii_lowercase, strict=False))
    letters = letters if len(names) <= _MAX_LETTERS else {}
    at = table.row_headers - 1
    places = {row["dataset"]: views.get_place(row) for row in to_records(frame)}
    used: dict[tuple[tuple[str, str, str], str], views.Comparisons] = {}
    rows: list[tuple[Cell, ...]] = []
    for row in table.rows:
        place = places[row[0].text if at else next(iter(places))]
        cells = [*row]
        for number, column in enumerate(table.columns):
            if group := groups.get((place, column.key)):
                used[place, column.key] = group
                mark = _mark(views.find_wins(group), row[at].text, letters)
                cells[number] = replace(row[number], mark=mark)
        cells[at] = replace(row[at], mark=letters.get(row[at].text, ""))
        rows.append(tuple(cells))
    notes = [*table.notes, *_explain_marks([*used.values()], letters)]
    return replace(table, rows=tuple(rows) if used else table.rows, notes=tuple(notes))


def _mark(wins: Mapping[str, set[str]], model: str, letters: Mapping[str, str]) -> str:
    """Return the letters of the models that a model beats, or a star if it beats all."""
    worse = wins.get(model, set())
    if letters:
        return "".join(letter for name, letter in letters.items() if name in worse)
    return "*" if len(worse) == len(wins) - 1 else ""


def _explain_marks(used: Sequence[views.Comparisons], letters: Mapping[str, str]) -> list[str]:
    if not used:
        return []
    meaning = "Letters: significantly better than the model with that letter"
    if not letters:
        most = max(len(group.names()) for group in used)
        compared = "the other compared model" if most == 2 else "every other compared model"
        meaning = f"Star: significantly better than {compared}"
    return [f"{meaning} ({views.describe_methods(used)})."]


def tabulate_comparisons(run: RunTables) -> Table:
    """Return one row per headline comparison of all metrics and tests, the largest effect first.

    The effect is in standard deviations, see ``compute_effect``.
    """
    groups = views.collect_comparisons(run)
    several = len({group.place[0] for group in groups}) > 1
    rows = [
        {
            **row,
            "metric": f"{group.heading}, {group.place[0]}" if several else group.heading,
            "a": f"{row['model']}: {row['a']}" if row["model"] else row["a"],
            "test": views.describe_test(group.test),
            "effect": compute_effect(row),
            "places": count_decimals(each["difference"] for each in group.rows),
        }
        for group in groups
        for row in group.rows
    ]
    rows.sort(key=lambda row: rank_effect(row["effect"]), reverse=True)
    compared = [row for group in groups for row in group.rows]
    return tabulate(
        "Comparisons, the largest effect first",
        rows,
        {
            **pick("metric", "a", "b"),
            "difference": lambda row: number_cell(row["difference"], row["places"]),
            "interval": lambda row: interval_cell(row["ci_low"], row["ci_high"], row["places"]),
            "adjusted p": lambda row: Cell(
                wording.format_p_value(row["p_adjusted"], row["alpha"]), row["p_adjusted"]
            ),
            "effect (SD)": lambda row: number_cell(row["effect"], 2),
            "significant": _decide,
            **pick("test"),
        },
        filter(None, [explain_zero(compared), explain_equal(compared)]),
    )


def _decide(row: Row) -> str:
    if math.isnan(row["p_adjusted"]):
        return "undefined"
    return "yes" if views.is_significant(row) else "no"


_MAX_COUNTS = 4  # the largest number of models that a footnote names

# the outputs that models do not provide, by title of the metric and model
_MissingOutputs: TypeAlias = Mapping[tuple[str, str], str]


def _collect_missing_outputs(run: RunTables) -> _MissingOutputs:
    """Return the outputs that models do not provide and metrics need."""
    return {
        (views.format_title(entry["metric"], entry.get("k")), entry["model"]): entry["missing"]
        for entry in run.manifest.get("undefined", [])
    }


def describe_missing_outputs(run: RunTables) -> list[str]:
    """Return a sentence for each metric that is undefined for some models."""
    models: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (title, model), outputs in _collect_missing_outputs(run).items():
        models[title, outputs].append(model)
    return [
        f"{make_heading(title)} is undefined for {', '.join(names)}, "
        f"which {'provides' if len(names) == 1 else 'provide'} no {outputs}."
        for (title, outputs), names in models.items()
    ]


def count_undefined(
    records: Sequence[Mapping[str, Any]],
    titles: Sequence[str],
    missing: _MissingOutputs,
    heading: str = "",
) -> list[str]:
    """Return a footnote for the metrics with the same counts of undefined values.

    Models without the outputs that a metric needs are not counted. A ``heading`` stands in place
    of that of a metric whose rows are those of groups.
    """
    titles_by_counts: dict[str, list[str]] = {}
    for title in titles:
        counts: dict[str, float] = {}
        for row in records:
            is_counted = row["undefined"] > 0 and (title, row["model"]) not in missing
            if is_counted and views.format_title(row["metric"], row["k"]) == title:
                counts[row["model"]] = max(counts.get(row["model"], 0), row["undefined"])
        if counts:
            texts = [f"{count:,.0f} for {model}" for model, count in counts.items()]
            more = len(texts) - _MAX_COUNTS
            suffix = f" and {more} more models" if more > 0 else ""
            counts_text = f"{', '.join(texts[:_MAX_COUNTS])}{suffix}"
            titles_by_counts.setdefault(counts_text, []).append(heading or make_heading(title))
    return [
        f"{', '.join(headings)}: undefined values are excluded from the mean ({counts_text})."
        for counts_text, headings in titles_by_counts.items()
    ]


def build_summary(run: RunTables) -> Table:
    """Return the headline results: one row per model (and dataset), means over seeds and folds."""
    return state_cutoff_once(_build_summary(run))


@lru_cache(maxsize=2)
def _build_summary(run: RunTables) -> Table:
    frame = views.select_headline(run, _select_overall(views.collect_estimates(run)))
    table = _build_table(run, frame, title="Results", keys=select_varying(frame, ["dataset"]))
    table = replace(table, notes=(*table.notes, *describe_missing_outputs(run)))
    table = _add_significance_marks(table, run, frame)
    baselines = [name for name in views.list_models(run) if name in views.list_baselines(run)]
    marks = [f"Baseline{'s' * (len(baselines) > 1)}: {wording.join_names(baselines)}."]
    return replace(table, notes=(*table.notes, *marks * bool(baselines)))


def build_fold_table(run: RunTables) -> Table | None:
    """Return every dataset, seed and fold, means first; None if the run has one of each."""
    frame = _select_overall(views.collect_estimates(run))
    keys = select_varying(frame, ("dataset", "seed", "fold"))
    if not keys:
        return None
    position = {label: number for number, label in enumerate(views.list_datasets(run))}
    ranks = frame[["dataset", "fold", "seed"]].copy()
    ranks["dataset"] = ranks["dataset"].map(position)
    for column in ("fold", "seed"):
        ranks[column] = ranks[column].map(views.rank_label)
    frame = frame.loc[ranks.sort_values(["dataset", "fold", "seed"], kind="stable").index]
    table = _build_table(run, frame, title="Each dataset, seed and fold", keys=keys)
    return state_cutoff_once(table)


def _select_overall(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of models over all groups and targets."""
    overall = (frame["group"] == "") & (frame["target"] == "")
    return frame[overall & (frame["model"] != DATASET)]


def lay_out(
    title: str,
    names: Sequence[str],
    heads: Iterable[Head],
    columns: Sequence[FilledColumn],
    notes: Iterable[str] = (),
) -> Table:
    """Return a table with a row for each head, and the columns of cells by head behind it."""
    rows = tuple(
        (*map(Cell, head), *(cells.get(head, Cell("")) for _, cells in columns)) for head in heads
    )
    return Table(title, (*map(Column, names), *(column for column, _ in columns)), rows, (*notes,))


def _build_table(run: RunTables, frame: pd.DataFrame, *, title: str, keys: Sequence[str]) -> Table:
    """Return one row per block of key values and model, and one column per metric."""
    records = to_records(frame)
    names = (*keys, "model")
    missing = _collect_missing_outputs(run)
    rows: dict[str, dict[Head, Row]] = {}
    for row in records:
        rows.setdefault(get_title(row), {})[get_key(row, names)] = row
    metrics = [
        metric
        for title, metric in collect_definitions(run).items()
        if any((title, head[-1]) not in missing for head in rows.get(title, ()))
    ]
    heads = sort_heads(run, records, names)
    tested = {group.title for group in views.collect_comparisons(run) if group.compares_models}
    columns, has_best = [], False
    for metric in metrics:
        is_ranked = not metric.gap or metric.title in tested
        cells = rank_cells(rows[metric.title], metric.direction if is_ranked else "none")
        for head in heads:
            if output := missing.get((metric.title, head[-1])):
                note = f"undefined: the model provides no {output}"
                cells[head] = Cell(wording.UNDEFINED, note=note)
            cells.setdefault(head, Cell("", note="not measured"))
        columns.append((_build_header(metric), cells))
        has_best = has_best or any(cell.best for cell in cells.values())
    notes = [BEST] * (has_best and len({head[-1] for head in heads}) > 1)
    titles = [metric.title for metric in metrics]
    return lay_out(
        title, names, heads, columns, [*notes, *count_undefined(records, titles, missing)]
    )


BEST = "Bold: the best of the column in the metric's direction; underlined: the second best."
"""The note of tables with marked cells."""


def rank_cells(rows: Mapping[Head, Row], direction: Direction) -> dict[Head, Cell]:
    """Return the cells of a column; the best and second best are those of each block of models."""
    places = count_decimals(row["value"] for row in rows.values())
    cells = {head: build_cell(row, places) for head, row in rows.items()}
    for block in dict.fromkeys(head[:-1] for head in rows):
        heads = [head for head in rows if head[:-1] == block]
        best = _find_best(rows, heads, direction)
        others = [head for head in heads if head not in best]
        second = _find_best(rows, others, direction) if len(others) > 1 else []
        cells |= {head: replace(cells[head], best=True) for head in best}
        cells |= {head: replace(cells[head], second=True) for head in second}
    return cells


def _find_best(
    rows: Mapping[Head, Row], heads: Sequence[Head], direction: Direction
) -> list[Head]:
    flags = views.flag_best([rows[head]["value"] for head in heads], direction)
    return [*itertools.compress(heads, flags)]


def build_cell(row: Row, places: int) -> Cell:
    """Return a value with its interval, standard deviation and counts."""
    interval = wording.format_interval(row["ci_low"], row["ci_high"], places)
    texts = [
        f"95% interval {interval}" if interval else "",
        "" if math.isnan(row["std"]) else f"standard deviation {format_value(row['std'], places)}",
        "" if math.isnan(row["n"]) else f"n {row['n']:,.0f}",
        f"undefined {row['undefined']:,.0f}" if row["undefined"] > 0 else "",
    ]
    note, text = ", ".join(filter(None, texts)), format_value(row["value"], places)
    return Cell(text, row["value"], interval=interval, note=note)


def get_key(row: Row, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the values of a row that head it in a table."""
    return tuple(str(row[key]) for key in keys)


def _build_header(metric: Definition) -> Column:
    label = DIRECTION_LABELS[metric.direction]
    note = f"{metric.summary} ({label})" if metric.summary else label.capitalize()
    return Column(
        metric.heading,
        numeric=True,
        direction=metric.direction,
        note=note,
        key=metric.title,
        family=metric.family,
    )


def sort_models(run: RunTables, rows: Sequence[Row]) -> list[str]:
    """Return the models of rows in the order of the run."""
    present = {row["model"] for row in rows}
    return [model for model in views.list_models(run) if model in present]


def sort_heads(run: RunTables, rows: Sequence[Row], names: Sequence[str]) -> list[Head]:
    """Return the heads of rows, of which a model is the last name, in the order of the models."""
    blocks = [*dict.fromkeys(get_key(row, names[:-1]) for row in rows)]
    models, heads = sort_models(run, rows), {get_key(row, names) for row in rows}
    return [(*block, name) for block in blocks for name in models if (*block, name) in heads]


_FEWEST_MODELS, _FEWEST_METRICS, _MOST_METRICS = 4, 3, 16


def build_agreement_tables(run: RunTables) -> list[Table]:
    """Return Kendall's tau-b between metrics over the models, for each dataset that has enough.

    Values by group or target are left out, and gaps, which repeat a metric that is there. A pair
    is compared over the models that have both values.
    """
    tables, datasets = [], views.list_single_datasets(run)
    models = [model for model in views.list_models(run) if model != DATASET]
    metrics = [each for each in collect_definitions(run).values() if "gap" not in each.parameters]
    for dataset in datasets:
        columns: dict[str, list[float]] = {}
        for metric in metrics:
            rows = views.list_headline(run).get((metric.title, dataset), ())
            own = {
                row["model"]: row["value"] for row in rows if not (row["group"] or row["target"])
            }
            values = [own.get(model, math.nan) for model in models]
            if np.isfinite(values).sum() >= _FEWEST_MODELS:
                columns[metric.heading] = values
        if len(columns) >= _FEWEST_METRICS:
            suffix = f" on {dataset}" if len(datasets) > 1 else ""
            headings = [*columns][:_MOST_METRICS]
            agreement = kendall_tau(np.array([columns[name] for name in headings]).T)
            table = _tabulate_agreement(headings, agreement, f"Agreement of the metrics{suffix}")
            tables.append(state_cutoff_once(table))
    return tables


def _tabulate_agreement(headings: Sequence[str], agreement: Agreement, title: str) -> Table:
    """Return a numbered row and column for each metric."""
    taus = np.where(agreement.n >= _FEWEST_MODELS, agreement.tau, math.nan)
    rows = []
    for at, heading in enumerate(headings):
        cells = [
            Cell(format_value(tau, 2), tau, note=f"n {n}")
            for tau, n in zip(taus[at].tolist(), agreement.n[at].tolist(), strict=True)
        ]
        cells[at] = Cell("")
        rows.append((Cell(f"{at + 1} {heading}"), *cells))
    numbers = agreement.n[np.triu_indices(len(headings), 1)]
    n = " to ".join(map(str, sorted({int(numbers.min()), int(numbers.max())})))
    note = (
        f"Kendall's tau-b over {n} models: 1 is the same order of the models, -1 the reverse. The "
        "columns have the numbers of the rows."
    )
    heads = [Column(f"{at}", numeric=True, note=name) for at, name in enumerate(headings, 1)]
    return Table(title, (Column("metric"), *heads), tuple(rows), (note,))
