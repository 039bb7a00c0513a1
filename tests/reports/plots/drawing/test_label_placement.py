from __future__ import annotations

import itertools
from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from recbias.reports.svg import Spot, draw_curve_labels, estimate_width, place_labels
from support.plot_rows import FOODS

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
    spots = place_labels(points, FOODS[: len(points)], FRAME)
    assert count_overlaps(spots) == 0
    for spot in spots:
        if spot is not None:
            left, top, right, bottom = spot.box()
            assert left >= FRAME[0]
            assert top >= FRAME[1]
            assert right <= FRAME[2]
            assert bottom <= FRAME[3]


def test_names_of_curves_and_marks_do_not_overlap() -> None:
    curve = [(100.0, 100.0), (110.0, 101.0)]
    names = {"first": curve, "second": [(100.0, 102.0), (110.0, 103.0)]}
    drawn = draw_curve_labels(
        names,
        dict.fromkeys(names, "c0"),
        (0.0, 0.0, 400.0, 200.0),
        marks={"model": (100.0, 100.0)},
    )
    root = ET.fromstring(f"<svg>{drawn}</svg>")
    spots = [
        Spot(float(text.get("x", "")), float(text.get("y", "")), estimate_width(text.text or ""))
        for text in root.iter("text")
    ]
    assert len(spots) == 3
    assert count_overlaps([*spots]) == 0
