"""The three charts that plots are made of: rows of marks, points on two axes, and lines."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recbias.core.dataset import FloatArray
from recbias.reports import svg
from recbias.reports.svg import Interval, Plot, Point, Scale
from recbias.reports.wording import Safe, join

# ---- rows of marks ----

_HEAD, _LONGEST = 26.0, 24


@dataclass(frozen=True)
class Mark:
    """A value in a row: the number of its series, and the text that shows on hover."""

    interval: Interval
    series: int = 0
    title: str = ""
    hollow: bool = False


@dataclass(frozen=True)
class Box:
    """Quartiles, ends of the whiskers, mean and number of values."""

    low: float
    q1: float
    median: float
    q3: float
    high: float
    mean: float
    n: int


def compute_box(values: FloatArray) -> Box:
    """Return the box of values; whiskers reach the last value within 1.5 interquartile ranges.

    >>> compute_box(np.array([0.0, 1.0, 2.0, 3.0, 14.0]))
    Box(low=0.0, q1=1.0, median=2.0, q3=3.0, high=3.0, mean=4.0, n=5)
    """
    q1, median, q3 = (float(value) for value in np.quantile(values, (0.25, 0.5, 0.75)))
    reach = 1.5 * (q3 - q1)
    inside = values[(values >= q1 - reach) & (values <= q3 + reach)]
    low, high = float(inside.min()), float(inside.max())
    return Box(low, q1, median, q3, high, float(values.mean()), int(values.size))


@dataclass(frozen=True)
class Row:
    """A labelled row of marks below each other, or of a box; without either it is a heading.

    The note stands at its right end. ``shaded`` is a band from the lowest to the highest mark,
    beside the note in bold.
    """

    label: str
    marks: tuple[Mark, ...] = ()
    note: str = ""
    shaded: bool = False
    box: Box | None = None

    @property
    def ends(self) -> list[float]:
        """The values that the axis must show."""
        ends = [end for mark in self.marks for end in mark.interval.ends()]
        return [*ends, self.box.low, self.box.high, self.box.mean] if self.box else ends


@dataclass(frozen=True)
class Rows:
    """A chart of rows.

    A single series has no legend. ``lines`` are values across all rows: the one without bias, or
    the limits; ``line_label`` names them in the legend.
    """

    rows: tuple[Row, ...]
    axis: str
    note: str = ""
    series: tuple[str, ...] = ()
    lines: tuple[float, ...] = ()
    line_label: str = ""


def draw_rows(chart: Rows, **texts: str) -> Plot:
    """Return the chart; ``texts`` are the name, the title and the caption of the plot."""
    has_boxes = any(row.box for row in chart.rows)
    names = chart.series if len(chart.series) > 1 else ()
    legend, top = _draw_box_key() if has_boxes else svg.draw_legend(names, chart.line_label)
    most = max(len(row.marks) for row in chart.rows)
    height = 30.0 if has_boxes else 22.0 if most < 2 else 12.0 + 9.0 * most
    heights = [height if row.ends else _HEAD for row in chart.rows]
    if top + sum(heights) + 66 > svg.TALL:
        top += 20.0
    total = top + sum(heights) + 66
    labels = [row.label for row in chart.rows if row.ends]
    short = dict(zip(labels, svg.shorten_all(labels, svg.scale_length(_LONGEST)), strict=True))
    ends = [end for row in chart.rows for end in row.ends]
    notes = max(svg.estimate_width(row.note) for row in chart.rows)
    scale = Scale(
        *svg.pad_range([*ends, *chart.lines]),
        18 + max(map(svg.estimate_width, short.values())),
        svg.width() - svg.MARGIN - (notes + 16 if notes else 4),
    )
    elements = [svg.draw_row_axis(scale, top, chart.axis, chart.note, total)]
    for value in chart.lines:
        x = scale.at(value)
        elements.append(svg.draw_line((x, top), (x, total - 58), "neutral"))
    elements.append(legend)
    y = top
    for row, own in zip(chart.rows, heights, strict=True):
        if row.ends:
            elements += _draw_row(row, short[row.label], scale, (y, own))
        else:
            elements.append(svg.draw_rectangle((0, y - 1), (svg.width(), own - 1), "paper"))
            title = svg.shorten(row.label, svg.scale_length(52))
            elements.append(svg.draw_title((4, y + 19), title))
        y += own
    return Plot(texts["name"], texts["title"], texts["caption"], total, join(*elements))


def _draw_row(row: Row, label: str, scale: Scale, place: tuple[float, float]) -> Iterator[Safe]:
    top, height = place
    middle = top + height / 2
    yield svg.draw_text((scale.start - 10, middle + 4.5), label, "end")
    if row.shaded:
        ends = [scale.at(mark.interval.value) for mark in row.marks]
        yield svg.draw_rectangle((min(ends), top + 2), (max(ends) - min(ends), height - 4), "gap")
    if row.box:
        yield _draw_box(row.box, row.label, scale, middle)
    for position, mark in enumerate(row.marks):
        y = middle + (position - (len(row.marks) - 1) / 2) * 9.0
        colour, shape = svg.choose_look(mark.series)
        if mark.interval.bounded:
            start, end = (scale.at(mark.interval.low), y), (scale.at(mark.interval.high), y)
            yield svg.draw_line(start, end, f"interval {colour}")
        class_ = f"dot{' open' * mark.hollow} {colour}"
        yield svg.draw_marker((scale.at(mark.interval.value), y), shape, class_, title=mark.title)
    place = svg.width() - svg.MARGIN, middle + 4.5
    yield svg.draw_text(place, row.note, f"end {'name' * row.shaded}".strip())


def _draw_box(box: Box, label: str, scale: Scale, y: float) -> Safe:
    title = (
        f"{label}: mean {box.mean:.3f}, median {box.median:.3f}, half of the values between "
        f"{box.q1:.3f} and {box.q3:.3f}, n {box.n:,}"
    )
    low, q1, median, q3, high = map(scale.at, (box.low, box.q1, box.median, box.q3, box.high))
    return join(
        svg.draw_line((low, y), (q1, y), "interval c0"),
        svg.draw_line((q3, y), (high, y), "interval c0"),
        *(svg.draw_line((end, y - 4), (end, y + 4), "interval c0") for end in (low, high)),
        svg.draw_rectangle((q1, y - 9), (max(q3 - q1, 0.5), 18), "box", title),
        svg.draw_line((median, y - 9), (median, y + 9), "median"),
        svg.draw_marker((scale.at(box.mean), y), svg.DIAMOND, "mean", radius=3.8),
    )


def _draw_box_key() -> tuple[Safe, float]:
    key = join(
        svg.draw_marker((12, 12), svg.DIAMOND, "mean", radius=3.8),
        svg.draw_text((21, 16), "mean"),
        svg.draw_line((76, 5), (76, 20), "median"),
        svg.draw_text((84, 16), "median"),
    )
    return key, svg.TOP


# ---- two axes ----

_ROOM = 44.0  # the least distance of two ticks
_LOG_RATIO = 30  # the ratio of the ends from which an axis is logarithmic


@dataclass(frozen=True)
class Axis:
    """An axis: its title, and a note behind it.

    Args:
        title: The title.
        note: A note behind it.
        lines: Values with a line across the chart, and the class of each.
        band: The ends of a shaded range.
        span: The ends of the axis, by default those of the values.
        may_be_log: Whether it is logarithmic where its ends are far apart.
        ticks: Its ticks where they have room, by default round values.
        unit: What the labels of the ticks end in.
    """

    title: str
    note: str = ""
    lines: Mapping[float, str] = field(default_factory=dict)
    band: tuple[float, float] | None = None
    span: tuple[float, float] | None = None
    may_be_log: bool = False
    ticks: Sequence[float] | None = None
    unit: str = ""

    def find_span(self, values: Sequence[float]) -> tuple[tuple[float, float], bool]:
        """Return the ends of the axis of some values, and whether it is logarithmic."""
        low, high = min(values), max(values)
        is_log = self.may_be_log and low > 0 and high / low >= _LOG_RATIO
        if self.span:
            return self.span, is_log
        if is_log:
            return (low / 1.2, high * 1.2), True
        ends = [1.5 * end for end in self.band or ()]
        return svg.pad_range([*values, *self.lines, *ends]), False

    def choose_ticks(self, scale: Scale) -> Sequence[float]:
        """Return the ticks on a scale."""
        places = [scale.at(value) for value in self.ticks or ()]
        if self.ticks and all(b - a >= _ROOM for a, b in itertools.pairwise(places)):
            return self.ticks
        return (svg.choose_log_ticks if scale.log else svg.choose_ticks)(scale.low, scale.high)


def make_axes(
    x: Axis, y: Axis, xs: Sequence[float], ys: Sequence[float], height: float = 300.0
) -> svg.Axes:
    """Return the axes of values, with room for their titles."""
    (across, is_log), (up, _) = x.find_span(xs), y.find_span(ys)
    return svg.make_axes(across, up, height, log_x=is_log)


def draw_frame(axes: svg.Axes, x: Axis, y: Axis) -> Safe:
    """Return both axes with their lines and bands."""
    left, right, top, bottom = axes.x.start, axes.x.end, axes.y.end, axes.y.start
    elements = [axes.draw(x.choose_ticks(axes.x), y.choose_ticks(axes.y), unit=y.unit)]
    if y.band:
        low, high = map(axes.y.at, y.band)
        elements.append(
            svg.draw_path(f"M{left:.1f},{low:.1f}H{right:.1f}V{high:.1f}H{left:.1f}Z", "band c0")
        )
    for value, class_ in x.lines.items():
        elements.append(svg.draw_line((axes.x.at(value), top), (axes.x.at(value), bottom), class_))
    for value, class_ in y.lines.items():
        elements.append(svg.draw_line((left, axes.y.at(value)), (right, axes.y.at(value)), class_))
    return join(*elements)


def _draw_chart(axes: svg.Axes, x: Axis, y: Axis, *elements: Safe, **texts: str) -> Plot:
    return svg.draw_chart(
        axes,
        *elements,
        x_title=(x.title, x.note),
        y_title=(y.title, y.note),
        drawn=draw_frame(axes, x, y),
        **texts,
    )


# ---- points ----

_RADII = {"cloud": 2.1, "centre": 6.5}


@dataclass(frozen=True)
class Dot:
    """A point of a chart: its two values, its label, and the text that shows on hover.

    ``kind`` is ``open`` for a hollow point, ``cloud`` for one of many, ``centre`` for their mean.
    """

    x: Interval
    y: Interval
    label: str = ""
    title: str = ""
    series: int = 0
    shape: int = 0
    kind: str = ""

    @property
    def colour(self) -> str:
        """The class of its colour."""
        return f"c{self.series % svg.COLOURS}"


def draw_points(dots: Sequence[Dot], x: Axis, y: Axis, height: float, **texts: str) -> Plot:
    """Return a chart of points; their intervals are lines, which labels avoid."""
    xs = [end for dot in dots for end in dot.x.ends()]
    ys = [end for dot in dots for end in dot.y.ends()]
    axes = make_axes(x, y, xs, ys, height)
    return _draw_chart(axes, x, y, *_draw_dots(dots, axes), **texts)


def _draw_dots(dots: Sequence[Dot], axes: svg.Axes) -> Iterator[Safe]:
    marks: list[Safe] = []
    named: list[tuple[Dot, Point, float]] = []  # with the distance of the label
    obstacles: list[Point] = []
    for dot in dots:
        centre = across, up = axes.at(dot.x.value, dot.y.value)
        sides = [(axes.x.at(end), up) for end in dot.x.ends()[1:]]
        whiskers = [sides, [(across, axes.y.at(end)) for end in dot.y.ends()[1:]]]
        yield from (
            svg.draw_line(ends[0], ends[1], f"whisker {dot.colour}")
            for ends in whiskers
            if len(ends) == 2
        )
        obstacles += [end for ends in whiskers for end in ends]
        radius = _RADII.get(dot.kind, 4.5)
        class_ = " ".join(filter(None, ["dot", dot.kind, dot.colour]))
        marks.append(svg.draw_marker(centre, dot.shape, class_, radius=radius, title=dot.title))
        if dot.label:
            reach = max([abs(end - across) for end, _ in sides], default=0.0)
            named.append((dot, centre, min(max(4.5 + radius, 4.0 + reach), 26.0)))
        elif dot.kind != "cloud":
            obstacles.append(centre)
    labels = svg.shorten_all((dot.label for dot, *_ in named), 22)
    texts = svg.draw_labels(
        [centre for _, centre, _ in named],
        labels,
        (axes.x.start, axes.y.end - 6, axes.x.end + 10, axes.y.start - 2),
        [f"halo {dot.colour}" for dot, *_ in named],
        spots=[
            svg.list_spots(centre, label, gap)
            for (_, centre, gap), label in zip(named, labels, strict=True)
        ],
        obstacles=obstacles,
    )
    yield from (*texts, *marks)


# ---- lines ----


@dataclass(frozen=True)
class Line:
    """A line through points with their intervals, which are an area with ``band``.

    ``texts`` show on hover over its points, which are marked if there are any; ``title`` shows
    over the line. A dotted line is grey.
    """

    points: Sequence[tuple[float, Interval]]
    texts: Sequence[str] = ()
    title: str = ""
    dotted: bool = False
    band: bool = False


def draw_lines(lines: Mapping[str, Line], x: Axis, y: Axis, **texts: str) -> Plot:
    """Return a chart of lines with their names beside them."""
    points = [point for line in lines.values() for point in line.points]
    ends = [end for _, interval in points for end in interval.ends()]
    axes = make_axes(x, y, [across for across, _ in points], ends)
    return _draw_chart(axes, x, y, draw_named_lines(lines, axes), **texts)


def draw_named_lines(lines: Mapping[str, Line], axes: svg.Axes) -> Safe:
    """Return lines on given axes with their names, which cover other lines least."""
    labels, paths, colours = svg.shorten_all(lines, 22), list[list[Point]](), list[str]()
    bands, drawn, number = list[Safe](), list[Safe](), 0
    for line in lines.values():
        paths.append([axes.at(across, interval.value) for across, interval in line.points])
        colours.append("note" if line.dotted else f"c{number % svg.COLOURS}")
        colour = "reference" if line.dotted else f"curve {svg.format_colour(number)}"
        number += not line.dotted
        spans = [
            (axes.at(across, interval.low), axes.at(across, interval.high))
            for across, interval in line.points
            if interval.bounded
        ]
        if line.band:
            outline = [*(low for low, _ in spans), *(high for _, high in reversed(spans))]
            steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in outline)
            bands.append(svg.draw_path(f"M{steps}Z", f"band {colours[-1]}"))
        else:
            drawn += [svg.draw_line(*span, colour) for span in spans]
        drawn.append(svg.draw_polyline(paths[-1], colour, line.title))
        dots = zip(paths[-1], line.texts, strict=False)
        drawn += [svg.draw_circle(point, 4, f"dot {colours[-1]}", text) for point, text in dots]
    names = svg.draw_labels(
        [path[len(path) // 2] for path in paths],
        labels,
        axes.frame,
        [f"halo {colour}" for colour in colours],
        spots=[*map(_list_spots_beside, paths, labels)],
        obstacles=[point for path in paths for point in _interpolate_points(path)],
    )
    return join(*bands, *drawn, *names)


def _list_spots_beside(path: Sequence[Point], label: str) -> list[svg.Spot]:
    """Return spots along a line: on its left and above, or on its right and below."""
    width = svg.estimate_width(label)
    spots = []
    for position, (x, y) in enumerate(path):
        cost = 0.04 * abs(position - len(path) / 2)
        spots.append(svg.Spot(x - width - 6, y - 3, width, cost))
        spots.append(svg.Spot(x + 8, y + 12, width, cost + 0.5))
    return spots


def _interpolate_points(path: Sequence[Point], step: float = 4.0) -> list[Point]:
    """Return points along a line, at most ``step`` apart: what a label must not cover."""
    x, y = np.array(path, dtype=np.float64).T
    lengths = np.concatenate([[0.0], np.hypot(np.diff(x), np.diff(y)).cumsum()])
    distances = np.linspace(0, lengths[-1], 2 + int(lengths[-1] / step))
    columns: Any = (np.interp(distances, lengths, ends).tolist() for ends in (x, y))
    return list(zip(*columns, strict=True))


def describe_intervals(intervals: Sequence[Interval]) -> str:
    """Return the caption's sentence on the lines of intervals, blank if there is no interval."""
    return "Lines are 95% intervals." if any(each.bounded for each in intervals) else ""
