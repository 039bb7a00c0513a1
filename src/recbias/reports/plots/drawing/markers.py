"""Markers of series: each colour has a shape, so that no series differs by colour alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from recbias.reports.markup import Safe
from recbias.reports.plots.drawing.svg import COLOURS, Point, draw_circle, draw_path


def _list_vertices(radii: Sequence[float], turn: float) -> tuple[Point, ...]:
    """Return points around the origin at equal angles, the first at ``turn`` of a full circle."""
    angles = [2 * math.pi * (turn + n / len(radii)) for n in range(len(radii))]
    return tuple(
        (radius * math.cos(angle), radius * math.sin(angle))
        for radius, angle in zip(radii, angles, strict=True)
    )


_ARM = 0.36
_PLUS = (
    *((_ARM, -1.1), (_ARM, -_ARM), (1.1, -_ARM), (1.1, _ARM), (_ARM, _ARM), (_ARM, 1.1)),
    *((-_ARM, 1.1), (-_ARM, _ARM), (-1.1, _ARM), (-1.1, -_ARM), (-_ARM, -_ARM), (-_ARM, -1.1)),
)
SHAPES: tuple[tuple[Point, ...], ...] = (
    (),
    _list_vertices([1.25] * 4, 0.125),
    _list_vertices([1.25] * 3, -0.25),
    _list_vertices([1.25] * 4, 0.0),
    _list_vertices([1.25] * 3, 0.25),
    _PLUS,
    tuple(((x - y) / math.sqrt(2), (x + y) / math.sqrt(2)) for x, y in _PLUS),
    _list_vertices([1.4, 0.6] * 5, -0.25),
)
"""Vertices at radius 1: circle (none), square, triangle, diamond, triangle down, plus, x, star."""

DIAMOND = 3
_HEAD = 11.0


def choose_look(series: int) -> tuple[str, int]:
    """Return the colour's class and the shape of a series.

    >>> choose_look(1), choose_look(9)
    (('c1', 1), ('c1', 2))
    """
    turn, colour = divmod(series, COLOURS)
    return f"c{colour}", (colour + turn) % len(SHAPES)


def draw_marker(
    centre: Point, shape: int, class_: str, *, radius: float = 4.2, title: str = ""
) -> Safe:
    """Return a marker, with a text that shows on hover."""
    vertices = SHAPES[shape]
    if not vertices:
        return draw_circle(centre, radius, class_, title)
    x, y = centre
    points = [f"{x + radius * across:.1f},{y + radius * down:.1f}" for across, down in vertices]
    return draw_path(f"M{' '.join(points)}Z", class_, title)


def draw_arrow(start: Point, end: Point, *, gap: float = 0.0) -> Safe:
    """Return an arrow that ends ``gap`` before its end; nothing if it is too short."""
    length = math.dist(start, end)
    if length <= gap:
        return Safe("")
    across, down = (end[0] - start[0]) / length, (end[1] - start[1]) / length

    def locate(distance: float, side: float) -> str:
        x = start[0] + distance * across - side * down
        return f"{x:.1f},{start[1] + distance * down + side * across:.1f}"

    tip = length - gap
    neck = max(tip - _HEAD, 0.0)
    corners = f"{locate(tip, 0)} {locate(neck, 0.4 * _HEAD)} {locate(neck, -0.4 * _HEAD)}"
    return draw_path(f"M{locate(0, 0)} {locate(neck, 0)}M{corners}Z", "arrow")
