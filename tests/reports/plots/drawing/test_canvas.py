from __future__ import annotations

import pytest

from recbias.reports.plots.drawing.canvas import Canvas, x_axis, y_axis
from recbias.reports.plots.drawing.picture import Picture
from recbias.reports.plots.drawing.svg import Scale
from support.picture_rows import places, texts, words


def picture(sheet: Canvas) -> Picture:
    return sheet.picture(name="p", title="t", caption="c")


def test_places_are_counted_from_the_top_left() -> None:
    sheet = Canvas(480, 200)
    sheet.dots([(12.5, 30)], "#0072b2", "s", gid="dot-1", words="here")
    found = picture(sheet)
    assert places(found)["dot-1"] == [(12.5, 30.0)]
    assert words(found) == ["here"]
    assert 'viewBox="0 0 480 200"' in found.document()


def test_what_is_drawn_later_lies_above() -> None:
    sheet = Canvas(100, 100)
    sheet.dots([(5, 5)], "#0072b2", "o", gid="first-0")
    sheet.box((0, 0), (10, 10), "#ffffff", gid="second-0")
    sheet.line([(0, 0), (9, 9)], "#d55e00")
    text = picture(sheet).document()
    assert text.index("p.first-0") < text.index("p.second-0") < text.index("#d55e00")


def test_a_blank_text_is_not_drawn() -> None:
    sheet = Canvas(100, 100)
    sheet.text((1, 1), " \n ")
    assert texts(picture(sheet)) == []


def test_an_arrow_points() -> None:
    sheet = Canvas(100, 100)
    sheet.arrow((10, 10), (90, 90), "#1d2530", gid="direction")
    assert 'id="p.direction"' in picture(sheet).document()


@pytest.mark.parametrize("anchor", ["left", "center", "right"])
def test_text_stays_text_with_its_anchor(anchor: str) -> None:
    sheet = Canvas(100, 100)
    sheet.text((50, 50), "said", anchor=anchor, turn=40, bold=True)
    text = picture(sheet).document()
    assert {"left": "start", "center": "middle", "right": "end"}[anchor] in text
    assert ">said</text>" in text


def test_axes_have_round_figures() -> None:
    sheet = Canvas(480, 200)
    x_axis(sheet, Scale(0, 1, 50, 450), [0.0, 0.5, 1.0], (10, 150))
    y_axis(sheet, Scale(1e-6, 1, 150, 10, log=True), [1e-5, 0.1], (50, 450))
    assert texts(picture(sheet)) == ["0", "0.5", "1", "0.00001", "0.1"]
