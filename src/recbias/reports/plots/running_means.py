"""Running means: how a metric settles as users are added, in a random order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, FloatArray
from recbias.numerics.running_means import compute_running_means
from recbias.reports.markup import Safe, join
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import LARGEST, Axes, Scale, pad_range
from recbias.reports.plots.drawing.label_placement import draw_curve_labels
from recbias.reports.views.definitions import Definition, collect_definitions, select_first
from recbias.reports.views.headline import list_models
from recbias.reports.views.rounding import format_value
from recbias.reports.views.run_tables import RunTables

ORDER_SEED = 0
"""The seed of the order of the units, which all models and metrics of a plot share."""

POPULARITY_OF_USERS = (
    *("log_popularity_difference", "popularity_lift", "gini_difference"),
    *("herfindahl_difference", "popularity_rank_correlation", "ARP", "APLT", "ACLT"),
)
"""Popularity metrics with a value for each user."""

FEWEST_UNITS, FIRST = 30, 10
"""The fewest units of a plot, and the number of units at its left end."""

_LEFT, _TOP, _RIGHT, _HEIGHT = 60.0, 34.0, 456.0, 300.0
_STEPS, _POINTS = 120, 500
"""The number of points of a curve, and of all curves of a plot."""


def draw_running_means(
    run: RunTables, dataset: str, name_file: rows.NameFile
) -> Iterator[svg.Plot]:
    """Yield a plot for HR and for each popularity metric of users; none without the latter."""
    metrics = [
        metric for metric in collect_definitions(run).values() if "gap" not in metric.parameters
    ]
    popularity = [
        metric for name in POPULARITY_OF_USERS for metric in rows.find_metrics(run, name)
    ]
    popularity = [metric for metric in popularity if metric in metrics]
    accuracy = select_first(reversed(metrics), ["HR"]) if popularity else None
    for metric in filter(None, [accuracy, *popularity]):
        values = _arrange_units(run, metric, dataset)
        if values is not None:
            yield _draw(run, metric, values, name_file(f"running-mean-{metric.title}"))


def _arrange_units(run: RunTables, metric: Definition, dataset: str) -> pd.DataFrame | None:
    """Return the values, one row per unit in a random order and one column per model."""
    units = rows.read_units(run, metric, dataset)
    units = units[(units["group"] == "") & (units["target"] == "")]
    if len(units["unit_id"].unique()) < FEWEST_UNITS:
        return None
    table = units.pivot_table(index="unit_id", columns="model", values="value", observed=True)
    order = np.random.default_rng(ORDER_SEED).permutation(len(table))
    models = [model for model in list_models(run) if model in table.columns]
    return table.iloc[order][models]


def _draw(run: RunTables, metric: Definition, values: pd.DataFrame, name: str) -> svg.Plot:
    running = compute_running_means(values.to_numpy(dtype=np.float64))
    n_steps = max(2, min(_STEPS, _POINTS // max(values.shape[1], 1)))
    counts = np.unique(np.linspace(FIRST, len(values), n_steps).round().astype(int))
    ends = np.stack([running.mean, running.mean - running.error, running.mean + running.error])
    ends = ends[:, counts - 1]
    ends = np.where((np.abs(ends) <= LARGEST).all(axis=0), ends, np.nan)
    y_range = pad_range(ends[~np.isnan(ends)].tolist() or [0.0])
    axes = Axes(Scale(0, len(values), _LEFT, _RIGHT), Scale(*y_range, _HEIGHT - 54, _TOP))
    unit = f"{run.manifest.get('queries', [{}])[0].get('unit', 'user')}s".capitalize()
    return svg.Plot(
        name=name,
        title=f"{metric.heading} as {unit.lower()} are added",
        caption=_write_caption(unit.lower()),
        height=_HEIGHT,
        body=join(
            axes.draw(),
            svg.draw_title((4, 16), metric.heading, rows.describe_direction(metric)),
            svg.draw_title((_RIGHT, _HEIGHT - 8), unit, "in random order", "end"),
            _draw_curves(run, dict(zip(values.columns, ends.T, strict=True)), counts, axes),
        ),
    )


def _draw_curves(
    run: RunTables, ends: Mapping[str, FloatArray], counts: AnyArray, axes: Axes
) -> Safe:
    """Return the curve, the band and the name of each model; ``ends`` are ``float64[n, 3]``."""
    series = {model: number for number, model in enumerate(list_models(run))}
    curves, bands, names = {}, [], {}
    for model, columns in ends.items():
        defined = ~np.isnan(columns[:, 0])
        if not defined.any():
            continue
        mean, low, high = (
            list(map(axes.at, counts[defined].tolist(), column)) for column in columns[defined].T
        )
        colour = svg.format_colour(series[model])
        corners = [f"{x:.1f},{y:.1f}" for x, y in (*low, *reversed(high))]
        bands.append(svg.draw_path(f"M{' '.join(corners)}Z", f"band {colour}"))
        value, error = columns[defined][-1, 0], columns[defined][-1, 0] - columns[defined][-1, 1]
        title = f"{model}: {format_value(value, 4)} (standard error {format_value(error, 4)})"
        curves[model] = mean
        names[model] = svg.draw_polyline(mean, f"curve {colour}", title)
    texts = {model: f"halo c{series[model] % svg.COLOURS}" for model in curves}
    frame = (axes.x.start + 4, axes.y.end, axes.x.end, axes.y.start - 4)
    return join(*bands, *names.values(), draw_curve_labels(curves, texts, frame))


def _write_caption(units: str) -> str:
    return (
        f"The mean over the first {units}, from {FIRST} on, in one random order for all models "
        f"(seed {ORDER_SEED}); the right end is the reported mean. Bands are one standard error "
        f"to both sides. A curve that still rises or falls at the right needs more {units}."
    )
