"""Labels of many points, none on another: beside its point, else at the end of a line to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.reports.plots.drawing.point_labels import Spot, around
from recbias.reports.plots.drawing.svg import TEXT, width_of

_COVERED, _LINE, _AWAY = 6.0, 15.0, 0.12
Point = tuple[float, float]
Frame = tuple[float, float, float, float]


def spread(
    points: Sequence[Point], labels: Sequence[str], frame: Frame, *, also: Sequence[Point] = ()
) -> list[Spot | None]:
    """Return where each label stands, or None for one that has no free place.

    Each label takes the free place that costs least, those of the most crowded points first: near
    its point, covering few other points.

    Args:
        points: The points.
        labels: What is said of each.
        frame: Left, top, right and bottom of where labels may stand.
        also: Other places that labels had better not cover.
    """
    marks = np.array([*points, *also], dtype=np.float64).reshape(-1, 2)
    chosen: list[Spot | None] = [None] * len(labels)
    taken = np.empty((0, 4))
    for place in _crowded_first(marks[: len(labels)]):
        spots = around(*points[place], labels[place], gap=8.0)
        spot = _cheapest(spots, marks, taken, frame)
        if spot is None:
            spots = _anywhere(points[place], labels[place], frame)
            spot = _cheapest(spots, marks, taken, frame)
        if spot is not None:
            chosen[place] = spot
            taken = np.vstack([taken, spot.box()])
    return chosen


def _crowded_first(marks: FloatArray) -> list[int]:
    away = np.abs(marks[:, None] - marks[None, :]) / [60.0, 20.0]
    near = (away.max(axis=2) < 1).sum(axis=1)
    order: list[int] = np.argsort(-near, kind="stable").tolist()
    return order


def _cheapest(
    spots: Sequence[Spot], marks: FloatArray, taken: AnyArray, frame: Frame
) -> Spot | None:
    """Return the free spot within the frame that costs least, or None."""
    if not spots:
        return None
    boxes = np.array([each.box() for each in spots])
    left, top, right, bottom = boxes.T
    inside: AnyArray = (
        (left >= frame[0]) & (top >= frame[1]) & (right <= frame[2]) & (bottom <= frame[3])
    )
    free = inside & ~_meet(boxes, taken).any(axis=1)
    if not free.any():
        return None
    around_marks = np.hstack([marks - 3.0, marks + 3.0])
    costs = np.array([each.cost for each in spots])
    costs = costs + _COVERED * _meet(boxes, around_marks).sum(axis=1)
    return spots[int(np.argmin(np.where(free, costs, np.inf)))]


def _meet(a: AnyArray, b: AnyArray) -> AnyArray:
    """Return which boxes of ``a`` overlap which of ``b``, ``bool[a, b]``."""
    first, second = a[:, None, :], b[None, :, :]
    apart = (first[..., :2] >= second[..., 2:]) | (second[..., :2] >= first[..., 2:])
    return np.asarray(~apart.any(axis=2))


def _anywhere(point: Point, label: str, frame: Frame) -> list[Spot]:
    """Return spots all over the frame, the nearer the cheaper."""
    width = width_of(label)
    found = []
    for y in np.arange(frame[1] + TEXT, frame[3], TEXT + 2):
        for x in np.arange(frame[0], max(frame[2] - width, frame[0]), 12.0):
            away = float(np.hypot(x + width / 2 - point[0], (y - 4 - point[1]) * 2))
            found.append(Spot(float(x), float(y), width, _LINE + _AWAY * away, far=True))
    return found
