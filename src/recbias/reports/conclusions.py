"""The conclusions of a run in plain sentences, no stronger than its tests.

What the comparisons answer is collected as questions: one for each metric and kind of sides.
Re-ranking, feedback and metrics without a test have sentences of their own. A sentence has about
25 words at most; how it was found stands beside it, in small print.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

from recbias.core.measures import DATASET, SERVED, read_bounds, to_loss
from recbias.core.text import normalize_name
from recbias.reports import views
from recbias.reports.run import RunTables, to_records
from recbias.reports.views import DIRECTION_LABELS, Definition, Row
from recbias.reports.wording import (
    count_decimals,
    format_count,
    format_estimate,
    format_p_value,
    format_value,
    join_names,
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


def _name_unit(run: RunTables, metric: Definition) -> str:
    """Return what a metric counts: its unit, or that of the queries; blank if it is unknown."""
    requested = {str(entry.get("unit", "query")) for entry in run.manifest.get("queries", [])}
    queries = requested.pop() if len(requested) == 1 else "query"
    if metric.unit not in {"", "query"}:
        return metric.unit.replace("_", " ")
    return "" if queries == "prompt" and not metric.unit else queries


def _name_compared_unit(run: RunTables, metric: Definition, between: str) -> str:
    """Return what the n of a comparison counts."""
    sets = [metric.parameters.get(name) for name in ("groups", "targets")]
    of = [str(item["of"]).removesuffix("s") for item in sets if isinstance(item, Mapping)]
    return _name_unit(run, metric) if not of else of[0] if between == "groups" else of[-1]


# the rows of ``metrics.csv`` on one metric, by model, group and target
_Estimates = Mapping[tuple[str, str, str], Row]


@dataclass(frozen=True, eq=False)
class Question:
    """The comparisons of one metric by the first of its tests, in one dataset, seed and fold.

    Args:
        dataset: Blank if the run has one.
        place: The seed and fold of the comparisons if the run has several: ``fold 1``.
        unit: What the n of an estimate counts: users, prompts, names.
        units: What the n of a comparison counts.
        name: What is compared, for people; ``heading`` also says by what it is grouped.
        baselines: The models that others are compared with.
        comparisons: Those of all models, or parts of the queries and items.
        estimates: The values of the metric in the same dataset, seed and fold.
        served: The comparisons of all models over the queries that all of them have a list for.
    """

    metric: Definition
    dataset: str
    place: str
    unit: str
    comparisons: tuple[views.Comparisons, ...]
    estimates: _Estimates
    units: str
    name: str
    heading: str
    baselines: frozenset[str]
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
    definitions = views.collect_definitions(run)
    groups: dict[tuple[object, ...], list[views.Comparisons]] = {}
    tested = {item.title for item in views.collect_comparisons(run) if not item.compares_models}
    others = [item for title, item in definitions.items() if item.gap or title in tested]
    for comparison in views.collect_comparisons(run):
        if comparison.test == EXACT:  # too few units for a conclusion
            continue
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
        served = [item for item in comparisons if item.part == SERVED and item.test == first.test]
        heading = views.name_metric(run, metric)
        is_of_groups = first.between == "groups" and "by" in metric.parameters
        questions.append(
            Question(
                *(metric, dataset, place, _name_unit(run, metric), tuple(same), values),
                units=_name_compared_unit(run, metric, first.between),
                name=views.name_metric(run, metric, "a group") if is_of_groups else heading,
                heading=heading,
                baselines=views.list_baselines(run),
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


# ---- sentences ----


class _Answer(NamedTuple):
    """A sentence, how it was found in small print, and sentences that belong beside it."""

    sentence: str
    detail: str = ""
    more: tuple[str, ...] = ()


_LONGEST = 25  # words of a sentence


def _fit(*sentences: str) -> str:
    """Return the first of several sentences that is short enough, else the last."""
    return next((text for text in sentences if len(text.split()) <= _LONGEST), sentences[-1])


def _combine(*parts: str) -> str:
    """Return sentences as one text, without the blank ones."""
    return " ".join(filter(None, parts))


# the units of the metrics that have one
_SCALES = {"mean_attribute": "levels of {attribute}", "ARP": "interactions"}

_SUPERLATIVES = {
    "higher": "the highest {}",
    "lower": "the lowest {}",
    "zero": "the {} nearest to 0",
}
_COMPARATIVES = {"higher": "higher {}", "lower": "lower {}", "zero": "{} nearer to 0"}


def _state_place(question: Question) -> str:
    """Return the dataset, seed and fold of a question where there are several."""
    where = "over all datasets" if question.dataset == views.ALL else f"on {question.dataset}"
    return to_line(
        f"{f' {where}' if question.dataset else ''}{f' ({question.place})' * bool(question.place)}"
    )


def _name_models(models: Sequence[str]) -> str:
    """Return models as text: one, two, or the number of more.

    >>> _name_models(["EASE"]), _name_models(["EASE", "ALS"]), _name_models(["a", "b", "c"])
    ('EASE', 'EASE or ALS', 'any of 3 models')
    """
    return f"any of {len(models):,} models" if len(models) > 2 else join_names(models, "or")


def _measure_places(*rows: Row) -> int:
    """Return the number of decimals for the means and differences of comparisons."""
    names = ("difference", "mean_a", "mean_b")
    return count_decimals(row[name] for row in rows for name in names)


def _state_size(question: Question, row: Row) -> str:
    """Return the size of a difference, with its unit if it has one, and its interval."""
    row = row if row["difference"] >= 0 else _orient(row, row["b"])
    scale = _SCALES.get(question.metric.name, "").format_map(
        {"attribute": question.metric.parameters.get("attribute", "the attribute")}
    )
    text = format_estimate(row["difference"], row["ci_low"], row["ci_high"], _measure_places(row))
    size, bracket, interval = text.partition(" [")
    return f"{size}{f' {scale}' if scale else ''}{bracket}{interval}"


def _orient(row: Row, side: str) -> Row:
    """Return a comparison with the difference of ``side`` less the other.

    >>> row = {"a": "x", "b": "y", "difference": -1.0, "ci_low": -3.0, "ci_high": 0.5}
    >>> [_orient(row, "y")[name] for name in ("difference", "ci_low", "ci_high")]
    [1.0, -0.5, 3.0]
    """
    if row["a"] == side:
        return row
    return {
        **row,
        "difference": -row["difference"],
        "ci_low": -row["ci_high"],
        "ci_high": -row["ci_low"],
    }


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


def _describe_test(question: Question, row: Row | None = None) -> str:
    """Return the test, the correction, the family, and the p-value and n of a comparison."""
    methods = views.describe_methods(question.comparisons)
    found = "" if row is None else f"{_describe_p_value(row)}, {_count_compared(question, row)}"
    text = f"{methods}: {found.removesuffix(', ')}." if found else f"{methods}."
    return text[0].upper() + text[1:]


def _count_compared(question: Question, row: Row) -> str:
    """Return the number of units of a comparison, or of both its sides if they have their own."""
    sides = [question.estimates.get((row["model"], row[side], row["target"])) for side in "ab"]
    counts = [side["n"] for side in sides if side is not None and not math.isnan(side["n"])]
    unit = question.units
    shares_units = question.compares_models or row["test"] == UNCERTAIN
    if len(counts) < len(sides) or shares_units:
        return "" if math.isnan(row["n"]) else _count_units(row["n"], unit)
    return f"{counts[0]:,.0f} and {_count_units(counts[1], unit).removeprefix('n ')}"


def _name_side(question: Question, row: Row, side: str) -> str:
    """Return the name of a side of a comparison; of a crossing, ``gender=F and age < 25``."""
    name = str(row[side])
    if question.between == "groups" or side == "group":
        name = name_group(name, str(question.metric.parameters.get("by", "")))
    return to_line(name)


def _describe_worst(question: Question, row: Row) -> str:
    """Return a sentence on the worst-off groups of the model of a comparison, or blank."""
    rows = question.find_worst(row["model"], row["target"])
    names = [_describe_worst_group(question, each, row) for each in rows]
    return f"Worst off: {' and '.join(names)}." if names else ""


def _describe_worst_group(question: Question, group: Row, row: Row) -> str:
    is_stated = group["group"] in (row["a"], row["b"])
    mean = "" if is_stated else format_value(group["value"], count_decimals([group["value"]]))
    n = "" if math.isnan(group["n"]) else _count_units(group["n"], question.unit)
    facts = ", ".join(filter(None, [mean, n]))
    return f"{_name_side(question, group, 'group')}{f' ({facts})' if facts else ''}"


# why no test could be computed, by what it compares
_UNDEFINED_REASONS = {
    "groups": "A group has fewer than two values, or all its values are equal.",
    "models": "There are fewer than two units, or every sample has the same difference.",
}


def _describe_power(question: Question, rows: Sequence[Row]) -> str:
    """Return what comparisons of a question that are not significant could have found."""
    rows = [row for row in rows if not lacks_spread(row)]
    if not rows:
        return ""
    if all(row["difference"] == 0 for row in rows):
        return "All compared values are equal."
    detectable = _find_detectable(rows)
    if math.isnan(detectable):
        return "What could have been detected is undefined."
    low, high = read_bounds(question.metric.values)
    if detectable > high - low:
        return f"Not even a difference of {high - low:g} would have been detected reliably."
    places = count_decimals([detectable])
    text = format_value(detectable, min(places, 4) if detectable >= 0.01 else places)
    return f"A difference of {text} or more would have been detected in 80 of 100 such runs."


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
    size = format_value(largest, count_decimals([largest]))
    comparisons = format_count(len(rows), "comparison")
    return f"No test could be computed for {comparisons}, with differences of up to {size}."


def _count_significant(question: Question) -> str:
    """Return how many comparisons of the metric are significant, if there are several."""
    if len(question.rows) < 2 or not question.significant:
        return ""
    n = len(question.significant)
    verb = "is" if n == 1 else "are"
    return f"{n:,} of {format_count(len(question.rows), 'test')} {verb} significant."


def _write_answer(question: Question) -> _Answer:
    """Return the answer: the largest significant difference, or what could have been detected."""
    if question.served is not None:
        return _write_served(question, question.served)
    if not question.rows:
        return _write_undefined(question)
    if question.compares_models:
        if question.metric.direction != "none" and not question.comparisons[0].part:
            return _write_best(question)
        return _write_models(question) if question.significant else _write_no_difference(question)
    if any(row["model"] not in question.baselines for row in question.significant):
        return _write_contrast(question)
    return _write_no_difference(question)


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
    return whole._replace(more=(f"{scope} {answer.sentence}", *whole.more))


def _describe_served(rows: Sequence[Row], served: Sequence[Row], unit: str) -> str:
    """Return how many queries all models have a list for, as the start of a sentence."""
    n, total = (max(float(row["n"]) for row in part) for part in (served, rows))
    return f"On the {n:,.0f} of {_count_units(total, unit)} for whom all models have lists:"


def _write_undefined(question: Question) -> _Answer:
    sentence = (
        f"Whether {question.heading}{_state_place(question)} differs between "
        f"{question.between} is undefined: no test could be computed."
    )
    reason = _UNDEFINED_REASONS.get(question.between, "")
    return _Answer(sentence, _combine(reason, _describe_test(question)))


def _write_no_difference(question: Question) -> _Answer:
    rows = [row for row in question.rows if row["model"] not in question.baselines]
    rows = rows or question.rows
    models = list(dict.fromkeys(str(row["model"]) for row in rows))
    sides = list(dict.fromkeys(_name_side(question, row, side) for row in rows for side in "ab"))
    between = (
        f" between {join_names(sides)}" if len(sides) == 2 else f" between {question.between}"
    )
    name = question.name if len(sides) == 2 else question.heading
    within = "" if question.compares_models else f" with {_name_models(models)}"
    place = _state_place(question)
    equal = [row for row in rows if lacks_spread(row)]
    sentence = _fit(
        f"No difference in {name}{place}{between} was found{within}.",
        f"No difference in {question.heading}{place} was found{within}.",
    )
    smallest = min(rows, key=lambda row: float(row["p_adjusted"]))
    size = f"Difference {_state_difference(smallest)}." if len(rows) == 1 else ""
    worst = _describe_worst(question, rows[0]) if len(models) == 1 else ""
    return _Answer(
        _describe_equal(question, equal) if equal else sentence,
        _combine(
            *(_describe_power(question, rows), size, _describe_test(question, smallest)),
            *(worst, _describe_untested(question)),
        ),
    )


def _state_difference(row: Row) -> str:
    places = _measure_places(row)
    return format_estimate(row["difference"], row["ci_low"], row["ci_high"], places)


def _describe_equal(question: Question, rows: Sequence[Row]) -> str:
    """Return the largest difference that all units have, and that so few cannot be significant."""
    row = max(rows, key=lambda row: float(abs(row["difference"])))
    order = "above" if row["difference"] > 0 else "below"
    a, b = (_name_side(question, row, side) for side in "ab")
    n = _count_units(row["n"], question.units)
    lead = f"With {to_line(row['model'])}, " if row["model"] else ""
    size = format_value(abs(row["difference"]), _measure_places(row))
    return (
        f"{lead}{question.name} of {a} is {size} {order} {b} for each of {n}, too few to be "
        f"significant ({_describe_p_value(row)})."
    )


def _write_contrast(question: Question) -> _Answer:
    """Return who is treated differently within a model, and by how much."""
    leads = [row for row in question.select_leads() if row["model"] not in question.baselines]
    row, n = leads[0], len(set(question.models) - question.baselines)
    model, place = to_line(row["model"]), _state_place(question)
    target = f" for {to_line(row['target'])}" if row["target"] else ""
    size, places = _state_size(question, row), _measure_places(row)
    a, b = (_name_side(question, row, side) for side in "ab")
    means = [format_value(row[f"mean_{side}"], places) for side in "ab"]
    sides = [f"{a} ({means[0]})", f"{b} ({means[1]})"]
    where = f"{question.name}{target}{place}"
    alike = {(each["a"], each["b"], each["target"], each["difference"] > 0) for each in leads}
    if _measures_sides(question, row):
        order = "higher" if row["difference"] > 0 else "lower"
        sentences = [
            f"{where} is {order} for {sides[0]} than for {sides[1]} with {model}: by {size}.",
            f"{where} is {order} for {a} than for {b} with {model}: by {size}.",
        ]
        if len(leads) > 1 and len(alike) == 1:
            share = f"{'both' if n == 2 else f'all {n:,}'} models"
            share = share if len(leads) == n else f"{len(leads):,} of {n:,} models"
            sentences[0] = (
                f"{where} is {order} for {a} than for {b} with {share}, most with {model}: by "
                f"{size}."
            )
    elif math.isnan(row["mean_a"]) or math.isnan(row["mean_b"]):
        sentences = [f"With {model}, {where} of {a} and {b} is {_state_difference(row)}."]
    else:
        most = ", most" if row["test"] == "welch_anova" else ""
        sentences = [
            f"With {model}, {where} differs{most} between {sides[0]} and {sides[1]}: by {size}.",
            f"With {model}, {where} differs{most} between {a} and {b}: by {size}.",
        ]
    undecided = [
        each for each in question.select_undecided() if each["model"] not in question.baselines
    ]
    found = {each["model"] for each in leads}
    missing = [name for name in dict.fromkeys(each["model"] for each in undecided)]
    none = f"No difference was found with {_name_models(missing)}." if missing and found else ""
    return _Answer(
        _fit(*sentences),
        _combine(
            *(_describe_test(question, row), _describe_worst(question, row), explain_zero([row])),
            *(_count_significant(question), none, _describe_power(question, undecided)),
            _describe_untested(question),
        ),
    )


def _measures_sides(question: Question, row: Row) -> bool:
    """Return whether the test compares the values of the metric, and not others."""
    estimates = [question.estimates.get((row["model"], row[s], row["target"])) for s in "ab"]
    means = row["mean_a"], row["mean_b"]
    return row["difference"] != 0 and all(
        estimate is not None and math.isclose(estimate["value"], mean, rel_tol=1e-9, abs_tol=1e-12)
        for estimate, mean in zip(estimates, means, strict=True)
    )


def _write_models(question: Question) -> _Answer:
    """Return the largest difference between models, where none is better by direction."""
    ranked = sorted(
        question.significant, key=lambda row: bool({row["a"], row["b"]} & question.baselines)
    )
    row = ranked[0]
    places = _measure_places(row)
    names = [_name_side(question, row, name) for name in ("group", "target") if row[name]]
    part = f" for {', '.join(names)}" if names else ""
    order = "higher" if row["difference"] > 0 else "lower"
    a, b = (
        f"{_name_side(question, row, side)} ({format_value(row[f'mean_{side}'], places)})"
        for side in "ab"
    )
    sentence = (
        f"{question.name}{part}{_state_place(question)} is {order} with {a} than with {b}: by "
        f"{_state_size(question, row)}."
    )
    return _Answer(sentence, _combine(_describe_test(question, row), _count_significant(question)))


def _get_value(question: Question, model: str) -> float:
    row = question.estimates.get((model, "", ""))
    return math.nan if row is None else float(row["value"])


def _write_best(question: Question) -> _Answer:
    """Return the best model, and which others it is significantly better than."""
    models = [name for name in question.models if name not in question.baselines]
    models = models or question.models
    values = {name: _get_value(question, name) for name in models}
    flags = views.flag_best(values.values(), question.metric.direction)
    best = [name for name, flag in zip(values, flags, strict=True) if flag]
    if not best:
        return _write_no_difference(question)
    others = [name for name in models if name not in best]
    more = _compare_with_baseline(question, best[0])
    if len(models) == 1 and more:
        sentence, small = more
        return _Answer(sentence, small)
    if len(models) == 2 and len(best) == 1:
        sentence, small = _compare_two(question, best[0], others[0])
    else:
        sentence, small = _place_best(question, best, others)
    extra, _ = more or ("", "")
    direction = f"{DIRECTION_LABELS[question.metric.direction].capitalize()}."
    detail = _combine(small, direction, _describe_untested(question))
    return _Answer(sentence, detail, (extra,) * bool(extra))


def _place_best(question: Question, best: Sequence[str], others: Sequence[str]) -> tuple[str, str]:
    """Return which models are best, which others they are shown to be better than, and the test."""
    name = f"{question.name}{_state_place(question)}"
    what = _SUPERLATIVES[question.metric.direction].format(name)
    places = count_decimals(_get_value(question, model) for model in [*best, *others])
    value = format_value(_get_value(question, best[0]), places)
    if not others:
        return f"All {len(best):,} models have the same {name}, {value}.", _describe_test(question)
    wins = views.find_wins(question.comparisons[0])
    beaten = set.intersection(*(wins.get(model, set()) for model in best))
    missed = [model for model in others if model not in beaten]
    ranked = [*best, *others]
    if not any(wins.get(model, set()) & {*ranked} for model in ranked):
        rows = [row for row in question.rows if {row["a"], row["b"]} <= {*ranked}]
        equal = [row for row in rows if lacks_spread(row)]
        if equal:
            return _describe_equal(question, equal), _describe_test(question)
        found = f"No difference in {name} between the {len(ranked):,} models was found"
        detail = _combine(_describe_power(question, rows), _describe_test(question))
        return f"{found}; {join_names(best)} {_has(best)} {what}, {value}.", detail
    lead = f"{join_names(best)} {'has' if len(best) == 1 else 'share'} {what}, {value}"
    named = join_names(missed, "or") if len(missed) <= 3 else f"{len(missed):,} others"
    rows = [row for row in question.rows if {row["a"], row["b"]} & {*best}]
    if missed:
        rows = [row for row in rows if {row["a"], row["b"]} & {*missed}]
        equal = [row for row in rows if lacks_spread(row) and not views.is_significant(row)]
        why = _describe_equal(question, equal) if equal else ""
        detail = _combine(why, _describe_power(question, rows), _describe_test(question))
        verb = "is" if len(best) == 1 else "are"
        return f"{lead}, but {verb} not shown to be better than {named}.", detail
    than = f"each of the other {len(others):,} models" if len(others) > 1 else join_names(others)
    both = "" if len(best) == 1 else f" and {'both' if len(best) == 2 else 'all'} are"
    rows = [row for row in rows if {row["a"], row["b"]} & {*others}]
    closest = min(rows, key=lambda row: float(abs(row["difference"])))
    rival = closest["b"] if closest["a"] in best else closest["a"]
    size = f"Smallest difference {_state_size(question, closest)}, from {to_line(rival)}."
    sentence = f"{lead},{both} significantly better than {than}."
    return sentence, _combine(size, _describe_test(question, closest))


def _has(models: Sequence[str]) -> str:
    return "has" if len(models) == 1 else "have"


def _find_row(question: Question, a: str, b: str) -> Row | None:
    """Return the tested comparison of two models."""
    return next((row for row in question.rows if {row["a"], row["b"]} == {a, b}), None)


def _compare_two(
    question: Question, a: str, b: str, kind: str = "", subject: str = ""
) -> tuple[str, str]:
    """Return whether ``a`` or ``b`` is better, and the test; ``kind`` is what ``b`` is called."""
    row = _find_row(question, a, b)
    name = f"{question.name}{_state_place(question)}"
    comparative = _COMPARATIVES[question.metric.direction].format(name)
    places = count_decimals([_get_value(question, a), _get_value(question, b)])
    values = {model: format_value(_get_value(question, model), places) for model in (a, b)}
    names = {a: to_line(subject or a), b: f"{kind}{to_line(b)}"}
    if row is None:
        return "", ""
    detail = _describe_test(question, row)
    wins = views.find_wins(question.comparisons[0])
    if lacks_spread(row) and not views.is_significant(row):
        return _describe_equal(question, [row]), detail
    for better, worse in ((a, b), (b, a)):
        if worse in wins.get(better, ()):
            lead = f"{names[better]} has {comparative} than {names[worse]}"
            lead = lead[0].upper() + lead[1:] if names[better].startswith("the ") else lead
            size = _state_size(question, row)
            numbers = f"{values[better]} against {values[worse]}"
            full = f"{lead}: {numbers}, a difference of {size}."
            return _fit(full, f"{lead}: {numbers}."), detail
    difference = f"Difference {_state_difference(_orient(row, a))}."
    sentence = _fit(
        f"No difference in {name} between {names[a]} and {names[b]} was found: {values[a]} and "
        f"{values[b]}.",
        f"No difference in {name} between {names[a]} and {names[b]} was found.",
    )
    return sentence, _combine(_describe_power(question, [row]), difference, detail)


def _compare_with_baseline(question: Question, model: str) -> tuple[str, str] | None:
    """Return how a model compares with the best baseline in accuracy, if there is one."""
    baselines = [name for name in question.models if name in question.baselines]
    accuracy = map(normalize_name, views.ACCURACY)
    if not baselines or model in baselines or normalize_name(question.metric.name) not in accuracy:
        return None
    values = {name: _get_value(question, name) for name in baselines}
    flags = views.flag_best(values.values(), question.metric.direction)
    best = [name for name, flag in zip(values, flags, strict=True) if flag]
    return _compare_two(question, model, best[0], "the baseline ") if best else None


# ---- re-ranking and feedback ----

# what less and more bias is, by the direction of the measure
_VERBS = {
    "lower": ("lowers", "raises"),
    "higher": ("raises", "lowers"),
    "zero": ("moves", "moves"),
    "none": ("improves", "worsens"),
}
_TOWARDS = (" towards 0", " away from 0")


def _describe_reranking(run: RunTables) -> Iterator[Conclusion]:
    """Yield what the best setting of each re-ranker removes of a measure of bias, and its cost.

    The measures of which a version is shown to remove something are first.
    """
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in views.select_tradeoffs(run):
        groups.setdefault((row["dataset"], row["bias"], row["target"]), []).append(row)
    ranked = sorted(
        groups.items(), key=lambda item: not any(row["bias_removed_low"] > 0 for row in item[1])
    )
    definitions, several = views.collect_definitions(run), len(views.list_single_datasets(run)) > 1
    for (dataset, bias, target), rows in ranked:
        metric = definitions.get(bias) or Definition(bias, bias)
        name = views.name_metric(run, metric) + (f" of {target}" if target else "")
        where = f"{name}{f' on {dataset}' if several else ''}"
        versions = _select_versions(rows)
        texts = [_describe_version(run, row, metric, to_line(where)) for row in versions]
        if texts:
            small = "Each re-ranker at the setting that removes most; intervals are not corrected "
            detail = _combine(*texts[1:], _state_price(versions[0]), f"{small}for this choice.")
            yield _make_conclusion("reranking", bias, dataset, _Answer(texts[0], detail))


def _select_versions(rows: Sequence[Row]) -> list[Row]:
    """Return the version of each model and re-ranker that removes most, the largest first."""
    best: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: -float(row["bias_removed"])):
        if not math.isnan(row["bias_removed"]):
            best.setdefault((row["baseline"], views.name_reranker(row)), row)
    return [*best.values()]


def _describe_version(run: RunTables, row: Row, metric: Definition, name: str) -> str:
    """Return a version with what it removes and what it costs."""
    reranker, setting, strength = views.name_reranker(row), row["setting"], row["strength"]
    if not math.isnan(strength) and f"{setting}=" not in reranker:
        reranker = f"{reranker} ({setting} {strength:g})"
    subject = f"{to_line(reranker)} of {to_line(row['baseline'])}"
    removed, worsens = row["bias_removed"], row["bias_removed"] < 0
    accuracy = views.collect_definitions(run).get(row["accuracy"])
    of = views.name_metric(run, accuracy) if accuracy else to_line(row["accuracy"])
    verb = "gains" if row["accuracy_lost"] < 0 else "costs"
    cost = f"{verb} {_state_change(row, 'accuracy_lost', of)}"
    if removed == 0:
        return f"{subject} does not change {name} and {cost}."
    if row["bias_removed_low"] <= 0 <= row["bias_removed_high"]:
        change = _state_change(row, "bias_removed")
        return f"{subject} is not shown to change {name} (by {change}) and {cost}."
    towards = _TOWARDS[worsens] if metric.direction == "zero" else ""
    change = _state_change(row, "bias_removed")
    return f"{subject} {_VERBS[metric.direction][worsens]} {name}{towards} by {change} and {cost}."


def _state_change(row: Row, name: str, unit: str = "") -> str:
    """Return the size of a change with its interval."""
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    if value < 0:
        value, low, high = -value, -high, -low
    size, bracket, interval = format_estimate(value, low, high).partition(" [")
    return f"{size}{f' {unit}' if unit else ''}{bracket}{interval}"


def _state_price(row: Row) -> str:
    """Return the accuracy that one unit of bias costs, blank where it is unknown."""
    if math.isnan(row["price"]):
        return ""
    price = format_estimate(*(row[name] for name in ("price", "price_low", "price_high")))
    unbounded = ", an unbounded interval" if views.is_unbounded(row) else ""
    return f"Price of one unit removed: {price}{unbounded}."


_MOST_MODELS = 3  # how many models a sentence on rounds names: those that change most


def _describe_rounds(run: RunTables) -> Iterator[Conclusion]:
    """Yield how each value changes over the rounds of feedback."""
    datasets = views.list_single_datasets(run)
    for dataset in datasets:
        where = f" on {to_line(dataset)}" if len(datasets) > 1 else ""
        curves = views.list_round_curves(run, dataset)
        for _, group in itertools.groupby(curves, lambda curve: _name_curve(run, curve)):
            members = list(group)
            name, last = _name_curve(run, members[0]), max(members[0].values)
            texts = _list_changes(members)
            lead = f"{name}{where} from round 1 to round {last}:"
            choices = [f"{lead} {join_names(texts[:n])}." for n in range(len(texts), 0, -1)]
            answer = _Answer(
                _fit(*choices) if choices else f"{lead} undefined.",
                "The largest change first; no test compares the rounds.",
            )
            yield _make_conclusion("rounds", members[0].metric.title, dataset, answer)


def _name_curve(run: RunTables, curve: views.RoundCurve) -> str:
    part = " ".join(filter(None, (curve.group, curve.target)))
    name = views.name_metric(run, curve.metric, curve.group)
    return to_line(f"{name} of {part}" if part else name)


def _list_changes(curves: Sequence[views.RoundCurve]) -> list[str]:
    """Return the first and last values of the models, the largest change first."""
    ends = [
        (curve.model, curve.values[min(curve.values)], curve.values[max(curve.values)])
        for curve in curves
    ]
    changes = sorted(
        (row for row in ends if not math.isnan(row[2] - row[1])),
        key=lambda row: -abs(row[2] - row[1]),
    )[:_MOST_MODELS]
    places = count_decimals([value for _, *values in changes for value in values])
    return [
        f"{to_line(model)} {format_value(first, places)} to {format_value(last, places)}"
        for model, first, last in changes
    ]


# ---- values without a test ----

_NO_TEST = "No test compares the models."


def _describe_values(run: RunTables, questions: Sequence[Question]) -> Iterator[Conclusion]:
    """Yield an answer for the metrics that no test compares as a whole."""
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
        if metric.gap in {"ratio", "std"} or _describes_gap(metric, compared, dataset):
            continue
        where = f" on {to_line(dataset)}" if dataset else ""
        name, unit = f"{views.name_metric(run, metric)}{where}", _name_unit(run, metric)
        overall = [row for row in rows if not row["group"]]
        served = [row for row in rows if row["group"] == SERVED]
        baselines = views.list_baselines(run)
        answer = _describe_overall(metric, name, overall, baselines, unit)
        if answer is None:
            values = f"{views.name_metric(run, metric, 'group')}{where}"
            answer = _describe_groups(metric, values, rows, baselines, unit)
        elif served and (part := _describe_overall(metric, name, served, baselines, unit)):
            scope = _describe_served(overall, served, unit)
            answer = answer._replace(more=(f"{scope} {part.sentence}",))
        if answer:
            yield _make_conclusion("value", title, dataset, answer)


def _describes_gap(metric: Definition, compared: set[tuple[str, str]], dataset: str) -> bool:
    """Return whether the groups of this gap are compared by tests."""
    groups = metric.title.replace(f", gap={metric.gap}", "")
    return bool(metric.gap) and (groups, dataset) in compared


def _describe_overall(
    metric: Definition, name: str, rows: Sequence[Row], baselines: Iterable[str], unit: str
) -> _Answer | None:
    """Return the best value, or all values where no direction is better."""
    defined = [row for row in rows if not math.isnan(row["value"])]
    absent = [row["model"] for row in rows if math.isnan(row["value"])]
    undefined = f"Undefined for {join_names(absent)}." if absent else ""
    if not defined:
        return _Answer(f"{name} is undefined for {join_names(absent)}.") if absent else None
    named = [row for row in defined if row["model"] not in baselines] or defined
    places = count_decimals(row["value"] for row in defined)
    texts = [f"{to_line(row['model'])} {format_value(row['value'], places)}" for row in named]
    direction = f"{DIRECTION_LABELS[metric.direction].capitalize()}."
    test = _NO_TEST if len(defined) > 1 else ""
    small = _combine(test, direction, undefined)
    if len(named) == 1:
        row = named[0]
        value = format_estimate(row["value"], row["ci_low"], row["ci_high"], places)
        sign = _compare_with_zero(row) if metric.direction == "zero" or metric.gap else ""
        n = "" if math.isnan(row["n"]) else f"{_count_units(row['n'], unit)}."
        return _Answer(f"{to_line(row['model'])} has {name} {value}{sign}.", _combine(n, small))
    flags = views.flag_best([row["value"] for row in named], metric.direction)
    best = [row["model"] for row, flag in zip(named, flags, strict=True) if flag]
    if metric.direction == "none" or len(best) == len(named):
        order = sorted(range(len(named)), key=lambda at: float(named[at]["value"]))
        ends = f"from {texts[order[0]]} to {texts[order[-1]]}, {len(named):,} models"
        return _Answer(f"{name}: {join_names(texts) if len(texts) <= 3 else ends}.", small)
    what = _SUPERLATIVES[metric.direction].format(name)
    value = format_value(named[flags.index(True)]["value"], places)
    models = f"of {len(named):,} models" if len(named) > 2 else ""
    others = [text for text, flag in zip(texts, flags, strict=True) if not flag]
    against = f"against {others[0]}" if len(named) == 2 else models
    return _Answer(f"{join_names(best)} {_has(best)} {what}, {value}, {against}.", small)


def _compare_with_zero(row: Row) -> str:
    if math.isnan(row["ci_low"]) or math.isnan(row["ci_high"]):
        return ""
    if row["ci_low"] <= 0 <= row["ci_high"]:
        return ", an interval that includes 0"
    return f", {'above' if row['ci_low'] > 0 else 'below'} 0"


def _describe_groups(
    metric: Definition, name: str, rows: Sequence[Row], baselines: Iterable[str], unit: str
) -> _Answer | None:
    """Return the worst-off group of a model, where no test compares the groups."""
    by_model: dict[str, list[Row]] = {}
    for row in rows:
        by_model.setdefault(row["model"], []).append(row)
    worst = [
        found[0]
        for model, groups in by_model.items()
        if len(found := find_worst_groups(groups, metric)) == 1
        and (model not in baselines or {*by_model} <= {*baselines})
    ]
    if not worst:
        return None
    by, places = (
        str(metric.parameters.get("by", "")),
        count_decimals(row["value"] for row in worst),
    )
    texts = [
        f"{to_line(name_group(row['group'], by))} with {to_line(row['model'])} "
        f"({format_value(row['value'], places)}, {_count_units(row['n'], unit)})"
        for row in worst
    ]
    choices = [f"{name}: worst off is {join_names(texts[:n])}." for n in (3, 2, 1)]
    return _Answer(_fit(*choices), _explain_no_pairs(metric, by_model))


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


# ---- conclusions ----

_METHOD = ("test", "correction", "family", "family_size", "alpha")


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """The answer of a run to one question, as text and as numbers.

    The fields from ``a`` on are those of the comparison with the largest significant effect; they
    are blank or NaN if no comparison is significant, and for values without a test.

    Args:
        sentence: The answer.
        detail: How it was found: test, correction, p-value and n; it may be blank.
        more: Sentences that belong to it: the comparison with the best baseline, the answer for
            the queries that all models have a list for.
        kind: ``reranking``: what re-ranking removes and costs; ``rounds``: a value over rounds of
            feedback; ``groups``: what is compared within a model; ``models``; or ``value`` without
            a test.
        effect: The size of the effect in standard deviations, by which conclusions are ordered.
        n_tests: The number of comparisons, of which ``n_significant`` are significant.
        detectable: The difference that each test which found none would have detected in 80 of
            100 such runs; NaN if there is no such test.
        worst: The worst-off groups of queries in the metric's direction.
    """

    kind: Literal["reranking", "rounds", "groups", "models", "value"]
    metric: str
    dataset: str
    sentence: str
    detail: str = ""
    more: tuple[str, ...] = ()
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


def _make_conclusion(
    kind: Literal["reranking", "rounds", "groups", "models", "value"],
    metric: str,
    dataset: str,
    answer: _Answer,
    **facts: Any,
) -> Conclusion:
    sentence = answer.sentence
    name = sentence.partition(" ")[0]
    if name.islower() and name.isalpha():  # a name in lower case, such as popularity bias
        sentence = sentence[0].upper() + sentence[1:]
    answer = answer._replace(sentence=sentence)
    return Conclusion(kind=kind, metric=metric, dataset=dataset, **answer._asdict(), **facts)


@lru_cache(maxsize=2)
def collect_conclusions(run: RunTables) -> tuple[Conclusion, ...]:
    """Return the conclusions: re-ranking, rounds, then significant ones, groups first."""
    questions = collect_questions(run)
    answers = [_conclude(question) for question in questions]
    answers.sort(
        key=lambda item: (not item.n_significant, item.kind != "groups", -rank_effect(item.effect))
    )
    values = _describe_values(run, questions)
    return (*_describe_reranking(run), *_describe_rounds(run), *answers, *values)


def _conclude(question: Question) -> Conclusion:
    undecided = question.select_undecided()
    if question.compares_models:
        undecided = [row for row in question.rows if row not in question.significant]
    test = question.comparisons[0].rows[0]
    facts = _list_facts(question, question.select_leads()[0]) if question.significant else {}
    return _make_conclusion(
        "models" if question.compares_models else "groups",
        question.metric.title,
        question.dataset or ("" if test["dataset"] == views.ALL else test["dataset"]),
        _write_answer(question),
        between=question.between,
        n_tests=len(question.rows),
        n_significant=len(question.significant),
        detectable=_find_detectable(undecided),
        effect=next(map(compute_effect, question.significant or question.rows), math.nan),
        **{name: test[name] for name in _METHOD},
        **facts,
    )


def _list_facts(question: Question, row: Row) -> dict[str, Any]:
    names = ("model", "a", "b", "mean_a", "mean_b", "difference", "ci_low", "ci_high")
    facts = {name: row[name] for name in (*names, "p_adjusted")}
    worst = question.find_worst(row["model"], row["target"])
    part = row["part"] if question.compares_models else row["target"]
    return {**facts, "part": part, "worst": tuple(str(group["group"]) for group in worst)}


def split_conclusions(run: RunTables) -> tuple[list[Conclusion], list[Conclusion]]:
    """Return the conclusions on what the spec asks for, at most three, and the others.

    They are on groups, on re-ranking or feedback, and on models: of each the metric that the spec
    names first, of groups the first that has a significant difference. A measure of bias
    follows the accuracy of models.
    """
    conclusions, definitions = collect_conclusions(run), views.collect_definitions(run)
    order = {title: at for at, title in enumerate(definitions)}
    ranked = sorted(conclusions, key=lambda item: order.get(item.metric, len(order)))
    groups = [item for item in ranked if concerns_groups(run, item)]
    groups.sort(key=lambda item: item.n_significant == 0)
    changes = [item for item in conclusions if item.kind in {"reranking", "rounds"}]
    models = [item for item in ranked if item not in groups and item not in changes]
    accuracy = {title for title, metric in definitions.items() if metric.name in views.ACCURACY}
    bias = [item for item in models[1:] if item.metric not in accuracy]
    first = [*groups[:1], *changes[:1], *models[:1], *bias][:3]
    return first, [item for item in conclusions if item not in first]


def concerns_groups(run: RunTables, conclusion: Conclusion) -> bool:
    """Return whether a conclusion compares groups, or values of them."""
    metric = views.collect_definitions(run).get(conclusion.metric)
    return conclusion.kind == "groups" or (metric is not None and "by" in metric.parameters)
