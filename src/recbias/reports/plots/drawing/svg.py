"""The small vocabulary of the figures: scales, ticks, axes and text, as SVG."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from recbias.reports.markup import Safe, join, one_line, tag

WIDTH = 480
"""Width of a figure in its own units; text is 13 of them high."""

COLOURS = 8
"""Colours of ``figure.css``; further models take dashes as well."""

TEXT = 13.0
"""Height of text."""

LARGEST = 1e100
"""The largest figure that an axis is drawn for."""


@dataclass(frozen=True)
class Figure:
    """A figure.

    Args:
        name: The file's name without ``.svg``.
        title: What it shows.
        caption: How to read it.
        width: Width in its own units.
        height: Height in the same.
        body: The elements.
    """

    name: str
    title: str
    caption: str
    width: float
    height: float
    body: Safe

    def inline(self) -> Safe:
        """Return the figure for a page that has ``figure.css``."""
        return tag(
            "svg",
            self.body,
            class_="fig",
            viewBox=f"0 0 {number(self.width)} {number(self.height)}",
            role="img",
            aria_label=f"{self.title}. {self.caption}",
            style=f"max-width:{self.width * 1.2:.0f}px;min-width:{self.width * 0.7:.0f}px",
        )

    def document(self) -> Safe:
        """Return the figure as a file of its own."""
        style = tag("style", Safe(style_sheet()))
        return tag(
            "svg",
            tag("title", self.title),
            tag("desc", self.caption),
            style,
            tag("rect", class_="paper", width=number(self.width), height=number(self.height)),
            self.body,
            xmlns="http://www.w3.org/2000/svg",
            class_="fig",
            viewBox=f"0 0 {number(self.width)} {number(self.height)}",
            width=number(self.width),
            height=number(self.height),
        )


def style_sheet() -> str:
    """Return ``figure.css``."""
    return files("recbias.reports.plots.drawing").joinpath("plot.css").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Scale:
    """Figures to places on the page.

    Args:
        low: The figure at ``start``.
        high: The figure at ``end``.
        start: A place.
        end: A place.
        log: Whether equal ratios are equally far apart.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return the place of a figure.

        >>> Scale(0, 10, 100, 200).at(5), Scale(1, 100, 0, 2, log=True).at(10)
        (150.0, 1.0)
        """
        low, high, here = self.low, self.high, value
        if self.log:
            low, high, here = math.log(low), math.log(high), math.log(value)
        share = (here - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)


def fits_axis(value: float) -> bool:
    """Return whether a figure can be drawn: it is finite, and not too large for arithmetic.

    >>> fits_axis(2.5), fits_axis(math.inf), fits_axis(math.nan), fits_axis(-1e300)
    (True, False, False, False)
    """
    return abs(value) <= LARGEST


def undrawn(n: int) -> str:
    """Return what a caption says of values that cannot be drawn, blank where there is none.

    >>> undrawn(1), undrawn(0)
    ('1 value that is infinite or too large for an axis is not drawn.', '')
    """
    values = "value that is" if n == 1 else "values that are"
    verb = "is" if n == 1 else "are"
    return f"{n:,} {values} infinite or too large for an axis {verb} not drawn." if n else ""


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round figures between two figures, at most ``most``.

    >>> ticks(0.013, 0.34), ticks(-4.2, 2.1)
    ([0.1, 0.2, 0.3], [-4.0, -2.0, 0.0, 2.0])
    """
    rough = (high - low) / max(most - 1, 1)
    if not 1e-300 < rough < math.inf:
        return [low] if math.isfinite(low) else []
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1, 2, 5, 10, 20) if each * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(each * step, 12) for each in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return the powers of ten between two figures.

    >>> log_ticks(1, 2810)
    [1.0, 10.0, 100.0, 1000.0]
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**each for each in range(first, last + 1)]


def number(value: float) -> str:
    """Return a place with one decimal at most.

    >>> number(12.04), number(3.96)
    ('12', '4')
    """
    return f"{value:.1f}".removesuffix(".0")


def tick_text(value: float) -> str:
    """Return a tick's label, with a true minus sign, and no power of ten down to a millionth.

    >>> tick_text(-0.5), tick_text(2000.0), tick_text(1e-5)
    ('−0.5', '2,000', '0.00001')
    """
    if 1e-7 < abs(value) < 1e-4:
        return f"{value:.7f}".rstrip("0").replace("-", "\N{MINUS SIGN}")
    return f"{value:,.10g}".replace("-", "\N{MINUS SIGN}")


def text(at: tuple[float, float], said: object, class_: str = "", **attributes: object) -> Safe:
    """Return a line of text at a place."""
    x, y = map(number, at)
    return tag("text", one_line(said), x=x, y=y, class_=class_ or None, **attributes)


def heading(at: tuple[float, float], said: str, aside: str, class_: str = "") -> Safe:
    """Return an axis' title in bold, with a remark behind it."""
    x, y = map(number, at)
    title = tag("tspan", one_line(said), class_="name")
    remark = tag("tspan", aside, class_="said", dx=8) if aside else ""
    return tag("text", title, remark, x=x, y=y, class_=class_ or None)


def line(a: tuple[float, float], b: tuple[float, float], class_: str) -> Safe:
    """Return a straight line."""
    (x1, y1), (x2, y2) = (tuple(map(number, end)) for end in (a, b))
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def path(points: Sequence[tuple[float, float]], *inside: object, class_: str) -> Safe:
    """Return a line through points."""
    steps = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return tag("polyline", *inside, points=steps, class_=class_)


def colour(place: int) -> str:
    """Return the classes of the colour and dash of a model.

    >>> colour(0), colour(9)
    ('c0', 'c1 d1')
    """
    dash = place // COLOURS % 3
    return f"c{place % COLOURS} d{dash}" if dash else f"c{place % COLOURS}"


def shortened(label: object, most: int = 20) -> str:
    """Return a label in one line of at most ``most`` characters.

    >>> shortened("a very long label indeed", 10)
    'a very lo…'
    """
    said = one_line(label)
    return said if len(said) <= most else f"{said[: most - 1]}…"


def width_of(said: str, size: float = TEXT) -> float:
    """Return about how wide a text is; wide characters and emoji count double."""
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in said)
    return size * (0.6 * (len(said) - wide) + 1.2 * wide)


def x_axis(scale: Scale, marks: Sequence[float], *, top: float, bottom: float) -> Safe:
    """Return ticks, their labels and faint grid lines of a horizontal axis."""
    drawn = [line((scale.start, bottom), (scale.end, bottom), "axis")]
    for each in marks:
        x = scale.at(each)
        drawn.append(line((x, top), (x, bottom), "grid"))
        drawn.append(text((x, bottom + 18), tick_text(each), "tick mid"))
    return join(*drawn)


def y_axis(
    scale: Scale, marks: Sequence[float], *, left: float, right: float, unit: str = ""
) -> Safe:
    """Return ticks, their labels and faint grid lines of a vertical axis."""
    drawn = []
    for each in marks:
        y = scale.at(each)
        drawn.append(line((left, y), (right, y), "grid"))
        drawn.append(text((left - 7, y + 4.5), f"{tick_text(each)}{unit}", "tick end"))
    return join(*drawn)
