"""Plots as SVG: elements, their estimated sizes, and the document that holds them.

Coordinates are in units of the plot, from its top left corner. Colours and fonts are classes of
``plot.css``, so that a page has light and dark plots.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from recbias.reports.markup import Safe, tag, to_line

WIDTH = 480
"""Width of most plots."""

COLOURS = 8
"""Number of colours of series: classes ``c0`` to ``c7``."""

TEXT = 13.0
"""Font size of plots."""

_NARROW, _BROAD = frozenset("iIjlftr.,:;|!'()[]/ -"), frozenset("mwMW@%—…")

Point = tuple[float, float]


@dataclass(frozen=True)
class Plot:
    """A plot: the name of its file without ``.svg``, its elements, and how to read it.

    ``label`` is the title for screen readers, by default ``title``.
    """

    name: str
    title: str
    caption: str
    height: float
    body: Safe
    width: float = WIDTH
    label: str = ""

    def entitle(self, title: str) -> Plot:
        """Return the plot with another title in the text around it."""
        return replace(self, title=title, label=self.title)

    @property
    def svg(self) -> Safe:
        """The plot for a page that has ``plot.css``."""
        return self._render(
            self.body,
            role="img",
            aria_label=f"{self.label or self.title}. {self.caption}",
            style=f"max-width:{self.width * 1.2:.0f}px;min-width:{self.width * 0.7:.0f}px",
        )

    def document(self) -> Safe:
        """Return the plot as a file of its own."""
        size = {"width": format_coordinate(self.width), "height": format_coordinate(self.height)}
        return self._render(
            tag("title", self.title),
            tag("desc", self.caption),
            tag("style", Safe(read_style_sheet())),
            tag("rect", class_="paper", **size),
            self.body,
            xmlns="http://www.w3.org/2000/svg",
            **size,
        )

    def _render(self, *inside: object, **attributes: object) -> Safe:
        box = f"0 0 {format_coordinate(self.width)} {format_coordinate(self.height)}"
        return tag("svg", *inside, class_="fig", viewBox=box, **attributes)


def read_style_sheet() -> str:
    """Return ``plot.css``."""
    return files("recbias.reports.plots.drawing").joinpath("plot.css").read_text(encoding="utf-8")


def format_coordinate(value: float) -> str:
    """Return a coordinate with at most one decimal.

    >>> format_coordinate(12.04), format_coordinate(3.96)
    ('12', '4')
    """
    return f"{value:.1f}".removesuffix(".0")


def format_colour(series: int) -> str:
    """Return the classes of the colour and the dashes of a series' line.

    >>> format_colour(0), format_colour(9)
    ('c0', 'c1 d1')
    """
    dash = series // COLOURS % 3
    return f"c{series % COLOURS} d{dash}" if dash else f"c{series % COLOURS}"


def draw_text(point: Point, text: object, class_: str = "", **attributes: object) -> Safe:
    """Return a line of text, its baseline starting at a point."""
    x, y = map(format_coordinate, point)
    return tag("text", to_line(text), x=x, y=y, class_=class_ or None, **attributes)


def draw_title(point: Point, title: str, note: str = "", class_: str = "") -> Safe:
    """Return an axis title in bold, followed by a note."""
    x, y = map(format_coordinate, point)
    spans = [tag("tspan", to_line(title), class_="name")]
    if note:
        spans.append(tag("tspan", note, class_="note", dx=8))
    return tag("text", *spans, x=x, y=y, class_=class_ or None)


def draw_line(start: Point, end: Point, class_: str) -> Safe:
    """Return a straight line."""
    x1, y1, x2, y2 = map(format_coordinate, (*start, *end))
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def draw_polyline(points: Sequence[Point], class_: str, title: str = "") -> Safe:
    """Return a line through points, with a text that shows on hover."""
    steps = " ".join(f"{format_coordinate(x)},{format_coordinate(y)}" for x, y in points)
    return tag("polyline", *_draw_tooltip(title), points=steps, class_=class_)


def draw_rectangle(
    corner: Point, size: Point, class_: str, title: str = "", **attributes: object
) -> Safe:
    """Return a rectangle from its top left corner, with a text that shows on hover."""
    x, y, width, height = map(format_coordinate, (*corner, *size))
    attributes |= {"x": x, "y": y, "width": width, "height": height, "class_": class_}
    return tag("rect", *_draw_tooltip(title), **attributes)


def draw_circle(centre: Point, radius: float, class_: str, title: str = "") -> Safe:
    """Return a circle, with a text that shows on hover."""
    x, y, r = map(format_coordinate, (*centre, radius))
    return tag("circle", *_draw_tooltip(title), cx=x, cy=y, r=r, class_=class_)


def draw_path(steps: str, class_: str, title: str = "") -> Safe:
    """Return a path, with a text that shows on hover."""
    return tag("path", *_draw_tooltip(title), d=steps, class_=class_)


def _draw_tooltip(title: str) -> list[Safe]:
    return [tag("title", to_line(title))] if title else []


def estimate_width(text: str, size: float = TEXT) -> float:
    """Return about how wide a text is in a sans-serif font, so that plots need no font files.

    Full-width characters and emoji count as 1.2 of the font size.
    """
    return size * sum(map(_estimate_character, text))


def _estimate_character(character: str) -> float:
    if character in _NARROW:
        return 0.35
    if character in _BROAD:
        return 0.95
    if unicodedata.east_asian_width(character) in "WF":
        return 1.2
    return 0.74 if character.isupper() else 0.58


def shorten(label: object, most: int = 20) -> str:
    """Return a label in one line of at most ``most`` characters, cut in the middle.

    The end of the name of a model or metric has its settings.

    >>> shorten("EASE + calibration(strength=0.2)")
    'EASE + calibra…=0.2)'
    """
    return _cut(to_line(label), most, (most - 1) // 4 + 1)


def shorten_all(labels: Iterable[object], most: int = 20) -> list[str]:
    """Return labels of one plot, cut so that as many as possible stay distinct.

    >>> shorten_all(["EASE + calibration(dial=0.2)", "EASE + calibrated_popularity(dial=0.2)"])
    ['EASE + calibrati….2)', 'EASE + calibrate….2)']
    """
    lines = [to_line(label) for label in labels]
    usual = (most - 1) // 4 + 1
    ends = sorted(range(most), key=lambda end: abs(end - usual))
    cuts = ([_cut(line, most, end) for line in lines] for end in ends)
    return max(cuts, key=lambda texts: len({*texts}))


def _cut(line: str, most: int, end: int) -> str:
    """Return a text of at most ``most`` characters, of which the last ``end`` are its own."""
    if len(line) <= most:
        return line
    end = max(0, min(end, most - 1))
    return f"{line[: max(0, most - 1 - end)]}…{line[len(line) - end :]}"


class FileNames:
    """File names of plots and tables that are in use: plain and unique."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def free(self, text: str) -> str:
        """Return an unused name for a text, without suffix, and mark it as used.

        It has lower case letters, digits and hyphens.

        >>> FileNames().free("significance-nDCG@10/<x>")
        'significance-ndcg-10-x'
        """
        stem = name = re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:80] or "figure"
        number = 2
        while name in self._used:
            name, number = f"{stem}-{number}", number + 1
        self._used.add(name)
        return name
