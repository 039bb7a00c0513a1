from __future__ import annotations

import math

import pytest

from recbias.reports.plots.drawing.interval import Interval, describe_lines

NAN = math.nan


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(0.5, 0.4, 0.6), "0.500 (95% interval 0.400 to 0.600)"),
        (Interval(-0.5, NAN, NAN), "-0.500"),
        (Interval(123.4, NAN, NAN), "123.40"),
    ],
)
def test_interval_in_words(interval: Interval, text: str) -> None:
    assert interval.describe() == text


def test_interval_is_bounded_if_all_ends_fit_an_axis() -> None:
    assert Interval(1, 0, 2).bounded
    assert not Interval(1, 0, NAN).bounded
    assert Interval(1, -math.inf, 2).ends() == [1, 2]


def test_lines_are_explained_if_there_are_any() -> None:
    assert describe_lines([Interval(1, NAN, NAN)]) == []
    assert describe_lines([Interval(1, NAN, NAN), Interval(1, 0, 2)]) == [
        "Lines are 95% intervals."
    ]
