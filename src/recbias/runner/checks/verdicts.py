"""Verdicts on values: whether an interval lies within limits."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["pass", "fail", "undecided"]
"""The result of a check."""

Interval: TypeAlias = tuple[float, float]
"""The lower and the upper end; NaN if a value has no interval."""


def decide(value: float, interval: Interval, limits: Interval) -> Verdict:
    """Return the verdict on a value with its 95% interval.

        pass       if the interval lies within the limits:  L ≤ low and high ≤ U
        fail       if it lies outside:                       high < L or low > U
        undecided  if it contains a limit, or the value is undefined

    A value without an interval (NaN) is decided by itself: low = high = value. For the difference
    from a baseline and the limit -margin this is the test of non-inferiority at level 2.5%.

    >>> limits = (-math.inf, 0.05)
    >>> decide(0.03, (0.01, 0.05), limits), decide(0.03, (0.01, 0.06), limits)
    ('pass', 'undecided')
    >>> decide(0.08, (0.06, 0.1), limits), decide(0.06, (math.nan, math.nan), limits)
    ('fail', 'fail')

    Source:
        Piaggio et al., "Reporting of noninferiority and equivalence randomized trials", JAMA 2012.
    """
    if math.isnan(value):
        return "undecided"
    low, high = (value, value) if has_no_interval(interval) else interval
    if limits[0] <= low and high <= limits[1]:
        return "pass"
    return "fail" if high < limits[0] or low > limits[1] else "undecided"


def has_no_interval(interval: Interval) -> bool:
    """Return whether an end of an interval is undefined.

    >>> has_no_interval((0.1, math.nan))
    True
    """
    return any(map(math.isnan, interval))
