from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recbias.reports.plots.drawing.label_placement import spread
from recbias.reports.plots.drawing.point_labels import Spot
from support.picture_rows import FOODS

FRAME = (4.0, 30.0, 476.0, 590.0)


def meet(a: Spot, b: Spot) -> bool:
    first, second = a.box(), b.box()
    wide = min(first[2], second[2]) - max(first[0], second[0])
    high = min(first[3], second[3]) - max(first[1], second[1])
    return wide > 1e-9 and high > 1e-9


def collisions(spots: list[Spot | None]) -> int:
    there = [each for each in spots if each is not None]
    return sum(meet(a, b) for a, b in itertools.combinations(there, 2))


@pytest.mark.parametrize("spread_of", [0.0, 3.0, 40.0, 120.0])
def test_forty_labels_never_collide(spread_of: float, rng: np.random.Generator) -> None:
    points = [(240 + x * spread_of, 300 + y * spread_of) for x, y in rng.normal(0, 1, (40, 2))]
    points = [(min(max(x, 60), 460), min(max(y, 40), 580)) for x, y in points]
    spots = spread(points, FOODS, FRAME)
    assert None not in spots
    assert collisions(spots) == 0


def test_a_lonely_label_stands_close_to_its_point() -> None:
    (spot,) = spread([(100.0, 100.0)], ["Bars"], FRAME)
    assert spot is not None
    assert not spot.far
    assert 100 < spot.x < 115


def test_where_there_is_no_room_a_label_is_left_out() -> None:
    spots = spread([(20.0, 20.0)] * 9, ["a long label"] * 9, (0.0, 0.0, 90.0, 40.0))
    assert None in spots
    assert collisions(spots) == 0
    assert spread([(20.0, 20.0)], ["much too long for this"], (0.0, 0.0, 50.0, 40.0)) == [None]


def test_a_label_keeps_off_what_else_is_there() -> None:
    across = [(108.0 + 4 * at, 100.0) for at in range(20)]
    (spot,) = spread([(100.0, 100.0)], ["Bars"], FRAME, also=across)
    assert spot is not None
    assert spot.x + spot.width < 108 or not spot.box()[1] < 100 < spot.box()[3]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(60, 460), st.floats(40, 580)), max_size=25))
def test_labels_lie_within_the_frame_and_apart(points: list[tuple[float, float]]) -> None:
    spots = spread(points, FOODS[: len(points)], FRAME)
    assert collisions(spots) == 0
    for spot in spots:
        if spot is not None:
            left, top, right, bottom = spot.box()
            assert left >= FRAME[0]
            assert top >= FRAME[1]
            assert right <= FRAME[2]
            assert bottom <= FRAME[3]
