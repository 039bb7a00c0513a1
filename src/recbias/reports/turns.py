"""Curves over an assumption, and the value of it at which a conclusion turns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from recbias.reports import plots as rows
from recbias.reports import svg, views
from recbias.reports.run import RunTables, to_records
from recbias.reports.views import Definition
from recbias.reports.wording import format_value, to_line

_METRICS = ("position_bias", "examination_sensitivity", "propensity_sensitivity")
_TURNS = "turns"

_AXES: Mapping[str, tuple[str, str]] = {
    "position": ("Position", "Examination of each position, relative to the first."),
    "exponent": (
        "Exponent of the position bias",
        "Position p is examined 1 / p^exponent times.",
    ),
    "factor": (
        "Factor by which propensities may be wrong",
        "The worst gap if each propensity is wrong by at most the factor.",
    ),
}
"""The title of the axis, and what a point is, by the beginning of the targets of a metric."""


@dataclass(frozen=True)
class _Curve:
    """The values of a metric of one model over an assumption, and where its sign turns."""

    metric: Definition
    model: str
    axis: str
    points: tuple[tuple[float, svg.Interval], ...]
    turn: float


def _collect_curves(run: RunTables, dataset: str) -> list[_Curve]:
    """Return the curves of a dataset that have a value."""
    definitions = views.collect_definitions(run)
    points: dict[tuple[str, str], list[tuple[str, float, svg.Interval]]] = {}
    for row in to_records(views.select_headline(run, run.metrics)):
        title = views.format_title(row["metric"], row["k"])
        is_curve = title in definitions and definitions[title].name in _METRICS
        if is_curve and row["dataset"] == dataset and row["target"]:
            axis, _, x = str(row["target"]).partition("=")
            place = ", ".join(filter(None, [row["model"], row["group"]]))
            curve = points.setdefault((title, place), [])
            curve.append((axis, float(x or "nan"), svg.Interval.of_row(row)))
    curves = []
    for (title, model), ends in points.items():
        known = [end for end in ends if svg.fits_axis(end[2].value)]
        line = tuple((x, interval) for axis, x, interval in known if axis != _TURNS)
        turn = next((interval.value for axis, _, interval in known if axis == _TURNS), math.nan)
        if line:
            curves.append(_Curve(definitions[title], model, ends[0][0], line, turn))
    return curves


def draw_assumptions(run: RunTables, dataset: str, name_file: rows.NameFile) -> Iterator[svg.Plot]:
    """Yield a plot for each metric, with a curve for each model."""
    plots: dict[str, list[_Curve]] = {}
    for curve in _collect_curves(run, dataset):
        plots.setdefault(curve.metric.title, []).append(curve)
    for title, curves in plots.items():
        metric, (axis, meaning) = curves[0].metric, _AXES[curves[0].axis]
        turns = [_describe_turn(curve) for curve in curves if curve.axis != "position"]
        yield rows.draw_lines(
            {curve.model: curve.points for curve in curves},
            x_title=(axis, ""),
            y_title=(metric.heading, rows.describe_direction(metric)),
            zero=True,
            name=name_file(title),
            title=f"{metric.heading} by {axis[0].lower()}{axis[1:]}",
            caption=" ".join([meaning, *turns]),
        )


def describe_turns(run: RunTables, dataset: str) -> Iterator[tuple[str, str]]:
    """Yield a sentence for each metric and model that says where its conclusion turns."""
    for curve in _collect_curves(run, dataset):
        if curve.axis != "position":
            yield curve.metric.title, _describe_turn(curve)


def _name_sides(curve: _Curve) -> str:
    groups, model = curve.metric.parameters.get("groups"), to_line(curve.model)
    if not groups:
        return f"The gap of {model} to what was shown"
    count = curve.metric.parameters.get("count")
    of = f" in {count}" if count else ""
    return f"The gap of {to_line(groups['a'])} to {to_line(groups['b'])}{of} with {model}"


def _describe_turn(curve: _Curve) -> str:
    first = curve.points[0][1]
    if not (first.low > 0 or first.high < 0):
        return f"{_name_sides(curve)} is not shown to differ from 0."
    sign = "positive" if first.value > 0 else "negative"
    what, end = "the exponent of the position bias is", 5
    if curve.axis == "factor":
        what, end = "propensities are wrong by a factor of", 100
    if math.isnan(curve.turn):
        return f"{_name_sides(curve)} stays {sign} even if {what} {end}."
    return f"{_name_sides(curve)} is {sign} unless {what} {format_value(curve.turn, 2)} or more."
