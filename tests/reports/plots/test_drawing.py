from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recbias.reports import charts, svg
from recbias.reports.svg import (
    COLOURS,
    SHAPES,
    Scale,
    Spot,
    choose_look,
    list_spots,
    list_spots_beside,
    place_labels,
    read_style_sheet,
)
from recbias.reports.wording import join
from reports.plots.svg_reading import read_texts
from support.run_folders import HOSTILE


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_inside_the_range(low: float, span: float) -> None:
    ticks = Scale(low, low + span, 0, 1).choose_ticks()
    assert 1 <= len(ticks) <= 7
    assert all(low - 1e-6 * span <= tick <= low + span * (1 + 1e-6) for tick in ticks)


@pytest.mark.parametrize("width", [120.0, 240.0, 480.0])
def test_labels_of_an_axis_do_not_touch(width: float) -> None:
    scale = Scale(0.0015, 0.0035, 0, width)  # on a phone five labels ran into each other
    axis = svg.draw_x_axis(scale, scale.choose_ticks(), 0, 10)
    labels = re.findall(r'<text x="([\d.]+)"[^>]*>([^<]+)</text>', str(axis))
    ends = [(float(x), svg.estimate_width(text) / 2) for x, text in labels]
    assert len(ends) >= 2
    assert all(b - a > of_a + of_b for (a, of_a), (b, of_b) in itertools.pairwise(ends))


FRAME = (4.0, 30.0, 476.0, 590.0)


def do_overlap(a: Spot, b: Spot) -> bool:
    (left, top, right, bottom), (x, y, end, low) = a.box(), b.box()
    return min(right, end) - max(left, x) > 1e-9 and min(bottom, low) - max(top, y) > 1e-9


def count_overlaps(spots: list[Spot | None]) -> int:
    placed = [spot for spot in spots if spot is not None]
    return sum(do_overlap(a, b) for a, b in itertools.combinations(placed, 2))


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(60, 460), st.floats(40, 580)), max_size=25))
def test_labels_lie_within_the_frame_and_apart(points: list[tuple[float, float]]) -> None:
    labels = ["Coffee & Tea" * (1 + at % 2) for at in range(len(points))]
    spots = place_labels(points, [*map(list_spots, points, labels)], FRAME)
    assert count_overlaps(spots) == 0
    for spot in spots:
        if spot is not None:
            left, top, right, bottom = spot.box()
            assert left >= FRAME[0]
            assert top >= FRAME[1]
            assert right <= FRAME[2]
            assert bottom <= FRAME[3]


def test_the_name_of_a_single_point_does_not_cover_the_line_that_ends_there() -> None:
    path = [(100.0 + x, 100.0 + x / 3) for x in range(0, 200, 4)]
    (spot,) = place_labels(path[:1], [list_spots_beside(path[:1], "EASE")], FRAME, path)
    assert spot is not None
    left, top, right, bottom = spot.box()
    assert not any(left < x < right and top < y < bottom for x, y in path)


def compute_luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def compute_contrast(a: str, b: str) -> float:
    low, high = sorted((compute_luminance(a), compute_luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("block", "paper"), [(0, "#ffffff"), (1, "#1a2027")])
def test_every_series_has_a_colour_that_contrasts_with_the_paper(block: int, paper: str) -> None:
    rules = read_style_sheet().split("@media screen")[block]
    colours = [
        re.findall(rf"\.fig \.c{series} {{ stroke: (#[0-9a-f]{{6}})", rules)
        for series in range(COLOURS)
    ]
    assert all(len(rule) == 1 for rule in colours)
    assert min(compute_contrast(rule[0], paper) for rule in colours) > 2.5


def test_no_two_series_look_alike() -> None:
    looks = [choose_look(series) for series in range(COLOURS * len(SHAPES))]
    assert len(set(looks)) == len(looks)
    assert all(a[0] != b[0] and a[1] != b[1] for a, b in itertools.pairwise(looks))


def make_plot(label: str = "label") -> svg.Plot:
    body = join(
        svg.draw_marker((10, 20), 0, "dot c0", title=f"{label}: 0.5"),
        svg.draw("rect", "box", label, x=0, y=0, width=5, height=5),
        svg.draw_text((10, 60), label),
    )
    return svg.Plot("name", f"T {label}", f"C {label}", 100, body)


@pytest.mark.parametrize("label", [*HOSTILE, "$x_1$", "$\\frac{1}{0}$", "女性", "]]>", "a -- b"])
def test_hostile_labels_are_text(label: str) -> None:
    plot = make_plot(label)
    assert read_texts(plot) == [" ".join(label.split())]
    for text in (plot.document(), plot.svg):
        assert "<script" not in text
        ET.fromstring(text)


@pytest.mark.parametrize(("highest", "ticks"), [(0.87, "0.005 0.01 0.1 1"), (0.007, "")])
def test_an_axis_says_that_it_is_logarithmic_and_its_ticks_cover_the_values(
    highest: float, ticks: str
) -> None:
    dots = [charts.Dot(charts.Interval(x), charts.Interval(1.0)) for x in (0.0064, highest)]
    axes = charts.Axis("Published", may_be_log=True), charts.Axis("y")
    plot = charts.draw_points(dots, *axes, 300.0, name="p", title="p", caption="")
    assert ("log scale" in plot.body) == bool(ticks)
    texts = read_texts(plot)
    assert {*ticks.split()} <= {*texts}
