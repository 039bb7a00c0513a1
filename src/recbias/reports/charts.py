"""The three charts that plots are made of: rows of marks, points on two axes, and lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recbias.core.dataset import FloatArray
from recbias.reports import svg
from recbias.reports.svg import Plot, Point, Scale
from recbias.reports.wording import Safe, count_decimals, format_value, join, tag


@dataclass(frozen=True)
class Interval:
    """A value with its 95% interval; ends that are not known are NaN."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @classmethod
    def of_row(cls, row: Mapping[str, Any], value: str = "value") -> Interval:
        """Return a value of a row of a table, with the row's interval."""
        return cls(row[value], row["ci_low"], row["ci_high"])

    @property
    def bounded(self) -> bool:
        """Whether an axis can show the value and both ends."""
        return len(self.ends()) == 3

    def ends(self) -> list[float]:
        """Return the value and the ends of the interval, those that an axis can show."""
        return list(filter(svg.fits_axis, (self.value, self.low, self.high)))

    def describe(self, most: int = 3) -> str:
        """Return the value with its interval in words, with at most ``most`` decimals.

        >>> Interval(0.5, 0.4, 0.6).describe()
        '0.500 (95% interval 0.400 to 0.600)'
        """
        digits = min(count_decimals(self.ends()), most)
        value, low, high = (format_value(end, digits) for end in (self.value, self.low, self.high))
        return f"{value} (95% interval {low} to {high})" if self.bounded else value


def describe_intervals(intervals: Sequence[Interval]) -> str:
    """Return the caption's sentence on the lines of intervals, blank if there is no interval."""
    return "Lines are 95% intervals." if any(each.bounded for each in intervals) else ""


# ---- axes ----

_TOP, _FOOT = 34.0, 54.0
_LOG_RATIO = 30  # the ratio of the ends from which an axis is logarithmic


@dataclass(frozen=True)
class Axis:
    """An axis.

    Args:
        title: The title.
        note: A note behind it.
        lines: Values with a line across the chart, and the class of each.
        span: The ends of the axis, by default those of the values.
        may_be_log: Whether it is logarithmic where its ends are far apart.
    """

    title: str
    note: str = ""
    lines: Mapping[float, str] = field(default_factory=dict)
    span: tuple[float, float] | None = None
    may_be_log: bool = False

    def make_scale(self, values: Sequence[float], start: float, end: float) -> Scale:
        """Return the scale of some values."""
        low, high = min(values), max(values)
        is_log = self.may_be_log and low > 0 and high / low >= _LOG_RATIO
        if self.span:
            return Scale(*self.span, start, end, is_log)
        if is_log:
            return Scale(*svg.round_outward(low / 1.05, high * 1.05), start, end, log=True)
        low, high = min([low, *self.lines]), max([high, *self.lines])
        if low == high:
            return Scale(*svg.pad_range([low]), start, end)
        return Scale(low, high, start, end).extend()


@dataclass(frozen=True)
class _Axes:
    """A horizontal and a vertical axis with their scales."""

    x_axis: Axis
    y_axis: Axis
    x: Scale
    y: Scale

    def at(self, x: float, y: float) -> Point:
        """Return the coordinates of a pair of values."""
        return self.x.at(x), self.y.at(y)

    def draw(self) -> Safe:
        """Return both axes with their ticks, lines and bands."""
        left, right, top, bottom = self.x.start, self.x.end, self.y.end, self.y.start
        elements = []
        for tick in self.y.choose_ticks():
            y = self.y.at(tick)
            elements.append(svg.draw_line((left, y), (right, y), "grid"))
            elements.append(svg.draw_text((left - 7, y + 4.5), svg.format_tick(tick), "tick end"))
        elements.append(svg.draw_x_axis(self.x, self.x.choose_ticks(), top, bottom))
        for value, class_ in self.x_axis.lines.items():
            x = self.x.at(value)
            elements.append(svg.draw_line((x, top), (x, bottom), class_))
        for value, class_ in self.y_axis.lines.items():
            y = self.y.at(value)
            elements.append(svg.draw_line((left, y), (right, y), class_))
        return join(*elements)


def _draw_chart(axes: _Axes, *elements: Safe, **texts: str) -> Plot:
    """Return a chart with its axes and their titles."""
    height, x, y = axes.y.start + _FOOT, axes.x_axis, axes.y_axis
    notes = (
        ", ".join(filter(None, [axis.note, "log scale" * scale.log]))
        for axis, scale in ((y, axes.y), (x, axes.x))
    )
    titles = (
        svg.draw_title((4, 16), y.title, next(notes)),
        svg.draw_title((axes.x.end, height - 8), x.title, next(notes), "end"),
    )
    body = join(axes.draw(), *titles, *elements)
    return Plot(height=height, body=body, **texts)  # type: ignore[arg-type]


def _make_axes(x: Axis, y: Axis, xs: Sequence[float], ys: Sequence[float], height: float) -> _Axes:
    across, up = x.make_scale(xs, 60.0, svg.width() - 24.0), y.make_scale(ys, height - _FOOT, _TOP)
    return _Axes(x, y, across, up)


# ---- rows of marks ----

_MARGIN, _HEAD, _LONGEST = 14.0, 26.0, 24


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
    q1, median, q3 = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
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


def draw_rows(
    rows: Sequence[Row],
    axis: Axis,
    *,
    series: Sequence[str] = (),
    line_label: str = "",
    **texts: str,
) -> Plot:
    """Return a chart of rows.

    Args:
        rows: The rows.
        axis: The horizontal axis; its lines cross all rows: the value without bias, or limits.
        series: The names of the series; a single one has no legend.
        line_label: What the legend calls the lines.
        **texts: The name, the title and the caption of the plot.
    """
    has_boxes = any(row.box for row in rows)
    names = series if len(series) > 1 else ()
    legend, top = svg.draw_legend(names, line_label)
    most = max(len(row.marks) for row in rows)
    height = 30.0 if has_boxes else 22.0 if most < 2 else 12.0 + 9.0 * most
    heights = [height if row.ends else _HEAD for row in rows]
    total = top + sum(heights) + 66
    narrowed = svg.width() / svg.WIDTH
    labels = [row.label for row in rows if row.ends]
    short = dict(zip(labels, svg.shorten_all(labels, int(_LONGEST * narrowed)), strict=True))
    notes = max(svg.estimate_width(row.note) * (1 + 0.1 * row.shaded) for row in rows)  # bold
    left = 18 + max(map(svg.estimate_width, short.values()))
    right = svg.width() - _MARGIN - (notes + 16 if notes else 4)
    scale = axis.make_scale([end for row in rows for end in row.ends], left, right)
    elements = [svg.draw_x_axis(scale, scale.choose_ticks(7), top, total - 58)]
    title = svg.shorten(axis.title, int(svg.width() / svg.estimate_width("x")) - 4)
    fits = svg.estimate_width(f"{title}  {axis.note}") < right
    end = right if fits else svg.width() - _MARGIN
    elements.append(svg.draw_title((end, total - 10), title, axis.note, "end"))
    for value, class_ in axis.lines.items():
        elements.append(
            svg.draw_line((scale.at(value), top), (scale.at(value), total - 58), class_)
        )
    elements.append(legend)
    y = top
    for row, own in zip(rows, heights, strict=True):
        if row.ends:
            elements += _draw_row(row, short[row.label], scale, (y, own))
        else:
            strip = svg.draw("rect", "paper", x=0, y=y - 1, width=svg.width(), height=own - 1)
            elements.append(strip)
            elements.append(
                svg.draw_title((4, y + 19), svg.shorten(row.label, int(52 * narrowed)))
            )
        y += own
    return Plot(height=total, body=join(*elements), **texts)  # type: ignore[arg-type]


def _draw_row(row: Row, label: str, scale: Scale, place: tuple[float, float]) -> Iterator[Safe]:
    top, height = place
    middle = top + height / 2
    yield svg.draw_text((scale.start - 10, middle + 4.5), label, "end")
    if row.shaded:
        ends = [scale.at(mark.interval.value) for mark in row.marks]
        low, size = min(ends), max(ends) - min(ends)
        yield svg.draw("rect", "gap", x=low, y=top + 2, width=size, height=height - 4)
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
    place = svg.width() - _MARGIN, middle + 4.5
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
        svg.draw("rect", "box", title, x=q1, y=y - 9, width=max(q3 - q1, 0.5), height=18),
        svg.draw_line((median, y - 9), (median, y + 9), "median"),
        svg.draw_marker((scale.at(box.mean), y), svg.DIAMOND, "mean", radius=3.8),
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
    axes = _make_axes(x, y, xs, ys, height)
    return _draw_chart(axes, *_draw_dots(dots, axes), **texts)


def make_equal_spans(
    xs: Iterable[float], ys: Iterable[float], height: float
) -> list[tuple[float, float]]:
    """Return the ends of both axes of points between which a unit has the same length on both."""
    ranges = [svg.pad_range(values) for values in (xs, ys)]
    lengths = svg.width() - 24.0 - 60.0, height - _FOOT - _TOP
    unit = max((b - a) / length for (a, b), length in zip(ranges, lengths, strict=True))
    return [
        ((a + b - unit * length) / 2, (a + b + unit * length) / 2)
        for (a, b), length in zip(ranges, lengths, strict=True)
    ]


def _draw_dots(dots: Sequence[Dot], axes: _Axes) -> Iterator[Safe]:
    marks: list[Safe] = []
    named: list[tuple[Dot, Point, float]] = []  # with the distance of the label
    obstacles: list[Point] = []
    for dot in dots:
        centre = across, up = axes.at(dot.x.value, dot.y.value)
        sides = [(axes.x.at(end), up) for end in dot.x.ends()[1:]]
        for ends in (sides, [(across, axes.y.at(end)) for end in dot.y.ends()[1:]]):
            obstacles += ends
            if len(ends) == 2:
                yield svg.draw_line(ends[0], ends[1], f"whisker {dot.colour}")
        radius = _RADII.get(dot.kind, 4.5)
        class_ = " ".join(filter(None, ["dot", dot.kind, dot.colour]))
        marks.append(svg.draw_marker(centre, dot.shape, class_, radius=radius, title=dot.title))
        if dot.label:
            reach = max([abs(end - across) for end, _ in sides], default=0.0)
            named.append((dot, centre, min(max(4.5 + radius, 4.0 + reach), 26.0)))
        elif dot.kind != "cloud":
            obstacles.append(centre)
    labels = svg.shorten_all((dot.label for dot, *_ in named), 22)
    centres = [centre for _, centre, _ in named]
    yield from svg.draw_labels(
        centres,
        labels,
        [dot.colour for dot, *_ in named],
        [*map(svg.list_spots, centres, labels, [gap for *_, gap in named])],
        (axes.x.start, axes.y.end - 6, axes.x.end + 10, axes.y.start - 2),
        obstacles,
    )
    yield from marks


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


def draw_lines(
    lines: Mapping[str, Line], x: Axis, y: Axis, height: float = 300.0, **texts: str
) -> Plot:
    """Return a chart of lines with their names beside them."""
    points = [point for line in lines.values() for point in line.points]
    ends = [end for _, interval in points for end in interval.ends()]
    axes = _make_axes(x, y, [across for across, _ in points], ends, height)
    return _draw_chart(axes, _draw_named_lines(lines, axes), **texts)


def _draw_named_lines(lines: Mapping[str, Line], axes: _Axes) -> Safe:
    """Return lines on given axes with their names, which cover other lines least."""
    paths, colours, bands, drawn = list[list[Point]](), list[str](), list[Safe](), list[Safe]()
    number = 0
    for line in lines.values():
        path = [axes.at(across, interval.value) for across, interval in line.points]
        dash = number // svg.COLOURS % 3
        colour = "note" if line.dotted else f"c{number % svg.COLOURS}"
        class_ = "reference" if line.dotted else f"curve {colour}{f' d{dash}' if dash else ''}"
        number += not line.dotted
        spans = [
            (axes.at(across, interval.low), axes.at(across, interval.high))
            for across, interval in line.points
            if interval.bounded
        ]
        if line.band:
            outline = [*(low for low, _ in spans), *(high for _, high in reversed(spans))]
            bands.append(svg.draw_area(outline, f"band {colour}"))
        else:
            drawn += [svg.draw_line(low, high, class_) for low, high in spans]
        steps = " ".join(f"{svg.format_coordinate(x)},{svg.format_coordinate(y)}" for x, y in path)
        drawn.append(svg.draw("polyline", class_, line.title, points=steps))
        for (across, up), text in zip(path, line.texts, strict=False):
            drawn.append(svg.draw("circle", f"dot {colour}", text, cx=across, cy=up, r=4))
        paths.append(path)
        colours.append(colour)
    labels = svg.shorten_all(lines, 22)
    names = svg.draw_labels(
        [path[len(path) // 2] for path in paths],
        labels,
        colours,
        [*map(svg.list_spots_beside, paths, labels)],
        (axes.x.start + 4, axes.y.end, axes.x.end, axes.y.start - 4),
        [point for path in paths for point in _interpolate_points(path)],
    )
    return join(*bands, *drawn, *names)


def _interpolate_points(path: Sequence[Point], step: float = 4.0) -> list[Point]:
    """Return points along a line, at most ``step`` apart: what a label must not cover."""
    x, y = np.array(path, dtype=np.float64).T
    lengths = np.concatenate([[0.0], np.hypot(np.diff(x), np.diff(y)).cumsum()])
    distances = np.linspace(0, lengths[-1], 2 + int(lengths[-1] / step))
    ends = [np.interp(distances, lengths, column).tolist() for column in (x, y)]
    return list(zip(*ends, strict=True))


def stack_plots(plots: Iterable[Plot], **texts: str) -> Plot:
    """Return plots below each other as one."""
    parts, height = [], 0.0
    for plot in plots:
        parts.append(tag("g", plot.body, transform=f"translate(0,{height:g})"))
        height += plot.height
    return Plot(height=height, body=join(*parts), **texts)  # type: ignore[arg-type]
