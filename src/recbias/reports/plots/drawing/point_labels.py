"""Labels beside what they name, kept off one another and off the marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.reports.plots.drawing.svg import TEXT, width_of

_OVERLAP, _MARK, _OUTSIDE = 40.0, 6.0, 400.0

_NEAR = (0.0, math.pi, -math.pi / 2, math.pi / 2)
"""Right, left, above and below."""


@dataclass(frozen=True)
class Spot:
    """A place where a label may stand.

    Args:
        x: Its left end.
        y: Its base line.
        width: Its width.
        cost: How much worse than the best spot it is to begin with.
        far: Whether it needs a line to what it names.
    """

    x: float
    y: float
    width: float
    cost: float = 0.0
    far: bool = False

    def box(self) -> tuple[float, float, float, float]:
        """Return left, top, right and bottom."""
        return self.x, self.y - TEXT * 0.8, self.x + self.width, self.y + TEXT * 0.25


def around(x: float, y: float, said: str, *, gap: float = 9.0) -> list[Spot]:
    """Return spots around a point, those close by and to the right first."""
    width = width_of(said)
    found = []
    for ring, reach in enumerate((gap, gap + 16, gap + 34, gap + 54, gap + 78)):
        for place in range(4 if ring == 0 else 16):
            turn = _NEAR[place] if ring == 0 else place * math.pi / 8
            across, down = reach * math.cos(turn), reach * math.sin(turn)
            left = x + across - width * (0.5 - 0.5 * math.cos(turn))
            spot = Spot(left, y + down + 4.5 + 5 * math.sin(turn), width, far=ring > 0)
            found.append(replace(spot, cost=4.0 * ring + 0.3 * place * (ring == 0)))
    return found


def placed(
    options: Sequence[Sequence[Spot]],
    marks: FloatArray,
    frame: tuple[float, float, float, float],
) -> list[Spot]:
    """Return one spot for each label: the cheapest, one label after another.

    Args:
        options: The spots that each label may take.
        marks: Points that labels had better not cover, ``float64[m, 2]``.
        frame: Left, top, right and bottom of where labels may stand.
    """
    taken: list[tuple[float, float, float, float]] = []
    chosen = []
    for spots in options:
        costs = [_cost(spot, marks, taken, frame) for spot in spots]
        spot = spots[int(np.argmin(costs))]
        chosen.append(spot)
        taken.append(spot.box())
    return chosen


def _cost(
    spot: Spot,
    marks: FloatArray,
    taken: Sequence[tuple[float, float, float, float]],
    frame: tuple[float, float, float, float],
) -> float:
    left, top, right, bottom = spot.box()
    outside = max(0, frame[0] - left, right - frame[2], frame[1] - top, bottom - frame[3])
    covered = 0
    if marks.size:
        x, y = marks[:, 0], marks[:, 1]
        covered = int(((x > left - 2) & (x < right + 2) & (y > top - 1) & (y < bottom + 1)).sum())
    overlaps = sum(_shared((left, top, right, bottom), each) for each in taken)
    return spot.cost + _MARK * covered + _OVERLAP * overlaps + (_OUTSIDE + outside) * (outside > 0)


def _shared(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> float:
    """Return how much two boxes overlap: 0 not at all, above 1 where they do."""
    wide = min(a[2], b[2]) - max(a[0], b[0])
    high = min(a[3], b[3]) - max(a[1], b[1])
    return 0.0 if wide <= 0 or high <= 0 else 1.0 + wide * high / 100
