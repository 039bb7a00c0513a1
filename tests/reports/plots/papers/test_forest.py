from __future__ import annotations

import itertools

import pytest

from recbias.reports.plots.drawing.interval import Interval
from recbias.reports.plots.drawing.picture import Picture
from recbias.reports.plots.papers.forest import (
    TALL,
    Forest,
    Mark,
    Panel,
    Row,
    aside_of,
    forest,
    reach,
)
from recbias.reports.views.definitions import Definition
from support.picture_rows import places, texts, words

NAN = float("nan")


def drawn(found: Forest) -> Picture:
    return forest(found).picture(name="f", title="t", caption="c")


def rows_of(*values: float, series: int = 1) -> tuple[Row, ...]:
    return tuple(
        Row(
            f"row {at}",
            tuple(
                Mark(Interval(value, value - 0.1, value + 0.1), each, f"{at}/{each}")
                for each in range(series)
            ),
        )
        for at, value in enumerate(values)
    )


def test_larger_figures_stand_further_right_and_later_rows_lower() -> None:
    at = places(drawn(Forest((Panel("", rows_of(0.1, 0.5, 0.9)),), ("",), "x")))
    spots = [at[f"row-{row}-0"][0] for row in range(3)]
    assert [x for x, _ in spots] == sorted(x for x, _ in spots)
    assert [y for _, y in spots] == sorted(y for _, y in spots)
    assert spots[1][0] - spots[0][0] == pytest.approx(spots[2][0] - spots[1][0])


def test_marks_of_a_row_do_not_lie_on_each_other() -> None:
    picture = drawn(Forest((Panel("A", rows_of(0.5, 0.5, series=4)),), tuple("abcd"), "x"))
    heights = [spot[0][1] for name, spot in places(picture).items() if name.startswith("row-")]
    assert min(b - a for a, b in itertools.pairwise(sorted(heights))) > 8
    assert words(picture)[:4] == ["0/0", "0/1", "0/2", "0/3"]


def test_a_single_series_has_no_legend_and_several_have() -> None:
    one = texts(drawn(Forest((Panel("", rows_of(0.1)),), ("only",), "x")))
    two = texts(drawn(Forest((Panel("", rows_of(0.1, series=2)),), ("F", "M"), "x")))
    assert "only" not in one
    assert {"F", "M"} <= set(two)


def test_a_long_legend_goes_on_in_the_next_line() -> None:
    names = tuple(f"a rather long group name {at}" for at in range(6))
    short = drawn(Forest((Panel("", rows_of(0.1, series=6)),), tuple("abcdef"), "x"))
    long = drawn(Forest((Panel("", rows_of(0.1, series=6)),), names, "x"))
    assert long.height > short.height
    assert set(names) <= set(texts(long))


def test_the_neutral_line_is_said_and_on_the_axis() -> None:
    found = Forest((Panel("", rows_of(0.9)),), ("",), "x", neutral=0.5, marked="even")
    assert "even" in texts(drawn(found))
    assert "0.5" in texts(drawn(found))  # the axis reaches it


def test_a_tall_picture_has_its_axis_at_the_top_too() -> None:
    picture = drawn(Forest((Panel("", rows_of(*(0.01 * at for at in range(60)))),), ("",), "x"))
    assert picture.height > TALL
    assert texts(picture).count("0.2") == 2


def test_rows_without_an_interval_are_points() -> None:
    row = Row("r", (Mark(Interval(0.5, NAN, NAN)),), "n 3")
    picture = drawn(Forest((Panel("", (row,)),), ("",), "x"))
    assert len(places(picture)["row-0-0"]) == 1
    assert "n 3" in texts(picture)


def test_long_labels_and_titles_are_shortened() -> None:
    row = Row("l" * 90, (Mark(Interval(0.5, NAN, NAN)),))
    said = texts(drawn(Forest((Panel("p" * 90, (row,)),), ("",), "x" * 200, "aside")))
    assert max(map(len, said)) < 70


def test_what_stands_behind_an_axis() -> None:
    assert aside_of(Definition("x", "x", "zero")) == "nearer to 0 is better"
    assert aside_of(Definition("x", "x")) == ""


def test_an_axis_of_one_figure_has_room() -> None:
    assert reach([0.0, 0.0]) == (-1.0, 1.0)
    low, high = reach([5.0])
    assert low < 5 < high
