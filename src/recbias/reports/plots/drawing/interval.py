"""A value with its confidence interval, as plots show it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recbias.reports.plots.drawing.scales import fits_axis
from recbias.reports.views.rounding import count_decimals, format_value


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
        value = format_value(self.value, digits)
        if not self.bounded:
            return value
        low, high = format_value(self.low, digits), format_value(self.high, digits)
        return f"{value} (95% interval {low} to {high})"


def describe_lines(intervals: Iterable[Interval]) -> list[str]:
    """Return the caption's sentence on the lines of intervals, none if there is no interval."""
    bounded = any(interval.bounded for interval in intervals)
    return ["Lines are 95% intervals."] if bounded else []
