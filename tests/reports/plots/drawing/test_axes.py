from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.reports import svg as axes_module
from recbias.reports.svg import TALL, Axes, Interval, Plot, Scale, describe_lines, draw_row_axis
from reports.plots.svg_reading import read_texts


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.013, 0.34, [0.1, 0.2, 0.3]),
        (-4.2, 2.1, [-4, -2, 0, 2]),
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (0.30, 0.34, [0.3, 0.31, 0.32, 0.33, 0.34]),
        (1, 1, [1]),
    ],
)
def test_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert axes_module.choose_ticks(low, high) == pytest.approx(ticks)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_inside_the_range(low: float, span: float) -> None:
    ticks = axes_module.choose_ticks(low, low + span)
    assert 1 <= len(ticks) <= 7
    assert all(low - 1e-6 * span <= tick <= low + span * (1 + 1e-6) for tick in ticks)


def test_log_ticks_are_powers_of_ten() -> None:
    assert axes_module.choose_log_ticks(1, 2810) == [1, 10, 100, 1000]
    assert axes_module.choose_log_ticks(1, 1000) == [1, 10, 100, 1000]


def test_scale_maps_its_ends() -> None:
    scale = axes_module.Scale(2, 4, 10, 30)
    assert [scale.at(value) for value in (2, 3, 4)] == [10, 20, 30]
    assert axes_module.Scale(1, 1, 10, 30).at(1) == 20  # an empty range maps to the middle


def test_padded_range_of_one_value_is_not_empty() -> None:
    assert axes_module.pad_range([0.0, 0.0]) == (-1.0, 1.0)
    low, high = axes_module.pad_range([5.0])
    assert low < 5 < high


def test_tick_labels_have_a_true_minus_sign() -> None:
    assert axes_module.format_tick(-0.25) == "\N{MINUS SIGN}0.25"


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


def test_axes_have_round_tick_labels() -> None:
    axes = Axes(Scale(0, 1, 50, 450), Scale(1e-6, 1, 150, 10, log=True))
    plot = Plot("p", "t", "c", 200, axes.draw([0.0, 0.5, 1.0], [1e-5, 0.1]))
    assert read_texts(plot) == ["0.00001", "0.1", "0", "0.5", "1"]
    assert axes.at(0.5, 1) == (250, 10)


def test_default_ticks_are_round_values_with_their_unit() -> None:
    axes = Axes(Scale(0, 1, 50, 450), Scale(0, 100, 150, 10))
    texts = read_texts(Plot("p", "t", "c", 200, axes.draw(unit="%")))
    assert texts[:2] == ["0%", "20%"]
    assert texts[-1] == "1"


@pytest.mark.parametrize(("height", "times"), [(TALL, 1), (TALL + 1, 2)])
def test_tall_plot_of_rows_has_tick_labels_at_the_top_too(height: float, times: int) -> None:
    axis = draw_row_axis(Scale(0, 1, 50, 450), 30, "title", "note", height)
    texts = read_texts(Plot("p", "t", "c", height, axis))
    assert texts.count("0.2") == times
    assert texts[-1] == "title"
