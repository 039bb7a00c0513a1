"""Labels that overlap neither one another nor, where possible, the marks.

A label stands beside the point that it names, else at the end of a line to it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.reports.markup import Safe, join
from recbias.reports.plots.drawing.svg import (
    TEXT,
    Point,
    draw_line,
    draw_text,
    estimate_width,
    shorten_all,
)

_COVERED, _LEAD, _DISTANCE, _MARGIN = 6.0, 15.0, 0.12, 2.0
_NEAR = (0.0, math.pi, -math.pi / 2, math.pi / 2)
"""Angles of the spots next to a point: right, left, above and below."""

Frame = tuple[float, float, float, float]
"""Left, top, right and bottom of a region."""


@dataclass(frozen=True)
class Spot:
    """A candidate position of a label: its left end, baseline, width and own cost.

    A line must connect a label that is ``far`` with its point.
    """

    x: float
    y: float
    width: float
    cost: float = 0.0
    far: bool = False

    def box(self) -> Frame:
        """Return left, top, right and bottom."""
        return self.x, self.y - TEXT * 0.8, self.x + self.width, self.y + TEXT * 0.25


def list_spots(point: Point, label: str, gap: float = 8.0) -> list[Spot]:
    """Return spots around a point; those close to it and on its right cost least."""
    width = estimate_width(label)
    spots = []
    for ring, radius in enumerate((gap, gap + 16, gap + 34, gap + 54, gap + 78)):
        for n in range(4 if ring == 0 else 16):
            angle = _NEAR[n] if ring == 0 else n * math.pi / 8
            left = point[0] + radius * math.cos(angle) - width * (0.5 - 0.5 * math.cos(angle))
            baseline = point[1] + radius * math.sin(angle) + 4.5 + 5 * math.sin(angle)
            cost = 4.0 * ring + 0.3 * n * (ring == 0)
            spots.append(Spot(left, baseline, width, cost, far=ring > 0))
    return spots


def place_labels(
    points: Sequence[Point],
    labels: Sequence[str],
    frame: Frame,
    *,
    gap: float = 8.0,
    spots: Sequence[Sequence[Spot]] | None = None,
    obstacles: Sequence[Point] = (),
) -> list[Spot | None]:
    """Return the spot of each label, or None for a label that has no free one.

    Greedy: the labels of the most crowded points choose first. Each takes the free spot of lowest
    cost, where every point that it covers costs as well; if all its spots are taken, a spot
    anywhere in the frame.

    ``spots`` are candidates for each label, by default at a distance of ``gap`` around its point;
    ``obstacles`` are further points that labels should not cover.
    """
    marks = np.array([*points, *obstacles], dtype=np.float64).reshape(-1, 2)
    chosen: list[Spot | None] = [None] * len(labels)
    occupied = np.empty((0, 4))
    own = marks[: len(labels)]
    distances = np.abs(own[:, None] - own[None, :]) / [60.0, 20.0]
    crowding = (distances.max(axis=2) < 1).sum(axis=1)
    for n in np.argsort(-crowding, kind="stable").tolist():
        candidates = list_spots(points[n], labels[n], gap) if spots is None else spots[n]
        spot = _choose_spot(candidates, marks, occupied, frame)
        if spot is None:
            candidates = _list_far_spots(points[n], labels[n], frame)
            spot = _choose_spot(candidates, marks, occupied, frame)
        if spot is not None:
            chosen[n] = spot
            occupied = np.vstack([occupied, spot.box()])
    return chosen


def draw_label(point: Point, label: str, spot: Spot | None, class_: str = "halo") -> Safe:
    """Return a label at its spot, with a line to its point where it is far; None draws nothing."""
    if spot is None:
        return Safe("")
    text = draw_text((spot.x, spot.y), label, class_)
    if not spot.far:
        return text
    end = min(max(point[0], spot.x), spot.x + spot.width), spot.y - 4
    return join(draw_line(point, end, "lead"), text)


def draw_labels(
    points: Sequence[Point],
    labels: Sequence[str],
    frame: Frame,
    classes: Iterable[str] = itertools.repeat("halo"),
    **options: Any,
) -> list[Safe]:
    """Place labels with the options of ``place_labels``; one without a free spot is blank."""
    spots = place_labels(points, labels, frame, **options)
    return list(map(draw_label, points, labels, spots, classes))


def draw_curve_labels(
    curves: Mapping[str, Sequence[Point]],
    classes: Mapping[str, str],
    frame: Frame,
    *,
    marks: Mapping[str, Point] = MappingProxyType({}),
) -> Safe:
    """Return the name of each curve beside it, where it covers other curves least.

    ``marks`` are further points, whose names stand beside them.
    """
    curve_labels, mark_labels = (shorten_all(names, 22) for names in (curves, marks))
    return join(
        *draw_labels(
            [*(curve[len(curve) // 2] for curve in curves.values()), *marks.values()],
            [*curve_labels, *mark_labels],
            frame,
            [*(classes[name] for name in curves), *["halo"] * len(marks)],
            spots=[
                *map(_list_spots_beside, curves.values(), curve_labels),
                *map(list_spots, marks.values(), mark_labels),
            ],
            obstacles=[
                point for curve in curves.values() for point in interpolate_points(curve, 4)
            ],
        )
    )


def _list_spots_beside(curve: Sequence[Point], label: str) -> list[Spot]:
    """Return spots along a curve: on its left and above, or on its right and below."""
    width = estimate_width(label)
    spots = []
    for position, (x, y) in enumerate(curve):
        cost = 0.04 * abs(position - len(curve) / 2)
        spots.append(Spot(x - width - 6, y - 3, width, cost))
        spots.append(Spot(x + 8, y + 12, width, cost + 0.5))
    return spots


def interpolate_points(points: Sequence[Point], step: float = 8.0) -> list[Point]:
    """Return points along a line, at most ``step`` apart: what a label must not cover."""
    x, y = np.array(points, dtype=np.float64).T
    lengths = np.concatenate([[0.0], np.hypot(np.diff(x), np.diff(y)).cumsum()])
    distances = np.linspace(0, lengths[-1], 2 + int(lengths[-1] / step))
    columns = (np.interp(distances, lengths, ends).tolist() for ends in (x, y))
    return list(zip(*columns, strict=True))


def _choose_spot(
    spots: Sequence[Spot], marks: FloatArray, occupied: AnyArray, frame: Frame
) -> Spot | None:
    """Return the free spot of lowest cost within the frame, or None."""
    if not spots:
        return None
    boxes = np.array([spot.box() for spot in spots])
    left, top, right, bottom = boxes.T
    inside: AnyArray = (
        (left >= frame[0]) & (top >= frame[1]) & (right <= frame[2]) & (bottom <= frame[3])
    )
    free = inside & ~_find_overlaps(boxes, occupied).any(axis=1)
    if not free.any():
        return None
    covered = _find_overlaps(boxes, np.hstack([marks - _MARGIN, marks + _MARGIN])).sum(axis=1)
    costs = np.array([spot.cost for spot in spots]) + _COVERED * covered
    return spots[int(np.argmin(np.where(free, costs, np.inf)))]


def _find_overlaps(a: AnyArray, b: AnyArray) -> AnyArray:
    """Return which boxes of ``a`` overlap which of ``b``, ``bool[a, b]``."""
    rows, columns = a[:, None, :], b[None, :, :]
    apart = (rows[..., :2] >= columns[..., 2:]) | (columns[..., :2] >= rows[..., 2:])
    return np.asarray(~apart.any(axis=2))


def _list_far_spots(point: Point, label: str, frame: Frame) -> list[Spot]:
    """Return spots all over the frame; the nearer to the point, the cheaper."""
    width = estimate_width(label)
    spots = []
    for y in np.arange(frame[1] + TEXT, frame[3], TEXT + 2):
        for x in np.arange(frame[0], max(frame[2] - width, frame[0]), 12.0):
            distance = float(np.hypot(x + width / 2 - point[0], (y - 4 - point[1]) * 2))
            spots.append(Spot(float(x), float(y), width, _LEAD + _DISTANCE * distance, far=True))
    return spots
