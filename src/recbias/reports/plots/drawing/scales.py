"""Scales and ticks of axes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

LARGEST = 1e100
"""The largest absolute value that an axis can show."""


@dataclass(frozen=True)
class Scale:
    """A map from values to coordinates.

    Args:
        low: The value at ``start``.
        high: The value at ``end``.
        start: The coordinate of ``low``.
        end: The coordinate of ``high``.
        log: Whether the scale is logarithmic.
    """

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
    ('−0.5', '2,000', '0.00001')
    """
    if 1e-7 < abs(value) < 1e-4:
        return f"{value:.7f}".rstrip("0").replace("-", "\N{MINUS SIGN}")
    return f"{value:,.10g}".replace("-", "\N{MINUS SIGN}")
