"""What the comparisons of a run answer: a question for each metric and kind of sides.

A question has its comparisons, the largest effect first, the values that are compared, and which
models are no baselines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from recbias.core.measures import DATASET, SERVED, to_loss
from recbias.reports import views
from recbias.reports.run import RunTables, to_records
from recbias.reports.views import Definition, Row
from recbias.reports.wording import to_line
from recbias.statistics.intervals import derive_error
from recbias.statistics.paired import EXACT
from recbias.statistics.trend import NAME as TREND


def compute_effect(row: Row) -> float:
    """Return the size of an effect in standard deviations, for the order of conclusions.

    It is that of the test; else |difference| / (se √n), twice this for two groups; NaN if neither
    exists. Equal differences of all units, other than 0, are infinitely many of them.
    """
    if lacks_spread(row):
        return math.inf
    if not math.isnan(row["effect_size"]):
        return float(abs(row["effect_size"]))
    error, _ = derive_error(row)
    if not error > 0 or not row["n"] > 0:
        return math.nan
    sides = 1.0 if row["between"].startswith("model") else 2.0
    return float(sides * abs(row["difference"]) / error / math.sqrt(row["n"]))


def lacks_spread(row: Row) -> bool:
    """Return whether all units, or the units of each group, have the same difference, not 0.

    >>> row = {"between": "models", "p": 0.03, "difference": 1.0, "ci_low": float("nan")}
    >>> lacks_spread(row), lacks_spread({**row, "difference": 0.0})
    (True, False)
    """
    compares_units = str(row["between"]).startswith(("model", "prompt"))
    is_tested = not math.isnan(row["p"]) and math.isnan(row["ci_low"])
    is_constant = is_tested and (compares_units or row["test"] == "welch_t")
    return is_constant and row["difference"] != 0


def explain_equal(rows: Sequence[Row]) -> str:
    """Return why comparisons have a p-value and no interval; blank if none lacks one."""
    if not any(map(lacks_spread, rows)):
        return ""
    return (
        "A p-value without an interval, and effect ∞: all differences are equal, or the values "
        "within both groups. p is exact, that of the signs or of the labels."
    )


def rank_effect(effect: float) -> float:
    """Return a key to sort effects by: undefined ones come last if the largest is first."""
    return -math.inf if math.isnan(effect) else effect


def _rank_row(row: Row) -> tuple[float, float]:
    """Return a key to sort comparisons by: the effect, among equal ones the difference."""
    return rank_effect(compute_effect(row)), rank_effect(abs(row["difference"]))


def explain_zero(rows: Sequence[Row]) -> str:
    """Return why the intervals of significant comparisons include 0; blank if none does.

    >>> row = {"significant": True, "ci_low": -0.1, "ci_high": 0.9, "between": "targets"}
    >>> explain_zero([row])[:43]
    'Significant, though the interval includes 0'
    >>> explain_zero([{**row, "ci_low": 0.1}])
    ''
    """
    includes_zero = (
        views.is_significant(row) and row["ci_low"] <= 0.0 <= row["ci_high"] for row in rows
    )
    return _ZERO if any(includes_zero) else ""


_ZERO = (
    "Significant, though the interval includes 0: the test asks how large the difference would be "
    "by chance, and the interval, which covers more, how large it is."
)

# the rows of ``metrics.csv`` on one metric, by model, group and target
_Estimates = Mapping[tuple[str, str, str], Row]


@dataclass(frozen=True, eq=False, kw_only=True)
class Question:
    """The comparisons of one metric by the first of its tests, in one dataset, seed and fold.

    Args:
        name: What is compared, for people; ``heading`` also says by what it is grouped.
        place: The seed and fold where the run has several: ``fold 1``.
        where: The dataset and place for a sentence: `` on ml-1m (fold 1)``.
        unit: What the n of an estimate counts, and ``units`` that of a comparison: users, names.
        baselines: The models that others are compared with.
        comparisons: Those of all models, or parts of the queries and items.
        estimates: The values of the metric in the same dataset, seed and fold.
        served: The comparisons of all models over the queries that all of them have a list for.
    """

    metric: Definition
    name: str
    heading: str
    place: str
    where: str
    unit: str
    units: str
    baselines: frozenset[str]
    comparisons: tuple[views.Comparisons, ...]
    estimates: _Estimates
    served: views.Comparisons | None = None

    @cached_property
    def rows(self) -> list[Row]:
        """The comparisons that have a p-value, the largest effect first."""
        rows = [
            {**row, "part": comparison.part}
            for comparison in self.comparisons
            for row in comparison.rows
            if not math.isnan(row["p_adjusted"])
        ]
        return sorted(rows, key=_rank_row, reverse=True)

    @cached_property
    def significant(self) -> list[Row]:
        """The significant comparisons, the largest effect first."""
        return [row for row in self.rows if views.is_significant(row)]

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
        """The models that are compared, or within which groups are compared, no baselines.

        Baselines if there is nothing else.
        """
        rows = [row for comparison in self.comparisons for row in comparison.rows]
        names = [(row["a"], row["b"]) if self.compares_models else (row["model"],) for row in rows]
        found = list(dict.fromkeys(str(name) for pair in names for name in pair))
        return [name for name in found if name not in self.baselines] or found

    def get_value(self, model: str) -> float:
        """Return the value of a model, NaN if it has none."""
        return float(self.estimates.get((model, "", ""), {"value": math.nan})["value"])

    def list_groups(self) -> list[Row]:
        """Return the rows of groups of queries."""
        return [row for (_, group, _), row in self.estimates.items() if group]

    def find_worst(self, model: str, target: str = "") -> list[Row]:
        """Return the rows of the worst-off groups of a model; see ``find_worst_groups``."""
        rows = [row for row in self.list_groups() if row["model"] == model]
        return find_worst_groups([row for row in rows if row["target"] == target], self.metric)


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
    as a whole, they are not compared again in each group. Of several gaps of one grouping only the
    difference is asked about, and a test of all groups only if no pair of them is tested.
    """
    definitions = views.collect_definitions(run)
    tested = {item.title for item in views.collect_comparisons(run) if not item.compares_models}
    others = [item for title, item in definitions.items() if item.gap or title in tested]
    groups: dict[tuple[object, ...], list[views.Comparisons]] = {}
    for comparison in views.collect_comparisons(run):
        is_repeated = _is_repeated(definitions.get(comparison.title), others, comparison.test)
        if comparison.test != EXACT and not is_repeated:
            is_trend = comparison.test == TREND  # asked about beside the test of all groups
            key = (comparison.title, comparison.place, comparison.between, is_trend)
            groups.setdefault(key, []).append(comparison)
    questions = [_ask(run, comparisons) for comparisons in groups.values()]
    overall = {item.metric.title for item in questions if item.compares_models}
    return tuple(
        item
        for item in questions
        if not (item.compares_models and _find_plain(item.metric, definitions) in overall)
    )


def _ask(run: RunTables, comparisons: Sequence[views.Comparisons]) -> Question:
    first = comparisons[0]
    overall = [item for item in comparisons if item.test == first.test and not item.part]
    same = overall or [item for item in comparisons if not item.part.startswith(SERVED)]
    served = [item for item in comparisons if item.part == SERVED and item.test == first.test]
    metric = views.collect_definitions(run).get(first.title) or Definition(
        first.title, first.title
    )
    estimates = _index_estimates(run).get((first.place, first.title), {})
    is_of_groups = "by" in metric.parameters and (first.between == "groups" or not metric.gap)
    unit, (place, where) = name_unit(run, metric), describe_place(run, first.place)
    sets = [metric.parameters.get(name) for name in ("groups", "targets")]
    of = [str(item["of"]).removesuffix("s") for item in sets if isinstance(item, Mapping)]
    return Question(
        metric=metric,
        name=views.name_metric(run, metric, "a group" if is_of_groups else ""),
        heading=views.name_metric(run, metric),
        place=place,
        where=where,
        unit=unit,
        units=unit if not of else of[0] if first.between == "groups" else of[-1],
        baselines=views.list_baselines(run),
        comparisons=tuple(same),
        estimates={**_list_sides(first), **estimates} if metric.gap else estimates,
        served=served[0] if served and overall else None,
    )


def describe_place(run: RunTables, place: tuple[str, str, str]) -> tuple[str, str]:
    """Return the seed and fold of a place, and all of it for a sentence, where it varies."""
    several = len(views.list_single_datasets(run)) > 1
    where = "over all datasets" if place[0] == views.ALL else f"on {to_line(place[0])}"
    varying = views.select_varying(run.metrics, ["seed", "fold"])
    columns = dict(zip(("seed", "fold"), place[1:], strict=True))
    part = ", ".join(f"{name} {columns[name]}" for name in varying if columns[name] != views.ALL)
    return part, f" {where}" * several + f" ({part})" * bool(part)


def name_unit(run: RunTables, metric: Definition) -> str:
    """Return what a metric counts: its unit, or that of the queries; blank if it is unknown."""
    requested = {str(entry.get("unit", "query")) for entry in run.manifest.get("queries", [])}
    queries = requested.pop() if len(requested) == 1 else "query"
    if metric.unit not in {"", "query"}:
        return metric.unit.replace("_", " ")
    return "" if queries == "prompt" and not metric.unit else queries


def _list_sides(comparisons: views.Comparisons) -> _Estimates:
    """Return the means that the tests of a gap compare as rows without n and intervals."""
    if comparisons.between != "groups" or comparisons.test in {"welch_anova", TREND}:
        return {}
    unknown = dict.fromkeys(("n", "undefined", "ci_low", "ci_high"), math.nan)
    columns = ("dataset", "model", "metric", "k", "target")
    return {
        (row["model"], row[side], row["target"]): {
            **unknown,
            **{name: row[name] for name in columns},
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
    grouping = {"by", "gap", "min_group", "reference_group", "pairs"}
    settings = {k: v for k, v in metric.parameters.items() if k not in grouping}
    same = (d for d in definitions.values() if d.name == metric.name and d.parameters == settings)
    return next((definition.title for definition in same), "")


def _is_repeated(metric: Definition | None, tested: Sequence[Definition], test: str) -> bool:
    """Return whether another tested metric answers the same question about groups."""
    if metric is None or not metric.gap:
        return False
    settings = {**metric.parameters, "gap": ""}
    others = [
        other
        for other in tested
        if other.name == metric.name and {**other.parameters, "gap": ""} == settings
    ]
    if metric.gap != "difference":
        return any(other.gap == "difference" for other in others)
    return test == "welch_anova" and any(not other.gap for other in others)


@lru_cache(maxsize=2)
def _index_estimates(run: RunTables) -> Mapping[tuple[tuple[str, str, str], str], _Estimates]:
    """Return the rows of ``metrics.csv`` by place and metric."""
    estimates: dict[tuple[tuple[str, str, str], str], dict[tuple[str, str, str], Row]] = {}
    for row in to_records(views.collect_estimates(run)):
        if row["model"] != DATASET:
            key = views.get_place(row), views.format_title(row["metric"], row["k"])
            part = (row["model"], row["group"], row["target"])
            estimates.setdefault(key, {})[part] = row
    return estimates
