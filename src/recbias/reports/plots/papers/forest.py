"""Forest plots: rows of values with intervals along one axis."""

from __future__ import annotations

import math
from dataclasses import dataclass

from recbias.reports.markup import Safe, join
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import (
    MARGIN,
    TALL,
    Interval,
    Scale,
    draw_row_axis,
    pad_range,
)
from recbias.reports.plots.drawing.markers import choose_look, draw_marker

_LINE, _HEAD, _LONGEST = 20.0, 26.0, 24


@dataclass(frozen=True)
class Mark:
    """A value in a row: the number of its series, and the text that shows on hover."""

    interval: Interval
    series: int = 0
    title: str = ""


@dataclass(frozen=True)
class Row:
    """A labelled row of marks."""

    label: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Panel:
    """Rows under a title, which may be blank."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Forest:
    """A forest plot.

    A single series has no legend; ``neutral`` is the value without bias, or NaN. The marks of a
    row are below each other, or on one line if they are not ``stacked``.
    """

    panels: tuple[Panel, ...]
    series: tuple[str, ...]
    axis: str
    note: str = ""
    neutral: float = math.nan
    neutral_label: str = ""
    stacked: bool = True

    def rows(self) -> list[Row]:
        """Return all rows."""
        return [row for panel in self.panels for row in panel.rows]


def draw_forest(forest: Forest, *, name: str, title: str, caption: str) -> svg.Plot:
    """Return the plot with this file name, title and caption."""
    legend, lines = _draw_legend(forest)
    top = 8 + _LINE * lines
    most = max(len(row.marks) for row in forest.rows())
    row_height = 22.0 if most < 2 or not forest.stacked else 12.0 + 9.0 * most
    titles = sum(bool(panel.title) for panel in forest.panels)
    body = len(forest.rows()) * row_height + titles * _HEAD
    if top + body + 66 > TALL:
        top += _LINE
    height = top + body + 66
    scale = _make_scale(forest)
    neutral = []
    if scale.low <= forest.neutral <= scale.high:
        x = scale.at(forest.neutral)
        neutral.append(svg.draw_line((x, top), (x, height - 58), "neutral"))
    return svg.Plot(
        name=name,
        title=title,
        caption=caption,
        height=height,
        body=join(
            draw_row_axis(scale, top, forest.axis, forest.note, height),
            *neutral,
            legend,
            _draw_panels(forest, scale, top, row_height),
        ),
    )


def _make_scale(forest: Forest) -> Scale:
    widest = max(map(svg.estimate_width, _shorten_labels(forest).values()))
    ends = [end for row in forest.rows() for mark in row.marks for end in mark.interval.ends()]
    neutral = [] if math.isnan(forest.neutral) else [forest.neutral]
    return Scale(*pad_range([*ends, *neutral]), 18 + widest, svg.WIDTH - MARGIN - 4)


def _shorten_labels(forest: Forest) -> dict[str, str]:
    labels = [row.label for row in forest.rows()]
    return dict(zip(labels, svg.shorten_all(labels, _LONGEST), strict=True))


def _draw_panels(forest: Forest, scale: Scale, y: float, row_height: float) -> Safe:
    elements, labels = [], _shorten_labels(forest)
    for panel in forest.panels:
        if panel.title:
            size = (svg.WIDTH, _HEAD - 1)
            elements.append(svg.draw_rectangle((0, y - 1), size, "paper"))
            elements.append(svg.draw_title((4, y + 19), svg.shorten(panel.title, 52)))
            y += _HEAD
        for row in panel.rows:
            middle = y + row_height / 2
            elements.append(
                svg.draw_text((scale.start - 10, middle + 4.5), labels[row.label], "end")
            )
            elements.append(_draw_marks(row, scale, middle, 9.0 * forest.stacked))
            y += row_height
    return join(*elements)


def _draw_marks(row: Row, scale: Scale, middle: float, distance: float) -> Safe:
    elements = []
    for position, mark in enumerate(row.marks):
        y = middle + (position - (len(row.marks) - 1) / 2) * distance
        colour, shape = choose_look(mark.series)
        if mark.interval.bounded:
            start, end = (scale.at(mark.interval.low), y), (scale.at(mark.interval.high), y)
            elements.append(svg.draw_line(start, end, f"interval {colour}"))
        centre = (scale.at(mark.interval.value), y)
        elements.append(draw_marker(centre, shape, f"dot {colour}", title=mark.title))
    return join(*elements)


def _draw_legend(forest: Forest) -> tuple[Safe, int]:
    """Return the legend and the number of its lines."""
    names = list(forest.series) if len(forest.series) > 1 else []
    labels = [svg.shorten(name, 40) for name in [*names, forest.neutral_label] if name]
    elements, x, lines = [], 10.0, min(len(labels), 1)
    for series, label in enumerate(labels):
        width = 30 + svg.estimate_width(label)
        if x + width > svg.WIDTH and x > 10:
            x, lines = 10.0, lines + 1
        y = 16 + (lines - 1) * _LINE
        if series < len(names):
            colour, shape = choose_look(series)
            elements.append(draw_marker((x, y - 4), shape, f"dot {colour}"))
        else:
            elements.append(svg.draw_line((x, y - 10), (x, y + 3), "neutral"))
        elements.append(svg.draw_text((x + 9, y), label))
        x += width
    return join(*elements), lines
