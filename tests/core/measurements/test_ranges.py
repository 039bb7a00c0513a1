from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.measurements.ranges import limit_ends, read_bounds

INF = math.inf


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("0 to 1; undefined for an empty list", (0, 1)),
        ("-1 to 1: 1 for identical lists", (-1, 1)),
        ("0 to 100", (0, 100)),
        ("0 to 1, at most 2 / n; undefined without a query", (0, 1)),
        ("0 to 1 - 1/|C|; undefined if no list holds a candidate", (0, 1)),
        ("at most 1, and rarely below 0", (-INF, 1)),
        ("-1 or more; undefined for an empty list", (-1, INF)),
        ("0 to log2 |C| bits", (0, INF)),
        # a multiple of an unknown number is no bound, and neither is a number further on
        ("0 to 2 |C|", (0, INF)),
        ("0 to 2 / n", (0, INF)),
        ("Any number, at most 2", (-INF, INF)),
        ("That of the ratings: 0 to 2 for the scale", (-INF, INF)),
        ("", (-INF, INF)),
    ],
)
def test_bounds_are_the_numbers_at_the_start(text: str, bounds: tuple[float, float]) -> None:
    assert read_bounds(text) == bounds


@given(st.floats(-3, 3), st.floats(0, 3))
def test_an_interval_within_bounds_holds_its_value(value: float, half: float) -> None:
    value = min(max(value, 0.0), 1.0)
    low, high = limit_ends((value - half, value + half), (0.0, 1.0))
    assert 0 <= low <= value <= high <= 1
    assert low in {0.0, value - half}
    assert high in {1.0, value + half}


def test_ends_that_are_not_known_stay_so() -> None:
    assert all(map(math.isnan, limit_ends((math.nan, math.nan), (0.0, 1.0))))
