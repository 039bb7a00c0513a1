"""The accuracy of each model in each fold or repeat of the split, and their mean."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import Interval, fits_axis
from recbias.reports.plots.papers import forest
from recbias.reports.views.definitions import (
    collect_definitions,
    format_title,
    select_accuracy_metric,
)
from recbias.reports.views.headline import ALL
from recbias.reports.views.run_tables import RunTables, to_records

SERIES = ("a fold", "their mean")
MOST_FOLDS = 20


def draw_fold_values(run: RunTables, dataset: str, name_file: rows.NameFile) -> Iterator[svg.Plot]:
    """Yield the plot of the accuracy metric by fold, if the run has 2 to 20 folds of one seed."""
    metric = select_accuracy_metric(collect_definitions(run).values())
    if metric is None:
        return
    frame = run.metrics
    titles = [format_title(*pair) for pair in zip(frame["metric"], frame["k"], strict=True)]
    is_overall = (frame["group"] == "") & (frame["target"] == "") & (frame["dataset"] == dataset)
    frame = frame[is_overall & (pd.Series(titles, index=frame.index) == metric.title)]
    frame = frame[(frame["fold"] != ALL) & frame["value"].map(fits_axis)]
    n_folds = frame["fold"].nunique()
    if not 2 <= n_folds <= MOST_FOLDS or len(set(frame["seed"])) > 1:
        return
    by_model = {str(model): to_records(part) for model, part in frame.groupby("model")}
    models = rows.sort_models(run, by_model)
    lines = tuple(forest.Row(model, _make_marks(model, by_model[model])) for model in models)
    stds = {model: pd.Series([row["value"] for row in by_model[model]]).std() for model in models}
    widest = max(stds, key=lambda model: stds[model])
    yield forest.draw_forest(
        forest.Forest(
            panels=(forest.Panel("", lines),),
            series=SERIES,
            axis=metric.heading,
            note=rows.describe_direction(metric),
            stacked=False,
        ),
        name=name_file(f"folds-{metric.title}"),
        title=f"{metric.heading} in each fold",
        caption=(
            f"{n_folds} folds. The standard deviation over the folds is largest for {widest} "
            f"({stds[widest]:.4f})."
        ),
    )


def _make_marks(model: str, records: list[dict[str, Any]]) -> tuple[forest.Mark, ...]:
    mean = sum(row["value"] for row in records) / len(records)
    return (
        *(_make_mark(row["value"], 0, f"{model}, fold {row['fold']}") for row in records),
        _make_mark(mean, 1, f"{model}, mean"),
    )


def _make_mark(value: float, series: int, name: str) -> forest.Mark:
    return forest.Mark(Interval(value, math.nan, math.nan), series, f"{name}: {value:.4f}")
