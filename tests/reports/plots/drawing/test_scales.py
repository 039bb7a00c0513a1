from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.reports.plots.drawing import scales


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
    assert scales.choose_ticks(low, high) == pytest.approx(ticks)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_inside_the_range(low: float, span: float) -> None:
    ticks = scales.choose_ticks(low, low + span)
    assert 1 <= len(ticks) <= 7
    assert all(low - 1e-6 * span <= tick <= low + span * (1 + 1e-6) for tick in ticks)


def test_log_ticks_are_powers_of_ten() -> None:
    assert scales.choose_log_ticks(1, 2810) == [1, 10, 100, 1000]
    assert scales.choose_log_ticks(1, 1000) == [1, 10, 100, 1000]


def test_scale_maps_its_ends() -> None:
    scale = scales.Scale(2, 4, 10, 30)
    assert [scale.at(value) for value in (2, 3, 4)] == [10, 20, 30]
    assert scales.Scale(1, 1, 10, 30).at(1) == 20  # an empty range maps to the middle


def test_padded_range_of_one_value_is_not_empty() -> None:
    assert scales.pad_range([0.0, 0.0]) == (-1.0, 1.0)
    low, high = scales.pad_range([5.0])
    assert low < 5 < high


def test_tick_labels_have_a_true_minus_sign() -> None:
    assert scales.format_tick(-0.25) == "\N{MINUS SIGN}0.25"
