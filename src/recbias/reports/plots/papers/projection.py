"""The latent space of a model on two axes: sets of users and items, and a direction."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from recbias.core.arrays import FloatArray
from recbias.core.errors import MissingEvidence
from recbias.reports.markup import Safe, join
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import Axes, Scale, choose_ticks, pad_range
from recbias.reports.plots.drawing.label_placement import draw_labels, interpolate_points
from recbias.reports.plots.drawing.markers import choose_look, draw_arrow, draw_marker
from recbias.reports.views.run_tables import RunTables

PLUGIN = "latent_projection"
MOST_POINTS = 2400
_AXES = ("PC1", "PC2")
_LEFT, _TOP, _RIGHT, _FOOT = 52.0, 34.0, 468.0, 54.0
_LEGEND_COLUMNS, _LEGEND_LINE = 3, 20.0

Sets = Mapping[str, FloatArray]
"""The points of each set, ``float64[n, 2]``."""


def draw_projections(run: RunTables, dataset: str, name_file: rows.NameFile) -> Iterator[svg.Plot]:
    """Yield a plot for each projection and model.

    Raises:
        MissingEvidence: No unit of a projection has both components.
    """
    for metric in rows.find_metrics(run, PLUGIN):
        units = _pair_components(rows.read_units(run, metric, dataset))
        units, note = rows.split_drawable(units, "x", "y")
        if units.empty:
            raise MissingEvidence(f"{metric.heading} has no point with both components")
        models = rows.sort_models(run, units["model"].unique().tolist())
        for model in models[: rows.MOST_MODELS]:
            plot = _draw_plot(units[units["model"] == model], model, name_file)
            yield rows.add_omitted(plot, models, note and f"Of all models, {note}")


def _pair_components(units: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each point: ``model``, ``group``, ``unit_id``, ``x`` and ``y``."""
    keys = ["model", "group", "unit_id"]
    x, y = (units.loc[units["target"] == axis, [*keys, "value"]] for axis in _AXES)
    return x.rename(columns={"value": "x"}).merge(y.rename(columns={"value": "y"}), on=keys)


def _draw_plot(units: pd.DataFrame, model: str, name_file: rows.NameFile) -> svg.Plot:
    sets = {
        str(group): frame[["x", "y"]].to_numpy(np.float64)
        for group, frame in units.groupby("group", sort=False)
    }
    legend_height = _LEGEND_LINE * math.ceil(len(sets) / _LEGEND_COLUMNS)
    top, height = _TOP + legend_height, 440.0 + legend_height
    axes = _make_axes(np.vstack(list(sets.values())), (top, height - _FOOT))
    means = {group: points.mean(axis=0) for group, points in sets.items()}
    return svg.Plot(
        name=name_file(f"projection-{model}"),
        title=f"Latent space of {model}",
        caption=_write_caption(sets, means),
        height=height,
        body=join(
            axes.draw(
                choose_ticks(axes.x.low, axes.x.high, 5), choose_ticks(axes.y.low, axes.y.high, 5)
            ),
            *_draw_points(sets, len(units), axes),
            _draw_means(means, axes),
            svg.draw_title((8, top - 14), "second component"),
            svg.draw_title((_RIGHT, height - 10), "first component", class_="end"),
            _draw_legend(sets),
        ),
    )


def _make_axes(points: FloatArray, span: tuple[float, float]) -> Axes:
    """Return axes on which one unit has the same length."""
    top, bottom = span
    lengths = _RIGHT - _LEFT, bottom - top
    ranges = [(*pad_range(points[:, axis].tolist()), lengths[axis]) for axis in (0, 1)]
    unit = max((high - low) / length for low, high, length in ranges)
    x, y = (
        ((low + high - unit * length) / 2, (low + high + unit * length) / 2)
        for low, high, length in ranges
    )
    return Axes(Scale(*x, _LEFT, _RIGHT), Scale(*y, bottom, top))


def choose_direction(groups: Sequence[str]) -> tuple[str, str] | None:
    """Return the two sets between which the direction runs: the first two of one label.

    >>> choose_direction(["gender=F", "gender=M", "genres=Romance"])
    ('gender=M', 'gender=F')
    """
    by_label: dict[str, list[str]] = defaultdict(list)
    for group in groups:
        by_label[group.partition("=")[0]].append(group)
    pairs = ((names[1], names[0]) for names in by_label.values() if len(names) > 1)
    return next(pairs, None)


def _draw_points(sets: Sets, total: int, axes: Axes) -> Iterator[Safe]:
    """Yield the points of each set, every n-th if there are too many."""
    step = max(1, -(-total // MOST_POINTS))
    for series, points in enumerate(sets.values()):
        colour, shape = choose_look(series)
        for x, y in points[::step].tolist():
            yield draw_marker(axes.at(x, y), shape, f"dot cloud {colour}", radius=2.1)


def _draw_means(means: Mapping[str, FloatArray], axes: Axes) -> Safe:
    """Return the arrow of the direction, and a large labelled mark at the mean of each set."""
    centres = {group: axes.at(x, y) for group, (x, y) in means.items()}
    arrow = [centres[group] for group in choose_direction(list(means)) or ()]
    texts = draw_labels(
        list(centres.values()),
        [svg.shorten(group, 26) for group in centres],
        (_LEFT, axes.y.end, _RIGHT, axes.y.start),
        itertools.repeat("halo name"),
        gap=13,
        obstacles=interpolate_points(arrow) if arrow else [],
    )
    elements = [draw_arrow(arrow[0], arrow[1], gap=9)] if arrow else []
    for series, ((group, centre), text) in enumerate(zip(centres.items(), texts, strict=True)):
        colour, shape = choose_look(series)
        class_ = f"dot centre {colour}"
        title = f"mean of {group}: {means[group][0]:.3g}, {means[group][1]:.3g}"
        elements += [text, draw_marker(centre, shape, class_, radius=6.5, title=title)]
    return join(*elements)


def _draw_legend(sets: Sets) -> Safe:
    elements = []
    for series, (group, points) in enumerate(sets.items()):
        line, column = divmod(series, _LEGEND_COLUMNS)
        x, y = 12 + column * 156, 16 + line * _LEGEND_LINE
        colour, shape = choose_look(series)
        title = f"{group}: {len(points):,} points"
        elements += [
            draw_marker((x, y - 4), shape, f"dot {colour}", title=title),
            svg.draw_text((x + 9, y), svg.shorten(f"{group} ({len(points):,})", 22)),
        ]
    return join(*elements)


def _write_caption(sets: Sets, means: Mapping[str, FloatArray]) -> str:
    sentences = [
        "Vectors on the first two principal components, with the same unit on both axes.",
        "Large marks are the means of the sets.",
    ]
    ends = choose_direction(list(sets))
    if ends is not None:
        length = float(np.hypot(*(means[ends[1]] - means[ends[0]])))
        sentences.append(
            f"The arrow runs from the mean of {ends[0]} to that of {ends[1]}, {length:.3g}."
        )
    n_points = sum(map(len, sets.values()))
    if n_points > MOST_POINTS:
        sentences.append(f"Of {n_points:,} points every n-th is drawn.")
    return " ".join(sentences)
