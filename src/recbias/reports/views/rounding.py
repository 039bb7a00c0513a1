"""Figures as people read them: the same digits down a column, and no false precision."""

from __future__ import annotations

import math
from collections.abc import Iterable

UNDEFINED = "n/a"
"""What stands where a figure is undefined."""


def decimals(values: Iterable[float]) -> int:
    """Return how many decimals a column needs: four for figures around one, none for counts.

    >>> decimals([0.3406, 0.0079]), decimals([12.5]), decimals([1034.2]), decimals([0.0004])
    (4, 3, 1, 6)
    >>> decimals([58.0, 3.0])
    0
    """
    known = [each for each in values if math.isfinite(each)]
    largest = max(map(abs, known), default=0.0)
    if largest >= 10 and all(each.is_integer() for each in known):
        return 0
    if largest == 0.0 or 0.01 <= largest < 10:
        return 4
    if largest < 0.01:
        return 6
    return max(1, 4 - math.floor(math.log10(largest)))


def shown(value: float, places: int) -> str:
    """Return a figure with so many decimals.

    >>> shown(0.34061, 4), shown(float("nan"), 4), shown(-0.00001, 4), shown(12345.6, 1)
    ('0.3406', 'n/a', '0.0000', '12,345.6')
    """
    if math.isnan(value):
        return UNDEFINED
    text = f"{value:,.{places}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def p_value(value: float) -> str:
    """Return a p-value with two significant digits, and a bound below 0.0001.

    >>> p_value(0.0312), p_value(1e-30), p_value(1.0), p_value(float("nan"))
    ('0.031', '< 0.0001', '1.0', 'n/a')
    """
    if math.isnan(value):
        return UNDEFINED
    if value < 1e-4:
        return "< 0.0001"
    return f"{value:.2g}" if value < 0.995 else "1.0"


def count(value: float, noun: str) -> str:
    """Return a count with its noun, the plural by an s.

    >>> count(1, "model"), count(5949, "user")
    ('1 model', '5,949 users')
    """
    return f"{value:,.0f} {noun}{'' if value == 1 else 's'}"


def duration(seconds: float) -> str:
    """Return a time as people say it.

    >>> duration(0.42), duration(75), duration(3900)
    ('0.42 s', '1 min 15 s', '1 h 5 min')
    """
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
