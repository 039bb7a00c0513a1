"""The conclusions of a run in plain sentences, no stronger than its tests, most important first.

What the comparisons answer is collected as questions: one for each metric and kind of sides.
Failed checks, re-ranking, feedback and metrics without a test have sentences of their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

from recbias.core.files import has_file
from recbias.core.measures import DATASET, SERVED, read_bounds, to_loss
from recbias.reports import views
from recbias.reports.run import RunTables, convert_parquet_errors, to_records
from recbias.reports.views import DIRECTION_LABELS, Definition, Row
from recbias.reports.wording import (
    count_decimals,
    format_count,
    format_interval,
    format_p_value,
    format_value,
    make_heading,
    name_group,
    to_line,
)
from recbias.statistics.groups import MAX_PAIRS
from recbias.statistics.intervals import derive_error, detect_difference
from recbias.statistics.paired import EXACT
from recbias.statistics.uncertain import TEST as UNCERTAIN


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
    """Return whether all units of a test have the same difference, other than 0.

    Those of two groups have it if the values within both are equal.

    >>> row = {"between": "models", "p": 0.03, "difference": 1.0, "ci_low": float("nan")}
    >>> row |= {"test": "paired_t"}
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


def _find_detectable(rows: Sequence[Row]) -> float:
    """Return the difference that each of these comparisons would have found; NaN if unknown."""
    differences = [detect_difference(row) for row in rows]
    return max((value for value in differences if not math.isnan(value)), default=math.nan)


_DIRECTION = (
    "the test takes the direction as it is, and the interval also covers its sampling error"
)
# what a test and the interval beside it answer, by test and what it compares
_REASONS = {
    ("permutation", "targets"): _DIRECTION,
    ("random_direction", "directions"): _DIRECTION,
    ("permutation", "groups"): (
        "the test asks how large the difference would be by chance if membership did not matter, "
        "and the interval how far it may be from that of all there could be"
    ),
}

_OTHER = "the test and the interval are not made from each other, and the interval is wider"


def explain_zero(rows: Sequence[Row]) -> str:
    """Return why the intervals of significant comparisons include 0; blank if none does.

    >>> row = {"significant": True, "ci_low": -0.1, "ci_high": 0.9, "test": "permutation"}
    >>> explain_zero([{**row, "between": "targets"}])[:54]
    'Significant, though the interval includes 0: the test '
    >>> explain_zero([{**row, "between": "targets", "ci_low": 0.1}])
    ''
    """
    reasons = dict.fromkeys(
        _REASONS.get((str(row["test"]), str(row["between"])), _OTHER)
        for row in rows
        if views.is_significant(row) and row["ci_low"] <= 0.0 <= row["ci_high"]
    )
    if not reasons:
        return ""
    return f"Significant, though the interval includes 0: {'; or '.join(reasons)}."


def _describe_failed_checks(run: RunTables) -> Iterator[tuple[str, str, str, str]]:
    """Yield the sentence, metric, dataset and model of each failed check."""
    checks = run.manifest.get("checks", [])
    names_dataset = len({check["dataset"] for check in checks}) > 1
    for check in checks:
        if not check["failed"]:
            continue
        numbers = (check["value"], check["ci_low"], check["ci_high"])
        value, low, high = (math.nan if number is None else number for number in numbers)
        places = count_decimals([value, low, high])
        title = views.format_title(check["metric"], math.nan if check["k"] is None else check["k"])
        parts = [check["group"], check["target"], check["dataset"] if names_dataset else ""]
        suffix = "".join(f", {to_line(part)}" for part in parts if part)
        interval = format_interval(low, high, places)
        bounds = f"95% interval {interval}" if interval else "no interval"
        sentence = (
            f"Check failed: {to_line(check['model'])}, {to_line(make_heading(title))}{suffix}: "
            f"{format_value(value, places)} ({bounds}); limit: {to_line(check['limit'])}."
        )
        yield sentence, title, str(check["dataset"]), str(check["model"])


def _name_unit(run: RunTables, metric: Definition) -> str:
    """Return what a metric counts: its unit, or that of the queries; blank if it is unknown."""
    requested = {str(entry.get("unit", "query")) for entry in run.manifest.get("queries", [])}
    queries = requested.pop() if len(requested) == 1 else "query"
    if metric.unit not in {"", "query"}:
        return metric.unit.replace("_", " ")
    return "" if queries == "prompt" and not metric.unit else queries


def _name_compared_unit(run: RunTables, metric: Definition, row: Row) -> str:
    """Return what the n of a comparison counts."""
    sets = [metric.parameters.get(name) for name in ("groups", "targets")]
    of = [str(item["of"]) for item in sets if isinstance(item, Mapping) and "of" in item]
    if not of:
        return _name_unit(run, metric)
    if row["between"] == "groups":
        return of[0].removesuffix("s")
    unit = _collect_target_units(run).get((row["metric"], row["target"]))
    return unit or of[-1].removesuffix("s")


@lru_cache(maxsize=2)
def _collect_target_units(run: RunTables) -> Mapping[tuple[str, str], str]:
    """Return the unit of each metric and target that has values of units."""
    path = run.folder / "per_unit.parquet"
    if not has_file(path):
        return {}
    import pyarrow.parquet as pq

    with convert_parquet_errors(path):
        table = pq.ParquetFile(path).read(columns=["metric", "target", "unit"])
    units = table.to_pandas().drop_duplicates().astype(str)
    return {(metric, target): unit for metric, target, unit in units.itertuples(index=False)}


# the rows of ``metrics.csv`` on one metric, by model, group and target
_Estimates = Mapping[tuple[str, str, str], Row]


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
        served: The comparisons of all models over the queries that all of them have a list for.
    """

    metric: Definition
    dataset: str
    place: str
    unit: str
    comparisons: tuple[views.Comparisons, ...]
    estimates: _Estimates
    ratios: tuple[Row, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
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
        """The models that are compared, or within which groups are compared."""
        rows = [row for comparison in self.comparisons for row in comparison.rows]
        names = [(row["a"], row["b"]) if self.compares_models else (row["model"],) for row in rows]
        return list(dict.fromkeys(str(name) for pair in names for name in pair))

    def select_undecided(self) -> list[Row]:
        """Return the comparisons of models that have no significant one."""
        decided = {row["model"] for row in self.significant}
        return [row for row in self.rows if row["model"] not in decided]

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
    definitions = views.collect_definitions(run)
    groups: dict[tuple[object, ...], list[views.Comparisons]] = {}
    tested = {item.title for item in views.collect_comparisons(run) if not item.compares_models}
    others = [item for title, item in definitions.items() if item.gap or title in tested]
    repeated: dict[tuple[object, ...], list[Row]] = {}
    for comparison in views.collect_comparisons(run):
        if comparison.test == EXACT:  # too few units for a conclusion
            continue
        metric = definitions.get(comparison.title)
        if metric and metric.gap == "ratio" and comparison.compares_models:
            at = comparison.title.replace("gap=ratio", "gap=difference"), comparison.place
            repeated.setdefault(at, []).extend(filter(views.is_significant, comparison.rows))
        if not _is_repeated(definitions.get(comparison.title), others, comparison.test):
            key = (comparison.title, comparison.place, comparison.between)
            groups.setdefault(key, []).append(comparison)
    estimates = _index_estimates(run)
    several = len(views.list_single_datasets(run)) > 1
    varying = views.select_varying(run.metrics, ["seed", "fold"])
    questions = []
    for comparisons in groups.values():
        first = comparisons[0]
        overall = [item for item in comparisons if item.test == first.test and not item.part]
        same = overall or [item for item in comparisons if not item.part.startswith(SERVED)]
        metric = definitions.get(first.title) or Definition(first.title, first.title)
        dataset = first.place[0] if several else ""
        columns = dict(zip(("dataset", "seed", "fold"), first.place, strict=True))
        place = ", ".join(
            f"{name} {columns[name]}" for name in varying if columns[name] != views.ALL
        )
        values = estimates.get((first.place, first.title), {})
        if metric.gap:
            values = {**_list_sides(first), **values}
        ratios = tuple(repeated.get((first.title, first.place), ())) if overall else ()
        served = [item for item in comparisons if item.part == SERVED and item.test == first.test]
        unit = _name_unit(run, metric)
        units = {
            row["target"]: _name_compared_unit(run, metric, row)
            for comparison in same
            for row in comparison.rows
        }
        questions.append(
            Question(
                *(metric, dataset, place, unit, tuple(same), values, ratios, units),
                served=served[0] if served and overall else None,
            )
        )
    overall_titles = {item.metric.title for item in questions if item.compares_models}
    return tuple(
        item
        for item in questions
        if not (item.compares_models and _find_plain(item.metric, definitions) in overall_titles)
    )


def _list_sides(comparisons: views.Comparisons) -> _Estimates:
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
def _index_estimates(run: RunTables) -> Mapping[tuple[tuple[str, str, str], str], _Estimates]:
    """Return the rows of ``metrics.csv`` by place and metric."""
    estimates: dict[tuple[tuple[str, str, str], str], dict[tuple[str, str, str], Row]] = {}
    for row in to_records(views.collect_estimates(run)):
        if row["model"] != DATASET:
            key = views.get_place(row), views.format_title(row["metric"], row["k"])
            part = (row["model"], row["group"], row["target"])
            estimates.setdefault(key, {})[part] = row
    return estimates


_MOST_VERSIONS = 3  # how many re-ranked versions a sentence names: those that remove most

# what less and more bias is, by the direction of the measure
_VERBS = {
    "lower": ("lowers it", "raises it"),
    "higher": ("raises it", "lowers it"),
    "zero": ("brings it nearer to 0", "takes it farther from 0"),
    "none": ("improves it", "worsens it"),
}

_DETAIL = (
    "Of each re-ranker the setting that removes most; intervals are not corrected for this choice."
    " Price: accuracy lost for one unit of bias removed, where some is removed."
)


def describe_reranking(run: RunTables) -> Iterator[tuple[str, str, str, str]]:
    """Yield metric, dataset, a sentence and its detail for each measure of bias of the run.

    The measures of which a version is shown to remove something are first, else in the order of
    ``tradeoffs.csv``; only the first has the detail, which is that of all. Nothing without
    re-ranking.
    """
    detail = _DETAIL
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in views.select_tradeoffs(run):
        groups.setdefault((row["dataset"], row["bias"], row["target"]), []).append(row)
    definitions, several = views.collect_definitions(run), len(views.list_single_datasets(run)) > 1
    for (dataset, bias, target), rows in sorted(groups.items(), key=lambda item: _rank(item[1])):
        metric = definitions.get(bias) or Definition(bias, bias)
        versions = _select_versions(rows)
        if versions:
            where = f" on {to_line(dataset)}" if several else ""
            texts = [_describe(row, metric) for row in versions[:_MOST_VERSIONS]]
            more = len(versions) - len(texts)
            rest = f"; {more:,} more in the table" if more else ""
            lead = f"{to_line(metric.describe_value(target=target))}{where}"
            yield bias, dataset, f"{lead}: {'; '.join(texts)}{rest}.", detail
            detail = ""


def _rank(rows: Sequence[Row]) -> bool:
    return not any(row["bias_removed_low"] > 0 for row in rows)


def _select_versions(rows: Sequence[Row]) -> list[Row]:
    """Return the version of each model and re-ranker that removes most, the largest first."""
    best: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: -float(row["bias_removed"])):
        if not math.isnan(row["bias_removed"]):
            best.setdefault((row["baseline"], views.name_reranker(row)), row)
    return [*best.values()]


def _describe(row: Row, metric: Definition) -> str:
    """Return a version with what it removes, what it costs, and the price if that is known."""
    name, setting, strength = views.name_reranker(row), row["setting"], row["strength"]
    if not math.isnan(strength) and f"{setting}=" not in name:
        name = f"{name} ({setting} {strength:g})"
    subject = to_line(f"{name} of {row['baseline']}")
    low, removed, high = (row[f"bias_removed{end}"] for end in ("_low", "", "_high"))
    if removed == 0:
        effect = f"{subject} does not change it"
    elif low <= 0 <= high:
        effect = f"{subject} is not shown to change the bias: {_state(row, 'bias_removed')} less"
    else:
        verb = _VERBS[metric.direction][removed < 0]
        effect = f"{subject} {verb} by {_state(row, 'bias_removed', signed=False)}"
    gains = row["accuracy_lost"] < 0
    cost = _state(row, "accuracy_lost", make_heading(row["accuracy"]), signed=False)
    price = "" if math.isnan(row["price"]) else f", price {_state(row, 'price')}"
    return f"{effect} {'and gains' if gains else 'at'} {cost}{price}"


def _state(row: Row, name: str, unit: str = "", *, signed: bool = True) -> str:
    """Return a figure of a row with its interval; not ``signed``: its size."""
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    if value < 0 and not signed:
        value, low, high = -value, -high, -low
    places = count_decimals([value])
    interval = format_interval(low, high, places)
    bounds = f"95% interval {interval}" if interval else "no interval"
    if name == "price" and views.is_unbounded(row):
        bounds = "unbounded interval"
    return f"{format_value(value, places)}{f' {to_line(unit)}' if unit else ''} ({bounds})"


_MOST_MODELS = 4  # how many models a sentence names: those that change most


def _describe_rounds(run: RunTables) -> Iterator[tuple[str, str, str, str]]:
    """Yield metric, dataset, a sentence and its detail for each value."""
    datasets = views.list_single_datasets(run)
    for dataset in datasets:
        curves = views.list_round_curves(run, dataset)
        where = f" on {to_line(dataset)}" if len(datasets) > 1 else ""
        for heading, group in itertools.groupby(curves, _describe_value):
            members = list(group)
            last = max(members[0].values)
            span = f"from round 1 to round {last}"
            sentence = f"{to_line(heading)}{where}, {span}: {_list_changes(members)}."
            detail = "The largest change first; no test compares the rounds."
            yield members[0].metric.title, dataset, sentence, detail


def _describe_value(curve: views.RoundCurve) -> str:
    return curve.metric.describe_value(curve.group, curve.target)


def _list_changes(curves: Sequence[views.RoundCurve]) -> str:
    """Return the first and last values of the models, the largest change first."""
    ends = [(curve.model, *_take_ends(curve)) for curve in curves]
    defined = [row for row in ends if not math.isnan(row[2] - row[1])]
    defined.sort(key=lambda row: -abs(row[2] - row[1]))
    displayed = defined[:_MOST_MODELS]
    places = count_decimals([value for _, *values in displayed for value in values])
    texts = [
        f"{to_line(model)} {format_value(first, places)} to {format_value(last, places)}"
        for model, first, last in displayed
    ]
    rest = len(ends) - len(displayed)
    if not texts:
        return "undefined"
    return ", ".join(texts) + (f", and {rest} more" if rest else "")


def _take_ends(curve: views.RoundCurve) -> tuple[float, float]:
    return curve.values[min(curve.values)], curve.values[max(curve.values)]


class _Answer(NamedTuple):
    """An answer to a question: a short sentence, and how it was found in a second line."""

    sentence: str
    detail: str


# the units of the metrics that have one
_SCALES: Mapping[str, str] = {
    "mean_attribute": "levels of {attribute}",
    "ARP": "interactions",
    "log_popularity_difference": "log interactions",
}


def _name_metric(question: Question) -> str:
    """Return the heading of the metric, with the dataset where there are several."""
    suffix = f" on {to_line(question.dataset)}" if question.dataset else ""
    suffix += f", {question.place}" if question.place else ""
    metric = question.metric
    within = question.between == "groups"
    return to_line(metric.groups_heading if within else metric.heading) + suffix


def _name_models(models: Sequence[str]) -> str:
    """Return models as text: one, two, or the number of more.

    >>> _name_models(["EASE"]), _name_models(["EASE", "ALS"]), _name_models(["a", "b", "c"])
    ('EASE', 'EASE and ALS', 'any of 3 models')
    """
    if len(models) > 2:
        return f"any of {len(models):,} models"
    return " and ".join(map(to_line, models))


def _measure_places(*rows: Row) -> int:
    """Return the number of decimals for the means and differences of comparisons."""
    names = ("difference", "mean_a", "mean_b")
    return count_decimals(row[name] for row in rows for name in names)


def _format_size(question: Question, value: float, places: int) -> str:
    """Return the size of a difference with its unit, if the metric has one."""
    scale = _SCALES.get(question.metric.name, "").format_map(
        {"attribute": question.metric.parameters.get("attribute", "the attribute")}
    )
    return f"{format_value(abs(value), places)}{f' {scale}' if scale else ''}"


def _describe_difference(row: Row, places: int) -> str:
    """Return the difference of a comparison with its interval."""
    return f"{format_value(row['difference'], places)} ({_describe_interval(row, places)})"


def _describe_interval(row: Row, places: int) -> str:
    """Return the interval of the difference of a comparison."""
    level = 1.0 - row["alpha"] if row["between"].startswith("model") else 0.95
    interval = format_interval(row["ci_low"], row["ci_high"], places)
    if lacks_spread(row):
        if row["between"] == "groups":
            return "no interval: the values within both are equal"
        return f"no interval: all {row['n']:,.0f} differences are equal"
    return f"{100 * level:.4g}% interval {interval}" if interval else "no interval"


def _make_positive(row: Row) -> Row:
    """Return a comparison whose difference, with its interval, is not negative."""
    return _orient(row, row["b"] if row["difference"] < 0 else row["a"])


def _orient(row: Row, model: str) -> Row:
    """Return a comparison of models with the difference of ``model`` less the other.

    >>> row = {"a": "x", "b": "y", "difference": -1.0, "ci_low": -3.0, "ci_high": 0.5}
    >>> [_orient(row, "y")[name] for name in ("difference", "ci_low", "ci_high")]
    [1.0, -0.5, 3.0]
    """
    if row["a"] == model:
        return row
    low, high = -row["ci_high"], -row["ci_low"]
    return {**row, "difference": -row["difference"], "ci_low": low, "ci_high": high}


def _count_units(n: float, unit: str) -> str:
    """Return a number of units with their name, if they have one.

    >>> _count_units(96.0, "user"), _count_units(12.0, "")
    ('96 users', 'n 12')
    """
    return format_count(n, unit) if unit else f"n {n:,.0f}"


def _describe_p_value(row: Row) -> str:
    """Return the p-value of a comparison, and whether it is adjusted.

    >>> row = {"p_adjusted": 0.0022, "correction": "holm", "family_size": 3.0, "alpha": 0.05}
    >>> _describe_p_value(row)
    'adjusted p 0.0022'
    """
    unchanged = row["correction"] in {"", "none"} or row["family_size"] == 1
    adjusted = "" if unchanged else "adjusted "
    return f"{adjusted}p {format_p_value(row['p_adjusted'], row['alpha'])}"


def _describe_test(question: Question, row: Row | None = None, result: str = "") -> str:
    """Return the test, the correction, the family, and the p-value and n of a comparison."""
    methods = views.describe_methods(question.comparisons)
    texts = [_describe_p_value(row), _count_compared(question, row)] if row else []
    found = ", ".join(filter(None, [result, *texts]))
    text = f"{methods}: {found}." if found else f"{methods}."
    return text[0].upper() + text[1:]


def _count_compared(question: Question, row: Row) -> str:
    """Return the number of units of a comparison, or of both its sides if they have their own."""
    sides = [question.estimates.get((row["model"], row[side], row["target"])) for side in "ab"]
    counts = [side["n"] for side in sides if side is not None and not math.isnan(side["n"])]
    unit = question.units.get(row["target"], question.unit)
    shares_units = question.compares_models or row["test"] == UNCERTAIN
    if len(counts) < len(sides) or shares_units:
        return "" if math.isnan(row["n"]) else _count_units(row["n"], unit)
    if unit:
        return f"{counts[0]:,.0f} and {_count_units(counts[1], unit)}"
    return f"n {counts[0]:,.0f} and {counts[1]:,.0f}"


def _describe_side(question: Question, row: Row, side: str, places: int) -> str:
    """Return a side of a comparison: its name and mean."""
    return f"{_name_side(question, row, side)} ({format_value(row[f'mean_{side}'], places)})"


def _name_side(question: Question, row: Row, side: str) -> str:
    """Return the name of a side of a comparison; of a crossing, ``gender=F and age < 25``."""
    name = str(row[side])
    if question.between == "groups" or side == "group":
        name = name_group(name, str(question.metric.parameters.get("by", "")))
    return to_line(name)


def _describe_worst(question: Question, model: str, target: str, named: Sequence[str] = ()) -> str:
    """Return a sentence on the worst-off groups of a model, blank if there is none."""
    rows = question.find_worst(model, target)
    if not rows:
        return ""
    places = count_decimals(row["value"] for row in rows)
    names = []
    for row in rows:
        mean = "" if row["group"] in named else format_value(row["value"], places)
        n = "" if math.isnan(row["n"]) else _count_units(row["n"], question.unit)
        facts = ", ".join(filter(None, [mean, n]))
        names.append(f"{_name_side(question, row, 'group')}{f' ({facts})' if facts else ''}")
    return f" Worst off: {' and '.join(names)}."


# why no test could be computed, by what it compares
_UNDEFINED_REASONS = {
    "groups": ": a group has fewer than two values, or all its values are equal",
    "models": ": they have fewer than two units, or the same difference on every sample",
}


def _describe_power(question: Question, rows: Sequence[Row]) -> str:
    """Return what comparisons of a question that are not significant could have found."""
    if all(row["difference"] == 0 for row in rows):
        return "all compared values are equal"
    detectable = _find_detectable(rows)
    if math.isnan(detectable):
        return "what could have been detected is undefined"
    places = count_decimals([detectable])
    text = format_value(detectable, min(places, 4) if detectable >= 0.01 else places)
    low, high = read_bounds(question.metric.values)
    found = f"one of at least {text}" if detectable <= high - low else f"not even {high - low:g}"
    return f"{found} would have been detected in 80 of 100 such runs"


def _write_answer(question: Question) -> _Answer:
    """Return the answer: the largest significant difference, or what could have been detected."""
    if question.served is not None:
        return _write_served(question, question.served)
    if not question.rows:
        return _write_undefined(question)
    if question.compares_models and not question.comparisons[0].part and _list_best(question):
        return _write_best(question)
    if not question.significant:
        return _write_no_difference(question)
    if question.compares_models:
        return _write_models(question)
    return _write_contrast(question)


def _write_served(question: Question, served: views.Comparisons) -> _Answer:
    """Return the answer, and that over the queries that all models have a list for."""
    rows = tuple({**row, "group": "", "part": ""} for row in served.rows)
    selected = {
        (model, "", target): row
        for (model, group, target), row in question.estimates.items()
        if group == SERVED
    }
    other = replace(
        question,
        comparisons=(replace(served, part="", rows=rows),),
        estimates=selected,
        served=None,
    )
    whole, answer = (_write_answer(each) for each in (replace(question, served=None), other))
    scope = _describe_served([*question.estimates.values()], [*selected.values()], question.unit)
    return whole._replace(sentence=f"{whole.sentence} {scope} {answer.sentence}")


def _describe_served(rows: Sequence[Row], served: Sequence[Row], unit: str) -> str:
    """Return how many queries all models have a list for, as the start of a sentence."""
    n, total = (max(float(row["n"]) for row in part) for part in (served, rows))
    return f"All models have lists for {n:,.0f} of {_count_units(total, unit)} only; on these:"


def _write_undefined(question: Question) -> _Answer:
    sentence = (
        f"{_name_metric(question)}: no test between {question.between} could be computed for "
        f"{_name_models(question.models)}, so whether they differ is undefined"
        f"{_UNDEFINED_REASONS.get(question.between, '')}."
    )
    return _Answer(sentence, _describe_test(question))


def _write_no_difference(question: Question) -> _Answer:
    rows, models = question.rows, question.models
    sides = list(
        dict.fromkeys(_name_side(question, row, side) for row in rows for side in ("a", "b"))
    )
    named = " and ".join(sides) if len(sides) == 2 else question.between
    within = "" if question.compares_models else f" for {_name_models(models)}"
    equal = [row for row in rows if lacks_spread(row)]
    if equal:
        sentence = _describe_equal(question, equal)
    else:
        sentence = (
            f"No difference between {named} found in {_name_metric(question)}{within}; "
            f"{_describe_power(question, rows)}."
        )
    sentence += _describe_untested(question)
    if question.ratios:
        clearest = min(question.ratios, key=lambda row: float(row["p_adjusted"]))
        sentence += f" The ratio of the groups differs ({_describe_p_value(clearest)})."
    if len(rows) == 1:
        places = _measure_places(rows[0])
        difference = f"difference {_describe_difference(rows[0], places)}"
        test = _describe_test(question, rows[0], difference)
    else:
        smallest = _describe_p_value(min(rows, key=lambda row: float(row["p_adjusted"])))
        test = _describe_test(
            question, result=f"{format_count(len(rows), 'test')}, smallest {smallest}"
        )
    worst = _describe_worst(question, models[0], "") if len(models) == 1 else ""
    return _Answer(sentence, f"{test}{worst}")


def _describe_equal(question: Question, rows: Sequence[Row]) -> str:
    """Return the largest difference that all units have, and that so few cannot be significant."""
    row = max(rows, key=lambda row: float(abs(row["difference"])))
    size = _format_size(question, row["difference"], _measure_places(row))
    order = "above" if row["difference"] > 0 else "below"
    a, b = (_name_side(question, row, side) for side in ("a", "b"))
    n = _count_units(row["n"], question.units.get(row["target"], question.unit))
    scope = f"in every one of {n}"
    if row["between"] == "groups":
        scope = f"for all of {n}, as the values within both are equal"
    lead = f"{to_line(row['model'])}, " if row["model"] else ""
    more = f" The same holds for {len(rows) - 1:,} more." if rows[1:] else ""
    return (
        f"{lead}{_name_metric(question)}: {a} is {size} {order} {b} {scope}; they are too few to "
        f"be significant ({_describe_p_value(row)}).{more}"
    )


def _describe_untested(question: Question) -> str:
    """Return how many comparisons differ but have no test, blank if there are none."""
    rows = [
        row
        for comparison in question.comparisons
        for row in comparison.rows
        if math.isnan(row["p_adjusted"]) and abs(row["difference"]) > 0
    ]
    if not rows:
        return ""
    largest = max(abs(row["difference"]) for row in rows)
    size = _format_size(question, largest, count_decimals([largest]))
    comparisons = format_count(len(rows), "comparison")
    return f" No test could be computed for {comparisons}, with differences of up to {size}."


def _write_contrast(question: Question) -> _Answer:
    """Return who is treated differently within a model, and by how much."""
    row, *others = question.select_leads()
    places = _measure_places(row)
    target = f" for {to_line(row['target'])}" if row["target"] else ""
    sides = [_describe_side(question, row, side, places) for side in ("a", "b")]
    lead = f"{to_line(row['model'])}: {_name_metric(question)}{target}"
    if _measures_sides(question, row):
        fact = f"{_state_order(question, row, places)} for {sides[0]} than for {sides[1]}"
        sentence = f"{lead} {fact}, {_describe_interval(_make_positive(row), places)}"
        sentence += f"{_write_second(question, row, others)}."
    elif math.isnan(row["mean_a"]) or math.isnan(row["mean_b"]):
        named = " and ".join(_name_side(question, row, side) for side in ("a", "b"))
        sentence = f"{lead} of {named} is {_describe_difference(row, places)}."
    elif row["test"] == "welch_anova":
        difference = _format_size(question, row["difference"], places)
        sentence = f"{lead} differs, most between {sides[0]} and {sides[1]}: by {difference}."
    else:
        sentence = (
            f"{lead} differs between {sides[0]} and {sides[1]}, the means that its test compares: "
            f"by {_describe_difference(row, places)}."
        )
    worst = _describe_worst(question, row["model"], row["target"], (row["a"], row["b"]))
    zero = f" {text}" if (text := explain_zero([row])) else ""
    rest = f"{zero}{_count_others(question)}{_write_undecided(question)}"
    return _Answer(sentence, f"{_describe_test(question, row)}{worst}{rest}")


def _write_second(question: Question, row: Row, others: Sequence[Row]) -> str:
    """Return the largest difference of the second model, blank if there are none or several."""
    if len(others) != 1 or row["target"] or not _measures_sides(question, others[0]):
        return ""
    (other,) = others
    order = _state_order(question, other, _measure_places(other)).removeprefix("is ")
    text = f"; {to_line(other['model'])}: {order}"
    if (other["a"], other["b"]) == (row["a"], row["b"]):
        return text
    first, second = (_name_side(question, other, side) for side in ("a", "b"))
    return f"{text} for {first} than for {second}"


def _state_order(question: Question, row: Row, places: int) -> str:
    size = _format_size(question, row["difference"], places)
    return f"is {size} {'higher' if row['difference'] > 0 else 'lower'}"


def _measures_sides(question: Question, row: Row) -> bool:
    """Return whether the test compares the values of the metric, and not others."""
    estimates = [question.estimates.get((row["model"], row[s], row["target"])) for s in "ab"]
    means = row["mean_a"], row["mean_b"]
    return row["difference"] != 0 and all(
        estimate is not None and math.isclose(estimate["value"], mean, rel_tol=1e-9, abs_tol=1e-12)
        for estimate, mean in zip(estimates, means, strict=True)
    )


def _count_others(question: Question) -> str:
    """Return how many other comparisons of the metric are significant, and in which models."""
    first = question.significant[0] if question.compares_models else question.select_leads()[0]
    others = [row for row in question.significant if row is not first]
    if not others:
        return ""
    models = list(dict.fromkeys(to_line(row["model"]) for row in others if row["model"]))
    within = f" ({', '.join(models)})" if 0 < len(models) <= 4 and len(question.models) > 1 else ""
    verb = "is" if len(others) == 1 else "are"
    total = format_count(len(question.rows), "test")
    return f" Of the {total} on it, {len(others):,} more {verb} significant{within}."


def _write_undecided(question: Question) -> str:
    rows = [row for row in question.select_undecided() if not lacks_spread(row)]
    untested = _describe_untested(question)
    if not rows or question.compares_models:
        return untested
    models = list(dict.fromkeys(str(row["model"]) for row in rows))
    power = _describe_power(question, rows)
    return f" No difference found for {_name_models(models)}; {power}.{untested}"


def _write_models(question: Question) -> _Answer:
    """Return the largest difference between models, where none is better by direction."""
    row = question.significant[0]
    places = _measure_places(row)
    names = (_name_side(question, row, name) for name in ("group", "target") if row[name])
    parts = ", ".join(names)
    part = f" for {parts}" if parts else ""
    a, b = (_describe_side(question, row, side, places) for side in ("a", "b"))
    sentence = (
        f"{_name_metric(question)}{part} {_state_order(question, row, places)} for {a} than for "
        f"{b}, {_describe_interval(_make_positive(row), places)}."
    )
    return _Answer(sentence, f"{_describe_test(question, row)}{_count_others(question)}")


def _list_best(question: Question) -> list[str]:
    """Return the models with the best value in the metric's direction."""
    values = {name: _get_value(question, name) for name in question.models}
    flags = views.flag_best(values.values(), question.metric.direction)
    return [name for name, best in zip(values, flags, strict=True) if best]


def _get_value(question: Question, model: str) -> float:
    row = question.estimates.get((model, "", ""))
    return math.nan if row is None else float(row["value"])


def _write_best(question: Question) -> _Answer:
    """Return the best model and which models it is significantly better than."""
    (best, *ties), models = _list_best(question), question.models
    wins = views.find_wins(question.comparisons[0])
    beaten = set.intersection(*(wins.get(name, set()) for name in [best, *ties]))
    if not any(wins.values()) or (ties and not beaten):
        return _write_tie(question, [best, *ties])
    places = count_decimals(_get_value(question, name) for name in models)
    value = format_value(_get_value(question, best), places)
    if ties:
        named, n_others = " and ".join(map(to_line, [best, *ties])), len(models) - len(ties) - 1
        share = "each" if len(beaten) == n_others else f"{len(beaten):,}"
        worse = to_line(*beaten) if n_others == 1 else f"{share} of the {n_others:,} others"
        sentence = (
            f"{named} have the best value of {_name_metric(question)}, {value}: significantly "
            f"better than {worse}."
        )
        return _Answer(sentence, f"{_describe_test(question)} {_state_direction(question)}")
    if len(models) == 2:
        row, other = _orient(question.rows[0], best), next(n for n in models if n != best)
        against = format_value(_get_value(question, other), places)
        sentence = (
            f"{to_line(best)} has the better value of {_name_metric(question)}: {value} against "
            f"{against} of {to_line(other)}, difference {_describe_difference(row, places)}."
        )
        return _Answer(sentence, f"{_describe_test(question, row)} {_state_direction(question)}")
    lead = f"{to_line(best)} has the best value of {_name_metric(question)}, {value}:"
    margin, test = _describe_margin(question, best, len(wins[best]), places)
    return _Answer(f"{lead} {margin}", f"{test} {_state_direction(question)}")


def _state_direction(question: Question) -> str:
    return f"{DIRECTION_LABELS[question.metric.direction].capitalize()}."


def _describe_margin(question: Question, best: str, n_beaten: int, places: int) -> _Answer:
    """Return how many models the best one is significantly better than, and what is undecided."""
    rivals = [row for row in question.rows if best in (row["a"], row["b"])]
    n_others = len(question.models) - 1
    if n_beaten == n_others:
        closest = min(rivals, key=lambda row: float(abs(row["difference"])))
        difference = _describe_difference(_orient(closest, best), places)
        rival = _name_rivals([closest], best)
        smallest = f"smallest difference {difference}, from {rival}"
        sentence = f"significantly better than each of the {n_others:,} others; {smallest}."
        return _Answer(sentence, _describe_test(question, closest))
    beaten = f"{n_beaten:,} of the {n_others:,} others" if n_beaten else "none of the others"
    undecided = [row for row in rivals if not views.is_significant(row)]
    sentence = f"significantly better than {beaten}."
    if equal := [row for row in undecided if lacks_spread(row)]:
        sentence += f" {_describe_equal(question, equal)}"
        undecided = [row for row in undecided if row not in equal]
    sentence += _describe_untested(question)
    if undecided:
        names = _name_rivals(undecided, best)
        sentence += f" No difference from {names} found; {_describe_power(question, undecided)}."
    return _Answer(sentence, _describe_test(question))


def _name_rivals(rows: Sequence[Row], best: str) -> str:
    names = [to_line(row["b"] if row["a"] == best else row["a"]) for row in rows]
    return ", ".join(names) if 0 < len(names) <= 3 else "the others"


def _write_tie(question: Question, best: Sequence[str]) -> _Answer:
    """Return that no model is shown to be better than another."""
    if question.significant:
        answer = _write_models(question)
        lead = (
            f"No model is shown to be better in {_name_metric(question)}, although values differ"
        )
        return answer._replace(sentence=f"{lead}: {answer.sentence}")
    answer = _write_no_difference(question)
    if len(best) > 1 and any(row["difference"] != 0 for row in question.rows):
        equal = f" {' and '.join(map(to_line, best))} have equal values."
        return answer._replace(sentence=f"{answer.sentence}{equal}")
    return answer


_EXTREMES = {"higher": "the highest", "lower": "the lowest", "zero": "the nearest to 0"}
_NO_TEST = "No test compares the models."
_NO_TEST_BELOW = "No test compares the models, here and in the conclusions below."


def _describe_values(
    run: RunTables, questions: Sequence[Question]
) -> Iterator[tuple[str, str, _Answer]]:
    """Yield metric, dataset and an answer for the metrics that no test compares as a whole."""
    described = [*_describe_each(run, questions)]
    untested = [at for at, (*_, answer) in enumerate(described) if answer.detail == _NO_TEST]
    for at, (title, dataset, answer) in enumerate(described):
        detail = answer.detail
        if len(untested) > 1 and at in untested:
            detail = _NO_TEST_BELOW if at == untested[0] else ""
        yield title, dataset, answer._replace(detail=detail)


def _describe_each(
    run: RunTables, questions: Sequence[Question]
) -> Iterator[tuple[str, str, _Answer]]:
    several = len(views.list_single_datasets(run)) > 1
    compared = {(item.metric.title, item.dataset) for item in questions}
    definitions = views.collect_definitions(run)
    rows_by_metric: dict[tuple[str, str], list[Row]] = {}
    for row in to_records(views.select_headline(run, views.collect_estimates(run))):
        title = views.format_title(row["metric"], row["k"])
        dataset = row["dataset"] if several else ""
        if row["model"] != DATASET and not row["target"] and (title, dataset) not in compared:
            rows_by_metric.setdefault((title, dataset), []).append(row)
    for (title, dataset), rows in rows_by_metric.items():
        metric = definitions[title]
        overall = [row for row in rows if not row["group"]]
        served = [row for row in rows if row["group"] == SERVED]
        unit = _name_unit(run, metric)
        if metric.gap in {"ratio", "std"} or _describes_gap(metric, compared, dataset):
            continue
        answer = _describe_overall(metric, overall, unit) or _describe_groups(metric, rows, unit)
        if answer and served and (part := _describe_overall(metric, served, unit)):
            scope = _describe_served(overall, served, unit)
            answer = answer._replace(sentence=f"{answer.sentence} {scope} {part.sentence}")
        if answer:
            where = f" on {to_line(dataset)}" if dataset else ""
            sentence = f"{to_line(metric.heading)}{where}: {answer.sentence}"
            yield title, dataset, answer._replace(sentence=sentence)


def _describes_gap(metric: Definition, compared: set[tuple[str, str]], dataset: str) -> bool:
    """Return whether the groups of this gap are compared by tests."""
    if not metric.gap:
        return False
    groups = metric.title.replace(f", gap={metric.gap}", "")
    return (groups, dataset) in compared


def _describe_overall(metric: Definition, rows: Sequence[Row], unit: str) -> _Answer | None:
    defined = [row for row in rows if not math.isnan(row["value"])]
    names = [to_line(row["model"]) for row in rows if math.isnan(row["value"])]
    undefined = f"undefined for {', '.join(names)}" if names else ""
    if not defined:
        return _Answer(f"{undefined}.", "") if names else None
    if len(defined) == 1:
        answer = _describe_single(metric, defined[0], unit)
    else:
        answer = _describe_several(metric, defined)
    ending = f"; {undefined}." if undefined else "."
    return answer._replace(sentence=f"{answer.sentence}{ending}")


def _describe_single(metric: Definition, row: Row, unit: str) -> _Answer:
    """Return a value with its interval; where 0 is neutral, also where the interval lies."""
    places = count_decimals([row["value"]])
    interval = format_interval(row["ci_low"], row["ci_high"], places)
    bounds = f"95% interval {interval}" if interval else "no interval"
    verdict = _compare_with_zero(row) if metric.direction == "zero" or metric.gap else ""
    value = format_value(row["value"], places)
    direction = DIRECTION_LABELS[metric.direction].capitalize()
    n = "" if math.isnan(row["n"]) else _count_units(row["n"], unit)
    missing = f"undefined for {row['undefined']:,.0f}" if row["undefined"] > 0 else ""
    counts = ", ".join(filter(None, [n, missing]))
    return _Answer(
        f"{to_line(row['model'])} has {value} ({bounds}){verdict}",
        f"{direction}: {counts}." if counts else f"{direction}.",
    )


def _compare_with_zero(row: Row) -> str:
    if math.isnan(row["ci_low"]) or math.isnan(row["ci_high"]):
        return ""
    if row["ci_low"] <= 0 <= row["ci_high"]:
        return ", an interval that includes 0"
    return f", an interval {'above' if row['ci_low'] > 0 else 'below'} 0"


def _describe_several(metric: Definition, rows: Sequence[Row]) -> _Answer:
    """Return the best and the worst value, with the remark that no test compares them."""
    places = count_decimals(row["value"] for row in rows)
    texts = [f"{to_line(row['model'])} {format_value(row['value'], places)}" for row in rows]
    if len(rows) <= 3:
        text = ", ".join(texts)
    else:
        order = sorted(range(len(rows)), key=lambda at: float(rows[at]["value"]))
        text = f"from {texts[order[0]]} to {texts[order[-1]]}, {len(rows):,} models"
    flags = views.flag_best([row["value"] for row in rows], metric.direction)
    best = [to_line(row["model"]) for row, flag in zip(rows, flags, strict=True) if flag]
    nearest = metric.direction == "zero" and len(best) == 1
    remark = f" ({best[0]} {_EXTREMES['zero']})" if nearest else ""
    return _Answer(f"{text}{remark}", _NO_TEST)


def _describe_groups(metric: Definition, rows: Sequence[Row], unit: str) -> _Answer | None:
    """Return the worst-off group of the only model, where no test compares the groups."""
    by_model: Mapping[str, list[Row]] = {}
    for row in rows:
        by_model = {**by_model, row["model"]: [*by_model.get(row["model"], []), row]}
    worst = {
        model: found
        for model, groups in by_model.items()
        if len(found := find_worst_groups(groups, metric)) == 1
    }
    if not worst:
        return None
    places = count_decimals(found[0]["value"] for found in worst.values())
    by = str(metric.parameters.get("by", ""))
    texts = [
        f"{to_line(name_group(found[0]['group'], by))} for {to_line(model)} "
        f"({format_value(found[0]['value'], places)}, {_count_units(found[0]['n'], unit)})"
        for model, found in worst.items()
    ]
    more = f" and {len(texts) - 3} more models" if len(texts) > 3 else ""
    return _Answer(
        f"worst off is {', '.join(texts[:3])}{more}.", _explain_no_pairs(metric, by_model)
    )


def _explain_no_pairs(metric: Definition, by_model: Mapping[str, Sequence[Row]]) -> str:
    """Return that no test compares the groups, and why if they have too many pairs."""
    least = int(metric.parameters.get("min_group") or 0)
    pairs = max(math.comb(sum(row["n"] >= least for row in rows), 2) for rows in by_model.values())
    if pairs <= MAX_PAIRS or metric.parameters.get("reference_group"):
        return "No test compares the groups."
    return (
        f"No test compares the groups in pairs: {pairs:,} pairs are more than {MAX_PAIRS:,}. Set "
        "min_group or reference_group, or group by conditions."
    )


_FIRST = 8  # the number of conclusions that a terminal shows

_METHOD = ("test", "correction", "family", "family_size", "alpha")

# how many of the first conclusions are kept for comparisons within models, if there are any
_RESERVED = 2

_MAX_CHECKS, _MAX_RERANKING, _MAX_ROUNDS = 3, 3, 3
"""How many of the first conclusions are failed checks, re-ranking, and rounds, at most."""


# what is said about the changes of values, by kind
_DESCRIBED: Sequence[tuple[Literal["reranking", "rounds"], Callable[..., Iterator[Any]]]] = (
    ("reranking", describe_reranking),
    ("rounds", _describe_rounds),
)


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """The answer of a run to one question, as two lines of text and as numbers.

    The fields from ``a`` on are those of the comparison with the largest significant effect; they
    are blank or NaN if no comparison is significant, and for values without a test.

    Args:
        sentence: The answer.
        detail: How it was found: test, correction, p-value and n; it may be blank.
        kind: ``check``: a failed check; ``reranking``: what re-ranking removes and costs;
            ``rounds``: a value over rounds of feedback; ``groups``: what is compared within a
            model; ``models``; or ``value`` without a test.
        effect: The size of the effect in standard deviations, by which conclusions are ordered.
        n_tests: The number of comparisons, of which ``n_significant`` are significant.
        detectable: The difference that each test which found none would have detected in 80 of
            100 such runs; NaN if there is no such test.
        worst: The worst-off groups of queries in the metric's direction.
    """

    kind: Literal["check", "reranking", "rounds", "groups", "models", "value"]
    metric: str
    dataset: str
    sentence: str
    detail: str = ""
    between: str = ""
    effect: float = math.nan
    n_tests: int = 0
    n_significant: int = 0
    detectable: float = math.nan
    model: str = ""
    a: str = ""
    b: str = ""
    part: str = ""
    mean_a: float = math.nan
    mean_b: float = math.nan
    difference: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    p_adjusted: float = math.nan
    test: str = ""
    correction: str = ""
    family: str = ""
    family_size: float = math.nan
    alpha: float = math.nan
    worst: tuple[str, ...] = ()


@lru_cache(maxsize=2)
def collect_conclusions(run: RunTables) -> tuple[Conclusion, ...]:
    """Return the conclusions: checks, re-ranking, rounds, then significant ones, groups first."""
    questions = collect_questions(run)
    answers = [_conclude(question) for question in questions]
    answers.sort(
        key=lambda item: (not item.n_significant, item.kind != "groups", -rank_effect(item.effect))
    )
    values = [
        Conclusion(kind="value", metric=title, dataset=dataset, **answer._asdict())
        for title, dataset, answer in _describe_values(run, questions)
    ]
    checks = [
        Conclusion(kind="check", sentence=sentence, metric=metric, dataset=dataset, model=model)
        for sentence, metric, dataset, model in _describe_failed_checks(run)
    ]
    changes = [
        Conclusion(kind=kind, metric=title, dataset=dataset, sentence=sentence, detail=detail)
        for kind, described in _DESCRIBED
        for title, dataset, sentence, detail in described(run)
    ]
    return (*checks, *changes, *answers, *values)


def _conclude(question: Question) -> Conclusion:
    undecided = _list_undecided(question)
    test = question.comparisons[0].rows[0]
    return Conclusion(
        kind="models" if question.compares_models else "groups",
        metric=question.metric.title,
        dataset=question.dataset or _hide_mean(test["dataset"]),
        **_write_answer(question)._asdict(),
        between=question.between,
        n_tests=len(question.rows),
        n_significant=len(question.significant),
        detectable=_find_detectable(undecided),
        effect=next(map(compute_effect, question.significant or question.rows), math.nan),
        **{name: test[name] for name in _METHOD},
        **(_list_facts(question, question.select_leads()[0]) if question.significant else {}),
    )


def _hide_mean(dataset: str) -> str:
    return "" if dataset == views.ALL else dataset


def _list_undecided(question: Question) -> Sequence[Row]:
    """Return the comparisons that found nothing, of which a conclusion states the power."""
    if question.compares_models:
        return [row for row in question.rows if row not in question.significant]
    return question.select_undecided()


def _list_facts(question: Question, row: Row) -> dict[str, Any]:
    names = ("model", "a", "b", "mean_a", "mean_b", "difference", "ci_low", "ci_high")
    facts = {name: row[name] for name in (*names, "p_adjusted")}
    worst = question.find_worst(row["model"], row["target"])
    part = row["part"] if question.compares_models else row["target"]
    return {**facts, "part": part, "worst": tuple(str(group["group"]) for group in worst)}


def select_first(conclusions: Sequence[Conclusion], n: int = _FIRST) -> list[Conclusion]:
    """Return the first conclusions, with some of each kind that comes before the others."""
    limits = {"check": _MAX_CHECKS, "reranking": _MAX_RERANKING, "groups": _RESERVED}
    limits["rounds"] = _MAX_ROUNDS  # the last: these give way where all kinds are there
    leading = [
        item
        for kind, most in limits.items()
        for item in [each for each in conclusions if each.kind == kind][:most]
    ]
    others = [item for item in conclusions if item.kind == "groups" or item.kind not in limits]
    others = [item for item in others if item not in leading]
    chosen = [*leading, *others][:n]
    return [item for item in conclusions if item in chosen]


def split_conclusions(run: RunTables) -> tuple[list[Conclusion], list[Conclusion]]:
    """Return the first conclusions, and the others."""
    conclusions = collect_conclusions(run)
    first = select_first(conclusions)
    return first, [item for item in conclusions if item not in first]
