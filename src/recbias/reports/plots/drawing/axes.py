"""Axes with ticks and grid lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recbias.reports.markup import Safe, join
from recbias.reports.plots.drawing.scales import Scale, choose_ticks, format_tick
from recbias.reports.plots.drawing.svg import WIDTH, Point, draw_line, draw_text, draw_title
from recbias.reports.plots.drawing.text_size import estimate_width, shorten

MARGIN = 14.0
TALL = 560.0
"""Plots of rows that are taller than this have tick labels at the top too."""


@dataclass(frozen=True)
class Axes:
    """A horizontal and a vertical scale."""

    x: Scale
    y: Scale

    def at(self, x: float, y: float) -> Point:
        """Return the coordinates of a pair of values."""
        return self.x.at(x), self.y.at(y)

    def draw(
        self,
        x_ticks: Sequence[float] | None = None,
        y_ticks: Sequence[float] | None = None,
        *,
        bottom: float | None = None,
        unit: str = "",
    ) -> Safe:
        """Return both axes.

        Args:
            x_ticks: The ticks of the horizontal axis; by default round values.
            y_ticks: The ticks of the vertical axis; by default round values.
            bottom: The coordinate of the horizontal axis; by default the lower end of the other.
            unit: The unit behind the labels of the vertical axis.
        """
        x_ticks = choose_ticks(self.x.low, self.x.high) if x_ticks is None else x_ticks
        y_ticks = choose_ticks(self.y.low, self.y.high) if y_ticks is None else y_ticks
        elements = []
        for tick in y_ticks:
            y = self.y.at(tick)
            elements.append(draw_line((self.x.start, y), (self.x.end, y), "grid"))
            label = f"{format_tick(tick)}{unit}"
            elements.append(draw_text((self.x.start - 7, y + 4.5), label, "tick end"))
        bottom = self.y.start if bottom is None else bottom
        return join(*elements, draw_x_axis(self.x, x_ticks, self.y.end, bottom))


def draw_x_axis(scale: Scale, ticks: Sequence[float], top: float, bottom: float) -> Safe:
    """Return a horizontal axis at the bottom, with ticks, their labels and grid lines."""
    elements = [draw_line((scale.start, bottom), (scale.end, bottom), "axis")]
    for tick in ticks:
        x = scale.at(tick)
        elements.append(draw_line((x, top), (x, bottom), "grid"))
        elements.append(draw_text((x, bottom + 18), format_tick(tick), "tick mid"))
    return join(*elements)


def draw_row_axis(scale: Scale, top: float, title: str, note: str, height: float) -> Safe:
    """Return the axis of a plot of rows, with its title; a tall plot has tick labels at the top.

    Args:
        scale: The scale.
        top: Where the rows begin.
        title: The title.
        note: A note behind it, if there is room.
        height: The height of the plot.
    """
    ticks = choose_ticks(scale.low, scale.high, 7)
    elements = [draw_x_axis(scale, ticks, top, height - 58)]
    if height > TALL:
        elements += [draw_text((scale.at(x), top - 6), format_tick(x), "tick mid") for x in ticks]
    room = WIDTH - 2 * MARGIN
    note = note if estimate_width(title + note) + 12 <= room else ""
    title = shorten(title, int(room / estimate_width("x")))
    return join(*elements, draw_title((WIDTH - MARGIN, height - 10), title, note, "end"))
