from __future__ import annotations

import itertools

import pytest

from recbias.reports.plots_prompts import Forest, Mark, Panel, Row, draw_forest
from recbias.reports.svg import Interval, Plot
from reports.plots.svg_reading import find_marks, read_tooltips


def draw(*panels: Panel, series: tuple[str, ...] = ("",), axis: str = "x", note: str = "") -> Plot:
    return draw_plot(Forest(panels, series, axis, note))


def draw_plot(forest: Forest) -> Plot:
    return draw_forest(forest, name="f", title="t", caption="c")


def make_panel(*values: float, series: int = 1, title: str = "") -> Panel:
    rows = []
    for number, value in enumerate(values):
        interval = Interval(value, value - 0.1, value + 0.1)
        marks = [Mark(interval, index, f"{number}/{index}") for index in range(series)]
        rows.append(Row(f"row {number}", tuple(marks)))
    return Panel(title, tuple(rows))


def test_larger_values_stand_further_right_and_later_rows_lower() -> None:
    points = list(find_marks(draw(make_panel(0.1, 0.5, 0.9))).values())
    assert points == sorted(points)
    assert points == sorted(points, key=lambda point: point[1])
    assert points[1][0] - points[0][0] == pytest.approx(points[2][0] - points[1][0], abs=0.2)


def test_marks_of_a_row_do_not_overlap() -> None:
    plot = draw(make_panel(0.5, 0.5, series=4, title="A"), series=tuple("abcd"))
    heights = sorted(y for _, y in find_marks(plot).values())
    assert min(b - a for a, b in itertools.pairwise(heights)) > 8
    assert sorted(read_tooltips(plot)[:4]) == ["0/0", "0/1", "0/2", "0/3"]
