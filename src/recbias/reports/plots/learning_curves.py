"""Learning curves: the losses of trainings by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from recbias.core.arrays import FloatArray
from recbias.reports.markup import join
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import LARGEST, Axes, Scale, pad_range
from recbias.reports.plots.drawing.label_placement import draw_curve_labels
from recbias.reports.views.headline import list_models
from recbias.reports.views.rounding import format_value
from recbias.reports.views.run_tables import RunTables

MOST_POINTS = 60
"""The number of points of a curve; each is the mean of equally many steps."""

RELATIVE = "bias"
"""The loss whose scale depends on the method, so that it is shown relative to its start."""

_LEFT, _TOP, _RIGHT, _HEIGHT = 60.0, 34.0, 456.0, 300.0

Curve = tuple[FloatArray, FloatArray]
"""The last step and the mean loss of each point."""


def draw_learning_curves(
    run: RunTables, dataset: str, name_file: rows.NameFile
) -> Iterator[svg.Plot]:
    """Yield a plot for each loss, with a curve for each model: the mean over seeds and folds."""
    table = run.learning_curves
    if table is None:
        return
    table = table[(table["dataset"] == dataset) & table["value"].abs().le(LARGEST)]
    for loss in table["loss"].unique():
        curves = {
            model: average_steps(table[(table["loss"] == loss) & (table["model"] == model)])
            for model in list_models(run)
            if ((table["loss"] == loss) & (table["model"] == model)).any()
        }
        yield _draw(run, str(loss), curves, name_file(f"learning-curve-{loss}"))


def average_steps(table: pd.DataFrame) -> Curve:
    """Return the mean loss over seeds and folds, and over neighbouring steps."""
    by_step = table.groupby("step", sort=True)["value"].mean()
    parts = np.array_split(np.arange(len(by_step)), min(MOST_POINTS, len(by_step)))
    steps, values = by_step.index.to_numpy(dtype=np.float64), by_step.to_numpy(dtype=np.float64)
    ends = np.array([steps[part[-1]] for part in parts])
    means = np.array([values[part].mean() for part in parts])
    if table["loss"].iloc[0] == RELATIVE and means[0] > 0:
        means = means / means[0]
    return ends, means


def _draw(run: RunTables, loss: str, curves: Mapping[str, Curve], name: str) -> svg.Plot:
    last = max(ends[-1] for ends, _ in curves.values())
    y_range = pad_range([value for _, means in curves.values() for value in means.tolist()])
    axes = Axes(Scale(0, last, _LEFT, _RIGHT), Scale(*y_range, _HEIGHT - 54, _TOP))
    numbers = {model: number for number, model in enumerate(list_models(run))}
    places = {
        model: [axes.at(x, y) for x, y in zip(ends.tolist(), means.tolist(), strict=True)]
        for model, (ends, means) in curves.items()
    }
    lines = [
        svg.draw_polyline(
            points,
            f"curve {svg.format_colour(numbers[model])}",
            f"{model}: {format_value(float(curves[model][1][-1]), 4)} at the end",
        )
        for model, points in places.items()
    ]
    texts = {model: f"halo c{numbers[model] % svg.COLOURS}" for model in places}
    frame = (axes.x.start + 4, axes.y.end, axes.x.end, axes.y.start - 4)
    heading = f"{loss.replace('_', ' ').capitalize()} loss"
    note = "relative to the start" if loss == RELATIVE else ""
    return svg.Plot(
        name=name,
        title=f"{heading} during training",
        caption=(
            f"The {heading.lower()} of each step{', ' if note else ''}{note}: the mean over seeds "
            f"and folds, and over neighbouring steps, {MOST_POINTS} points at most."
        ),
        height=_HEIGHT,
        body=join(
            axes.draw(),
            svg.draw_title((4, 16), heading, note),
            svg.draw_title((_RIGHT, _HEIGHT - 8), "Step", "", "end"),
            *lines,
            draw_curve_labels(places, texts, frame),
        ),
    )
