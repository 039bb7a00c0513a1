"""The tables of a report: results, settings, groups, gaps, rounds, checks, comparisons, agreement.

The best value of a column is bold, superscript marks show what is significant, and footnotes count
undefined values.
"""

from __future__ import annotations

import itertools
import json
import math
import string
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.measures import DATASET, SERVED, Direction
from recbias.reports import views, wording
from recbias.reports.questions import (
    Question,
    collect_questions,
    compute_effect,
    explain_equal,
    explain_zero,
    find_worst_groups,
    rank_effect,
)
from recbias.reports.run import RunTables, to_records
from recbias.reports.views import (
    DIRECTION_LABELS,
    Definition,
    Row,
    collect_definitions,
    select_varying,
)
from recbias.reports.wording import (
    Cell,
    Column,
    Table,
    count_decimals,
    format_value,
    make_columns,
    make_heading,
)
from recbias.statistics.agreement import Agreement, kendall_tau

_PLACE = ("dataset", "group", "target")

_CHECKS_TITLE = "Checks"  # the title of the table


def build_check_table(run: RunTables) -> Table | None:
    """Return one row for each check, model and value, failed checks first; None without checks."""
    rows = [*run.manifest.get("checks", [])]
    if not rows:
        return None
    rows.sort(key=lambda row: (not row["failed"], row["verdict"] != "undecided"))
    varying = [name for name in _PLACE if len({row[name] for row in rows}) > 1]
    titles = ("model", "metric", *varying, "value", "95% interval", "line", "verdict")
    return Table(
        _CHECKS_TITLE,
        make_columns(titles, numeric=("value", "95% interval")),
        tuple(_build_cells(row, varying) for row in rows),
        notes=tuple(_explain(rows)),
    )


def _build_cells(row: Mapping[str, Any], varying: list[str]) -> tuple[Cell, ...]:
    value, low, high = (
        math.nan if row[name] is None else row[name] for name in ("value", "ci_low", "ci_high")
    )
    places = count_decimals([value, low, high])
    ends = [format_value(end, places) for end in (low, high)]
    k = math.nan if row["k"] is None else float(row["k"])
    metric = make_heading(views.format_title(row["metric"], k))
    texts = (row["model"], metric, *(row[name] for name in varying))
    verdict = (
        f"{row['verdict']} (strict)"
        if row["failed"] and row["verdict"] == "undecided"
        else row["verdict"]
    )
    return (
        *map(Cell, texts),
        Cell(format_value(value, places), value),
        Cell("none" if math.isnan(low) else f"{ends[0]} to {ends[1]}", low),
        Cell(row["line"]),
        Cell(verdict, best=row["failed"]),
    )


def _explain(rows: list[Mapping[str, Any]]) -> list[str]:
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


@dataclass(frozen=True, eq=False)
class _Wins:
    """The models that each model is significantly better than, and the comparisons behind it."""

    by_model: Mapping[str, set[str]]
    comparisons: views.Comparisons


def _add_significance_marks(table: Table, run: RunTables, frame: pd.DataFrame) -> Table:
    """Return the table with a mark in each cell that is significantly better than others."""
    wins = _collect_wins(run)
    names = [name for name in views.list_models(run) if name != DATASET]
    name_column = [column.title for column in table.columns].index("model")
    places = {row["dataset"]: views.get_place(row) for row in to_records(frame)}
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
    for group in views.collect_comparisons(run):
        if group.compares_models and not group.part:
            wins.setdefault((group.place, group.title), _Wins(views.find_wins(group), group))
    return wins


def _mark(cell: Cell, wins: _Wins | None, model: str, names: Sequence[str]) -> Cell:
    if wins is None:
        return cell
    worse = wins.by_model.get(model, set())
    if len(names) <= _MAX_LETTERS:
        letters = (_get_letter(name, names) for name in names if name in worse)
        return replace(cell, mark="".join(letters))
    beats_all = len(worse) == len(wins.by_model) - 1
    return replace(cell, mark="*" if beats_all else "")


def _get_letter(model: str, names: Sequence[str]) -> str:
    if len(names) > _MAX_LETTERS or model not in names:
        return ""
    return string.ascii_lowercase[names.index(model)]


def _explain_marks(names: Sequence[str], used: Sequence[_Wins]) -> list[str]:
    if not used:
        return []
    meaning = "Letters: significantly better than the model with that letter"
    if len(names) > _MAX_LETTERS:
        most = max(len(wins.by_model) for wins in used)
        compared = "the other compared model" if most == 2 else "every other compared model"
        meaning = f"Star: significantly better than {compared}"
    methods = views.describe_methods([wins.comparisons for wins in used])
    return [f"{meaning} ({methods})."]


def _explain_missing(run: RunTables, frame: pd.DataFrame, used: Sequence[_Wins]) -> list[str]:
    """Return notes on the means of metrics that are compared, but not over datasets or seeds."""
    of_models = run.significance["between"].str.startswith("model").to_numpy(dtype=bool)
    rows = to_records(run.significance[of_models])
    tested = {_get_title(row) for row in rows if not row["group"] and not row["target"]}
    compared = {(wins.comparisons.place, wins.comparisons.title) for wins in used}
    titles: dict[str, dict[str, None]] = {}
    for row in to_records(frame):
        location, title = views.get_place(row), _get_title(row)
        if views.ALL in location and title in tested and (location, title) not in compared:
            over = "datasets" if location[0] == views.ALL else "seeds or folds"
            titles.setdefault(over, {})[title] = None
    notes = []
    for over, missing in titles.items():
        subject = f"Means over {over}"
        if tested - missing.keys():
            subject = f"{', '.join(map(make_heading, missing))}: means over {over}"
        notes.append(f"{subject} have no marks: they were not compared.")
    return notes


def _get_title(row: Row) -> str:
    return views.format_title(row["metric"], row["k"])


def tabulate_comparisons(run: RunTables) -> Table:
    """Return one row per headline comparison of all metrics and tests, the largest effect first.

    The effect is in standard deviations, see ``compute_effect``.
    """
    groups = views.collect_comparisons(run)
    several = len({group.place[0] for group in groups}) > 1
    ranked: list[tuple[float, tuple[Cell, ...]]] = []
    for group in groups:
        places = count_decimals(row["difference"] for row in group.rows)
        title = f"{group.heading}, {group.place[0]}" if several else group.heading
        test = views.describe_test(group.test)
        for row in group.rows:
            effect = compute_effect(row)
            cells = _tabulate_comparison(row, effect, places)
            ranked.append((effect, (Cell(title), *cells, Cell(test))))
    ranked.sort(key=lambda pair: rank_effect(pair[0]), reverse=True)
    numbers = ("difference", "interval", "adjusted p", "effect (SD)")
    columns = make_columns(("metric", "a", "b", *numbers, "significant", "test"), numeric=numbers)
    rows = tuple(cells for _, cells in ranked)
    compared = [row for group in groups for row in group.rows]
    notes = tuple(filter(None, [explain_zero(compared), explain_equal(compared)]))
    return Table("Comparisons, the largest effect first", columns, rows, notes)


def _decide(row: Row) -> str:
    if math.isnan(row["p_adjusted"]):
        return "undefined"
    return "yes" if views.is_significant(row) else "no"


def _tabulate_comparison(row: Row, effect: float, places: int) -> tuple[Cell, ...]:
    model = f"{row['model']}: " if row["model"] else ""
    return (
        Cell(f"{model}{row['a']}"),
        Cell(str(row["b"])),
        Cell(format_value(row["difference"], places), row["difference"]),
        Cell(wording.format_interval(row["ci_low"], row["ci_high"], places), row["ci_low"]),
        Cell(wording.format_p_value(row["p_adjusted"], row["alpha"]), row["p_adjusted"]),
        Cell(format_value(effect, 2), effect),
        Cell(_decide(row)),
    )


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


_FITS = ("dataset", "seed", "fold")


@lru_cache(maxsize=2)
def build_summary(run: RunTables) -> Table:
    """Return the headline results: one row per model (and dataset), means over seeds and folds."""
    frame = views.select_headline(run, _select_overall(views.collect_estimates(run)))
    table = _build_table(run, frame, title="Results", keys=select_varying(frame, ["dataset"]))
    table = replace(table, notes=(*table.notes, *describe_missing_outputs(run)))
    table = _name_columns(_add_significance_marks(table, run, frame), run)
    baselines = [name for name in views.list_models(run) if name in views.list_baselines(run)]
    marks = [f"Baseline{'s' * (len(baselines) > 1)}: {wording.join_names(baselines)}."]
    return replace(table, notes=(*table.notes, *marks * bool(baselines)))


def build_fold_table(run: RunTables) -> Table | None:
    """Return every dataset, seed and fold, means first; None if the run has one of each."""
    frame = _select_overall(views.collect_estimates(run))
    keys = select_varying(frame, _FITS)
    if not keys:
        return None
    position = {label: number for number, label in enumerate(views.list_datasets(run))}
    ranks = frame[["dataset", "fold", "seed"]].copy()
    ranks["dataset"] = ranks["dataset"].map(position)
    for column in ("fold", "seed"):
        ranks[column] = ranks[column].map(views.rank_label)
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


def _select_overall(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of models over all groups and targets."""
    overall = (frame["group"] == "") & (frame["target"] == "")
    return frame[overall & (frame["model"] != DATASET)]


def _build_table(run: RunTables, frame: pd.DataFrame, *, title: str, keys: Sequence[str]) -> Table:
    """Return one row per block of key values and model, and one column per metric."""
    records = to_records(frame)
    cells = {(_get_key(row, keys), row["model"], _get_title(row)): row for row in records}
    missing = _collect_missing_outputs(run)
    present = {metric for _, model, metric in cells if (metric, model) not in missing}
    metrics = [metric for title, metric in collect_definitions(run).items() if title in present]
    models = views.list_models(run)
    pairs = {(block, model) for block, model, _ in cells}
    blocks = dict.fromkeys(block for block, _, _ in cells)
    heads = [head for head in itertools.product(blocks, models) if head in pairs]
    tested = {group.title for group in views.collect_comparisons(run) if group.compares_models}
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
    missing: _MissingOutputs,
) -> list[Cell]:
    """Return the cells of a metric; the best value is determined within each block."""
    values = [row["value"] if row else math.nan for row in rows]
    places = count_decimals(values)
    wins = [False] * len(values)
    for block in dict.fromkeys(block for block, _ in heads):
        inside = [number for number, head in enumerate(heads) if head[0] == block]
        flags = views.flag_best([values[number] for number in inside], metric.direction)
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
        return Cell(wording.UNDEFINED, note=f"undefined: the model provides no {missing}")
    interval = wording.format_interval(row["ci_low"], row["ci_high"], places)
    texts = [
        f"95% interval {interval}" if interval else "",
        "" if math.isnan(row["std"]) else f"standard deviation {format_value(row['std'], places)}",
        "" if math.isnan(row["n"]) else f"n {row['n']:,.0f}",
        f"undefined {row['undefined']:,.0f}" if row["undefined"] > 0 else "",
    ]
    note, text = ", ".join(filter(None, texts)), format_value(row["value"], places)
    return Cell(text, row["value"], best, interval=interval, note=note)


def _get_key(row: Row, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the values of a row that head it in a table."""
    return tuple(str(row[key]) for key in keys)


def _build_header(metric: Definition) -> Column:
    label = DIRECTION_LABELS[metric.direction]
    note = f"{metric.summary} ({label})" if metric.summary else label.capitalize()
    return Column(metric.title, numeric=True, direction=metric.direction, note=note)


_FEWEST = 3  # the fewest values of a number that make a plot


@dataclass(frozen=True)
class Variants:
    """Models of one plug-in.

    Args:
        name: The plug-in.
        settings: By model, the settings in which the models differ.
    """

    name: str
    settings: Mapping[str, Mapping[str, Any]]

    @property
    def names(self) -> list[str]:
        """The settings in which the models differ."""
        return [*next(iter(self.settings.values()))]

    @property
    def axis(self) -> str:
        """The setting with the most different numbers, blank if none has three."""
        counts = {
            name: len({s[name] for s in self.settings.values() if is_number(s[name])})
            for name in self.names
        }
        most = max(self.names, key=lambda name: counts[name])
        return most if counts[most] >= _FEWEST else ""


def is_number(value: object) -> bool:
    """Return whether a setting is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def render_setting(value: Any) -> str:
    """Return a setting as text.

    >>> render_setting(50.0), render_setting(None), render_setting(True)
    ('50', 'null', 'true')
    """
    is_word = value is None or isinstance(value, bool)
    return json.dumps(value) if is_word else views.format_setting(value)


@lru_cache(maxsize=2)
def collect_variants(run: RunTables) -> tuple[Variants, ...]:
    """Return the plug-ins with models that differ in a number or a switch."""
    groups: dict[str, dict[str, dict[str, Any]]] = {}
    for model in run.manifest.get("models", []):
        if model.get("baseline"):  # a re-ranked model, whose curves are those of its re-ranker
            continue
        settings = dict(_flatten(model.get("parameters") or {}))
        groups.setdefault(str(model.get("name")), {})[str(model.get("label"))] = settings
    found = (Variants(name, _select_differing(models)) for name, models in groups.items())
    return tuple(group for group in found if _has_numbers(group))


def build_settings_tables(run: RunTables) -> list[Table]:
    """Return the results of the models of each plug-in with a column for each varied setting."""
    summary = build_summary(run)
    titles = [column.title for column in summary.columns]
    if "model" not in titles:
        return []
    return [
        _tabulate_settings(summary, titles.index("model"), group)
        for group in collect_variants(run)
    ]


def _tabulate_settings(summary: Table, at: int, group: Variants) -> Table:
    rows = [row for row in summary.rows if row[at].text in group.settings]
    return replace(
        summary,
        title=f"Results by the settings of {group.name}",
        columns=(
            *summary.columns[:at],
            *(Column(name.replace("_", " ")) for name in group.names),
            *summary.columns[at + 1 :],
        ),
        rows=tuple(
            (
                *row[:at],
                *_build_setting_cells(group.settings[row[at].text]),
                *(replace(cell, mark="") for cell in row[at + 1 :]),
            )
            for row in rows
        ),
        notes=("Bold: the best value of all models of the run.",),
    )


def _build_setting_cells(settings: Mapping[str, Any]) -> Iterator[Cell]:
    for value in settings.values():
        yield Cell(render_setting(value), float(value) if is_number(value) else math.nan)


def _flatten(settings: Mapping[str, Any], start: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each setting, that of a setting by its path: ``llm.temperature``."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{start}{name}.")
        else:
            yield f"{start}{name}", value


def _select_differing(models: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    names = dict.fromkeys(name for settings in models.values() for name in settings)
    differing = [name for name in names if len({repr(s.get(name)) for s in models.values()}) > 1]
    return {
        label: {name: settings.get(name) for name in differing}
        for label, settings in models.items()
    }


def _has_numbers(group: Variants) -> bool:
    values: Sequence[Any] = [value for s in group.settings.values() for value in s.values()]
    return any(isinstance(value, (bool, int, float)) for value in values)


_ROUNDS_TITLE = "Values over rounds of feedback"  # the title of the table

MOST_ROUNDS = 8
"""The number of rounds that the table shows, the first and the last among them."""


def build_round_table(run: RunTables) -> Table | None:
    """Return one row for each metric, group, target and model; None without feedback."""
    datasets = views.list_single_datasets(run)
    rows = [(name, curve) for name in datasets for curve in views.list_round_curves(run, name)]
    if not rows:
        return None
    numbers = _select_rounds(sorted({number for _, curve in rows for number in curve.values}))
    several = len(datasets) > 1
    titles = [f"round {number}" for number in numbers]
    cells = []
    for name, curve in rows:
        values = [curve.values.get(number, np.nan) for number in numbers]
        places = count_decimals(values)
        heading = curve.metric.describe_value(curve.group, curve.target)
        cells.append(
            (
                *([Cell(name)] if several else []),
                Cell(heading),
                Cell(curve.model),
                *(Cell(format_value(value, places), value) for value in values),
            )
        )
    columns = (*(["dataset"] if several else []), "metric", "model", *titles)
    return Table(
        _ROUNDS_TITLE,
        make_columns(columns, numeric=titles),
        tuple(cells),
        _explain_rounds(run.rounds),
    )


def _select_rounds(numbers: list[int]) -> list[int]:
    """Return at most ``MOST_ROUNDS`` of the rounds, evenly spaced."""
    at = np.linspace(0, len(numbers) - 1, min(MOST_ROUNDS, len(numbers))).round().astype(int)
    return [numbers[position] for position in at.tolist()]


def _explain_rounds(rounds: pd.DataFrame | None) -> tuple[str, ...]:
    how = (
        "In each round a model is trained on the data of the round before and on what users "
        "accepted from its lists; every model has a history of its own."
    )
    notes = (how, "All other tables are of round 1. Intervals are in rounds.csv.")
    if rounds is not None and select_varying(rounds, ["seed", "fold"]):
        return (*notes, "The values are means over seeds and folds.")
    return notes


def build_runs_table(runs: Mapping[str, RunTables]) -> Table:
    """Return one row per run, dataset and model, and one column per metric of any run.

    Args:
        runs: The runs by their labels. A dataset has a column if a run has several.
    """
    summaries = {label: build_summary(run) for label, run in runs.items()}
    columns: dict[str, Column] = {}
    for table in summaries.values():
        columns |= {
            column.title: column for column in table.columns if column.title not in columns
        }
    titles = sorted(title for title, column in columns.items() if not column.numeric)
    titles += [title for title, column in columns.items() if column.numeric]
    rows = []
    for label, table in summaries.items():
        for row in table.rows:
            cells = {
                column.title: replace(cell, best=False, mark="")
                for column, cell in zip(table.columns, row, strict=True)
            }
            rows.append((Cell(label), *(cells.get(title, Cell("")) for title in titles)))
    return Table("Results", (Column("run"), *(columns[title] for title in titles)), tuple(rows))


_PART = ("group", "target")
WORST = "w"
"""The mark of the worst-off group."""


def build_group_tables(run: RunTables, omitted: Container[str] = ()) -> list[Table]:
    """Return one table per metric that has values by query label or item attribute.

    Metrics whose titles are ``omitted`` have none.
    """
    estimates = views.collect_estimates(run)
    if len(_select_overall(estimates)) == len(estimates):
        return []
    frame = views.select_headline(run, estimates)
    of_dataset = frame["model"] == DATASET
    tables = _build_dataset_tables(run, frame[of_dataset])
    frame = frame[((frame["group"] != "") | (frame["target"] != "")) & ~of_dataset]
    titles = pd.Series([_get_title(row) for row in to_records(frame)], frame.index, dtype="str")
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
    columns = ("dataset", *_PART) if len(views.list_datasets(run)) > 1 else _PART
    keys = [column for column in columns if (frame[column] != "").any()]
    records = to_records(frame)
    kinds = [_identify_kind(run, _get_title(row)) for row in records]
    by_kind = frame["value"].groupby(pd.Series(kinds, frame.index, dtype="str"), sort=False)
    places = {str(kind): count_decimals(values) for kind, values in by_kind}
    rows = tuple(
        (
            Cell(make_heading(_get_title(row))),
            *map(Cell, _get_key(row, keys)),
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
    cells = {(_get_key(row, keys), row["model"]): row for row in records}
    present = {model for _, model in cells}
    models = [model for model in views.list_models(run) if model in present]
    places = count_decimals(row["value"] for row in records)
    has_groups = any(row["group"] for row in records)
    worst = _find_worst_rows(records, metric)
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
            *(views.describe_means(run) if has_groups else ()),
        ),
    )


def _find_worst_rows(records: Sequence[Row], metric: Definition) -> set[int]:
    """Return the ids of the rows of the worst-off groups of each model, dataset and target."""
    keys = ("dataset", "model", "target")
    blocks: dict[tuple[str, ...], list[Row]] = {}
    for row in records:
        if row["group"]:
            blocks.setdefault(_get_key(row, keys), []).append(row)
    return {id(row) for rows in blocks.values() for row in find_worst_groups(rows, metric)}


def _count_units(rows: Sequence[Row | None]) -> Cell:
    """Return n, or its range over the models."""
    counts = sorted({row["n"] for row in rows if row and not math.isnan(row["n"])})
    text = " to ".join(f"{count:,.0f}" for count in dict.fromkeys([*counts[:1], *counts[-1:]]))
    return Cell(text, counts[0] if counts else math.nan)


_WORST: Mapping[Direction, str] = {
    "higher": "w, worst off: the lowest mean of the model; the gap may not be significant.",
    "lower": "w, worst off: the highest mean of the model; the gap may not be significant.",
    "zero": "w, worst off: the farthest from 0 of the model; the gap may not be significant.",
    "none": "The metric has no preferred direction, so no group is marked as the worst off.",
}


@dataclass(frozen=True, eq=False)
class _FairnessCard:
    """The groups of a metric, and the gap between them in each model."""

    metric: Definition
    groups: Table
    gaps: Table | None

    @property
    def tables(self) -> list[Table]:
        """The tables of the card."""
        return [self.groups, *([self.gaps] if self.gaps else [])]


def build_cards(run: RunTables) -> list[_FairnessCard]:
    """Return a card for each metric by group of queries, or gap of two groups, without targets."""
    definitions = collect_definitions(run)
    rows_by_title: dict[str, list[Row]] = {}
    for row in to_records(views.select_headline(run, views.collect_estimates(run))):
        if row["group"] not in {"", SERVED} and row["model"] != DATASET:
            rows_by_title.setdefault(_get_title(row), []).append(row)
    keys = select_varying(run.metrics, ["dataset"])
    questions: dict[str, list[Question]] = {}
    for question in collect_questions(run):
        if question.between == "groups":
            questions.setdefault(question.metric.title, []).append(question)
    rows_by_title |= {
        title: [row for question in asked for row in question.list_groups()]
        for title, asked in questions.items()
        if definitions[title].gap and title not in rows_by_title
    }
    cards = []
    for title, rows in rows_by_title.items():
        if rows and not any(row["target"] for row in rows):
            metric = definitions[title]
            gaps = _build_gaps(run, metric, questions.get(title, []), keys)
            groups = _build_groups(metric, rows, keys)
            groups = replace(groups, notes=(*groups.notes, *views.describe_means(run)))
            cards.append(_FairnessCard(metric, groups, gaps))
    return cards


def _build_groups(metric: Definition, rows: Sequence[Row], keys: Sequence[str]) -> Table:
    places, worst = count_decimals(row["value"] for row in rows), _find_worst_rows(rows, metric)
    heads = (*keys, "model", "group", "n", "mean", "95% interval", "remark")
    cells, by = [], str(metric.parameters.get("by", ""))
    for row in sorted(rows, key=lambda row: _get_key(row, keys)):
        counts = f"{row['n']:,.0f}" if not math.isnan(row["n"]) else ""
        interval = wording.format_interval(row["ci_low"], row["ci_high"], places)
        cells.append(
            (
                *(Cell(row[name]) for name in (*keys, "model")),
                Cell(
                    "&".join(wording.quote_labels(row["group"], by)),
                    mark=WORST if id(row) in worst else "",
                ),
                Cell(counts, row["n"]),
                Cell(format_value(row["value"], places), row["value"]),
                Cell(interval, row["ci_low"]),
                Cell("worst off" if id(row) in worst else ""),
            )
        )
    title = metric.groups_heading if "by" in metric.parameters else f"{metric.heading} by group"
    columns = make_columns(heads, numeric={"n", "mean", "95% interval"})
    notes = [_WORST[metric.group_direction]]
    if any(row["n"] < metric.least_marked for row in rows):
        is_compared = metric.least_marked > int(metric.parameters.get("min_group") or 0)
        verdict = "not" if is_compared else "neither compared nor"
        notes.append(
            f"A group with n below {metric.least_marked:,} is {verdict} marked as the worst off."
        )
    if all(math.isnan(row["n"]) for row in rows):
        notes.append("n and interval of each group: run the spec again.")
    return Table(title, columns, tuple(cells), tuple(notes))


def _build_gaps(
    run: RunTables, metric: Definition, questions: Sequence[Question], keys: Sequence[str]
) -> Table | None:
    """Return the largest difference between two groups of each model; None if none is tested."""
    tests = {part.test for question in questions for part in question.comparisons}
    anova = {} if tests == {"welch_anova"} else _collect_anova(run, metric)
    pairs: dict[tuple[str, str], Row] = {}
    for question in questions:
        for row in (row for comparison in question.comparisons for row in comparison.rows):
            key = row["dataset"], row["model"]
            if key not in pairs or abs(row["difference"]) > abs(pairs[key]["difference"]):
                pairs[key] = row
    if not pairs:
        return None
    places = count_decimals(row["difference"] for row in pairs.values())
    numbers = ("gap", "95% interval", "p", "adjusted p")
    heads = [*keys, "model", "higher", "lower", *numbers, "significant"]
    columns = [*make_columns(heads, numeric=numbers)]
    if anova:
        columns.append(Column("p of all groups", numeric=True))
    rows = [
        _tabulate_gap(row, keys, places, [anova.get(key)] if anova else [])
        for key, row in pairs.items()
    ]
    notes = _explain_gaps(metric, questions, has_anova=bool(anova))
    return Table(f"{metric.groups_heading}: gaps", tuple(columns), tuple(rows), tuple(notes))


def _explain_gaps(
    metric: Definition, questions: Sequence[Question], *, has_anova: bool
) -> list[str]:
    """Return the notes of a table of gaps: tests, and compared groups."""
    parts = [part for question in questions for part in question.comparisons]
    methods = "; ".join(dict.fromkeys(part.method() for part in parts))
    is_of_all = {part.test for part in parts} == {"welch_anova"}
    lead = "The largest difference between two groups of each model"
    notes = [f"{lead}{'; p is that of all groups' if is_of_all else ''}: {methods}."]
    if least := metric.parameters.get("min_group"):
        notes.append(f"Groups with n of at least {least:,} are compared.")
    notes += ["p of all groups: Welch's analysis of variance, adjusted."] * has_anova
    if place := questions[0].place:
        notes.append(f"The values and tests are those of {place}: no test averages over them.")
    return notes


def _collect_anova(run: RunTables, metric: Definition) -> dict[tuple[str, str], Row]:
    """Return the test of all groups of a metric by dataset and model."""
    gap = {**metric.parameters, "gap": "difference"}
    definitions = collect_definitions(run)
    return {
        (row["dataset"], row["model"]): row
        for comparisons in views.collect_comparisons(run)
        if comparisons.test == "welch_anova" and comparisons.title in definitions
        if definitions[comparisons.title].parameters == gap
        if definitions[comparisons.title].name == metric.name
        for row in comparisons.rows
    }


def _tabulate_gap(
    row: Row, keys: Sequence[str], places: int, anova: Sequence[Row | None]
) -> tuple[Cell, ...]:
    sign = -1.0 if row["difference"] < 0 else 1.0
    low, high = sorted((sign * row["ci_low"], sign * row["ci_high"]))
    sides = ("b", "a") if sign < 0 else ("a", "b")
    gap = sign * row["difference"]
    all_groups = [test["p_adjusted"] if test else math.nan for test in anova]
    return (
        *(Cell(str(row[name])) for name in (*keys, "model", *sides)),
        Cell(format_value(gap, places), gap),
        Cell(wording.format_interval(low, high, places), low),
        *(Cell(wording.format_p_value(row[p], row["alpha"]), row[p]) for p in ("p", "p_adjusted")),
        Cell("yes" if views.is_significant(row) else "no"),
        *(Cell(wording.format_p_value(p), p) for p in all_groups),
    )


_FEWEST_MODELS, _FEWEST_METRICS, MOST_METRICS = 4, 3, 16


@dataclass(frozen=True, eq=False)
class MetricAgreement:
    """Kendall's tau-b between the metrics of a run on one dataset.

    Args:
        metrics: The headings of the metrics.
        agreement: Tau of each pair, and the number of models with both values.
        excluded: The models without a finite value, for each metric that has such models.
        omitted: The number of metrics above ``MOST_METRICS``.
    """

    metrics: Sequence[str]
    agreement: Agreement
    excluded: Mapping[str, Sequence[str]]
    omitted: int = 0

    def get_tau(self, pair: tuple[int, int]) -> float:
        """Return tau of a pair of metrics; NaN over fewer than ``_FEWEST_MODELS`` models."""
        enough = self.agreement.n[pair] >= _FEWEST_MODELS
        return float(self.agreement.tau[pair]) if enough else math.nan

    def describe_models(self) -> str:
        """Return over how many models the pairs of metrics are compared."""
        counts = [self.agreement.n[pair] for pair in self.list_pairs()]
        return (
            f"{max(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        )

    def list_pairs(self) -> list[tuple[int, int]]:
        """Return each pair of metrics once."""
        return list(itertools.combinations(range(len(self.metrics)), 2))

    def describe_excluded(self) -> Iterator[str]:
        """Yield a sentence for each metric that is undefined for some models."""
        for metric, models in self.excluded.items():
            n = f"{len(models)} model" if len(models) == 1 else f"{len(models)} models"
            names = f"{', '.join(models[:4])}{', ...' if len(models) > 4 else ''}"
            yield f"{metric} is undefined or infinite for {n}, excluded from its pairs: {names}."


def compute_metric_agreement(run: RunTables, dataset: str) -> MetricAgreement | None:
    """Return Kendall's tau-b between metrics over the models; None below 4 models or 3 metrics.

    The values are the means over seeds and folds. Values by group or target are excluded, and
    gaps between groups: a gap repeats a metric that is there.
    """
    models = [model for model in views.list_models(run) if model != DATASET]
    values = _collect_values(run, dataset)
    defined = {metric: len(by_model) for metric, by_model in values.items()}
    metrics = [metric for metric, n in defined.items() if n >= _FEWEST_MODELS]
    retained = metrics[:MOST_METRICS]
    if len(retained) < _FEWEST_METRICS:
        return None
    table = [[values[metric].get(model, math.nan) for metric in retained] for model in models]
    headings = [make_heading(metric) for metric in retained]
    missing = {
        heading: [model for model in models if model not in values[metric]]
        for heading, metric in zip(headings, retained, strict=True)
    }
    excluded = {metric: names for metric, names in missing.items() if names}
    agreement = kendall_tau(np.array(table))
    return MetricAgreement(headings, agreement, excluded, len(metrics) - len(retained))


def _collect_values(run: RunTables, dataset: str) -> dict[str, dict[str, float]]:
    """Return the finite values of each metric by model."""
    definitions = collect_definitions(run)
    values: dict[str, dict[str, float]] = {title: {} for title in definitions}
    for row in to_records(views.select_headline(run, run.metrics)):
        title = views.format_title(row["metric"], row["k"])
        is_whole = not (row["group"] or row["target"]) and row["model"] != DATASET
        is_gap = "gap" in definitions[title].parameters
        if is_whole and not is_gap and row["dataset"] == dataset and math.isfinite(row["value"]):
            values[title][row["model"]] = row["value"]
    return values


def build_agreement_tables(run: RunTables) -> list[Table]:
    """Return the table of Kendall's tau-b between metrics for each dataset that has one."""
    datasets = views.list_single_datasets(run)
    results = [(dataset, compute_metric_agreement(run, dataset)) for dataset in datasets]
    return [
        _tabulate_agreement(result, f" on {dataset}" if len(datasets) > 1 else "")
        for dataset, result in results
        if result is not None
    ]


def _tabulate_agreement(result: MetricAgreement, suffix: str) -> Table:
    """Return one row and one numbered column per metric."""
    numbers = range(1, len(result.metrics) + 1)
    rows = tuple(
        (
            Cell(f"{row} {metric}"),
            *(_build_cell(result, row - 1, column - 1) for column in numbers),
        )
        for row, metric in zip(numbers, result.metrics, strict=True)
    )
    heads = (
        Column(str(number), numeric=True, note=metric)
        for number, metric in zip(numbers, result.metrics, strict=True)
    )
    note = (
        f"Kendall's tau-b over {result.describe_models()} models: 1 is the same order of the "
        "models, -1 the reverse. The columns have the numbers of the rows."
    )
    title = f"Agreement of the metrics{suffix}"
    return Table(title, (Column("metric"), *heads), rows, (note, *result.describe_excluded()))


def _build_cell(result: MetricAgreement, row: int, column: int) -> Cell:
    if row == column:
        return Cell("", note="the same metric")
    tau, n = result.get_tau((row, column)), int(result.agreement.n[row, column])
    text = wording.UNDEFINED if math.isnan(tau) else format_value(tau, 2)
    return Cell(text, tau, note=f"n {n}")
