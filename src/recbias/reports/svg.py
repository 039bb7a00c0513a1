"""Elements of plots as SVG: text, lines, markers, scales, legends, and labels that do not overlap.

Coordinates are in units of the plot, from its top left corner. Colours and fonts are classes of
``plot.css``, so that a page has light and dark plots. Each colour of a series has a shape. A
label stands beside the point that it names, else at the end of a line to it.
"""

from __future__ import annotations

import contextlib
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from importlib.resources import files

import numpy as np

from recbias.core.dataset import AnyArray
from recbias.reports.wording import Safe, choose_separator, join, tag, to_line

WIDTH, _NARROW_WIDTH = 480.0, 360.0
_width: ContextVar[float] = ContextVar("width", default=WIDTH)

COLOURS = 8
"""Number of colours of series: classes ``c0`` to ``c7``."""

LARGEST = 1e100
"""The largest absolute value that an axis can show."""

_TEXT = 13.0  # font size of plots
_NARROW, _BROAD = frozenset("iIjlftr.,:;|!'()[]/ -"), frozenset("mwMW@%—…&=<>+")

Point = tuple[float, float]


def width() -> float:
    """Return the width of most plots."""
    return _width.get()


@contextlib.contextmanager
def narrow() -> Iterator[None]:
    """Draw plots for the screen of a phone."""
    token = _width.set(_NARROW_WIDTH)
    try:
        yield
    finally:
        _width.reset(token)


@dataclass(frozen=True)
class Plot:
    """A plot: the name of its file without ``.svg``, its elements, and how to read it."""

    name: str
    title: str
    caption: str
    height: float
    body: Safe
    width: float = field(default_factory=width)

    @property
    def svg(self) -> Safe:
        """The plot for a page that has ``plot.css``."""
        label, style = f"{self.title}. {self.caption}", f"--width:{self.width}px"
        return self._render(self.body, role="img", aria_label=label, style=style)

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
    return (
        files("recbias").joinpath("reports", "templates", "plot.css").read_text(encoding="utf-8")
    )


# ---- elements ----


def format_coordinate(value: float | str) -> str:
    """Return a coordinate with at most one decimal; text as it is.

    >>> format_coordinate(12.04), format_coordinate(3.96)
    ('12', '4')
    """
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def draw(name: str, class_: str, title: str = "", **attributes: float | str) -> Safe:
    """Return an element; numbers are coordinates, and the title shows on hover."""
    inside = [tag("title", to_line(title))] if title else []
    shown = {key: format_coordinate(value) for key, value in attributes.items()}
    return tag(name, *inside, **shown, class_=class_)


def draw_text(point: Point, text: object, class_: str = "") -> Safe:
    """Return a line of text, its baseline starting at a point."""
    x, y = map(format_coordinate, point)
    return tag("text", to_line(text), x=x, y=y, class_=class_ or None)


def draw_title(point: Point, title: str, note: str = "", class_: str = "") -> Safe:
    """Return an axis title in bold, followed by a note if there is room."""
    x, y = map(format_coordinate, point)
    spans = [tag("tspan", to_line(title), class_="name")]
    if note and estimate_width(title + note) + 12 <= width():
        spans.append(tag("tspan", note, class_="note", dx=8))
    return tag("text", *spans, x=x, y=y, class_=class_ or None)


def draw_line(start: Point, end: Point, class_: str) -> Safe:
    """Return a straight line."""
    return draw("line", class_, x1=start[0], y1=start[1], x2=end[0], y2=end[1])


def draw_area(points: Iterable[Point], class_: str, title: str = "") -> Safe:
    """Return a closed path through points."""
    return draw("path", class_, title, d=f"M{' '.join(f'{x:.1f},{y:.1f}' for x, y in points)}Z")


# ---- text ----


def estimate_width(text: str) -> float:
    """Return about how wide a text is in a sans-serif font, so that plots need no font files.

    Full-width characters and emoji count as 1.2 of the font size.
    """
    return _TEXT * sum(map(_estimate_character, text))


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
    return shorten_all([label], most)[0]


def shorten_all(labels: Iterable[object], most: int = 20) -> list[str]:
    """Return labels of one plot, cut so that as many as possible stay distinct.

    >>> shorten_all(["EASE + calibration(dial=0.2)", "EASE + calibrated_popularity(dial=0.2)"])
    ['EASE + calibrati….2)', 'EASE + calibrate….2)']
    """
    lines = [to_line(label) for label in labels]
    usual = (most - 1) // 4 + 1
    cuts = (
        [
            line if len(line) <= most else f"{line[: most - 1 - end]}…{line[len(line) - end :]}"
            for line in lines
        ]
        for end in sorted(range(most), key=lambda end: abs(end - usual))
    )
    return max(cuts, key=lambda texts: len({*texts}))


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


# ---- scales ----


@dataclass(frozen=True)
class Scale:
    """A map from the values ``low`` to ``high`` to the coordinates ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return the coordinate of a value.

        >>> Scale(0, 10, 100, 200).at(5), Scale(1, 100, 0, 2, log=True).at(10)
        (150.0, 1.0)
        """
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def _choose_step(self, most: int) -> float:
        """Return the distance of about ``most`` round values; 0 if there is none."""
        rough = (self.high - self.low) / max(most - 1, 1)
        if not 1e-300 < rough < math.inf:
            return 0.0
        power = 10.0 ** math.floor(math.log10(rough))
        return next(n * power for n in (1, 2, 5, 10, 20) if n * power >= rough * (1 - 1e-9))

    def extend(self) -> Scale:
        """Return the scale from a round value to a round value, so that ticks cover all values.

        >>> Scale(0.034, 0.547, 0, 1).extend()
        Scale(low=0.0, high=0.6, start=0, end=1, log=False)
        """
        scale = self
        for _ in range(2):  # the wider range may have wider steps
            step = scale._choose_step(6)
            if step < 1e-11:
                return self
            first, last = math.floor(scale.low / step + 1e-9), math.ceil(scale.high / step - 1e-9)
            scale = replace(scale, low=round(first * step, 12), high=round(last * step, 12))
        return scale

    def choose_ticks(self, most: int = 6) -> list[float]:
        """Return about ``most`` round values.

        On a logarithmic scale they are the powers of ten, and the ends if these are round.

        >>> Scale(0.013, 0.34, 0, 1).choose_ticks(), Scale(1, 2810, 0, 1, log=True).choose_ticks()
        ([0.1, 0.2, 0.3], [1.0, 10.0, 100.0, 1000.0])
        """
        low, high = self.low, self.high
        if self.log:
            first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
            powers = {float(f"1e{power}") for power in range(first, last + 1)}
            ends = {end for end in (low, high) if (end, end) == round_outward(end, end)}
            return sorted(powers | ends)
        step = self._choose_step(most)
        if not step:
            return [low] if math.isfinite(low) else []
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        return [round(n * step, 12) for n in range(first, last + 1)]


def round_outward(low: float, high: float) -> tuple[float, float]:
    """Return positive ends rounded to 1, 2 or 5 times a power of ten, outward.

    >>> round_outward(0.0064, 0.87), round_outward(1, 2810)
    ((0.005, 1.0), (1.0, 5000.0))
    """
    first, last = math.floor(math.log10(low) - 1e-9), math.ceil(math.log10(high) + 1e-9)
    steps = [float(f"{n}e{power}") for power in range(first, last + 1) for n in (1, 2, 5)]
    inside = 1 - 1e-9
    return (
        max(step for step in steps if step * inside <= low),
        min(step for step in steps if step >= high * inside),
    )


def pad_range(values: Iterable[float], share: float = 0.06) -> tuple[float, float]:
    """Return the ends of an axis: the range of the values with a margin on both sides.

    >>> pad_range([1.0, 2.0], 0.5), pad_range([0.0])
    ((0.5, 2.5), (-1.0, 1.0))
    """
    values = list(values)
    low, high = min(values), max(values)
    margin = (high - low) * share or abs(high) * 0.1 or 1.0
    return low - margin, high + margin


def fits_axis(value: float) -> bool:
    """Return whether an axis can show a value: it is finite and at most ``LARGEST``.

    >>> fits_axis(2.5), fits_axis(math.inf), fits_axis(math.nan), fits_axis(-1e300)
    (True, False, False, False)
    """
    return abs(value) <= LARGEST


def format_tick(value: float) -> str:
    """Return a tick's label, with a true minus sign and without an exponent down to 1e-7.

    >>> format_tick(-0.5), format_tick(2000.0), format_tick(1e-5)
    ('−0.5', '2000', '0.00001')
    """
    if 1e-7 < abs(value) < 1e-4:
        return f"{value:.7f}".rstrip("0").replace("-", "\N{MINUS SIGN}")
    return f"{value:{choose_separator(value)}.10g}".replace("-", "\N{MINUS SIGN}")


def draw_x_axis(scale: Scale, ticks: Sequence[float], top: float, bottom: float) -> Safe:
    """Return a horizontal axis at the bottom, with ticks, grid lines and the labels that fit."""
    elements, end = [draw_line((scale.start, bottom), (scale.end, bottom), "axis")], -math.inf
    for tick in ticks:
        x, label = scale.at(tick), format_tick(tick)
        elements.append(draw_line((x, top), (x, bottom), "grid"))
        half = estimate_width(label) / 2
        if x - half > end:
            elements.append(draw_text((x, bottom + 18), label, "tick mid"))
            end = x + half + _MARGIN
    return join(*elements)


# ---- labels ----

Frame = tuple[float, float, float, float]  # left, top, right and bottom of a region
_COVERED, _MARGIN = 6.0, 2.0
# angles of the spots next to a point: right, left, above and below
_NEAR = (0.0, math.pi, -math.pi / 2, math.pi / 2)


@dataclass(frozen=True)
class Spot:
    """A candidate position of a label: its left end, baseline, width and own cost.

    A line must connect a label that is ``far`` with its point.
    """

    x: float
    y: float
    width: float
    cost: float = 0.0
    far: bool = False

    def box(self) -> Frame:
        """Return left, top, right and bottom."""
        return self.x, self.y - _TEXT * 0.8, self.x + self.width, self.y + _TEXT * 0.25


def list_spots(point: Point, label: str, gap: float = 8.0) -> list[Spot]:
    """Return spots around a point; those close to it and on its right cost least."""
    width = estimate_width(label)
    spots = []
    for ring, radius in enumerate((gap, gap + 16, gap + 34, gap + 54, gap + 78)):
        for n in range(4 if ring == 0 else 16):
            angle = _NEAR[n] if ring == 0 else n * math.pi / 8
            left = point[0] + radius * math.cos(angle) - width * (0.5 - 0.5 * math.cos(angle))
            baseline = point[1] + radius * math.sin(angle) + 4.5 + 5 * math.sin(angle)
            cost = 4.0 * ring + 0.3 * n * (ring == 0)
            spots.append(Spot(left, baseline, width, cost, far=ring > 0))
    return spots


def list_spots_beside(path: Sequence[Point], label: str) -> list[Spot]:
    """Return spots along a line, those on its left and above first; around it if it is a point."""
    if len(path) == 1:
        return list_spots(path[0], label)
    width = estimate_width(label)
    left, right, above, below = -width - 6, 8, -3, 12
    corners = [(left, above), (right, below), (right, above - 5), (left, below + 3)]
    corners += [(-width / 2, above - 9), (-width / 2, below + 9)]
    return [
        Spot(x + across, y + down, width, 0.04 * abs(at - len(path) / 2) + 0.5 * number)
        for at, (x, y) in enumerate(path)
        for number, (across, down) in enumerate(corners)
    ]


def place_labels(
    points: Sequence[Point],
    spots: Sequence[Sequence[Spot]],
    frame: Frame,
    obstacles: Sequence[Point] = (),
) -> list[Spot | None]:
    """Return the spot of the label of each point, or None for one that has no free spot.

    Greedy: the labels of the most crowded points choose first. Each takes the free spot of lowest
    cost, where every point that it covers costs as well.

    Args:
        points: What the labels name, which they should not cover.
        spots: The candidates for each label.
        frame: Where labels may stand.
        obstacles: Further points that labels should not cover.
    """
    marks = np.array([*points, *obstacles], dtype=np.float64).reshape(-1, 2)
    covers = np.hstack([marks - _MARGIN, marks + _MARGIN])
    chosen: list[Spot | None] = [None] * len(points)
    occupied = np.empty((0, 4))
    own = marks[: len(points)]
    distances = np.abs(own[:, None] - own[None, :]) / [60.0, 20.0]
    crowding = (distances.max(axis=2) < 1).sum(axis=1)
    for n in np.argsort(-crowding, kind="stable").tolist():
        boxes = np.array([spot.box() for spot in spots[n]])
        is_inside = (boxes[:, :2] >= frame[:2]).all(1) & (boxes[:, 2:] <= frame[2:]).all(1)
        is_free = is_inside & ~_find_overlaps(boxes, occupied).any(axis=1)
        if is_free.any():
            covered = _find_overlaps(boxes, covers).sum(axis=1)
            costs = np.array([spot.cost for spot in spots[n]]) + _COVERED * covered
            best = int(np.argmin(np.where(is_free, costs, np.inf)))
            chosen[n], occupied = spots[n][best], np.vstack([occupied, boxes[best]])
    return chosen


def _find_overlaps(a: AnyArray, b: AnyArray) -> AnyArray:
    """Return which boxes of ``a`` overlap which of ``b``, ``bool[a, b]``."""
    rows, columns = a[:, None, :], b[None, :, :]
    apart = (rows[..., :2] >= columns[..., 2:]) | (columns[..., :2] >= rows[..., 2:])
    return np.asarray(~apart.any(axis=2))


def draw_labels(
    points: Sequence[Point],
    labels: Sequence[str],
    classes: Sequence[str],
    spots: Sequence[Sequence[Spot]],
    frame: Frame,
    obstacles: Sequence[Point],
) -> Iterator[Safe]:
    """Yield the labels that have a spot, with a line to their point where it is far."""
    chosen = place_labels(points, spots, frame, obstacles)
    for point, label, class_, spot in zip(points, labels, classes, chosen, strict=True):
        if spot is not None:
            if spot.far:
                end = min(max(point[0], spot.x), spot.x + spot.width), spot.y - 4
                yield draw_line(point, end, "lead")
            yield draw_text((spot.x, spot.y), label, f"halo {class_}")


# ---- markers ----


def _list_vertices(radii: Sequence[float], turn: float) -> tuple[Point, ...]:
    """Return points around the origin at equal angles, the first at ``turn`` of a full circle."""
    angles = [2 * math.pi * (turn + n / len(radii)) for n in range(len(radii))]
    return tuple(
        (radius * math.cos(angle), radius * math.sin(angle))
        for radius, angle in zip(radii, angles, strict=True)
    )


_ARM = 0.36
_PLUS = (
    *((_ARM, -1.1), (_ARM, -_ARM), (1.1, -_ARM), (1.1, _ARM), (_ARM, _ARM), (_ARM, 1.1)),
    *((-_ARM, 1.1), (-_ARM, _ARM), (-1.1, _ARM), (-1.1, -_ARM), (-_ARM, -_ARM), (-_ARM, -1.1)),
)
SHAPES: tuple[tuple[Point, ...], ...] = (
    (),
    _list_vertices([1.25] * 4, 0.125),
    _list_vertices([1.25] * 3, -0.25),
    _list_vertices([1.25] * 4, 0.0),
    _list_vertices([1.25] * 3, 0.25),
    _PLUS,
    tuple(((x - y) / math.sqrt(2), (x + y) / math.sqrt(2)) for x, y in _PLUS),
    _list_vertices([1.4, 0.6] * 5, -0.25),
)
"""Vertices at radius 1: circle (none), square, triangle, diamond, triangle down, plus, x, star."""

DIAMOND = 3


def choose_look(series: int) -> tuple[str, int]:
    """Return the colour's class and the shape of a series.

    >>> choose_look(1), choose_look(9)
    (('c1', 1), ('c1', 2))
    """
    turn, colour = divmod(series, COLOURS)
    return f"c{colour}", (colour + turn) % len(SHAPES)


def draw_marker(
    centre: Point, shape: int, class_: str, *, radius: float = 4.2, title: str = ""
) -> Safe:
    """Return a marker, with a text that shows on hover."""
    x, y = centre
    if not SHAPES[shape]:
        return draw("circle", class_, title, cx=x, cy=y, r=radius)
    points = ((x + radius * across, y + radius * down) for across, down in SHAPES[shape])
    return draw_area(points, class_, title)


def draw_legend(series: Sequence[str], line: str = "") -> tuple[Safe, float]:
    """Return the marks and names of series, and of a dashed line, with their lower end."""
    labels = [shorten(name, 40) for name in (*series, line) if name]
    elements, x, y = [], 10.0, 16.0
    for number, label in enumerate(labels):
        size = 30 + estimate_width(label)
        if x + size > width() and x > 10:
            x, y = 10.0, y + 20
        if number < len(series):
            colour, shape = choose_look(number)
            elements.append(draw_marker((x, y - 4), shape, f"dot {colour}"))
        else:
            elements.append(draw_line((x, y - 10), (x, y + 3), "neutral"))
        elements.append(draw_text((x + 9, y), label))
        x += size
    return join(*elements), y + 12 if labels else 8.0
