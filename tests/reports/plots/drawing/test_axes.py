from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recbias.reports import svg as axes_module
from recbias.reports.svg import Axes, Plot, Scale
from reports.plots.svg_reading import read_texts


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_inside_the_range(low: float, span: float) -> None:
    ticks = axes_module.choose_ticks(low, low + span)
    assert 1 <= len(ticks) <= 7
    assert all(low - 1e-6 * span <= tick <= low + span * (1 + 1e-6) for tick in ticks)


def test_default_ticks_are_round_values_with_their_unit() -> None:
    axes = Axes(Scale(0, 1, 50, 450), Scale(0, 100, 150, 10))
    texts = read_texts(Plot("p", "t", "c", 200, axes.draw(unit="%")))
    assert texts[:2] == ["0%", "20%"]
    assert texts[-1] == "1"
