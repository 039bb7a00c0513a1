"""Rows of figures with their intervals along one axis: what several pictures are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.canvas import Canvas, x_axis
from recbias.reports.plots.drawing.colours import INK, PAPER, QUIET, look
from recbias.reports.plots.drawing.interval import Interval
from recbias.reports.views.definitions import WORDS, Definition

_WIDTH, _MARGIN, _LINE, _HEAD = 480.0, 14.0, 20.0, 26.0
_LONGEST = 24
TALL = 560.0
"""A picture taller than this has its axis at the top too."""


@dataclass(frozen=True)
class Mark:
    """A figure in a row: which series it is of, and what is said over it."""

    figure: Interval
    series: int = 0
    words: str = ""


@dataclass(frozen=True)
class Row:
    """A row: its label, its marks, and what stands at its right end."""

    label: str
    marks: tuple[Mark, ...]
    aside: str = ""


@dataclass(frozen=True)
class Panel:
    """Rows under a title, blank for none."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Forest:
    """A picture of rows.

    Args:
        panels: The rows, under their titles.
        series: What the marks of each colour are; nothing is said of a single series.
        axis: What is measured.
        aside: What is said behind it.
        neutral: Where there is no bias, or NaN.
        marked: What stands behind the legend for the neutral line.
    """

    panels: tuple[Panel, ...]
    series: tuple[str, ...]
    axis: str
    aside: str = ""
    neutral: float = math.nan
    marked: str = ""

    def marks(self) -> list[Mark]:
        """Return every mark."""
        return [mark for panel in self.panels for row in panel.rows for mark in row.marks]


def forest(found: Forest) -> Canvas:
    """Return the sheet with the rows drawn."""
    legend = _legend(found)
    rows_high = _row_height(found)
    n_rows = sum(len(panel.rows) for panel in found.panels)
    titled = sum(bool(panel.title) for panel in found.panels)
    top = 8 + _LINE * len(legend)
    body = n_rows * rows_high + titled * _HEAD
    height = top + body + 66
    if height > TALL:
        top, height = top + _LINE, height + _LINE
    sheet = Canvas(_WIDTH, height)
    scale = _scale(found)
    ticks = svg.ticks(scale.low, scale.high, 7)
    x_axis(sheet, scale, ticks, (top, top + body + 8))
    if height > TALL:
        for each in ticks:
            text = svg.tick_text(each)
            sheet.text((scale.at(each), top - 6), text, colour=QUIET, anchor="center")
    if scale.low <= found.neutral <= scale.high:
        x = scale.at(found.neutral)
        sheet.line([(x, top), (x, top + body + 8)], INK, dashes=(3, 3))
    _write_legend(sheet, legend)
    title_at(sheet, found.axis, found.aside, height - 10)
    _panels(sheet, found, scale, (top, rows_high))
    return sheet


def title_at(sheet: Canvas, said: str, aside: str, y: float) -> None:
    """Write an axis' title at the right end, with a remark behind it where there is room."""
    remark = f"  ({aside})" if aside else ""
    wide = svg.width_of(said + remark) <= sheet.width - 2 * _MARGIN
    line = said + remark if wide else said
    most = int((sheet.width - 2 * _MARGIN) / svg.width_of("x"))
    sheet.text((sheet.width - _MARGIN, y), svg.shortened(line, most), bold=True, anchor="right")


def aside_of(known: Definition) -> str:
    """Return which way is better, blank where neither is."""
    return "" if known.direction == "none" else WORDS[known.direction]


def reach(values: Sequence[float]) -> tuple[float, float]:
    """Return an axis' ends: a little beyond the figures."""
    low, high = min(values), max(values)
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return low - room, high + room


def _scale(found: Forest) -> svg.Scale:
    names = [row.label for panel in found.panels for row in panel.rows]
    widest = max(svg.width_of(svg.shortened(each, _LONGEST), 12.5) for each in names)
    asides = [svg.width_of(row.aside) for panel in found.panels for row in panel.rows]
    ends = [each for mark in found.marks() for each in mark.figure.ends()]
    extra = [] if math.isnan(found.neutral) else [found.neutral]
    low, high = reach([*ends, *extra])
    start = 18 + widest
    return svg.Scale(low, high, start, _WIDTH - _MARGIN - max([0.0, *asides]) - 4)


def _row_height(found: Forest) -> float:
    most = max(len(row.marks) for panel in found.panels for row in panel.rows)
    return 22.0 if most < 2 else 12.0 + 9.0 * most


def _panels(sheet: Canvas, found: Forest, scale: svg.Scale, place: tuple[float, float]) -> None:
    y, rows_high = place
    number = 0
    for panel in found.panels:
        if panel.title:
            sheet.box((0, y - 1), (sheet.width, _HEAD - 1), PAPER)
            sheet.text((4, y + 19), svg.shortened(panel.title, 52), bold=True)
            y += _HEAD
        for row in panel.rows:
            centre = y + rows_high / 2
            label = svg.shortened(row.label, _LONGEST)
            sheet.text((scale.start - 10, centre + 4.5), label, anchor="right")
            end = (sheet.width - _MARGIN, centre + 4.5)
            sheet.text(end, row.aside, anchor="right", colour=QUIET)
            _marks(sheet, row, scale, (centre, number))
            y, number = y + rows_high, number + 1


def _marks(sheet: Canvas, row: Row, scale: svg.Scale, place: tuple[float, int]) -> None:
    centre, number = place
    for at, mark in enumerate(row.marks):
        y = centre + (at - (len(row.marks) - 1) / 2) * 9
        colour, marker = look(mark.series)
        if len(mark.figure.ends()) == 3:
            ends = [(scale.at(mark.figure.low), y), (scale.at(mark.figure.high), y)]
            sheet.line(ends, colour, width=1.8)
        sheet.dots(
            [(scale.at(mark.figure.value), y)],
            colour,
            marker,
            size=8.5,
            gid=f"row-{number}-{at}",
            words=mark.words,
        )


def _legend(found: Forest) -> list[list[tuple[float, str, int]]]:
    """Return the lines of the legend: where each name stands, the name, and its series."""
    lines: list[list[tuple[float, str, int]]] = [[]]
    names = list(found.series) if len(found.series) > 1 else []
    x = 10.0
    for place, name in enumerate([*names, found.marked] if found.marked else names):
        label = svg.shortened(name, 40)
        width = 30 + svg.width_of(label, 12.5)
        if x + width > _WIDTH and lines[-1]:
            lines.append([])
            x = 10.0
        lines[-1].append((x, label, place if place < len(names) else -1))
        x += width
    return [each for each in lines if each]


def _write_legend(sheet: Canvas, lines: Sequence[Sequence[tuple[float, str, int]]]) -> None:
    for down, line in enumerate(lines):
        y = 16 + down * _LINE
        for x, label, series in line:
            if series < 0:
                sheet.line([(x, y - 10), (x, y + 3)], INK, dashes=(3, 3))
            else:
                colour, marker = look(series)
                sheet.dots([(x, y - 4)], colour, marker, size=8.5)
            sheet.text((x + 9, y), label)
