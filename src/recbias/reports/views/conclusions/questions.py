"""What the comparisons of a run answer: one question for each metric and kind of sides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from recbias.core.measurements.columns import DATASET
from recbias.core.measurements.scores import to_loss
from recbias.reports.views.comparisons import (
    Comparisons,
    Row,
    collect_comparisons,
    is_significant,
)
from recbias.reports.views.conclusions.effects import compute_effect, rank_effect
from recbias.reports.views.conclusions.units import name_compared_unit, name_unit
from recbias.reports.views.definitions import Definition, collect_definitions, format_title
from recbias.reports.views.headline import (
    ALL,
    collect_estimates,
    get_place,
    list_single_datasets,
    select_varying,
)
from recbias.reports.views.run_tables import RunTables, to_records
from recbias.statistics.tests.proportions import EXACT

Estimates = Mapping[tuple[str, str, str], Row]
"""The rows of ``metrics.csv`` on one metric, by model, group and target."""


@dataclass(frozen=True, eq=False)
class Question:
    """The comparisons of one metric by the first of its tests, in one dataset, seed and fold.

    Args:
        dataset: Blank if the run has one.
        place: The seed and fold of the comparisons if the run has several: ``fold 1``.
        unit: What the n of an estimate counts: users, prompts, names.
        units: What the n of a comparison counts, by target.
        comparisons: Those of all models, or parts of the queries and items.
        estimates: The values of the metric in the same dataset, seed and fold.
        ratios: For the difference between groups, the significant comparisons of their ratio.
    """

    metric: Definition
    dataset: str
    place: str
    unit: str
    comparisons: tuple[Comparisons, ...]
    estimates: Estimates
    ratios: tuple[Row, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def rows(self) -> list[Row]:
        """The comparisons that have a p-value, the largest effect first."""
        rows = [
            {**row, "part": comparison.part}
            for comparison in self.comparisons
            for row in comparison.rows
            if not math.isnan(row["p_adjusted"])
        ]
        return sorted(rows, key=lambda row: rank_effect(compute_effect(row)), reverse=True)

    @cached_property
    def significant(self) -> list[Row]:
        """The significant comparisons, the largest effect first."""
        return [row for row in self.rows if is_significant(row)]

    def select_leads(self) -> list[Row]:
        """Return the largest significant difference of each model, the largest of all first."""
        ranked = sorted(self.significant, key=lambda row: -rank_effect(abs(row["difference"])))
        leads: dict[str, Row] = {}
        for row in ranked if self.between == "groups" else self.significant:
            leads.setdefault(row["model"], row)
        return [*leads.values()]

    @property
    def between(self) -> str:
        """What was compared: ``models``, ``groups``, ..."""
        return self.comparisons[0].between

    @property
    def compares_models(self) -> bool:
        """Whether models are compared with each other."""
        return self.comparisons[0].compares_models

    @cached_property
    def models(self) -> list[str]:
        """The models that are compared, or within which groups are compared."""
        rows = [row for comparison in self.comparisons for row in comparison.rows]
        names = [(row["a"], row["b"]) if self.compares_models else (row["model"],) for row in rows]
        return list(dict.fromkeys(str(name) for pair in names for name in pair))

    def select_undecided(self) -> list[Row]:
        """Return the comparisons of models that have no significant one."""
        decided = {row["model"] for row in self.significant}
        return [row for row in self.rows if row["model"] not in decided]

    def list_groups(self) -> list[Row]:
        """Return the rows of groups of queries."""
        return [row for (_, group, _), row in self.estimates.items() if group]

    def find_worst(self, model: str, target: str = "") -> list[Row]:
        """Return the rows of the worst-off groups of a model; see ``find_worst_groups``."""
        rows = [
            row
            for (name, group, part), row in self.estimates.items()
            if name == model and group and part == target
        ]
        return find_worst_groups(rows, self.metric)


def find_worst_groups(rows: Sequence[Row], metric: Definition) -> list[Row]:
    """Return the groups with the worst mean in the metric's direction: all that are tied.

    For ``zero`` they are the farthest from 0. There is none without a direction, and none if all
    defined means are equally good. Groups with fewer units than ``metric.least_marked`` are left
    out.
    """
    rows = [row for row in rows if not row["n"] < metric.least_marked]
    losses = [to_loss(row["value"], metric.group_direction) for row in rows]
    defined = [loss for loss in losses if not math.isnan(loss)]
    if not defined or math.isclose(max(defined), min(defined), rel_tol=1e-12, abs_tol=1e-15):
        return []
    return [row for row, loss in zip(rows, losses, strict=True) if loss == max(defined)]


@lru_cache(maxsize=2)
def collect_questions(run: RunTables) -> tuple[Question, ...]:
    """Return the questions that the comparisons of a run answer, in the order of the metrics.

    Tables of few units, which have an exact test, are not asked about. Where models are compared
    as a whole, they are not compared again in each group. Of several
    gaps of one grouping only the difference is asked about, and a test of all groups only
    if no pair of them is tested.
    """
    definitions = collect_definitions(run)
    groups: dict[tuple[object, ...], list[Comparisons]] = {}
    tested = {item.title for item in collect_comparisons(run) if not item.compares_models}
    others = [item for title, item in definitions.items() if item.gap or title in tested]
    repeated: dict[tuple[object, ...], list[Row]] = {}
    for comparison in collect_comparisons(run):
        if comparison.test == EXACT:  # too few units for a conclusion
            continue
        metric = definitions.get(comparison.title)
        if metric and metric.gap == "ratio" and comparison.compares_models:
            at = comparison.title.replace("gap=ratio", "gap=difference"), comparison.place
            repeated.setdefault(at, []).extend(filter(is_significant, comparison.rows))
        if not _is_repeated(definitions.get(comparison.title), others, comparison.test):
            key = (comparison.title, comparison.place, comparison.between)
            groups.setdefault(key, []).append(comparison)
    estimates = index_estimates(run)
    several = len(list_single_datasets(run)) > 1
    varying = select_varying(run.metrics, ["seed", "fold"])
    questions = []
    for comparisons in groups.values():
        first = comparisons[0]
        overall = [item for item in comparisons if item.test == first.test and not item.part]
        same = overall or [item for item in comparisons if item.part]
        metric = definitions.get(first.title) or Definition(first.title, first.title)
        dataset = first.place[0] if several else ""
        columns = dict(zip(("dataset", "seed", "fold"), first.place, strict=True))
        place = ", ".join(f"{name} {columns[name]}" for name in varying if columns[name] != ALL)
        values = estimates.get((first.place, first.title), {})
        if metric.gap:
            values = {**_list_sides(first), **values}
        ratios = tuple(repeated.get((first.title, first.place), ())) if overall else ()
        unit = name_unit(run, metric)
        units = {
            row["target"]: name_compared_unit(run, metric, row)
            for comparison in same
            for row in comparison.rows
        }
        questions.append(
            Question(metric, dataset, place, unit, tuple(same), values, ratios, units)
        )
    overall_titles = {item.metric.title for item in questions if item.compares_models}
    return tuple(
        item
        for item in questions
        if not (item.compares_models and _find_plain(item.metric, definitions) in overall_titles)
    )


def _list_sides(comparisons: Comparisons) -> Estimates:
    """Return the means that the tests of a gap compare as rows without n and intervals."""
    if comparisons.between != "groups" or comparisons.test == "welch_anova":
        return {}
    unknown = dict.fromkeys(("n", "undefined", "ci_low", "ci_high"), math.nan)
    return {
        (row["model"], row[side], row["target"]): {
            **unknown,
            **{name: row[name] for name in ("dataset", "model", "metric", "k", "target")},
            "group": row[side],
            "value": row[f"mean_{side}"],
        }
        for row in comparisons.rows
        for side in "ab"
    }


def _find_plain(metric: Definition, definitions: Mapping[str, Definition]) -> str:
    """Return the title of the metric that the groups of ``metric`` divide; blank if none."""
    if metric.parameters.get("gap") != "groups":
        return ""
    grouping = {"by", "gap", "min_group", "reference_group"}
    settings = {k: v for k, v in metric.parameters.items() if k not in grouping}
    same = (d for d in definitions.values() if d.name == metric.name and d.parameters == settings)
    return next((definition.title for definition in same), "")


def _is_repeated(metric: Definition | None, tested: Sequence[Definition], test: str) -> bool:
    """Return whether another tested metric answers the same question about groups."""
    if metric is None or not metric.gap:
        return False
    others = [other for other in tested if _share_grouping(metric, other)]
    if metric.gap != "difference":
        return any(other.gap == "difference" for other in others)
    return test == "welch_anova" and any(not other.gap for other in others)


def _share_grouping(metric: Definition, other: Definition) -> bool:
    shared = [{**item.parameters, "gap": ""} for item in (metric, other)]
    return metric.name == other.name and shared[0] == shared[1]


@lru_cache(maxsize=2)
def index_estimates(run: RunTables) -> Mapping[tuple[tuple[str, str, str], str], Estimates]:
    """Return the rows of ``metrics.csv`` by place and metric."""
    estimates: dict[tuple[tuple[str, str, str], str], dict[tuple[str, str, str], Row]] = {}
    for row in to_records(collect_estimates(run)):
        if row["model"] != DATASET:
            key = get_place(row), format_title(row["metric"], row["k"])
            part = (row["model"], row["group"], row["target"])
            estimates.setdefault(key, {})[part] = row
    return estimates
