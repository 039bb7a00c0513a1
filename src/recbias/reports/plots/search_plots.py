"""The searches of a run with their plots: every trial, and which settings mattered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from recbias.core.measurements.scores import to_loss
from recbias.reports.markup import Safe, join
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import (
    Axes,
    Scale,
    choose_ticks,
    describe_omitted,
    fits_axis,
    pad_range,
)
from recbias.reports.plots.drawing.label_placement import draw_labels, interpolate_points
from recbias.reports.plots.gallery import DRAWING_FAULTS
from recbias.reports.views.definitions import DIRECTION_LABELS
from recbias.reports.views.rounding import format_value
from recbias.reports.views.run_tables import RunTables
from recbias.reports.views.trials import Search, Trial, collect_searches

_LEFT, _TOP, _RIGHT, _BOTTOM = 58.0, 34.0, 466.0, 262.0
_STRIP = 18.0
"""Height of a line of trials without a value."""

_COLOURS = {"pruned": "c7", "failed": "c1", "excluded": "c4"}
_ROW, _BAR, _LONGEST = 30.0, 18.0, 24


@dataclass(frozen=True, eq=False)
class SearchPlots:
    """A search and its plots: its progress and the importance of its settings, if drawable."""

    search: Search
    plots: tuple[svg.Plot, ...]


def draw_search_plots(run: RunTables) -> tuple[SearchPlots, ...]:
    """Return the searches of a run in its order."""
    names = svg.FileNames()
    return tuple(_draw_plots(search, names) for search in collect_searches(run))


def _draw_plots(search: Search, names: svg.FileNames) -> SearchPlots:
    plots = []
    for stem, draw in (("search", draw_search_progress), ("importance", draw_setting_importance)):
        try:
            plot = draw(search, name=names.free(f"{stem}-{search.title}"))
        except DRAWING_FAULTS:
            continue
        if plot is not None:
            plots.append(plot)
    return SearchPlots(search, tuple(plots))


def draw_search_progress(search: Search, *, name: str) -> svg.Plot | None:
    """Return the plot of every trial, and of the best value so far.

    None if neither direction of the metric is better.
    """
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
    sentences = [
        "Each point is a trial; the line is the best so far, the large point the best.",
        f"Trials that were {' or '.join(states)} are marked below." if states else "",
        describe_omitted(len(search.done) - len(trials)),
    ]
    return svg.Plot(
        name=name,
        title=f"Progress of the search: {search.title}",
        caption=" ".join(filter(None, sentences)),
        height=bottom + 48,
        body=join(
            axes.draw(ticks, bottom=bottom),
            *(
                _draw_strip(search, state, _BOTTOM + 18 + _STRIP * line, axes.x)
                for line, state in enumerate(states)
            ),
            svg.draw_polyline(steps, "curve c0"),
            *_draw_best_label(search, points, steps),
            *(_draw_trial(search, trial, points[trial.number]) for trial in trials),
            svg.draw_title((4, 16), search.metric, DIRECTION_LABELS[search.direction]),
            svg.draw_title((_RIGHT, bottom + 40), "Trial", class_="end"),
        ),
    )


def list_improvements(search: Search) -> list[Trial]:
    """Return the trials that were better than all before them, in order."""
    improvements, best = [], math.inf
    for trial in _list_drawable(search):
        if (loss := to_loss(trial.value, search.direction)) < best:
            improvements.append(trial)
            best = loss
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
    title = f"trial {trial.number}: {format_value(trial.value, search.places)}"
    radius, class_ = (6, "dot c2") if trial.number == search.best else (4, "dot c0")
    return svg.draw_circle(point, radius, class_, title)


def _draw_best_label(
    search: Search, points: dict[int, svg.Point], steps: Sequence[svg.Point]
) -> list[Safe]:
    """Return the best value beside its point, where it covers the other points least."""
    if search.best not in points:
        return []
    label = f"trial {search.best}: {format_value(search.chosen.value, search.places)}"
    obstacles = [*points.values(), *interpolate_points(steps)]
    frame = (_LEFT + 4, _TOP - 8, _RIGHT, _BOTTOM)
    return draw_labels(
        [points[search.best]], [label], frame, ["halo c2"], gap=11, obstacles=obstacles
    )


def _draw_strip(search: Search, state: str, y: float, x_scale: Scale) -> Safe:
    """Return a line of marks: the trials that ended in a state without a value."""
    marks = []
    for trial in search.trials:
        if trial.state == state:
            corner = x_scale.at(trial.number) - 2, y - 10
            title = f"trial {trial.number}: {state}"
            marks.append(svg.draw_rectangle(corner, (4, 10), f"dot {_COLOURS[state]}", title))
    return join(svg.draw_text((_LEFT - 7, y), state, "tick end"), *marks)


def draw_setting_importance(search: Search, *, name: str) -> svg.Plot | None:
    """Return the share of the variation that each setting explains, the largest first.

    None if no importance is known.
    """
    shares = {key: share for key, share in search.importances.items() if fits_axis(share)}
    if not shares:
        return None
    ranked = sorted(shares, key=lambda key: -shares[key])
    left = 16 + max(svg.estimate_width(svg.shorten(key, _LONGEST)) for key in ranked)
    scale = Scale(0, 1, left, svg.WIDTH - 58.0)
    bottom = _TOP + _ROW * len(ranked)
    n_pruned = search.count("pruned")
    target = "the best nDCG@10 of an epoch" if n_pruned else search.metric
    return svg.Plot(
        name=name,
        title=f"Which settings mattered: {search.title}",
        caption=(
            f"The share of the variance of {target} over {len(search.done) + n_pruned:,} trials "
            "that each setting explains by itself, scaled to sum to 1: functional ANOVA of a "
            "random forest. With few trials the shares are rough."
        ),
        height=bottom + 12,
        body=join(
            svg.draw_title((4, 16), "Importance", "share of what the settings explain"),
            *(
                _draw_bar(key, shares[key], _TOP + _ROW * position, scale)
                for position, key in enumerate(ranked)
            ),
            svg.draw_line((left, _TOP), (left, bottom), "axis"),
        ),
    )


def _draw_bar(key: str, share: float, top: float, scale: Scale) -> Safe:
    middle, end = top + _ROW / 2, scale.at(share)
    text = format_value(share, 2)
    corner, size = (scale.start, middle - _BAR / 2), (end - scale.start, _BAR)
    return join(
        svg.draw_rectangle(corner, size, "bar", f"{key}: {text}"),
        svg.draw_text((scale.start - 8, middle + 4.5), svg.shorten(key, _LONGEST), "end"),
        svg.draw_text((end + 7, middle + 4.5), text, "tick"),
    )
