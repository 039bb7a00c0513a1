from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.reports import svg as axes_module
from recbias.reports.svg import TALL, Axes, Plot, Scale, draw_row_axis
from reports.plots.svg_reading import read_texts


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_inside_the_range(low: float, span: float) -> None:
    ticks = axes_module.choose_ticks(low, low + span)
    assert 1 <= len(ticks) <= 7
    assert all(low - 1e-6 * span <= tick <= low + span * (1 + 1e-6) for tick in ticks)


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
