"""Curves of a metric over a setting that varies between the models of one plug-in."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recbias.reports.markup import Safe, join
from recbias.reports.model_settings import (
    Variants,
    collect_variants,
    is_number,
    render_setting,
)
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import (
    Axes,
    Interval,
    Scale,
    choose_log_ticks,
    choose_ticks,
    describe_lines,
    fits_axis,
    pad_range,
)
from recbias.reports.plots.drawing.label_placement import draw_curve_labels
from recbias.reports.views.definitions import Definition, collect_definitions
from recbias.reports.views.run_tables import RunTables

MOST_METRICS = 6
"""Metrics with a plot of their own; the tables have the others."""

_LEFT, _TOP, _RIGHT, _HEIGHT = 60.0, 34.0, 456.0, 300.0
_ROOM = 44.0
"""The least distance of two ticks."""

_LOG_RATIO = 30
"""The ratio of the largest to the smallest value from which an axis is logarithmic."""

Series = Mapping[str, Sequence[tuple[float, Interval]]]
"""Points of increasing settings, by the values of the other settings."""


def draw_setting_curves(
    run: RunTables, dataset: str, name_file: rows.NameFile
) -> Iterator[svg.Plot]:
    """Yield a plot for each plug-in and metric, of the first metrics without groups."""
    metrics = [metric for metric in collect_definitions(run).values() if not metric.gap]
    for group in collect_variants(run):
        n_drawn = 0
        for metric in metrics:
            series = _collect_series(run, group, metric, dataset) if group.axis else {}
            if series and n_drawn < MOST_METRICS:
                n_drawn += 1
                yield _draw(group, metric, series, name_file(f"{metric.title}-by-{group.axis}"))


def _collect_series(
    run: RunTables, group: Variants, metric: Definition, dataset: str
) -> dict[str, list[tuple[float, Interval]]]:
    """Return the curves with at least two points."""
    series: dict[str, list[tuple[float, Interval]]] = {}
    for row in rows.list_rows(run, metric, dataset):
        settings = group.settings.get(row["model"])
        if settings is None or row["group"] or row["target"]:
            continue
        value = settings[group.axis]
        if is_number(value) and fits_axis(value):
            point = float(value), Interval.of_row(row)
            series.setdefault(_name_series(group, settings), []).append(point)
    curves = {name: sorted(points, key=lambda point: point[0]) for name, points in series.items()}
    return {name: points for name, points in curves.items() if len(points) > 1}


def _name_series(group: Variants, settings: Mapping[str, Any]) -> str:
    others = [
        f"{name}={render_setting(settings[name])}" for name in group.names if name != group.axis
    ]
    return ", ".join(others) or group.name


def _draw(group: Variants, metric: Definition, series: Series, name: str) -> svg.Plot:
    xs = [x for points in series.values() for x, _ in points]
    is_log = min(xs) > 0 and max(xs) / min(xs) >= _LOG_RATIO
    ends = [end for points in series.values() for _, interval in points for end in interval.ends()]
    x_range = (min(xs) / 1.2, max(xs) * 1.2) if is_log else pad_range(xs)
    axes = Axes(
        Scale(*x_range, _LEFT, _RIGHT, log=is_log), Scale(*pad_range(ends), _HEIGHT - 54, _TOP)
    )
    setting = group.axis.replace("_", " ")
    intervals = [interval for points in series.values() for _, interval in points]
    sentences = [
        f"{metric.heading} of {group.name} over {setting}; each point is a model of the run.",
        *describe_lines(intervals),
    ]
    return svg.Plot(
        name=name,
        title=f"{metric.heading} over {setting} of {group.name}",
        caption=" ".join(sentences),
        height=_HEIGHT,
        body=join(
            axes.draw(_choose_ticks(axes.x, sorted({*xs}))),
            svg.draw_title((4, 16), metric.heading, rows.describe_direction(metric)),
            svg.draw_title((_RIGHT, _HEIGHT - 8), setting.capitalize(), "", "end"),
            _draw_curves(series, axes),
        ),
    )


def _choose_ticks(scale: Scale, values: Sequence[float]) -> Sequence[float]:
    """Return the values of the setting if their labels have room, else round values."""
    places = [scale.at(value) for value in values]
    if all(end - start >= _ROOM for start, end in itertools.pairwise(places)):
        return values
    return (choose_log_ticks if scale.log else choose_ticks)(scale.low, scale.high)


def _draw_curves(series: Series, axes: Axes) -> Safe:
    """Return the curve of each series with its points and intervals, and its name if several."""
    elements, curves = [], {}
    for number, (name, points) in enumerate(series.items()):
        colour = svg.format_colour(number)
        curves[name] = [axes.at(x, interval.value) for x, interval in points]
        elements.append(svg.draw_polyline(curves[name], f"curve {colour}", name))
        for (x, interval), point in zip(points, curves[name], strict=True):
            if interval.bounded:
                top, bottom = axes.at(x, interval.high), axes.at(x, interval.low)
                elements.append(svg.draw_line(top, bottom, f"curve {colour}"))
            title = f"{name}, {x:g}: {interval.describe(4)}"
            elements.append(svg.draw_circle(point, 4, f"dot c{number % svg.COLOURS}", title))
    texts = {name: f"halo c{at % svg.COLOURS}" for at, name in enumerate(curves)}
    frame = (axes.x.start + 4, axes.y.end, axes.x.end, axes.y.start - 4)
    return join(*elements, *([draw_curve_labels(curves, texts, frame)] * (len(curves) > 1)))
