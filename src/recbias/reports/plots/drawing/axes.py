"""Axes: scales, ticks, grid lines, and values with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recbias.reports.markup import Safe, join
from recbias.reports.plots.drawing import svg
from recbias.reports.views.rounding import choose_separator, count_decimals, format_value

MARGIN = 14.0
TALL = 560.0
"""Plots of rows that are taller than this have tick labels at the top too."""

LARGEST = 1e100
"""The largest absolute value that an axis can show."""


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


def describe_omitted(n: int) -> str:
    """Return the caption's sentence on values that no axis can show, blank if there are none.

    >>> describe_omitted(1), describe_omitted(0)
    ('1 value that is infinite or too large for an axis is not drawn.', '')
    """
    values = "value that is" if n == 1 else "values that are"
    verb = "is" if n == 1 else "are"
    return f"{n:,} {values} infinite or too large for an axis {verb} not drawn." if n else ""


def choose_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return about ``most`` round values between two values.

    >>> choose_ticks(0.013, 0.34), choose_ticks(-4.2, 2.1)
    ([0.1, 0.2, 0.3], [-4.0, -2.0, 0.0, 2.0])
    """
    rough = (high - low) / max(most - 1, 1)
    if not 1e-300 < rough < math.inf:
        return [low] if math.isfinite(low) else []
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(n * power for n in (1, 2, 5, 10, 20) if n * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(n * step, 12) for n in range(first, last + 1)]


def choose_log_ticks(low: float, high: float) -> list[float]:
    """Return the powers of ten between two values.

    >>> choose_log_ticks(1, 2810)
    [1.0, 10.0, 100.0, 1000.0]
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**power for power in range(first, last + 1)]


def format_tick(value: float) -> str:
    """Return a tick's label, with a true minus sign and without an exponent down to 1e-7.

    >>> format_tick(-0.5), format_tick(2000.0), format_tick(1e-5)
    ('−0.5', '2000', '0.00001')
    """
    if 1e-7 < abs(value) < 1e-4:
        return f"{value:.7f}".rstrip("0").replace("-", "\N{MINUS SIGN}")
    return f"{value:{choose_separator(value)}.10g}".replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class Interval:
    """A value with its 95% interval; ends that are not known are NaN."""

    value: float
    low: float
    high: float

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Interval:
        """Return the value and the interval of a metric row."""
        return cls(row["value"], row["ci_low"], row["ci_high"])

    @property
    def bounded(self) -> bool:
        """Whether an axis can show the value and both ends."""
        return len(self.ends()) == 3

    def ends(self) -> list[float]:
        """Return the value and the ends of the interval, those that an axis can show."""
        return list(filter(fits_axis, (self.value, self.low, self.high)))

    def describe(self, most: int = 3) -> str:
        """Return the value with its interval in words, with at most ``most`` decimals.

        >>> Interval(0.5, 0.4, 0.6).describe()
        '0.500 (95% interval 0.400 to 0.600)'
        """
        digits = min(count_decimals(self.ends()), most)
        value, low, high = (
            format_value(number, digits) for number in (self.value, self.low, self.high)
        )
        return f"{value} (95% interval {low} to {high})" if self.bounded else value


def describe_lines(intervals: Iterable[Interval]) -> list[str]:
    """Return the caption's sentence on the lines of intervals, none if there is no interval."""
    bounded = any(interval.bounded for interval in intervals)
    return ["Lines are 95% intervals."] if bounded else []


@dataclass(frozen=True)
class Axes:
    """A horizontal and a vertical scale."""

    x: Scale
    y: Scale

    def at(self, x: float, y: float) -> svg.Point:
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

        By default the ticks are round values, and the horizontal axis is at the lower end of the
        vertical one, whose labels end in ``unit``.
        """
        x_ticks = choose_ticks(self.x.low, self.x.high) if x_ticks is None else x_ticks
        y_ticks = choose_ticks(self.y.low, self.y.high) if y_ticks is None else y_ticks
        elements = []
        for tick in y_ticks:
            y, label = self.y.at(tick), f"{format_tick(tick)}{unit}"
            elements += [
                svg.draw_line((self.x.start, y), (self.x.end, y), "grid"),
                svg.draw_text((self.x.start - 7, y + 4.5), label, "tick end"),
            ]
        bottom = self.y.start if bottom is None else bottom
        return join(*elements, draw_x_axis(self.x, x_ticks, self.y.end, bottom))


def draw_x_axis(scale: Scale, ticks: Sequence[float], top: float, bottom: float) -> Safe:
    """Return a horizontal axis at the bottom, with ticks, their labels and grid lines."""
    elements = [svg.draw_line((scale.start, bottom), (scale.end, bottom), "axis")]
    for tick in ticks:
        x = scale.at(tick)
        elements += [
            svg.draw_line((x, top), (x, bottom), "grid"),
            svg.draw_text((x, bottom + 18), format_tick(tick), "tick mid"),
        ]
    return join(*elements)


def draw_row_axis(scale: Scale, top: float, title: str, note: str, height: float) -> Safe:
    """Return the axis of a plot of rows that begin at ``top``.

    A tall plot has tick labels at the top too. The note is behind the title, if there is room.
    """
    ticks = choose_ticks(scale.low, scale.high, 7)
    elements = [draw_x_axis(scale, ticks, top, height - 58)]
    if height > TALL:
        elements += [
            svg.draw_text((scale.at(x), top - 6), format_tick(x), "tick mid") for x in ticks
        ]
    room = svg.WIDTH - 2 * MARGIN
    note = note if svg.estimate_width(title + note) + 12 <= room else ""
    title = svg.shorten(title, int(room / svg.estimate_width("x")))
    return join(*elements, svg.draw_title((svg.WIDTH - MARGIN, height - 10), title, note, "end"))
