from __future__ import annotations

import itertools

import numpy as np

from recbias.reports.plots.drawing.point_labels import Spot, around, placed

FRAME = (0.0, 0.0, 480.0, 360.0)


def overlap(a: Spot, b: Spot) -> bool:
    (left, top, right, bottom), (x, y, far, low) = a.box(), b.box()
    return min(right, far) > max(left, x) and min(bottom, low) > max(top, y)


def test_a_lone_label_stands_right_of_its_point() -> None:
    spot = placed([around(100, 100, "EASE")], np.array([[100.0, 100.0]]), FRAME)[0]
    assert spot.x == 109
    assert not spot.far


def test_labels_of_points_close_together_do_not_overlap(rng: np.random.Generator) -> None:
    points = rng.normal((240, 180), (40, 30), size=(19, 2))
    options = [around(x, y, f"model {n}") for n, (x, y) in enumerate(points.tolist())]
    spots = placed(options, points, FRAME)
    pairs = [each for each in itertools.combinations(spots, 2) if overlap(*each)]
    assert len(pairs) <= 1


def test_a_label_stays_inside_the_frame() -> None:
    spot = placed([around(478, 3, "a long label")], np.empty((0, 2)), FRAME)[0]
    left, top, right, _ = spot.box()
    assert (left >= 0, top >= 0, right <= 480) == (True, True, True)


def test_the_cheapest_spot_is_taken() -> None:
    spots = [Spot(10, 10, 20, cost=2), Spot(100, 100, 20, cost=1)]
    assert placed([spots], np.empty((0, 2)), FRAME) == [spots[1]]
