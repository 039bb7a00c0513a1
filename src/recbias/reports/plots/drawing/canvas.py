"""A sheet to draw on: lines, marks and text in the units of the figures, by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recbias.reports.markup import one_line
from recbias.reports.plots.drawing.colours import AXIS, GRID, INK, PAPER, QUIET
from recbias.reports.plots.drawing.picture import Picture, elements
from recbias.reports.plots.drawing.svg import TEXT, Scale, tick_text

Point = tuple[float, float]

_INCH = 72.0
_FONT = "DejaVu Sans"
"""It comes with matplotlib: what is measured is the same on every machine."""


class Canvas:
    """A sheet, its origin at the top left; what is drawn later lies above.

    Args:
        width: Its width; text is 13 high.
        height: Its height.
    """

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.figure import Figure
        from matplotlib.transforms import Affine2D

        self.width, self.height = width, height
        self.figure: Any = Figure(figsize=(width / _INCH, height / _INCH))
        self.figure.patch.set_visible(False)
        page = Affine2D().scale(1 / width, -1 / height).translate(0, 1)
        self._page = page + self.figure.transFigure
        self._words: dict[str, str] = {}
        self._count = 0

    def line(self, points: Sequence[Point], colour: str, **look: Any) -> None:
        """Draw a line through points; ``width``, ``dashes`` and ``alpha`` may be given."""
        from matplotlib.lines import Line2D

        xs, ys = zip(*points, strict=True)
        width, dashes = look.pop("width", 1.0), look.pop("dashes", None)
        style: Any = "-" if dashes is None else (0, dashes)
        self._add(Line2D(xs, ys, color=colour, linewidth=width, linestyle=style, **look), "")

    def dots(self, points: Sequence[Point], colour: str, marker: str, **look: Any) -> None:
        """Draw marks; ``size``, ``edge``, ``alpha``, ``gid`` and ``words`` may be given."""
        from matplotlib.lines import Line2D

        xs, ys = zip(*points, strict=True)
        gid, words = look.pop("gid", ""), look.pop("words", "")
        drawn = Line2D(
            xs,
            ys,
            linestyle="none",
            marker=marker,
            markersize=look.pop("size", 8.0),
            markerfacecolor=colour,
            markeredgecolor=look.pop("edge", PAPER),
            markeredgewidth=look.pop("edge_width", 0.9),
            **look,
        )
        self._add(drawn, gid, words)

    def box(self, corner: Point, size: Point, fill: str, **look: Any) -> None:
        """Draw a box from its top left corner; ``edge``, ``gid`` and ``words`` may be given."""
        from matplotlib.patches import Rectangle

        gid, words = look.pop("gid", ""), look.pop("words", "")
        edge = look.pop("edge", "none")
        drawn = Rectangle(corner, *size, facecolor=fill, edgecolor=edge, **look)
        self._add(drawn, gid, words)

    def arrow(self, start: Point, end: Point, colour: str, *, gid: str = "") -> None:
        """Draw an arrow."""
        from matplotlib.patches import FancyArrowPatch

        drawn = FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=16,
            shrinkA=0,
            shrinkB=0,
            linewidth=1.8,
            color=colour,
        )
        self._add(drawn, gid)

    def text(self, at: Point, said: object, **look: Any) -> None:
        """Draw a line of text at its base line.

        ``colour``, ``size``, ``anchor`` (``left``, ``center``, ``right``), ``bold``, ``turn`` (in
        degrees) and ``gid`` may be given. Dollar signs are dollar signs; a blank is nothing.
        """
        if not one_line(said):
            return
        from matplotlib.text import Text

        drawn = Text(
            *at,
            one_line(said),
            color=look.pop("colour", INK),
            fontfamily=_FONT,
            fontsize=look.pop("size", TEXT),
            fontweight="bold" if look.pop("bold", False) else "normal",
            horizontalalignment=look.pop("anchor", "left"),
            verticalalignment="baseline",
            rotation=look.pop("turn", 0.0),
            rotation_mode="anchor",
            parse_math=False,
        )
        self._add(drawn, look.pop("gid", ""))

    def picture(self, *, name: str, title: str, caption: str) -> Picture:
        """Return what was drawn."""
        body = elements(self.figure, name=name, words=self._words)
        return Picture(name, title, caption, self.width, self.height, body, self.figure)

    def _add(self, drawn: Any, gid: str, words: str = "") -> None:
        self._count += 1
        drawn.set_transform(self._page)
        drawn.set_zorder(self._count)
        if gid:
            drawn.set_gid(gid)
        if gid and words:
            self._words[gid] = one_line(words)
        self.figure.add_artist(drawn)


def x_axis(sheet: Canvas, scale: Scale, marks: Sequence[float], span: tuple[float, float]) -> None:
    """Draw ticks, their labels and faint grid lines of a horizontal axis from top to bottom."""
    top, bottom = span
    for each in marks:
        x = scale.at(each)
        sheet.line([(x, top), (x, bottom)], GRID)
        sheet.text((x, bottom + 18), tick_text(each), colour=QUIET, anchor="center")
    sheet.line([(scale.start, bottom), (scale.end, bottom)], AXIS)


def y_axis(sheet: Canvas, scale: Scale, marks: Sequence[float], span: tuple[float, float]) -> None:
    """Draw ticks, their labels and faint grid lines of a vertical axis from left to right."""
    left, right = span
    for each in marks:
        y = scale.at(each)
        sheet.line([(left, y), (right, y)], GRID)
        sheet.text((left - 7, y + 4.5), tick_text(each), colour=QUIET, anchor="right")
