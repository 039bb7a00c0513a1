"""The tables of a report: results, groups, checks, comparisons, re-ranking, replies, searches.

The best value of a column is bold, superscript marks show what is significant, and footnotes count
undefined values.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import compress
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.files import has_file
from recbias.core.grouping import parse_uncertain_label
from recbias.core.measures import ALL, DATASET, FIT_COLUMNS, SERVED, Direction, read_bounds
from recbias.core.text import MAX_VALUE_LENGTH, make_printable
from recbias.reports import views, wording
from recbias.reports.run import RunTables, read_responses, read_trials, to_records
from recbias.reports.views import (
    DIRECTION_LABELS,
    Comparisons,
    Definition,
    Row,
    collect_definitions,
    format_title,
    get_title,
    group_rows,
    select_varying,
)
from recbias.reports.wording import (
    VALUE_COLUMNS,
    Cell,
    Column,
    Table,
    add_places,
    count_decimals,
    describe_limit,
    format_setting,
    format_value,
    get_label_name,
    get_label_value,
    interval_cell,
    make_heading,
    number_cell,
    pick,
    state_cutoff_once,
    tabulate,
)
from recbias.statistics.agreement import kendall_tau
from recbias.statistics.groups import mark_few_beside_many
from recbias.statistics.spread import TREND

_BOUNDS = ("value", "ci_low", "ci_high")
_PART = ("group", "target")

_Head: TypeAlias = tuple[str, ...]  # the texts that head a row
_Cells: TypeAlias = dict[_Head, Cell]

_BEST = "Bold: the best of the column in the metric's direction"
_SECOND = "; underlined: the second best"


def _lay_out(
    title: str,
    names: Sequence[str],
    heads: Iterable[_Head],
    columns: Sequence[tuple[Column, _Cells]],
    notes: Iterable[str] = (),
    marks: Mapping[str, str] | None = None,
) -> Table:
    """Return a table with a row for each head, and the columns of cells by head behind it.

    ``marks`` are those of the last name of a head, such as the letters of models.
    """
    rows = tuple(
        (
            *map(Cell, head[:-1]),
            Cell(head[-1], mark=(marks or {}).get(head[-1], "")),
            *(cells.get(head, Cell("")) for _, cells in columns),
        )
        for head in heads
    )
    own = [cell for _, cells in columns for cell in cells.values()]
    second = _SECOND * any(cell.second for cell in own)
    best = [f"{_BEST}{second}."] * any(cell.best for cell in own)
    heads_and_columns = (*map(Column, names), *(column for column, _ in columns))
    return Table(title, heads_and_columns, rows, (*best, *notes))


def _get_key(row: Row, names: Iterable[str]) -> _Head:
    return tuple(str(row[name]) for name in names)


def _sort_models(run: RunTables, rows: Sequence[Row]) -> list[str]:
    """Return the models of rows in the order of the run."""
    present = {row["model"] for row in rows}
    return [model for model in views.list_models(run) if model in present]


def _sort_heads(run: RunTables, rows: Sequence[Row], names: Sequence[str]) -> list[_Head]:
    """Return the heads of rows, of which a model is the last name, in the order of the models."""
    blocks = [*dict.fromkeys(_get_key(row, names[:-1]) for row in rows)]
    models, heads = _sort_models(run, rows), {_get_key(row, names) for row in rows}
    return [(*block, name) for block in blocks for name in models if (*block, name) in heads]


def _rank_cells(rows: Mapping[_Head, Row], direction: Direction, places: int) -> _Cells:
    """Return the cells of a column; the best and second best are those of each block of models."""
    return _mark_best({head: _build_cell(row, places) for head, row in rows.items()}, direction)


def _mark_best(cells: _Cells, direction: Direction) -> _Cells:
    marked = {**cells}
    for block in dict.fromkeys(head[:-1] for head in cells):
        heads = [head for head in cells if head[:-1] == block]
        best = _find_best(cells, heads, direction)
        others = [head for head in heads if head not in best]
        second = _find_best(cells, others, direction) if len(others) > 1 else []
        marked |= {head: replace(cells[head], best=True) for head in best}
        marked |= {head: replace(cells[head], second=True) for head in second}
    return marked


def _find_best(cells: _Cells, heads: Sequence[_Head], direction: Direction) -> list[_Head]:
    flags = views.flag_best([cells[head].value for head in heads], direction)
    return [*compress(heads, flags)]


def _build_cell(row: Row, places: int) -> Cell:
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


_MAX_COUNTS = 4  # the largest number of models that a footnote names

# the outputs that models do not provide, by title of the metric and model
_MissingOutputs: TypeAlias = Mapping[tuple[str, str], str]


def _collect_missing_outputs(run: RunTables) -> _MissingOutputs:
    """Return the outputs that models do not provide and metrics need."""
    return {
        (format_title(entry["metric"], entry.get("k")), entry["model"]): entry["missing"]
        for entry in run.manifest.get("undefined", [])
    }


def describe_missing_outputs(run: RunTables) -> list[str]:
    """Return a sentence on the metrics that are undefined for the same models."""
    models: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (title, model), outputs in _collect_missing_outputs(run).items():
        models[title, outputs].append(model)
    titles: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for (title, outputs), names in models.items():
        titles[(outputs, *names)].append(make_heading(title))
    return [
        f"{'; '.join(headings[:_MAX_COUNTS])}"
        f"{f' and {len(headings) - _MAX_COUNTS:,} more metrics' * (len(headings) > _MAX_COUNTS)} "
        f"{'is' if len(headings) == 1 else 'are'} undefined for {', '.join(names)}, "
        f"which {'provides' if len(names) == 1 else 'provide'} no {outputs}."
        for (outputs, *names), headings in titles.items()
    ]


def _count_undefined(
    run: RunTables,
    headings: Mapping[str, str],
    parts: Container[tuple[str, str]],
    add: Callable[[Iterable[float]], float] = sum,
) -> list[str]:
    """Return a footnote for the metrics with the same counts of undefined values.

    They are those of ``parts``, groups and targets, over datasets, seeds and folds. ``add`` is of
    the counts of the groups. Models without the outputs that a metric needs are not counted;
    ``headings`` are those of the metrics by title.
    """
    missing = _collect_missing_outputs(run)
    counts: dict[str, dict[str, float]] = {title: {} for title in headings}
    totals: dict[str, dict[str, float]] = {title: {} for title in headings}
    for title in headings:
        counted = [
            row
            for row in views.list_single(run)[title]
            if (row["group"], row["target"]) in parts and (title, row["model"]) not in missing
        ]
        for (model, _), (undefined, n) in _sum_values(counted, add).items():
            totals[title][model] = max(totals[title].get(model, 0), undefined + n)
            if undefined > 0:
                counts[title][model] = max(counts[title].get(model, 0), undefined)
    by_counts: dict[str, list[str]] = {}
    for title, of_models in counts.items():
        texts = [f"{count:,.0f} for {model}" for model, count in of_models.items()]
        if len(texts) > _MAX_COUNTS:
            texts[_MAX_COUNTS - 1 :] = [
                f"{texts[_MAX_COUNTS - 1]} and {len(texts) - _MAX_COUNTS} more models"
            ]
        found, sizes = {*of_models.values()}, {*totals[title].values()}
        if len(found) == len(sizes) == 1 and of_models.keys() == totals[title].keys():
            each = " of each model" * bool(texts[1:])
            texts = [f"{found.pop():,.0f} of {sizes.pop():,.0f} values{each}"]
        by_counts.setdefault(", ".join(texts), []).append(headings[title])
    return [
        f"Undefined and left out of {'; '.join(names)}: {text}."
        for text, names in by_counts.items()
        if text
    ]


def _sum_values(
    rows: Iterable[Row], add: Callable[[Iterable[float]], float]
) -> dict[tuple[str, str], np.ndarray]:
    """Return the number of undefined and defined values by model and target."""
    sums: dict[tuple[str, str], np.ndarray] = {}
    for (_, model, *_, target), own in group_rows(rows, [*FIT_COLUMNS, "target"]).items():
        found = np.array([add(row[name] for row in own) for name in ("undefined", "n")])
        sums[model, target] = sums.get((model, target), 0) + found
    return sums


# ---- results ----

_MAX_LETTERS = 8  # with more models than this, significance is marked by stars instead of letters


@lru_cache(maxsize=2)
def build_summary(run: RunTables) -> Table:
    """Return the headline results: one row per model (and dataset), means over seeds and folds."""
    frame = views.select_headline(run, _select_overall(views.collect_estimates(run)))
    keys = select_varying(frame, ["dataset"])
    return _build_results(run, frame, "Results", keys, is_summary=True)


def build_fold_table(run: RunTables) -> Table | None:
    """Return every dataset, seed and fold, means first; None if the run has one of each."""
    frame = _select_overall(views.collect_estimates(run))
    keys = select_varying(frame, ("dataset", "seed", "fold"))
    if not keys:
        return None
    position = {label: number for number, label in enumerate(views.list_datasets(run))}
    ranks = frame[["fold", "seed"]].map(views.rank_label)
    ranks.insert(0, "dataset", frame["dataset"].map(position))
    frame = frame.loc[ranks.sort_values(["dataset", "fold", "seed"], kind="stable").index]
    return _build_results(run, frame, "Each dataset, seed and fold", keys)


def _select_overall(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of models over all groups and targets."""
    overall = (frame["group"] == "") & (frame["target"] == "")
    return frame[overall & (frame["model"] != DATASET)]


def _build_results(
    run: RunTables,
    frame: pd.DataFrame,
    title: str,
    keys: Sequence[str],
    *,
    is_summary: bool = False,
) -> Table:
    """Return one row per block of key values and model, and one column per metric.

    The summary has marks of significance, and says what is missing and which are baselines.
    """
    records, names = to_records(frame), (*keys, "model")
    missing, heads = _collect_missing_outputs(run), _sort_heads(run, records, names)
    columns, several = [], len({head[-1] for head in heads}) > 1
    rows = group_rows(({**row, "title": get_title(row)} for row in records), ["title"])
    for metric in collect_definitions(run).values():
        own = {_get_key(row, names): row for row in rows.get((metric.title,), [])}
        if all((metric.title, head[-1]) in missing for head in own):
            continue
        places = count_decimals(row["value"] for row in own.values())
        cells = _rank_cells(own, metric.direction if several else "none", places)
        for head in heads:
            if output := missing.get((metric.title, head[-1])):
                note = f"undefined: the model provides no {output}"
                cells[head] = Cell(wording.UNDEFINED, note=note)
            cells.setdefault(head, Cell("", note="not measured"))
        columns.append((_build_header(metric), cells))
    gaps = {title for title, metric in collect_definitions(run).items() if metric.gap}
    headings = {column.key: column.title for column, _ in columns if column.key not in gaps}
    notes, letters = _count_undefined(run, headings, {("", "")}), dict[str, str]()
    if is_summary:
        of_heads = {_get_key(row, names): views.get_place(row) for row in records}
        at = {head: of_heads[head] for head in heads}
        letters, marks = _mark_significance(run, columns, at)
        notes += [*describe_missing_outputs(run), *marks]
        baselines = [name for name in views.list_models(run) if name in views.list_baselines(run)]
        said = f"Baseline{'s' * (len(baselines) > 1)}: {wording.join_names(baselines)}."
        notes += [said] * bool(baselines)
    table = _lay_out(title, names, heads, columns, notes, letters)
    return state_cutoff_once(table)


def _build_header(metric: Definition) -> Column:
    label = DIRECTION_LABELS[metric.direction]
    return Column(
        metric.heading,
        numeric=True,
        direction=metric.direction,
        note=f"{metric.summary} ({label})" if metric.summary else label.capitalize(),
        key=metric.title,
        family=metric.family,
    )


def _mark_significance(
    run: RunTables,
    columns: Sequence[tuple[Column, _Cells]],
    places: Mapping[_Head, views.Place],
) -> tuple[dict[str, str], list[str]]:
    """Mark the cells that are significantly better than others by the first test of the run.

    Returns the letters of the models, which marks refer to, and the note that explains them.
    """
    tests = {
        (each.place, each.title): (each, views.find_wins(each))
        for each in reversed(views.collect_comparisons(run))
        if each.compares_models and not each.part
    }
    names = [name for name in views.list_models(run) if name != DATASET]
    letters = dict(zip(names, string.ascii_lowercase, strict=False))
    letters = letters if len(names) <= _MAX_LETTERS else {}
    used: dict[int, Comparisons] = {}
    for head, place in places.items():
        for column, cells in columns:
            if (place, column.key) not in tests:
                continue
            test, wins = tests[place, column.key]
            worse = wins.get(head[-1], set())
            mark = "".join(letter for name, letter in letters.items() if name in worse)
            if not letters and len(worse) == len(wins) - 1:
                mark = "*"
            used[id(test)] = test
            cells[head] = replace(cells[head], mark=mark)
    if not used:
        return {}, []
    meaning = "Letters: significantly better than the model with that letter"
    if not letters:
        most = max(len(test.names()) for test in used.values())
        compared = "the other compared model" if most == 2 else "every other compared model"
        meaning = f"Star: significantly better than {compared}"
    return letters, [f"{meaning} ({views.describe_methods([*used.values()])})."]


_FEWEST_MODELS, _FEWEST_METRICS, _MOST_METRICS = 4, 3, 16


def build_agreement_tables(run: RunTables) -> list[Table]:
    """Return Kendall's tau-b between metrics over the models, for each dataset that has enough.

    Values by group or target are left out, and gaps, which repeat a metric that is there. A pair
    is compared over the models that have both values.
    """
    datasets, built = views.list_single_datasets(run), list[Table]()
    models = [model for model in views.list_models(run) if model != DATASET]
    for dataset in datasets:
        columns: dict[str, list[float]] = {}
        for metric in collect_definitions(run).values():
            rows = views.list_whole(run, metric.title, dataset)
            own = {row["model"]: row["value"] for row in rows}
            values = [own.get(model, math.nan) for model in models]
            if "gap" not in metric.parameters and np.isfinite(values).sum() >= _FEWEST_MODELS:
                columns[metric.heading] = values
        if len(columns) >= _FEWEST_METRICS:
            title = "Agreement of the metrics" + f" on {dataset}" * (len(datasets) > 1)
            built.append(_tabulate_agreement(title, dict([*columns.items()][:_MOST_METRICS])))
    return built


def _tabulate_agreement(title: str, columns: Mapping[str, Sequence[float]]) -> Table:
    """Return a numbered row and column for each metric."""
    found = kendall_tau(np.array([*columns.values()]).T)
    taus = np.where(found.n >= _FEWEST_MODELS, found.tau, math.nan)
    cells: dict[_Head, list[Cell]] = {
        (f"{at + 1} {heading}",): [
            Cell("") if other == at else replace(number_cell(tau, 2), note=f"n {n}")
            for other, (tau, n) in enumerate(zip(taus[at].tolist(), found.n[at], strict=True))
        ]
        for at, heading in enumerate(columns)
    }
    marks = [
        (
            Column(f"{at + 1}", numeric=True, note=heading),
            {head: row[at] for head, row in cells.items()},
        )
        for at, heading in enumerate(columns)
    ]
    numbers = found.n[np.triu_indices(len(columns), 1)]
    n = " to ".join(map(str, sorted({int(numbers.min()), int(numbers.max())})))
    note = (
        f"Kendall's tau-b between the orders of the {n} models by two metrics: 1 if they are the "
        "same, -1 if one is the other reversed. Column n is the metric of row n."
    )
    return state_cutoff_once(_lay_out(title, ["metric"], cells, marks, [note]))


def build_models_table(run: RunTables) -> Table:
    """Return one row per model with its settings."""
    return tabulate(
        "Models",
        run.manifest.get("models", []),
        {
            "model": lambda model: str(model.get("label")),
            "plug-in": lambda model: str(model.get("name")),
            "parameters": _describe_parameters,
        },
    )


def _describe_parameters(model: Mapping[str, Any]) -> str:
    parameters = format_setting(model.get("parameters") or {})
    tuned = format_setting([name.replace("_", " ") for name in model.get("searched") or []])
    return "; ".join(filter(None, [parameters, f"tuned: {tuned}" if tuned else ""]))


# ---- checks, comparisons, and re-ranking ----


def build_check_table(run: RunTables) -> Table | None:
    """Return one row for each check, model and value, failed checks first; None without checks."""
    checks = run.manifest.get("checks", [])
    if not checks:
        return None
    checks = sorted(checks, key=lambda row: (not row["failed"], row["verdict"] != "undecided"))
    ends = ({n: math.nan if row[n] is None else row[n] for n in _BOUNDS} for row in checks)
    rows = add_places([{**row, **own} for row, own in zip(checks, ends, strict=True)], _BOUNDS)
    for row in rows:  # an end of an interval that is rounded must not seem beyond the limit
        row["places"] = max(row["places"], *map(len, re.findall(r"\.(\d+)", row["limit"])), 0)
    places = ("dataset", *_PART)
    return state_cutoff_once(
        tabulate(
            "Checks",
            rows,
            {
                **pick("model"),
                "metric": lambda row: make_heading(get_title(row)),
                **pick(*(name for name in places if len({row[name] for row in rows}) > 1)),
                **VALUE_COLUMNS,
                "limit": _name_limit,
                "verdict": _name_verdict,
            },
            _explain_checks(rows),
        )
    )


def _name_limit(row: Row) -> str:
    of = f"difference from {row['baseline']} " if row["baseline"] else ""
    return of + describe_limit(row)


def _name_verdict(row: Row) -> Cell:
    is_strict = row["failed"] and row["verdict"] == "undecided"
    return Cell(f"{row['verdict']}{' (strict)' * is_strict}", best=row["failed"])


def _explain_checks(rows: Sequence[Row]) -> list[str]:
    n_failed = sum(row["failed"] for row in rows)
    undecided = sum(row["verdict"] == "undecided" and not row["failed"] for row in rows)
    notes = [f"{n_failed:,} of {len(rows):,} failed, {undecided:,} undecided."]
    if any(row["baseline"] for row in rows):
        notes.append("Where the limit is of a difference from a model, so is the value.")
    if any(row["verdict"] == "undecided" for row in rows):
        notes.append("Undecided: the interval contains the limit, or the value is undefined.")
    if any(row["basis"] == "value" for row in rows):
        notes.append("Without an interval the value itself decides.")
    return notes


_EQUAL = (
    "A p-value without an interval, and effect ∞: all differences are equal, or the values "
    "within both groups. p is exact, that of the signs or of the labels."
)


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
            "effect": views.compute_effect(row),
        }
        for group in groups
        for row in group.rows
    ]
    rows = add_places(rows, ["difference"])
    rows.sort(key=lambda row: views.rank_effect(row["effect"]), reverse=True)
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
            "significant": lambda row: (
                "undefined"
                if math.isnan(row["p_adjusted"])
                else ("yes" if views.is_significant(row) else "no")
            ),
            **pick("test"),
        },
        [
            *[views.ZERO] * any(map(views.includes_zero, rows)),
            *[_EQUAL] * any(map(views.lacks_spread, rows)),
        ],
    )


def build_tradeoff_table(run: RunTables) -> Table | None:
    """Return one row for each re-ranked model and metric of bias; None without re-ranking."""
    rows = views.select_tradeoffs(run)
    if not rows:
        return None
    accuracy = make_heading(rows[0]["accuracy"])
    notes = [
        f"Accuracy lost: {accuracy} of the model beside it minus that of the re-ranked one.",
        "Bias removed: by how much the metric is nearer to its best direction, or to 0.",
        "Price: accuracy lost for one unit of bias removed, n/a where none is removed.",
        "In brackets: 95% intervals of the differences by unit; Fieller's for the price.",
    ]
    unbounded = "Unbounded: the bias removed is not significantly different from 0."
    return tabulate(
        "Accuracy lost for bias removed by re-ranking",
        rows,
        {
            **pick("model"),
            "beside": lambda row: row["baseline"],
            **pick(*select_varying(pd.DataFrame(rows), ("dataset", "target"))),
            "bias": lambda row: make_heading(row["bias"]),
            **{
                name.replace("_", " "): _make_interval_column(rows, name)
                for name in ("accuracy_lost", "bias_removed", "price")
            },
        },
        [*notes, *[unbounded] * any(map(_is_unbounded, rows))],
    )


def _make_interval_column(rows: Sequence[Row], name: str) -> Callable[[Row], Cell]:
    """Return a column of values with intervals, whose decimals are those of its measure."""
    by = "accuracy" if name == "accuracy_lost" else "bias"
    places = {row[by]: row["places"] for row in add_places(rows, [name], by)}
    return lambda row: _add_interval(row, name, places[row[by]])


def _add_interval(row: Row, name: str, digits: int) -> Cell:
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    interval = wording.format_interval(low, high, digits)
    if name == "price" and _is_unbounded(row):
        interval = "unbounded"
    text = format_value(value, digits)
    return Cell(f"{text} ({interval})" if interval else text, value)


def _is_unbounded(row: Row) -> bool:
    """Return whether Fieller's set has no end: the bias removed may be 0."""
    holds_zero = bool(row["bias_removed_low"] <= 0 <= row["bias_removed_high"])
    return holds_zero and not math.isnan(row["price"]) and math.isnan(row["price_low"])


# ---- groups and targets ----

_WORST = "w"  # the mark of the worst-off group
_MOST_GROUPS = 6  # with more they are the rows of a table, and models its columns


def build_group_tables(run: RunTables) -> list[Table]:
    """Return the properties of the dataset, and the values by group and target of each metric."""
    rows: dict[str, list[Row]] = {}
    for (title, _), own in views.list_headline(run).items():
        parts = [row for row in own if row["group"] or row["target"]]
        rows.setdefault(title, []).extend(row for row in parts if row["model"] != DATASET)
    tests: dict[str, list[Comparisons]] = {}
    for question in views.collect_questions(run):
        if question.between == "groups" and question.comparisons[0].test != TREND:
            tests.setdefault(question.metric.title, []).extend(question.comparisons)
    tables = _build_dataset_tables(run)
    for title, metric in collect_definitions(run).items():
        own = rows.get(title, [])
        if values := [row for row in own if row["group"] != SERVED] or own:
            tables.append(_build_groups(run, metric, values, tests.get(title, [])))
    return tables


def _build_dataset_tables(run: RunTables) -> list[Table]:
    """Return the table of values that describe a dataset by itself, if there are any."""
    rows = add_places(
        [r for own in views.list_headline(run).values() for r in own if r["model"] == DATASET],
        ["value"],
    )
    counts = _find_counts(run, rows)
    columns = ("dataset", *_PART) if len(views.list_datasets(run)) > 1 else _PART
    table = tabulate(
        "Properties of the dataset",
        rows,
        {
            "metric": lambda row: make_heading(get_title(row)),
            **pick(*(name for name in columns if any(row[name] for row in rows))),
            "n": lambda row: Cell(f"{row['n']:,.0f}", row["n"]),
            "value": lambda row: _build_cell(row, 0 if row["metric"] in counts else row["places"]),
        },
    )
    return [table] * bool(rows)


def _find_counts(run: RunTables, rows: Sequence[Row]) -> set[str]:
    """Return the metrics whose values are whole numbers without a largest value."""
    others = set[str]()
    for row in rows:
        _, high = read_bounds(views.get_definition(run, get_title(row)).values)
        if not (math.isinf(high) and float(row["value"]).is_integer()):
            others.add(row["metric"])
    return {row["metric"] for row in rows} - others


def _build_groups(
    run: RunTables, metric: Definition, records: Sequence[Row], tests: Sequence[Comparisons]
) -> Table:
    """Return models in rows and groups in columns; many groups, and targets, are rows instead.

    The gap between the groups is the last column, or the last row.
    """
    keys = select_varying(pd.DataFrame(records), ["dataset"])
    parts = [name for name in _PART if any(row[name] for row in records)]
    labels = _label_groups(metric, records)
    blocks = group_rows((row for row in records if row["group"]), ("dataset", "model", "target"))
    worst = {id(row) for own in blocks.values() for row in views.find_worst_groups(own, metric)}
    rows = [
        {**row, "name": row["group"], "group": labels[row["group"]], "worst": id(row) in worst}
        for row in records
    ]
    gaps: _Cells = {}
    if parts == ["group"]:
        gaps = _measure_gaps(run, metric, rows, tests, (*keys, "model"))
    models = _sort_models(run, rows)
    if parts == ["group"] and len(labels) <= _MOST_GROUPS:
        names = [*keys, "model"]
        heads = _sort_heads(run, rows, names)
        direction = metric.group_direction if len(models) > 1 else "none"
        columns = _pivot(rows, names, "group", labels.values(), direction)
        if gaps:
            gaps = _mark_best(gaps, "lower" if len(models) > 1 else "none")
            columns.append((Column("gap", numeric=True), gaps))
    else:
        names = [*keys, *parts]
        columns = _pivot(rows, names, "model", models, "none")
        inside = group_rows(rows, names)
        heads = [*inside]
        for *dataset, model in gaps:
            columns[models.index(model)][1][*dataset, "gap"] = gaps[*dataset, model]
        if gaps:
            heads += dict.fromkeys((*head[:-1], "gap") for head in heads)
        if parts[0] == "group":
            counts = {head: _count_units(own) for head, own in inside.items()}
            columns.insert(0, (Column("n", numeric=True), counts))
        shared = get_label_name(labels) or "group"
        names = [shared if name == "group" else name for name in names]
    is_of_groups = parts[0] == "group"
    heading = metric.groups_heading if is_of_groups else metric.heading
    title = metric.groups_heading if metric.by else f"{metric.heading} by {' and '.join(parts)}"
    notes = _explain_groups(metric, rows, tests, has_gaps=bool(gaps))
    add = sum if parse_uncertain_label(metric.by) is None else max  # each unit is in all of them
    own = {(row["group"], row["target"]) for row in records}
    notes += _count_undefined(run, {metric.title: heading}, own, add)
    notes += views.describe_means(run) if is_of_groups else []
    return _lay_out(title, names, heads, columns, notes)


def _pivot(
    rows: Sequence[Row],
    names: Sequence[str],
    across: str,
    order: Iterable[str],
    direction: Direction,
) -> list[tuple[Column, _Cells]]:
    """Return a column for each value of ``across``, with the cells by the values of ``names``."""
    columns, places = [], count_decimals(row["value"] for row in rows)
    for name in order:
        inside = {_get_key(row, names): row for row in rows if row[across] == name}
        cells = _rank_cells(inside, direction, places)
        for head in [head for head, row in inside.items() if row["worst"]]:
            cells[head] = replace(cells[head], mark=_WORST)
        counts = _count_units(inside.values()).text if across == "group" else ""
        title = f"{name} (n {counts})" if counts else name
        columns.append((Column(title, numeric=True), cells))
    return columns


def _label_groups(metric: Definition, rows: Sequence[Row]) -> dict[str, str]:
    """Return each group as a table names it: without the label that all groups share."""
    groups = [*dict.fromkeys(row["group"] for row in rows)]
    parts = {group: wording.split_group(group, metric.by) for group in groups}
    short = {group: ", ".join(map(get_label_value, parts[group])) for group in groups}
    if get_label_name(groups) and len({*short.values()}) == len(groups):
        return short
    return {group: "&".join(parts[group]) for group in groups}


def _measure_gaps(
    run: RunTables,
    metric: Definition,
    rows: Sequence[Row],
    tests: Sequence[Comparisons],
    names: Sequence[str],
) -> _Cells:
    """Return the largest minus the smallest mean of the groups.

    The interval is that of the gap if the run has it, else that of the test of the two groups. A
    gap is marked if their test is significant, or that of all groups.
    """
    known = {
        _get_key(row, names): row
        for dataset in dict.fromkeys(row["dataset"] for row in rows)
        for row in views.find_gaps(run, metric, dataset).values()
    }
    tested = {
        (_get_key(row, names), frozenset((row["a"], row["b"]))): row
        for test in tests
        for row in test.rows
    }
    # the gap over datasets is the mean of their gaps: no difference of the means shown here
    compared = [row for row in rows if not row["n"] < metric.min_group and row["dataset"] != ALL]
    places, cells = count_decimals(row["value"] for row in rows), _Cells()
    for head, own in group_rows(compared, names).items():
        ranked = sorted(own, key=lambda row: float(row["value"]))
        if len(own) < 2:
            continue
        low, high = ranked[0], ranked[-1]
        cell = number_cell(high["value"] - low["value"], places)
        test = tested.get((head, frozenset((high["name"], low["name"]))))
        gap = known.get(head)
        if test or gap:
            _, *ends = (0.0, gap["ci_low"], gap["ci_high"]) if gap else views.orient(test or {})
            interval = wording.format_interval(ends[0], ends[1], places)
            note = f"{high['name']} less {low['name']}, 95% interval {interval or 'unknown'}"
            if test:
                p = wording.format_p_value(test["p_adjusted"], test["alpha"])
                cell = replace(cell, mark="*" * views.is_significant(test))
                note += f", adjusted p {p}"
            cell = replace(cell, interval=interval, note=note)
        cells[head] = cell
    return cells


_ONLY = {
    "pairs": "only the named pairs are tested",
    "reference_group": "only differences from the reference group are tested",
}


def _explain_groups(
    metric: Definition, rows: Sequence[Row], tests: Sequence[Comparisons], *, has_gaps: bool
) -> list[str]:
    """Return the direction, which group is marked, and what the gap is."""
    direction = metric.group_direction if rows[0]["group"] else metric.direction
    notes = [f"{DIRECTION_LABELS[direction].capitalize()}."]
    if any(row["worst"] for row in rows):
        least = max(2, metric.min_group)
        small = any(row["n"] < least for row in rows)
        of = f" of the groups with n of at least {least:,}" if small else ""
        notes.append(f"{_WORST}: the worst-off group of the model{of}.")
    if has_gaps:
        least = metric.min_group
        of = f" with n of at least {least:,}" if least else ""
        only = [text for key, text in _ONLY.items() if metric.parameters.get(key)]
        mark = "; ".join([*only, views.describe_methods(tests)] if tests else [])
        mark = f"; *: significant ({mark})" if tests else ", not tested"
        notes.append(f"Gap: the largest minus the smallest mean of the groups{of}{mark}.")
        sizes = {row["group"]: row["n"] for row in rows if not row["n"] < least}
        few = [*np.array([*sizes])[mark_few_beside_many(np.array([*sizes.values()]))]]
        if few and any(test.test != "newcombe" for test in tests):
            notes.append(
                f"Few values beside many ({', '.join(few)}): if they are skewed, fewer than 93 of "
                "100 intervals of the gap hold the truth."
            )
    return [" ".join(notes)]


def _count_units(rows: Iterable[Row]) -> Cell:
    """Return n, or its range over the models."""
    counts = sorted({row["n"] for row in rows if not math.isnan(row["n"])})
    text = " to ".join(f"{count:,.0f}" for count in dict.fromkeys([*counts[:1], *counts[-1:]]))
    return Cell(text, counts[0] if counts else math.nan)


# ---- replies of language models ----

# how a reply ended; only a complete one has text to read
_OUTCOMES = ("complete", "length", "refusal", "empty", "failed")
_COUNTS = ("replies", *_OUTCOMES, "stored before", "tokens in", "tokens out")

# the reasons for which a title of a reply matches no item
_UNMATCHED = ("unknown", "format", "newer")
_MOST_TITLES = 15  # unmatched ones of a model

# the columns of the table of repeated requests, and the facts that count them
_REPEATS = {
    "repeated": "repeated_requests",
    "same text": "repeated_same_text",
    "same titles": "repeated_same_titles",
}

# the facts about the agreement of samples, and their columns
_AGREEMENT = {
    "share": "equal labels",
    "alpha": "alpha",
    "alpha_of_probabilities": "alpha of grades",
}


def build_reply_tables(run: RunTables) -> list[Table]:
    """Return how replies ended, how many repeat, the commonest unmatched titles, and labels."""
    replies, titles = _count_replies(run)
    places = ("dataset", "model") if len({row["dataset"] for row in replies}) > 1 else ("model",)
    tables = [
        _tabulate_counts("Replies", replies, places, _COUNTS),
        _tabulate_counts(
            "Repeatability of the replies",
            _count_repeats(run, places),
            places,
            _REPEATS,
            "Requests sent once more, unchanged, even in their seed. Same titles: one or more, in "
            "the same order. A neutral prompt that is sampled again has another seed.",
        ),
        _tabulate_counts(
            "Commonest titles without a matching item",
            titles,
            (*places, "title", "reason"),
            ("count",),
            f"At most {_MOST_TITLES} a model; all replies are in responses.jsonl.",
        ),
        _tabulate_counts(
            "Agreement between samples",
            _list_agreements(run),
            ("stage", "kind"),
            _AGREEMENT.values(),
            "Of several samples of one text. Alpha is Krippendorff's.",
        ),
    ]
    return [table for table in tables if table.rows]


def _tabulate_counts(
    title: str, rows: Sequence[Row], heads: Sequence[str], names: Iterable[str], *notes: str
) -> Table:
    counts = dict(map(_make_count_column, names))
    return tabulate(title, rows, {**pick(*heads), **counts}, notes)


def _make_count_column(name: str) -> tuple[str, Callable[[Row], Cell]]:
    """Return a column of counts or shares; one that is not known is blank."""

    def make_cell(row: Row) -> Cell:
        value = row[name]
        if value is None:
            return Cell("")
        return Cell(f"{value:,}" if isinstance(value, int) else format_value(value, 3), value)

    return name, make_cell


def _count_repeats(run: RunTables, places: Sequence[str]) -> list[dict[str, Any]]:
    """Return how many replies to repeated requests were the same, over seeds and folds."""
    counts: dict[_Head, Counter[str]] = defaultdict(Counter)
    for stage in run.manifest.get("stages", []):
        facts = stage.get("facts") or {}
        if stage.get("kind") == "answer" and facts.get(_REPEATS["repeated"]):
            found = {name: facts[fact] for name, fact in _REPEATS.items() if fact in facts}
            counts[_get_key(stage, places)].update(found)
    return [
        {**dict(zip(places, key, strict=True)), **dict.fromkeys(_REPEATS), **found}
        for key, found in counts.items()
    ]


def _list_agreements(run: RunTables) -> list[dict[str, Any]]:
    """Return the agreement between the samples of each stage that labels, for each kind."""
    rows: dict[_Head, dict[str, Any]] = {}
    for stage in run.manifest.get("stages", []):
        facts = (stage.get("facts") or {}) if stage.get("kind") == "label" else {}
        for fact, value in facts.items():
            start, _, place = fact.partition(".")
            kind, _, what = place.rpartition(".")
            if start == "agreement":
                row = {"stage": stage["stage"], "kind": kind}
                row |= dict.fromkeys(_AGREEMENT.values(), math.nan)
                row = rows.setdefault((stage["stage"], kind), row)
                row[_AGREEMENT[what]] = math.nan if value is None else float(value)
    return [*rows.values()]


def _count_replies(run: RunTables) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the counts of replies, and of their titles without an item, of each model.

    They are over seeds and folds; texts alone are no replies. Titles in other capitals are one.
    """
    counts: dict[_Head, Counter[str]] = defaultdict(Counter)
    titles: dict[_Head, Counter[tuple[str, str]]] = defaultdict(Counter)
    spellings: dict[str, str] = {}
    if not has_file(run.folder / "responses.jsonl"):
        return [], []
    for _, line in read_responses(run.folder):
        if line["outcome"] is None:
            continue
        key, usage = (line["dataset"], line["model"]), line.get("usage") or {}
        counts[key].update(("replies", str(line["outcome"])))
        counts[key]["stored before"] += bool(line.get("cached"))
        counts[key]["tokens in"] += usage.get("prompt_tokens", 0)
        counts[key]["tokens out"] += usage.get("completion_tokens", 0)
        parsed = line.get("parsed")
        for rank in parsed if isinstance(parsed, list) else ():
            if rank["title"] and rank["outcome"] in _UNMATCHED:
                words = " ".join(rank["title"].casefold().split())
                title = spellings.setdefault(words, rank["title"])
                titles[key][title, rank["outcome"]] += 1
    replies = [
        {"dataset": dataset, "model": model, **dict.fromkeys(_COUNTS, 0), **found}
        for (dataset, model), found in counts.items()
    ]
    unmatched = [
        {"dataset": dataset, "model": model, "reason": reason, "count": count}
        | {"title": make_printable(title, MAX_VALUE_LENGTH)}
        for (dataset, model), found in titles.items()
        for (title, reason), count in found.most_common(_MOST_TITLES)
    ]
    return replies, unmatched


# ---- searches ----

_UNFINISHED = ("pruned", "excluded", "failed")  # the states of trials that cannot be chosen
_NOTES = (
    "Values are scores on the validation set, by which settings are chosen; see trials.csv.",
    "Pruned: the score was below the median of the earlier trials.",
    "Excluded: the perplexity increased too much.",
)


def tabulate_searches(run: RunTables) -> Table | None:
    """Return a row for each search with the chosen settings; None if the run has no search.

    The importance of a setting is the share of the variance over trials that it explains.
    """
    outcomes = {
        _get_key(search, FIT_COLUMNS): search for search in run.manifest.get("searches", [])
    }
    trials = group_rows(read_trials(run), FIT_COLUMNS)
    importances: dict[_Head, dict[str, float]] = defaultdict(dict)
    for row in to_records(run.importances) if run.importances is not None else ():
        importances[_get_key(row, FIT_COLUMNS)][str(row["setting"])] = row["importance"]
    rows = []
    for key, found in outcomes.items():
        own = trials.get(key, [])
        best = next(trial for trial in own if trial["trial"] == found["trial"])
        rows.append(
            {
                **dict(zip(FIT_COLUMNS, key, strict=True)),
                "metric": format_title(str(found["metric"] or "value"), found["k"]),
                "best": number_cell(
                    best["value"], count_decimals(trial["value"] for trial in own)
                ),
                "trials": len(own),
                **dict.fromkeys(_UNFINISHED, 0),
                **Counter(str(trial["state"]) for trial in own),
                "time": math.fsum(trial["seconds"] for trial in own),
                "chosen settings": format_setting(best["settings"]),
                "importance": _name_importances(importances[key]),
            }
        )
    varying = [name for name in ("dataset", "seed", "fold") if len({r[name] for r in rows}) > 1]
    table = tabulate(
        "Searches",
        rows,
        {
            **pick("model", *varying, "metric"),
            "best": lambda row: row["best"],
            **dict(map(_make_count_column, ("trials", *_UNFINISHED))),
            "time": lambda row: Cell(wording.format_duration(row["time"]), row["time"]),
            **pick("chosen settings", "importance"),
        },
        _NOTES,
    )
    return table if rows else None


def _name_importances(shares: Mapping[str, float]) -> str:
    """Return the settings by the share of the variance that each explains, if it is known."""
    known = {name: share for name, share in shares.items() if not math.isnan(share)}
    ranked = sorted(known, key=lambda name: -known[name])
    return ", ".join(f"{name} {format_value(known[name], 2)}" for name in ranked) or "not known"
