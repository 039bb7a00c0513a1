"""Accuracy against a bias, a point a model, with 95% intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recbias.core.errors import MissingEvidence
from recbias.reports.markup import Safe, join, one_line, tag
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.interval import Interval
from recbias.reports.plots.drawing.point_labels import Spot, around, placed
from recbias.reports.views.definitions import (
    ACCURACY,
    POPULARITY,
    WORDS,
    Definition,
    accuracy_metric,
    definitions,
    first_of,
    title_of,
)
from recbias.reports.views.headline import headline, models
from recbias.reports.views.rounding import decimals, shown
from recbias.reports.views.run_tables import RunTables, rows_of

_LEFT, _TOP, _RIGHT = 52.0, 34.0, 468.0


@dataclass(frozen=True)
class Family:
    """Metrics of one bias.

    Args:
        bias: What it is called.
        names: Names of its metrics, the one to show first in front.
        directed: Whether only metrics with a better way are shown.
    """

    bias: str
    names: tuple[str, ...]
    directed: bool = True

    def of(self, found: Iterable[Definition]) -> Definition | None:
        """Return the metric that a run is shown by, or None."""
        known = [each for each in found if each.direction != "none" or not self.directed]
        return first_of(known, self.names)


POPULAR = Family("popularity", POPULARITY, directed=False)
OTHERS = (
    Family("stereotypes", ("REC-ST", "HIT_BAD", "MRR_BAD")),
    Family("prices", ("price_percentage", "mean_attribute")),
)
"""Families whose picture stands where the run has them."""


@dataclass(frozen=True)
class Point:
    """A model's two figures, and its place among all models."""

    model: str
    place: int
    x: Interval
    y: Interval


def scatter(run: RunTables, dataset: str, *, name: str, family: Family = POPULAR) -> svg.Figure:
    """Return the figure of one dataset.

    Raises:
        MissingEvidence: The run has no accuracy metric, or none of the bias, or no model has both
            figures.
    """
    known = [each for each in definitions(run).values() if "gap" not in each.parameters]
    y, x = accuracy_metric(known), family.of(known)
    if x is None or y is None:
        lacking, names = ("accuracy", ACCURACY) if x else (family.bias, family.names)
        remedy = f"measure {' or '.join(names[:4])}"
        raise MissingEvidence(f"the run has no metric of {lacking}", remedy=remedy)
    x, points, lost = _points(run, dataset, x, y)
    if not points:
        raise MissingEvidence(f"no model has both {y.title} and {x.title}")
    height = 330.0 + 12 * max(0, len(points) - 8)
    wide, high = _scales(points, x, height)
    axes = join(
        svg.y_axis(high, svg.ticks(high.low, high.high), left=_LEFT, right=_RIGHT),
        svg.x_axis(wide, svg.ticks(wide.low, wide.high), top=_TOP, bottom=height - 54),
    )
    return svg.Figure(
        name=name,
        title=f"{y.title} against {x.title}",
        caption=_caption(points, x, y, lost),
        width=svg.WIDTH,
        height=height,
        body=join(axes, _neutral(wide, height), _titles(x, y, height), _marks(points, wide, high)),
    )


def _points(
    run: RunTables, dataset: str, x: Definition, y: Definition
) -> tuple[Definition, list[Point], int]:
    """Return the metric across, its first part where it has no figure of the whole, and points.

    The number is of figures that cannot be drawn.
    """
    frame = headline(run, run.metrics)
    frame = frame[(frame["dataset"] == dataset) & frame["value"].notna()]
    figures: dict[str, dict[tuple[str, str], dict[str, Interval]]] = {x.title: {}, y.title: {}}
    for row in rows_of(frame):
        parts = figures.get(title_of(row["metric"], row["k"]))
        if parts is not None:
            part = parts.setdefault((row["group"], row["target"]), {})
            part[row["model"]] = Interval(row["value"], row["ci_low"], row["ci_high"])
    across, upwards = figures[x.title], figures[y.title].get(("", ""), {})
    whole = ("", "")
    first = whole if whole in across else next(iter(across), whole)
    at = across.get(first, {})
    title = " ".join(filter(None, [x.title, *first]))
    unfit = {
        model
        for model in {*at} & {*upwards}
        if not (svg.fits_axis(at[model].value) and svg.fits_axis(upwards[model].value))
    }
    points = [
        Point(model, place, at[model], upwards[model])
        for place, model in enumerate(models(run))
        if model in at and model in upwards and model not in unfit
    ]
    return replace(x, title=title), points, len(unfit)


def _scales(points: Sequence[Point], x: Definition, height: float) -> tuple[svg.Scale, svg.Scale]:
    zero = [0.0] if x.direction == "zero" else []
    low, high = _reach([*zero, *(end for each in points for end in each.x.ends())])
    wide = svg.Scale(low, high, _LEFT, _RIGHT)
    low, high = _reach([end for each in points for end in each.y.ends()])
    return wide, svg.Scale(low, high, height - 54, _TOP)


def _reach(values: Sequence[float]) -> tuple[float, float]:
    """Return an axis' ends: a little beyond the figures, and never below 0 for want of room."""
    low, high = min(values), max(values)
    room = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    return (0.0 if 0 <= low < (high - low) * 0.3 else low - room), high + room


def _titles(x: Definition, y: Definition, height: float) -> Safe:
    return join(
        svg.heading((4, 16), y.title, _aside(y)),
        svg.heading((_RIGHT, height - 8), x.title, _aside(x), "end"),
    )


def _aside(known: Definition) -> str:
    return "" if known.direction == "none" else WORDS[known.direction]


def _neutral(wide: svg.Scale, height: float) -> Safe:
    if not wide.low < 0 < wide.high:
        return Safe("")
    return svg.line((wide.at(0), _TOP), (wide.at(0), height - 54), "zero")


def _marks(points: Sequence[Point], wide: svg.Scale, high: svg.Scale) -> Safe:
    at = [(wide.at(each.x.value), high.at(each.y.value)) for each in points]
    said = [svg.shortened(each.model) for each in points]
    spots = placed(
        [
            around(*place, label, gap=_gap(each, wide))
            for each, place, label in zip(points, at, said, strict=True)
        ],
        np.array([*at, *(end for each in points for end in _ends(each, wide, high))]),
        (4, _TOP - 6, _RIGHT + 10, high.start - 2),
    )
    whiskers = [_whiskers(each, wide, high) for each in points]
    dots = [_dot(each, place) for each, place in zip(points, at, strict=True)]
    names = [
        _name(label, place, spot, each.place)
        for label, place, spot, each in zip(said, at, spots, points, strict=True)
    ]
    return join(*whiskers, *dots, *names)


def _ends(point: Point, wide: svg.Scale, high: svg.Scale) -> list[tuple[float, float]]:
    """Return the ends of a model's intervals."""
    x, y = wide.at(point.x.value), high.at(point.y.value)
    across = [(wide.at(each), y) for each in point.x.ends()[1:]]
    return [*across, *((x, high.at(each)) for each in point.y.ends()[1:])]


def _gap(point: Point, wide: svg.Scale) -> float:
    """Return how far off a label stands: behind the interval where that is short."""
    x = [abs(wide.at(each) - wide.at(point.x.value)) for each in point.x.ends()]
    return min(max(9.0, 4.0 + max(x)), 26.0)


def _whiskers(point: Point, wide: svg.Scale, high: svg.Scale) -> Safe:
    x, y = wide.at(point.x.value), high.at(point.y.value)
    kind = f"whisker c{point.place % svg.COLOURS}"
    drawn = []
    if len(point.x.ends()) == 3:
        drawn.append(svg.line((wide.at(point.x.low), y), (wide.at(point.x.high), y), kind))
    if len(point.y.ends()) == 3:
        drawn.append(svg.line((x, high.at(point.y.low)), (x, high.at(point.y.high)), kind))
    return join(*drawn)


def _dot(point: Point, at: tuple[float, float]) -> Safe:
    said = f"{one_line(point.model)}: {_words(point.y)} against {_words(point.x)}"
    return tag(
        "circle",
        tag("title", said),
        cx=svg.number(at[0]),
        cy=svg.number(at[1]),
        r=5,
        class_=f"dot c{point.place % svg.COLOURS}",
    )


def _words(figure: Interval) -> str:
    places = decimals(figure.ends())
    if len(figure.ends()) < 3:
        return shown(figure.value, places)
    ends = f"{shown(figure.low, places)} to {shown(figure.high, places)}"
    return f"{shown(figure.value, places)} (95% interval {ends})"


def _name(said: str, at: tuple[float, float], spot: Spot, place: int) -> Safe:
    drawn = []
    if spot.far:
        end = min(max(at[0], spot.x), spot.x + spot.width), spot.y - 4
        drawn.append(svg.line(at, end, "lead"))
    drawn.append(svg.text((spot.x, spot.y), said, f"halo c{place % svg.COLOURS}"))
    return join(*drawn)


def _caption(points: Sequence[Point], x: Definition, y: Definition, lost: int) -> str:
    intervals = any(len(each.x.ends()) == 3 or len(each.y.ends()) == 3 for each in points)
    said = [f"Each point is a model: {y.title} upwards, {x.title} to the right."]
    if intervals:
        said.append("Lines are 95% intervals, and may be shorter than the point is wide.")
    if x.direction == "zero":
        said.append("The dotted line is 0, where there is no bias.")
    return " ".join(filter(None, [*said, svg.undrawn(lost)]))
