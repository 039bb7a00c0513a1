"""Numbers as text: the same number of decimals in a column, and about four significant digits."""

from __future__ import annotations

import math
from collections.abc import Iterable

UNDEFINED = "n/a"
"""The text of an undefined value."""


def count_decimals(values: Iterable[float]) -> int:
    """Return the number of decimals for a column: four for values near one, none for counts.

    >>> [count_decimals(column) for column in ([0.3406, 0.0079], [12.5], [1034.2], [0.0004])]
    [4, 3, 1, 6]
    >>> count_decimals([58.0, 3.0])
    0
    """
    finite = [value for value in values if math.isfinite(value)]
    largest = max(map(abs, finite), default=0.0)
    if largest >= 10 and all(value.is_integer() for value in finite):
        return 0
    if largest == 0.0 or 0.01 <= largest < 10:
        return 4
    if largest < 0.01:
        return 6
    return max(1, 4 - math.floor(math.log10(largest)))


def format_value(value: float, places: int) -> str:
    """Return a value with the given number of decimals; years have no thousands separator.

    >>> format_value(0.34061, 4), format_value(float("nan"), 4), format_value(12345.6, 1)
    ('0.3406', 'n/a', '12,345.6')
    >>> format_value(1987.0, 0)
    '1987'
    >>> format_value(-0.00001, 4)
    '0.0000'
    """
    if math.isnan(value):
        return UNDEFINED
    text = f"{value:{choose_separator(value)}.{places}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def choose_separator(value: float) -> str:
    """Return the thousands separator of a value: none up to 9999, which may be a year.

    >>> choose_separator(-1987.5), choose_separator(10_000.0)
    ('', ',')
    """
    return "," if abs(value) >= 10_000 else ""


def format_interval(low: float, high: float, places: int) -> str:
    """Return an interval as text, blank where a bound is undefined.

    >>> format_interval(0.25, 0.35, 2), format_interval(float("nan"), 0.35, 2)
    ('0.25 to 0.35', '')
    """
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"{format_value(low, places)} to {format_value(high, places)}"


def format_p_value(value: float, alpha: float = math.nan) -> str:
    """Return a p-value with two significant digits, or the bound 0.0001.

    It has more digits where two would round it down to ``alpha``.

    >>> [format_p_value(value) for value in (0.0312, 1e-30, 1.0, float("nan"))]
    ['0.031', '< 0.0001', '1.0', 'n/a']
    >>> [format_p_value(value, 0.05) for value in (0.0501, 0.0499, 0.05 + 1e-9)]
    ['0.0501', '0.05', '> 0.05']
    """
    if math.isnan(value):
        return UNDEFINED
    if value < 1e-4:
        return "< 0.0001"
    if value > alpha >= float(f"{value:.2g}"):
        texts = (f"{value:.{digits}g}" for digits in (3, 4, 5))
        return next((text for text in texts if float(text) > alpha), f"> {alpha:g}")
    return f"{value:.2g}" if value < 0.995 else "1.0"


def format_count(value: float, noun: str) -> str:
    """Return a count with its noun in the singular or plural.

    >>> format_count(1, "model"), format_count(5949, "user"), format_count(2, "query")
    ('1 model', '5,949 users', '2 queries')
    """
    if value != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{value:,.0f} {noun}"


def format_duration(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours.

    >>> format_duration(0.42), format_duration(75), format_duration(3900)
    ('0.42 s', '1 min 15 s', '1 h 5 min')
    """
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, remainder = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {remainder} s"
    return f"{minutes // 60} h {minutes % 60} min"
