from __future__ import annotations

import itertools
from xml.etree import ElementTree as ET

import numpy as np
import pytest
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


@pytest.mark.parametrize("spread", [0.0, 3.0, 40.0, 120.0])
def test_forty_labels_never_overlap(spread: float, rng: np.random.Generator) -> None:
    points = [(240 + x * spread, 300 + y * spread) for x, y in rng.normal(0, 1, (40, 2))]
    points = [(min(max(x, 60), 460), min(max(y, 40), 580)) for x, y in points]
    spots = place_labels(points, FOODS, FRAME)
    assert None not in spots
    assert count_overlaps(spots) == 0


def test_label_without_a_free_spot_is_omitted() -> None:
    spots = place_labels([(20.0, 20.0)] * 9, ["a long label"] * 9, (0.0, 0.0, 90.0, 40.0))
    assert None in spots
    assert count_overlaps(spots) == 0
    frame = (0.0, 0.0, 50.0, 40.0)
    assert place_labels([(20.0, 20.0)], ["much too long for this"], frame) == [None]


def test_label_avoids_obstacles() -> None:
    obstacles = [(108.0 + 4 * n, 100.0) for n in range(20)]
    (spot,) = place_labels([(100.0, 100.0)], ["Bars"], FRAME, obstacles=obstacles)
    assert spot is not None
    assert spot.x + spot.width < 108 or not spot.box()[1] < 100 < spot.box()[3]


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
