from __future__ import annotations

import math

import pytest

from recbias.reports.wording import (
    count_decimals,
    format_count,
    format_duration,
    format_interval,
    format_p_value,
    format_value,
)


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ([0.3406, 0.0079], 4),
        ([9.99], 4),
        ([-12.5, 3.0], 3),
        ([512.5], 2),
        ([123456.5], 1),
        ([123456.0, 12.0], 0),
        ([0.0004], 6),
        ([0.0], 4),
        ([], 4),
        ([math.nan, math.inf, 0.5], 4),
    ],
)
def test_a_column_has_about_four_significant_digits(values: list[float], places: int) -> None:
    assert count_decimals(values) == places


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.34065, "0.3407"),
        (math.nan, "n/a"),
        (-0.00001, "0.0000"),
        (-1234.5, "-1234.5000"),
        (1987.25, "1987.2500"),
        (12345.0, "12,345.0000"),
    ],
)
def test_values_are_rounded_and_never_negative_zero(value: float, text: str) -> None:
    assert format_value(value, 4) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.05, "0.05"), (0.00012, "0.00012"), (9e-5, "< 0.0001"), (0.999, "1.0"), (math.nan, "n/a")],
)
def test_p_values_have_two_digits_and_a_lower_bound(value: float, text: str) -> None:
    assert format_p_value(value) == text


def test_counts_agree_with_their_noun() -> None:
    assert [format_count(n, "user") for n in (0, 1, 5949)] == [
        "0 users",
        "1 user",
        "5,949 users",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.418, "0.42 s"), (42.4, "42 s"), (59.6, "1 min 0 s"), (3661, "1 h 1 min")],
)
def test_durations_use_seconds_minutes_or_hours(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_intervals_are_blank_if_a_bound_is_undefined() -> None:
    assert format_interval(-0.1, 0.25, 2) == "-0.10 to 0.25"
    assert not format_interval(0.1, math.nan, 2)
