"""How a search went: every trial, and the best so far."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from recbias.core.measurements.scores import badness
from recbias.reports.markup import Safe, join, one_line, tag
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.point_labels import around, placed
from recbias.reports.views.definitions import WORDS
from recbias.reports.views.rounding import shown
from recbias.reports.views.trials import Search, Tried

_LEFT, _TOP, _RIGHT, _FLOOR = 58.0, 34.0, 466.0, 262.0
_STRIP = 18.0
"""Height of a line of trials without a figure."""

_COLOURS = {"pruned": "c7", "failed": "c1"}


def progress(search: Search, *, name: str) -> svg.Figure | None:
    """Return the figure of a search, None where it is not known which way is better."""
    drawn = _drawable(search)
    if search.direction == "none" or not drawn:
        return None
    wide = svg.Scale(0.5, len(search.trials) + 0.5, _LEFT, _RIGHT)
    low, high = _reach([each.value for each in drawn])
    tall = svg.Scale(low, high, _FLOOR, _TOP)
    strips = [state for state in _COLOURS if search.count(state)]
    bottom = _FLOOR + 8 + _STRIP * len(strips)
    marks = [each for each in svg.ticks(1.0, len(search.trials), 8) if each.is_integer()]
    body = join(
        svg.y_axis(tall, svg.ticks(low, high), left=_LEFT, right=_RIGHT),
        svg.x_axis(wide, marks, top=_TOP, bottom=bottom),
        *(
            _strip(search, state, _FLOOR + 18 + _STRIP * at, wide)
            for at, state in enumerate(strips)
        ),
        svg.path(_steps(search, wide, tall), class_="curve c0"),
        *(_dot(search, each, wide, tall) for each in drawn),
        _label(search, wide, tall) if search.chosen in drawn else "",
        svg.heading((4, 16), search.metric, WORDS[search.direction]),
        svg.heading((_RIGHT, bottom + 40), "Trial", "", "end"),
    )
    return svg.Figure(
        name=name,
        title=f"How the search went: {search.title}",
        caption=_caption(strips, len(search.done) - len(drawn)),
        width=svg.WIDTH,
        height=bottom + 48,
        body=body,
    )


def best_so_far(search: Search) -> list[Tried]:
    """Return the trials that were better than all before them, in order."""
    found, best = [], math.inf
    for each in _drawable(search):
        bad = badness(each.value, search.direction)
        if bad < best:
            found.append(each)
            best = bad
    return found


def _drawable(search: Search) -> list[Tried]:
    """Return the trials whose figure can be drawn."""
    return [each for each in search.done if svg.fits_axis(each.value)]


def _reach(values: Sequence[float]) -> tuple[float, float]:
    """Return the axis' ends: a little beyond the figures."""
    low, high = min(values), max(values)
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return low - room, high + room


def _steps(search: Search, wide: svg.Scale, tall: svg.Scale) -> list[tuple[float, float]]:
    """Return the stairs of the best so far, up to the last trial."""
    points: list[tuple[float, float]] = []
    for each in best_so_far(search):
        x, y = wide.at(each.number), tall.at(each.value)
        points += [(x, points[-1][1])] if points else []
        points.append((x, y))
    return [*points, (wide.at(len(search.trials)), points[-1][1])]


def _dot(search: Search, each: Tried, wide: svg.Scale, tall: svg.Scale) -> Safe:
    best = each.number == search.best
    words = f"trial {each.number}: {shown(each.value, search.places)}"
    return tag(
        "circle",
        tag("title", words),
        cx=svg.number(wide.at(each.number)),
        cy=svg.number(tall.at(each.value)),
        r=6 if best else 4,
        class_="dot c2" if best else "dot c0",
    )


def _label(search: Search, wide: svg.Scale, tall: svg.Scale) -> Safe:
    """Return the best figure beside its point, where it covers the others least."""
    text = f"trial {search.best}: {shown(search.chosen.value, search.places)}"
    at = wide.at(search.best), tall.at(search.chosen.value)
    points = [(wide.at(each.number), tall.at(each.value)) for each in _drawable(search)]
    marks = np.array([*points, *_dense(_steps(search, wide, tall))])
    (spot,) = placed([around(*at, text, gap=11)], marks, (_LEFT + 4, _TOP - 8, _RIGHT, _FLOOR))
    lead = svg.line(at, (min(max(at[0], spot.x), spot.x + spot.width), spot.y - 4), "lead")
    return join(lead if spot.far else "", svg.text((spot.x, spot.y), text, "halo c2"))


def _dense(steps: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return points of the stairs close enough together to tell what a label covers."""
    found = []
    for (x, y), (to_x, to_y) in itertools.pairwise(steps):
        n = 2 + int(abs(to_x - x) + abs(to_y - y)) // 8
        xs, ys = np.linspace(x, to_x, n).tolist(), np.linspace(y, to_y, n).tolist()
        found += list(zip(xs, ys, strict=True))
    return found


def _strip(search: Search, state: str, y: float, wide: svg.Scale) -> Safe:
    """Return a line of marks of the trials that came to no figure."""
    drawn = [
        tag(
            "rect",
            tag("title", one_line(f"trial {each.number}: {state}")),
            x=svg.number(wide.at(each.number) - 2),
            y=svg.number(y - 10),
            width=4,
            height=10,
            class_=f"dot {_COLOURS[state]}",
        )
        for each in search.trials
        if each.state == state
    ]
    return join(svg.text((_LEFT - 7, y), state, "tick end"), *drawn)


def _caption(strips: Sequence[str], lost: int) -> str:
    said = ["Each point is a trial; the line is the best so far, and the large point the best."]
    if strips:
        said.append(f"Below stand the trials that were {' or '.join(strips)}.")
    return " ".join(filter(None, [*said, svg.undrawn(lost)]))
