"""The progress of a search: every trial, and the best value so far."""

from __future__ import annotations

import math
from collections.abc import Sequence

from recbias.core.measurements.scores import to_loss
from recbias.reports.markup import Safe, join
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import Axes
from recbias.reports.plots.drawing.label_placement import (
    draw_label,
    interpolate_points,
    place_labels,
)
from recbias.reports.plots.drawing.scales import (
    Scale,
    choose_ticks,
    describe_omitted,
    fits_axis,
    pad_range,
)
from recbias.reports.views.definitions import DIRECTION_LABELS
from recbias.reports.views.rounding import format_value
from recbias.reports.views.trials import Search, Trial

_LEFT, _TOP, _RIGHT, _BOTTOM = 58.0, 34.0, 466.0, 262.0
_STRIP = 18.0
"""Height of a line of trials without a value."""

_COLOURS = {"pruned": "c7", "failed": "c1"}


def draw_search_progress(search: Search, *, name: str) -> svg.Plot | None:
    """Return the plot of a search; None if neither direction of its metric is better."""
    trials = _list_drawable(search)
    if search.direction == "none" or not trials:
        return None
    axes = Axes(
        Scale(0.5, len(search.trials) + 0.5, _LEFT, _RIGHT),
        Scale(*pad_range(trial.value for trial in trials), _BOTTOM, _TOP),
    )
    states = [state for state in _COLOURS if search.count(state)]
    bottom = _BOTTOM + 8 + _STRIP * len(states)
    ticks = [tick for tick in choose_ticks(1.0, len(search.trials), 8) if tick.is_integer()]
    points = {trial.number: axes.at(trial.number, trial.value) for trial in trials}
    steps = _list_steps(search, points, axes.x.at(len(search.trials)))
    return svg.Plot(
        name=name,
        title=f"Progress of the search: {search.title}",
        caption=_write_caption(states, len(search.done) - len(trials)),
        height=bottom + 48,
        body=join(
            axes.draw(ticks, bottom=bottom),
            *(
                _draw_strip(search, state, _BOTTOM + 18 + _STRIP * line, axes.x)
                for line, state in enumerate(states)
            ),
            svg.draw_polyline(steps, "curve c0"),
            _draw_best_label(search, points, steps),
            *(_draw_trial(search, trial, points[trial.number]) for trial in trials),
            svg.draw_title((4, 16), search.metric, DIRECTION_LABELS[search.direction]),
            svg.draw_title((_RIGHT, bottom + 40), "Trial", class_="end"),
        ),
    )


def list_improvements(search: Search) -> list[Trial]:
    """Return the trials that were better than all before them, in order."""
    improvements, best = [], math.inf
    for trial in _list_drawable(search):
        bad = to_loss(trial.value, search.direction)
        if bad < best:
            improvements.append(trial)
            best = bad
    return improvements


def _list_drawable(search: Search) -> list[Trial]:
    return [trial for trial in search.done if fits_axis(trial.value)]


def _list_steps(search: Search, points: dict[int, svg.Point], end: float) -> list[svg.Point]:
    """Return the corners of the line of the best value so far, up to the last trial."""
    steps: list[svg.Point] = []
    for trial in list_improvements(search):
        x, y = points[trial.number]
        steps += [(x, steps[-1][1]), (x, y)] if steps else [(x, y)]
    return [*steps, (end, steps[-1][1])]


def _draw_trial(search: Search, trial: Trial, point: svg.Point) -> Safe:
    is_best = trial.number == search.best
    title = f"trial {trial.number}: {format_value(trial.value, search.places)}"
    radius, class_ = (6, "dot c2") if is_best else (4, "dot c0")
    return svg.draw_circle(point, radius, class_, title)


def _draw_best_label(
    search: Search, points: dict[int, svg.Point], steps: Sequence[svg.Point]
) -> Safe:
    """Return the best value beside its point, where it covers the other points least."""
    if search.best not in points:
        return Safe("")
    label = f"trial {search.best}: {format_value(search.chosen.value, search.places)}"
    point = points[search.best]
    obstacles = [*points.values(), *interpolate_points(steps)]
    frame = (_LEFT + 4, _TOP - 8, _RIGHT, _BOTTOM)
    (spot,) = place_labels([point], [label], frame, gap=11, obstacles=obstacles)
    return draw_label(point, label, spot, "halo c2")


def _draw_strip(search: Search, state: str, y: float, x_scale: Scale) -> Safe:
    """Return a line of marks: the trials that ended in a state without a value."""
    marks = []
    for trial in search.trials:
        if trial.state == state:
            corner = x_scale.at(trial.number) - 2, y - 10
            title = f"trial {trial.number}: {state}"
            class_ = f"dot {_COLOURS[state]}"
            marks.append(svg.draw_rectangle(corner, (4, 10), class_, title))
    return join(svg.draw_text((_LEFT - 7, y), state, "tick end"), *marks)


def _write_caption(states: Sequence[str], n_omitted: int) -> str:
    sentences = ["Each point is a trial; the line is the best so far, the large point the best."]
    if states:
        sentences.append(f"Trials that were {' or '.join(states)} are marked below.")
    return " ".join(filter(None, [*sentences, describe_omitted(n_omitted)]))
