from __future__ import annotations

import itertools
import math

import pytest

from recbias.reports.plots_prompts import Forest, Mark, Panel, Row, draw_forest
from recbias.reports.svg import TALL, Interval, Plot
from reports.plots.svg_reading import find_elements, find_marks, read_texts, read_tooltips


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


def test_legend_is_drawn_for_several_series_only() -> None:
    assert "only" not in read_texts(draw(make_panel(0.1), series=("only",)))
    plot = draw(make_panel(0.1, series=2), series=("F", "M"))
    assert {"F", "M"} <= set(read_texts(plot))


def test_long_legend_continues_in_the_next_line() -> None:
    names = tuple(f"a rather long group name {number}" for number in range(6))
    panel = make_panel(0.1, series=6)
    plot = draw(panel, series=names)
    assert plot.height > draw(panel, series=tuple("abcdef")).height
    assert set(names) <= set(read_texts(plot))


def test_neutral_line_has_a_legend_and_lies_on_the_axis() -> None:
    plot = draw_plot(Forest((make_panel(0.9),), ("",), "x", neutral=0.5, neutral_label="even"))
    assert {"even", "0.5"} <= set(read_texts(plot))
    assert len(find_elements(plot, "line", "neutral")) == 2


def test_tall_plot_has_tick_labels_at_the_top_too() -> None:
    plot = draw(make_panel(*(0.01 * number for number in range(60))))
    assert plot.height > TALL
    assert read_texts(plot).count("0.2") == 2


def test_value_without_an_interval_is_a_point() -> None:
    row = Row("r", (Mark(Interval(0.5, math.nan, math.nan), title="value"),))
    plot = draw(Panel("", (row,)))
    assert len(find_marks(plot)) == 1
    assert find_elements(plot, "line", "interval") == []


def test_long_labels_and_titles_are_shortened() -> None:
    row = Row("l" * 90, (Mark(Interval(0.5, math.nan, math.nan)),))
    plot = draw(Panel("p" * 90, (row,)), axis="x" * 200, note="note")
    assert max(map(len, read_texts(plot))) < 70
