from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.runner.gates import Interval, Verdict, decide

UNKNOWN = (math.nan, math.nan)


@pytest.mark.parametrize(
    ("value", "interval", "limits", "verdict"),
    [
        (0.03, (0.01, 0.05), (-math.inf, 0.05), "pass"),  # the end at the line passes
        (0.04, (0.01, 0.06), (-math.inf, 0.05), "undecided"),
        (0.06, (0.04, 0.08), (-math.inf, 0.05), "undecided"),  # straddles from the other side
        (0.08, (0.06, 0.10), (-math.inf, 0.05), "fail"),
        (0.60, (0.55, 0.65), (0.5, math.inf), "pass"),
        (0.52, (0.45, 0.59), (0.5, math.inf), "undecided"),
        (0.40, (0.35, 0.45), (0.5, math.inf), "fail"),
        (0.10, (0.00, 0.20), (-0.2, 0.2), "pass"),
        (0.00, (-0.30, 0.30), (-0.2, 0.2), "undecided"),  # wider than both lines
        (-0.40, (-0.50, -0.30), (-0.2, 0.2), "fail"),
        (0.05, UNKNOWN, (-math.inf, 0.05), "pass"),
        (0.06, UNKNOWN, (-math.inf, 0.05), "fail"),
        (math.nan, UNKNOWN, (-math.inf, 0.05), "undecided"),
        (math.nan, (0.0, 0.0), (-math.inf, 0.05), "undecided"),
    ],
)
def test_verdict_is_that_of_the_interval_or_else_of_the_value(
    value: float, interval: Interval, limits: Interval, verdict: Verdict
) -> None:
    assert decide(value, interval, limits) == verdict


numbers = st.floats(-1, 1)
widths = st.floats(0, 1)
sizes: dict[Verdict, int] = {"fail": 0, "undecided": 1, "pass": 2}


@given(value=numbers, half=widths, low=numbers, width=widths, more=st.tuples(widths, widths))
def test_wider_limits_never_turn_pass_into_fail(
    value: float, half: float, low: float, width: float, more: tuple[float, float]
) -> None:
    interval, limits = (value - half, value + half), (low, low + width)
    wider = (limits[0] - more[0], limits[1] + more[1])
    before, after = decide(value, interval, limits), decide(value, interval, wider)
    assert sizes[after] >= sizes[before]


@given(value=numbers, half=widths, growth=widths, low=numbers, width=widths)
def test_a_wider_interval_only_makes_a_verdict_undecided(
    value: float, half: float, growth: float, low: float, width: float
) -> None:
    limits = (low, low + width)
    before = decide(value, (value - half, value + half), limits)
    after = decide(value, (value - half - growth, value + half + growth), limits)
    assert after in {before, "undecided"}


@given(value=numbers, half=widths, low=numbers, width=widths)
def test_mirrored_values_and_limits_have_the_same_verdict(
    value: float, half: float, low: float, width: float
) -> None:
    limits, interval = (low, low + width), (value - half, value + half)
    mirrored = decide(-value, (-interval[1], -interval[0]), (-limits[1], -limits[0]))
    assert mirrored == decide(value, interval, limits)
