"""Parts of the sentences about comparisons: names, numbers, tests, what could have been found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from recbias.reports.markup import to_line
from recbias.reports.views.comparisons import Row, describe_methods
from recbias.reports.views.conclusions.questions import Question, find_detectable
from recbias.reports.views.rounding import (
    count_decimals,
    format_count,
    format_interval,
    format_p_value,
    format_value,
)

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
    return to_line(question.metric.heading) + suffix


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
    """Return the difference of a comparison with its interval and p-value."""
    level = 1.0 - row["alpha"] if row["between"].startswith("model") else 0.95
    interval = format_interval(row["ci_low"], row["ci_high"], places)
    bounds = f"{100 * level:.4g}% interval {interval}" if interval else "no interval"
    difference = format_value(row["difference"], places)
    return f"difference {difference}, {bounds}, {describe_p_value(row)}"


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

    >>> describe_p_value({"p_adjusted": 0.0022, "correction": "holm"})
    'adjusted p 0.0022'
    """
    adjusted = "" if row["correction"] in {"", "none"} else "adjusted "
    return f"{adjusted}p {format_p_value(row['p_adjusted'])}"


def describe_test(question: Question) -> str:
    """Return the test, the correction and the family."""
    return describe_methods(question.comparisons)


def describe_side(question: Question, row: Row, side: str, places: int) -> str:
    """Return a side of a comparison within a model: its name, mean and number of units."""
    estimate = question.estimates.get((row["model"], row[side], row["target"]))
    texts = [format_value(row[f"mean_{side}"], places)]
    if estimate is not None and not math.isnan(estimate["n"]):
        texts.append(count_units(estimate["n"], question.unit))
    return f"{to_line(row[side])} ({', '.join(texts)})"


def describe_worst(question: Question, model: str, target: str, named: Sequence[str] = ()) -> str:
    """Return a sentence on the worst-off groups of a model, blank if there is none.

    A group among ``named``, whose mean and size are stated already, is repeated by name only.
    """
    rows = question.find_worst(model, target)
    if not rows:
        return ""
    if len(rows) == 1 and rows[0]["group"] in named:
        return f" Worst off: {to_line(rows[0]['group'])}."
    places = count_decimals(row["value"] for row in rows)
    names = [
        f"{to_line(row['group'])} ({format_value(row['value'], places)}, "
        f"{count_units(row['n'], question.unit)})"
        for row in rows
    ]
    return f" Worst off: {' and '.join(names)}."


def describe_power(rows: Sequence[Row]) -> str:
    """Return what comparisons that are not significant could have found."""
    if all(row["difference"] == 0 for row in rows):
        return "all compared values are equal"
    detectable = find_detectable(rows)
    if math.isnan(detectable):
        return "what could have been detected is undefined"
    places = count_decimals([detectable])
    text = format_value(detectable, min(places, 4) if detectable >= 0.01 else places)
    return f"one of at least {text} would have been detected in 80 of 100 such runs"
