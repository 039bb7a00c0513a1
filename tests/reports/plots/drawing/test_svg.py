from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.reports.markup import Safe
from recbias.reports.plots.drawing import svg


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (0.013, 0.34, [0.1, 0.2, 0.3]),
        (-4.2, 2.1, [-4, -2, 0, 2]),
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (0.30, 0.34, [0.3, 0.31, 0.32, 0.33, 0.34]),
        (1, 1, [1]),
    ],
)
def test_ticks_are_round(low: float, high: float, found: list[float]) -> None:
    assert svg.ticks(low, high) == pytest.approx(found)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_inside(low: float, span: float) -> None:
    found = svg.ticks(low, low + span)
    assert 1 <= len(found) <= 7
    assert all(low - 1e-6 * span <= each <= low + span * (1 + 1e-6) for each in found)


def test_log_ticks_are_powers_of_ten() -> None:
    assert svg.log_ticks(1, 2810) == [1, 10, 100, 1000]
    assert svg.log_ticks(1, 1000) == [1, 10, 100, 1000]


def test_a_scale_maps_its_ends() -> None:
    scale = svg.Scale(2, 4, 10, 30)
    assert [scale.at(each) for each in (2, 3, 4)] == [10, 20, 30]
    assert svg.Scale(1, 1, 10, 30).at(1) == 20  # nothing to spread over


def test_a_document_is_whole_and_safe() -> None:
    figure = svg.Figure("f", "<b>", "a & b", 10, 20, Safe("<g></g>"))
    root = ET.fromstring(figure.document())
    assert root.get("viewBox") == "0 0 10 20"
    assert root[0].text == "<b>"
    assert 'aria-label="&lt;b&gt;. a &amp; b"' in figure.inline()


def test_figures_ask_for_nothing_from_outside() -> None:
    assert "url(" not in svg.style_sheet()
    assert "@import" not in svg.style_sheet()
    assert "prefers-color-scheme: dark" in svg.style_sheet()


def test_colours_are_told_apart_by_dashes_when_they_run_out() -> None:
    assert len({svg.colour(place) for place in range(24)}) == 24


def test_labels_are_shortened_and_measured() -> None:
    assert svg.shortened("abcdefghij", 5) == "abcd…"
    assert svg.shortened("a\nb") == "a b"
    assert svg.width_of("🦊") > svg.width_of("i")


def test_ticks_have_a_true_minus_sign() -> None:
    assert svg.tick_text(-0.25) == "\N{MINUS SIGN}0.25"
