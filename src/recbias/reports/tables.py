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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.measures import DATASET, SERVED, Direction
from recbias.reports import views, wording
from recbias.reports.plots import get_label_name, get_label_value
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
    state_cutoff_once,
)
from recbias.statistics.agreement import Agreement, kendall_tau

_PLACE = ("dataset", "group", "target")

_Head: TypeAlias = tuple[str, ...]  # the texts that head a row
_Filled: TypeAlias = tuple[Column, dict[_Head, Cell]]  # a column with its cells by the head


def build_check_table(run: RunTables) -> Table | None:
    """Return one row for each check, model and value, failed checks first; None without checks."""
    rows = [*run.manifest.get("checks", [])]
    if not rows:
        return None
    rows.sort(key=lambda row: (not row["failed"], row["verdict"] != "undecided"))
    varying = [name for name in _PLACE if len({row[name] for row in rows}) > 1]
    titles = ("model", "metric", *varying, "value", "95% interval", "limit", "verdict")
    table = Table(
        "Checks",
        make_columns(titles, numeric=("value", "95% interval")),
        tuple(_build_check(row, varying) for row in rows),
        notes=tuple(_explain(rows)),
    )
    return state_cutoff_once(table)


def _build_check(row: Mapping[str, Any], varying: list[str]) -> tuple[Cell, ...]:
    value, low, high = (
        math.nan if row[name] is None else row[name] for name in ("value", "ci_low", "ci_high")
    )
    places = count_decimals([value, low, high])
    k = math.nan if row["k"] is None else float(row["k"])
    metric = make_heading(views.format_title(row["metric"], k))
    is_strict = row["failed"] and row["verdict"] == "undecided"
    return (
        *map(Cell, (row["model"], metric, *(row[name] for name in varying))),
        Cell(format_value(value, places), value),
        Cell(wording.format_interval(low, high, places) or "none", low),
        Cell(row["limit"]),
        Cell(f"{row['verdict']}{' (strict)' * is_strict}", best=row["failed"]),
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
    name_column = table.row_headers - 1
    places = {row["dataset"]: views.get_place(row) for row in to_records(frame)}
    rows: list[tuple[Cell, ...]] = []
    used: list[_Wins] = []
    for row in table.rows:
        location = places[row[0].text if name_column else next(iter(places))]
        row_wins = [wins.get((location, column.key)) for column in table.columns]
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
            titles.setdefault(over, {})[make_heading(title)] = None
    return [
        f"Means over {over} have no marks, they were not compared: {', '.join(missing)}."
        for over, missing in titles.items()
    ]


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


def build_summary(run: RunTables) -> Table:
    """Return the headline results: one row per model (and dataset), means over seeds and folds."""
    return state_cutoff_once(_build_summary(run))


@lru_cache(maxsize=2)
def _build_summary(run: RunTables) -> Table:
    frame = views.select_headline(run, _select_overall(views.collect_estimates(run)))
    table = _build_table(run, frame, title="Results", keys=select_varying(frame, ["dataset"]))
    baselines = [name for name in views.list_models(run) if name in views.list_baselines(run)]
    marks = [f"Baseline{'s' * (len(baselines) > 1)}: {wording.join_names(baselines)}."]
    notes = (*table.notes, *marks * bool(baselines), *describe_missing_outputs(run))
    table = replace(table, notes=notes)
    return _add_significance_marks(table, run, frame)


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


def _lay_out(
    title: str,
    names: Sequence[str],
    heads: Iterable[_Head],
    columns: Sequence[_Filled],
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
    rows: dict[str, dict[_Head, Row]] = {}
    for row in records:
        rows.setdefault(_get_title(row), {})[_get_key(row, names)] = row
    metrics = [
        metric
        for title, metric in collect_definitions(run).items()
        if any((title, head[-1]) not in missing for head in rows.get(title, ()))
    ]
    heads = _sort_heads(run, records, names)
    tested = {group.title for group in views.collect_comparisons(run) if group.compares_models}
    columns, has_best = [], False
    for metric in metrics:
        is_ranked = not metric.gap or metric.title in tested
        cells = _rank_cells(rows[metric.title], metric.direction if is_ranked else "none")
        for head in heads:
            if output := missing.get((metric.title, head[-1])):
                note = f"undefined: the model provides no {output}"
                cells[head] = Cell(wording.UNDEFINED, note=note)
            cells.setdefault(head, Cell("", note="not measured"))
        columns.append((_build_header(metric), cells))
        has_best = has_best or any(cell.best for cell in cells.values())
    notes = [BEST] * (has_best and len({head[-1] for head in heads}) > 1)
    titles = [metric.title for metric in metrics]
    return _lay_out(
        title, names, heads, columns, [*notes, *count_undefined(records, titles, missing)]
    )


BEST = "Bold: the best of the column in the metric's direction; underlined: the second best."
"""The note of tables with marked cells."""


def _rank_cells(rows: Mapping[_Head, Row], direction: Direction) -> dict[_Head, Cell]:
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
    rows: Mapping[_Head, Row], heads: Sequence[_Head], direction: Direction
) -> list[_Head]:
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


def _get_key(row: Row, keys: Sequence[str]) -> tuple[str, ...]:
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
    return [_tabulate_settings(summary, group) for group in collect_variants(run) if summary.rows]


def _tabulate_settings(summary: Table, group: Variants) -> Table:
    at = summary.row_headers - 1
    rows = [row for row in summary.rows if row[at].text in group.settings]
    return replace(
        summary,
        title=summary.title.replace("Results", f"Results by the settings of {group.name}", 1),
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


MOST_ROUNDS = 8
"""The number of rounds that the table shows, the first and the last among them."""


def build_round_table(run: RunTables) -> Table | None:
    """Return one row for each metric, group, target and model; None without feedback."""
    datasets = views.list_single_datasets(run)
    rows = [(name, curve) for name in datasets for curve in views.list_round_curves(run, name)]
    if not rows:
        return None
    numbers = _select_rounds(sorted({number for _, curve in rows for number in curve.values}))
    keys = ["dataset"] if len(datasets) > 1 else []
    columns: list[_Filled] = [(Column(f"round {number}", numeric=True), {}) for number in numbers]
    heads = []
    for name, curve in rows:
        values = [curve.values.get(number, math.nan) for number in numbers]
        places = count_decimals(values)
        heading = curve.metric.describe_value(curve.group, curve.target)
        heads.append((*([name] if keys else []), heading, curve.model))
        for value, (_, cells) in zip(values, columns, strict=True):
            cells[heads[-1]] = Cell(format_value(value, places), value)
    title, notes = "Values over rounds of feedback", _explain_rounds(run.rounds)
    return state_cutoff_once(_lay_out(title, (*keys, "metric", "model"), heads, columns, notes))


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
    names = ["dataset"] * any(_build_summary(run).row_headers > 1 for run in runs.values())
    heads: list[_Head] = []
    columns: dict[str, _Filled] = {}
    for label, run in runs.items():
        table = _build_summary(run)
        n = table.row_headers
        for row in table.rows:
            place = [cell.text for cell in row[:n]]
            heads.append((label, *([""] * (1 + len(names) - n)), *place))
            for column, cell in zip(table.columns[n:], row[n:], strict=True):
                cells = columns.setdefault(column.key, (column, {}))[1]
                cells[heads[-1]] = replace(cell, best=False, second=False, mark="")
    table = _lay_out("Results", ("run", *names, "model"), heads, [*columns.values()])
    return state_cutoff_once(table)


_PART = ("group", "target")
WORST = "w"
"""The mark of the worst-off group."""

MOST_GROUPS = 6
"""With more groups than this they are the rows of a table, and models its columns."""


@dataclass(frozen=True, eq=False)
class Card:
    """The values of a metric by group and target, and the tested gap between groups."""

    metric: Definition
    groups: Table
    gaps: Table | None

    @property
    def tables(self) -> list[Table]:
        """The tables of the card."""
        return [self.groups, *([self.gaps] if self.gaps else [])]


def build_cards(run: RunTables) -> list[Card]:
    """Return the values by query label and item attribute of each metric that has any."""
    definitions, questions = collect_definitions(run), _group_questions(run)
    frame = views.select_headline(run, views.collect_estimates(run))
    is_part = ((frame["group"] != "") | (frame["target"] != "")) & (frame["model"] != DATASET)
    rows: dict[str, list[Row]] = {title: [] for title in definitions}
    for row in to_records(frame[is_part]):
        rows[_get_title(row)].append(row)
    cards = []
    for title, metric in definitions.items():
        asked = questions.get(title, [])
        values = [row for row in rows[title] if row["group"] != SERVED] or rows[title]
        if values:
            keys = select_varying(pd.DataFrame(values), ["dataset"])
            groups = _build_groups(run, metric, values, asked, keys)
            cards.append(Card(metric, groups, _build_gaps(run, metric, asked, keys)))
    return cards


def _group_questions(run: RunTables) -> dict[str, list[Question]]:
    """Return the questions about groups by the metric's title."""
    questions: dict[str, list[Question]] = {}
    for question in collect_questions(run):
        if question.between == "groups":
            questions.setdefault(question.metric.title, []).append(question)
    return questions


def build_group_tables(run: RunTables) -> list[Table]:
    """Return the properties of the dataset, and the values by group and target."""
    return [*build_dataset_tables(run), *(card.groups for card in build_cards(run))]


def build_dataset_tables(run: RunTables) -> list[Table]:
    """Return the table of values that describe a dataset by itself, if there are any."""
    frame = views.select_headline(run, views.collect_estimates(run))
    frame = frame[frame["model"] == DATASET]
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
    models = _sort_models(run, rows)
    shared = get_label_name(labels) or "group"
    if parts == ["group"] and len(labels) <= MOST_GROUPS:
        names = [*keys, "model"]
        heads = _sort_heads(run, rows, names)
        direction = metric.group_direction if len(models) > 1 else "none"
        columns = _pivot(rows, names, "group", labels.values(), direction)
        if gaps:
            columns.append((Column("gap", numeric=True), gaps))
    else:
        names = [*keys, *parts]
        columns = _pivot(rows, names, "model", models, "none")
        heads = [*dict.fromkeys(_get_key(row, names) for row in rows)]
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
    return _lay_out(title, names, heads, columns, [*[BEST] * has_best, *notes])


def _group_by(rows: Sequence[Row], names: Sequence[str]) -> dict[_Head, list[Row]]:
    groups: dict[_Head, list[Row]] = {}
    for row in rows:
        groups.setdefault(_get_key(row, names), []).append(row)
    return groups


def _pivot(
    rows: Sequence[Row],
    names: Sequence[str],
    across: str,
    order: Iterable[str],
    direction: Direction,
) -> list[_Filled]:
    """Return a column for each value of ``across``, with the cells by the values of ``names``."""
    columns = []
    for name in order:
        inside = {_get_key(row, names): row for row in rows if row[across] == name}
        cells = _rank_cells(inside, direction)
        for head in [head for head, row in inside.items() if row["worst"]]:
            cells[head] = replace(cells[head], mark=WORST)
        counts = _count_units(inside.values()).text if across == "group" else ""
        title = f"{name} (n {counts})" if counts else name
        columns.append((Column(title, numeric=True), cells))
    return columns


def _sort_models(run: RunTables, rows: Sequence[Row]) -> list[str]:
    present = {row["model"] for row in rows}
    return [model for model in views.list_models(run) if model in present]


def _sort_heads(run: RunTables, rows: Sequence[Row], names: Sequence[str]) -> list[_Head]:
    """Return the heads of rows, of which a model is the last name, in the order of the models."""
    blocks = [*dict.fromkeys(_get_key(row, names[:-1]) for row in rows)]
    models, heads = _sort_models(run, rows), {_get_key(row, names) for row in rows}
    return [(*block, name) for block in blocks for name in models if (*block, name) in heads]


def _label_groups(metric: Definition, rows: Sequence[Row]) -> dict[str, str]:
    """Return each group as a table names it: without the label that all groups share."""
    by = str(metric.parameters.get("by", ""))
    groups = [*dict.fromkeys(row["group"] for row in rows)]
    if not get_label_name(groups):
        return {group: "&".join(wording.quote_labels(group, by)) for group in groups}
    return {group: get_label_value(wording.quote_labels(group, by)[0]) for group in groups}


def _measure_gaps(
    metric: Definition,
    rows: Sequence[Row],
    questions: Sequence[Question],
    names: Sequence[str],
) -> dict[_Head, Cell]:
    """Return the largest minus the smallest mean of the groups, marked if it is significant."""
    tests = {_get_key(row, names): row for row in _find_largest_gaps(questions).values()}
    least = int(metric.parameters.get("min_group") or 0)
    compared = _group_by([row for row in rows if not row["n"] < least], names)
    means = {head: [row["value"] for row in inside] for head, inside in compared.items()}
    spreads = {
        head: max(values) - min(values) for head, values in means.items() if len(values) > 1
    }
    places = count_decimals(spreads.values())
    return {
        head: Cell(
            format_value(spread, places),
            spread,
            mark="*" if head in tests and views.is_significant(tests[head]) else "",
        )
        for head, spread in spreads.items()
    }


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


def _find_largest_gaps(questions: Sequence[Question]) -> dict[_Head, Row]:
    """Return the largest tested difference between two groups, by dataset and model."""
    pairs: dict[_Head, Row] = {}
    for question in questions:
        for row in (row for comparison in question.comparisons for row in comparison.rows):
            key = row["dataset"], row["model"]
            if key not in pairs or abs(row["difference"]) > abs(pairs[key]["difference"]):
                pairs[key] = row
    return pairs


def _build_gaps(
    run: RunTables, metric: Definition, questions: Sequence[Question], keys: Sequence[str]
) -> Table | None:
    """Return the largest difference between two groups of each model; None if none is tested."""
    tests = {part.test for question in questions for part in question.comparisons}
    anova = {} if tests == {"welch_anova"} else _collect_anova(run, metric)
    pairs = _find_largest_gaps(questions)
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
    notes = _explain_gaps(run, metric, questions, has_anova=bool(anova))
    return Table(f"{metric.groups_heading}: gaps", tuple(columns), tuple(rows), tuple(notes))


def _describe_place(run: RunTables, comparisons: views.Comparisons) -> str:
    """Return the seed and fold of comparisons, if the run has several and no mean is compared."""
    place = dict(zip(("dataset", "seed", "fold"), comparisons.place, strict=True))
    varying = select_varying(run.metrics, ["seed", "fold"])
    return " and ".join(f"{name} {place[name]}" for name in varying if place[name] != views.ALL)


def _explain_gaps(
    run: RunTables, metric: Definition, questions: Sequence[Question], *, has_anova: bool
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
    if place := _describe_place(run, parts[0]):
        notes.append(f"The values and tests are those of {place}: no test averages over them.")
    return notes


def _collect_anova(run: RunTables, metric: Definition) -> dict[_Head, Row]:
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
    columns = (Column("metric"), *heads)
    return state_cutoff_once(Table(title, columns, rows, (note, *result.describe_excluded())))


def _build_cell(result: MetricAgreement, row: int, column: int) -> Cell:
    if row == column:
        return Cell("", note="the same metric")
    tau, n = result.get_tau((row, column)), int(result.agreement.n[row, column])
    text = wording.UNDEFINED if math.isnan(tau) else format_value(tau, 2)
    return Cell(text, tau, note=f"n {n}")
