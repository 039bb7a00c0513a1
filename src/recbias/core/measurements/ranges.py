"""The bounds of a metric, as the section ``Range`` of its docstring states them."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TypeAlias

from recbias.core.measurements.scores import Measurement

Bounds: TypeAlias = tuple[float, float]
"""The lowest and the highest value of a metric."""

UNBOUNDED: Bounds = (-math.inf, math.inf)
"""The bounds of a metric that can have any value."""

ROUNDING = 1e-12
"""The width of an interval of equal samples, which differ by rounding alone, as a share of it."""

_NUMBER = r"-?\d+(?:\.\d+)?"
_LOWEST = re.compile(rf"({_NUMBER}) (?:to|or more)\b")
_HIGHEST = re.compile(
    rf"(?:{_NUMBER} to|at most) ({_NUMBER})(?=\s*(?:[;,:.]|- |$))", re.IGNORECASE
)


def read_bounds(text: str) -> Bounds:
    """Return the bounds at the start of the description of a range, infinite where it has none.

    A bound that depends on the data counts as the number that it cannot exceed, if one is stated
    (``1 - 1/|C|``).

    >>> read_bounds("0 to 1 - 1/|C|; undefined if no list holds a candidate")
    (0.0, 1.0)
    >>> read_bounds("At most 1"), read_bounds("0 to log2 |C| bits"), read_bounds("Any number")
    ((-inf, 1.0), (0.0, inf), (-inf, inf))
    """
    low, high = _LOWEST.match(text), _HIGHEST.match(text)
    return (float(low[1]) if low else -math.inf, float(high[1]) if high else math.inf)


def limit_interval(measurement: Measurement, bounds: Bounds) -> Measurement:
    """Return a value whose interval ends at the bounds; see ``limit_ends``.

    The interval of equal values of units is that of ``widen_ends``. There is none if it has no
    width otherwise, as if all bootstrap samples of a value of the whole set of lists are equal.

    >>> row = Measurement(0.99, n=9, undefined=0, ci_low=0.97, ci_high=1.01)
    >>> limit_interval(row, (0.0, 1.0)).ci_high
    1.0
    """
    ends = (measurement.ci_low, measurement.ci_high)
    if measurement.units is not None and not measurement.own_interval:
        ends = widen_ends(ends, bounds, measurement.value, measurement.n)
    if not measurement.own_interval and ends[1] - ends[0] <= ROUNDING * max(map(abs, ends)):
        ends = (math.nan, math.nan)
    low, high = limit_ends(ends, bounds, measurement.value)
    return replace(measurement, ci_low=low, ci_high=high)


def widen_ends(ends: Bounds, bounds: Bounds, value: float, n: int) -> Bounds:
    """Return the 95% interval of the mean of ``n`` equal values in place of one without a width.

        v - q (v - a)  to  v + q (b - v),    q = 1 - 0.025^(1/n)

    Student's interval of equal values has no width, although others may differ. q is the largest
    share of the population that may have other values: if it were larger, n equal values would
    have a probability below 2.5%, which is what a two-sided interval leaves to each side. The
    others are between the bounds a and b. A value without bounds has no interval then. An
    interval with a width is returned as it is.

    >>> low, high = widen_ends((1.0, 1.0), (0.0, 1.0), 1.0, 3)
    >>> round(low, 4), high  # 0.025^(1/3)
    (0.2924, 1.0)
    >>> widen_ends((2.0, 2.0), UNBOUNDED, 2.0, 3)
    (nan, nan)

    Source:
        The bound of a share of which no case was seen: Clopper and Pearson, "The use of confidence
        or fiducial limits illustrated in the case of the binomial", Biometrika 1934.
    """
    if ends[0] != ends[1] or n < 1:  # NaN differs from itself
        return ends
    share = 1.0 - 0.025 ** (1.0 / n)
    low, high = (value + share * (bound - value) for bound in bounds)
    return (low, high) if math.isfinite(high - low) else (math.nan, math.nan)


def limit_ends(
    ends: tuple[float, float], bounds: Bounds, value: float = math.nan
) -> tuple[float, float]:
    """Return the ends of an interval within bounds; ends that are NaN stay NaN.

    The true value is within the bounds, so an interval that holds it holds it still. An interval
    of a value that is beyond the bounds (by rounding, say) still holds this value.

    >>> limit_ends((-0.1, float("nan")), (0.0, 1.0))
    (0.0, nan)
    >>> limit_ends((0.9, 1.2), (0.0, 1.0), 1.1)
    (0.9, 1.1)
    """
    lowest, highest = bounds
    if not math.isnan(value):
        lowest, highest = min(lowest, value), max(highest, value)
    low, high = (end if math.isnan(end) else min(max(end, lowest), highest) for end in ends)
    return low, high
