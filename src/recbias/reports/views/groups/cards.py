"""A fairness card for each grouped metric: the groups, the gaps between them, and their tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from recbias.core.measurements.columns import DATASET
from recbias.core.measurements.scores import Direction
from recbias.reports.views.comparisons import Row, collect_comparisons, is_significant
from recbias.reports.views.conclusions.questions import Question, collect_questions
from recbias.reports.views.definitions import Definition, collect_definitions
from recbias.reports.views.grid import Cell, Column, Table, make_columns
from recbias.reports.views.groups.group_tables import WORST, find_worst_rows
from recbias.reports.views.headings import quote_labels
from recbias.reports.views.headline import (
    collect_estimates,
    describe_means,
    select_headline,
    select_varying,
)
from recbias.reports.views.rounding import (
    count_decimals,
    format_interval,
    format_p_value,
    format_value,
)
from recbias.reports.views.run_tables import RunTables, to_records
from recbias.reports.views.wide_tables import get_key, get_title

_WORST: Mapping[Direction, str] = {
    "higher": "w, worst off: the lowest mean of the model; the gap may not be significant.",
    "lower": "w, worst off: the highest mean of the model; the gap may not be significant.",
    "zero": "w, worst off: the farthest from 0 of the model; the gap may not be significant.",
    "none": "The metric has no preferred direction, so no group is marked as the worst off.",
}


@dataclass(frozen=True, eq=False)
class FairnessCard:
    """The groups of a metric, and the gap between them in each model.

    Args:
        metric: The grouped metric.
        groups: One row per model and group; the worst-off group is marked.
        gaps: One row per model with the largest difference and its test; None without tests.
    """

    metric: Definition
    groups: Table
    gaps: Table | None

    @property
    def tables(self) -> list[Table]:
        """The tables of the card."""
        return [self.groups, *([self.gaps] if self.gaps else [])]


def build_cards(run: RunTables) -> list[FairnessCard]:
    """Return a card for each metric by group of queries, or gap of two groups, without targets."""
    definitions = collect_definitions(run)
    rows_by_title: dict[str, list[Row]] = {}
    for row in to_records(select_headline(run, collect_estimates(run))):
        if row["group"] and row["model"] != DATASET:
            rows_by_title.setdefault(get_title(row), []).append(row)
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
            groups = replace(groups, notes=(*groups.notes, *describe_means(run)))
            cards.append(FairnessCard(metric, groups, gaps))
    return cards


def _build_groups(metric: Definition, rows: Sequence[Row], keys: Sequence[str]) -> Table:
    places, worst = count_decimals(row["value"] for row in rows), find_worst_rows(rows, metric)
    heads = (*keys, "model", "group", "n", "mean", "95% interval", "remark")
    cells, by = [], str(metric.parameters.get("by", ""))
    for row in sorted(rows, key=lambda row: get_key(row, keys)):
        counts = f"{row['n']:,.0f}" if not math.isnan(row["n"]) else ""
        interval = format_interval(row["ci_low"], row["ci_high"], places)
        cells.append(
            (
                *(Cell(row[name]) for name in (*keys, "model")),
                Cell(
                    "&".join(quote_labels(row["group"], by)),
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
    notes = _explain_gaps(run, metric, questions, has_anova=bool(anova))
    return Table(f"{metric.groups_heading}: gaps", tuple(columns), tuple(rows), tuple(notes))


def _explain_gaps(
    run: RunTables, metric: Definition, questions: Sequence[Question], *, has_anova: bool
) -> list[str]:
    """Return the notes of a table of gaps: tests, compared groups, seeds and folds."""
    parts = [part for question in questions for part in question.comparisons]
    methods = "; ".join(dict.fromkeys(part.method() for part in parts))
    is_of_all = {part.test for part in parts} == {"welch_anova"}
    lead = "The largest difference between two groups of each model"
    notes = [f"{lead}{'; p is that of all groups' if is_of_all else ''}: {methods}."]
    if least := metric.parameters.get("min_group"):
        notes.append(f"Groups with n of at least {least:,} are compared.")
    notes += ["p of all groups: Welch's analysis of variance, adjusted."] * has_anova
    varying = select_varying(run.metrics, ["seed", "fold"])
    if place := questions[0].place:
        notes.append(f"The values and tests are those of {place}: no test averages over them.")
    elif varying:
        over, each = " and ".join(f"{name}s" for name in varying), " and ".join(varying)
        notes.append(
            f"The gap here is that of the means over {over} above; the gap in the results is the "
            f"mean of the gaps of each {each}, in which differences of opposite sign do not "
            "cancel, so it may be larger."
        )
    return notes


def _collect_anova(run: RunTables, metric: Definition) -> dict[tuple[str, str], Row]:
    """Return the test of all groups of a metric by dataset and model."""
    gap = {**metric.parameters, "gap": "difference"}
    definitions = collect_definitions(run)
    return {
        (row["dataset"], row["model"]): row
        for comparisons in collect_comparisons(run)
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
        Cell(format_interval(low, high, places), low),
        *(Cell(format_p_value(row[p], row["alpha"]), row[p]) for p in ("p", "p_adjusted")),
        Cell("yes" if is_significant(row) else "no"),
        *(Cell(format_p_value(p), p) for p in all_groups),
    )
