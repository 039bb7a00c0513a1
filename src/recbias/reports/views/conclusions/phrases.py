"""Parts of the sentences about comparisons: names, numbers, tests, what could have been found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recbias.core.measurements.ranges import read_bounds
from recbias.reports.markup import to_line
from recbias.reports.views.comparisons import Row, describe_methods
from recbias.reports.views.conclusions.effects import find_detectable
from recbias.reports.views.conclusions.questions import Question
from recbias.reports.views.headings import name_group
from recbias.reports.views.rounding import (
    count_decimals,
    format_count,
    format_interval,
    format_p_value,
    format_value,
)
from recbias.statistics.uncertain.group_means import TEST as UNCERTAIN


class Answer(NamedTuple):
    """An answer to a question: a short sentence, and how it was found in a second line."""

    sentence: str
    detail: str


_SCALES: Mapping[str, str] = {
    "mean_attribute": "levels of {attribute}",
    "ARP": "interactions",
    "log_popularity_difference": "log interactions",
}
"""The units of the metrics that have one."""


def name_metric(question: Question) -> str:
    """Return the heading of the metric, with the dataset where there are several."""
    suffix = f" on {to_line(question.dataset)}" if question.dataset else ""
    suffix += f", {question.place}" if question.place else ""
    metric = question.metric
    within = question.between == "groups"
    return to_line(metric.groups_heading if within else metric.heading) + suffix


def name_models(models: Sequence[str]) -> str:
    """Return models as text: one, two, or the number of more.

    >>> name_models(["EASE"]), name_models(["EASE", "ALS"]), name_models(["a", "b", "c"])
    ('EASE', 'EASE and ALS', 'any of 3 models')
    """
    if len(models) > 2:
        return f"any of {len(models):,} models"
    return " and ".join(map(to_line, models))


def measure_places(*rows: Row) -> int:
    """Return the number of decimals for the means and differences of comparisons."""
    names = ("difference", "mean_a", "mean_b")
    return count_decimals(row[name] for row in rows for name in names)


def format_size(question: Question, value: float, places: int) -> str:
    """Return the size of a difference with its unit, if the metric has one."""
    scale = _SCALES.get(question.metric.name, "").format_map(
        {"attribute": question.metric.parameters.get("attribute", "the attribute")}
    )
    return f"{format_value(abs(value), places)}{f' {scale}' if scale else ''}"


def describe_difference(row: Row, places: int) -> str:
    """Return the difference of a comparison with its interval."""
    return f"{format_value(row['difference'], places)} ({describe_interval(row, places)})"


def describe_interval(row: Row, places: int) -> str:
    """Return the interval of the difference of a comparison."""
    level = 1.0 - row["alpha"] if row["between"].startswith("model") else 0.95
    interval = format_interval(row["ci_low"], row["ci_high"], places)
    return f"{100 * level:.4g}% interval {interval}" if interval else "no interval"


def make_positive(row: Row) -> Row:
    """Return a comparison whose difference, with its interval, is not negative."""
    return orient(row, row["b"] if row["difference"] < 0 else row["a"])


def orient(row: Row, model: str) -> Row:
    """Return a comparison of models with the difference of ``model`` less the other.

    >>> row = {"a": "x", "b": "y", "difference": -1.0, "ci_low": -3.0, "ci_high": 0.5}
    >>> [orient(row, "y")[name] for name in ("difference", "ci_low", "ci_high")]
    [1.0, -0.5, 3.0]
    """
    if row["a"] == model:
        return row
    low, high = -row["ci_high"], -row["ci_low"]
    return {**row, "difference": -row["difference"], "ci_low": low, "ci_high": high}


def count_units(n: float, unit: str) -> str:
    """Return a number of units with their name, if they have one.

    >>> count_units(96.0, "user"), count_units(12.0, "")
    ('96 users', 'n 12')
    """
    return format_count(n, unit) if unit else f"n {n:,.0f}"


def describe_p_value(row: Row) -> str:
    """Return the p-value of a comparison, and whether it is adjusted.

    >>> row = {"p_adjusted": 0.0022, "correction": "holm", "family_size": 3.0, "alpha": 0.05}
    >>> describe_p_value(row)
    'adjusted p 0.0022'
    """
    unchanged = row["correction"] in {"", "none"} or row["family_size"] == 1
    adjusted = "" if unchanged else "adjusted "
    return f"{adjusted}p {format_p_value(row['p_adjusted'], row['alpha'])}"


def describe_test(question: Question, row: Row | None = None, result: str = "") -> str:
    """Return the test, the correction, the family, and the p-value and n of a comparison."""
    methods = describe_methods(question.comparisons)
    texts = [describe_p_value(row), _count_compared(question, row)] if row else []
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
        return "" if math.isnan(row["n"]) else count_units(row["n"], unit)
    if unit:
        return f"{counts[0]:,.0f} and {count_units(counts[1], unit)}"
    return f"n {counts[0]:,.0f} and {counts[1]:,.0f}"


def describe_side(question: Question, row: Row, side: str, places: int) -> str:
    """Return a side of a comparison: its name and mean."""
    return f"{name_side(question, row, side)} ({format_value(row[f'mean_{side}'], places)})"


def name_side(question: Question, row: Row, side: str) -> str:
    """Return the name of a side of a comparison; of a crossing, ``gender=F and age < 25``."""
    name = str(row[side])
    if question.between == "groups" or side == "group":
        name = name_group(name, str(question.metric.parameters.get("by", "")))
    return to_line(name)


def describe_worst(question: Question, model: str, target: str, named: Sequence[str] = ()) -> str:
    """Return a sentence on the worst-off groups of a model, blank if there is none.

    The mean of a group among ``named`` is stated already.
    """
    rows = question.find_worst(model, target)
    if not rows:
        return ""
    places = count_decimals(row["value"] for row in rows)
    names = []
    for row in rows:
        mean = "" if row["group"] in named else format_value(row["value"], places)
        n = "" if math.isnan(row["n"]) else count_units(row["n"], question.unit)
        facts = ", ".join(filter(None, [mean, n]))
        names.append(f"{name_side(question, row, 'group')}{f' ({facts})' if facts else ''}")
    return f" Worst off: {' and '.join(names)}."


UNDEFINED_REASONS = {
    "groups": ": a group has fewer than two values, or all its values are equal",
    "models": ": they have fewer than two units, or differ by the same amount on every one",
}
"""Why no test could be computed, by what it compares."""


def describe_power(question: Question, rows: Sequence[Row]) -> str:
    """Return what comparisons of a question that are not significant could have found."""
    if all(row["difference"] == 0 for row in rows):
        return "all compared values are equal"
    detectable = find_detectable(rows)
    if math.isnan(detectable):
        return "what could have been detected is undefined"
    places = count_decimals([detectable])
    text = format_value(detectable, min(places, 4) if detectable >= 0.01 else places)
    low, high = read_bounds(question.metric.values)
    found = f"one of at least {text}" if detectable <= high - low else f"not even {high - low:g}"
    return f"{found} would have been detected in 80 of 100 such runs"
