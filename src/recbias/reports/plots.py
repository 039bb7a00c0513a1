"""The metric rows and per-unit values that plots show."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pandas as pd

from recbias.core.files import has_file
from recbias.core.text import normalize_name
from recbias.reports import svg, views
from recbias.reports.run import RunTables, convert_parquet_errors, name_values, to_records
from recbias.reports.views import Definition

# with more datasets than this only the values over all of them are plotted
_MOST_PLOTTED_DATASETS = 3

MOST_MODELS = 6
"""Models that get a plot of their own; tables have the others."""

_COMPOUND = re.compile("&[^&]*=|[<>!]=?|==")  # a label that joins several labels, or a condition

Row = Mapping[str, Any]

NameFile = Callable[[str], str]
"""From the content of a plot to the name of its file."""


def find_metrics(run: RunTables, name: str) -> list[Definition]:
    """Return the metrics of the run whose plug-in has this name."""
    metrics = views.collect_definitions(run).values()
    return [metric for metric in metrics if normalize_name(metric.name) == normalize_name(name)]


def list_plotted_datasets(run: RunTables) -> list[str]:
    """Return the datasets with plots of their own, the mean over all of them first."""
    names = views.list_datasets(run)
    return [views.ALL] if views.ALL in names and len(names) > _MOST_PLOTTED_DATASETS + 1 else names


def list_rows(run: RunTables, metric: Definition, dataset: str) -> list[Row]:
    """Return the rows of ``list_defined_rows`` whose value fits an axis."""
    rows = list_defined_rows(run, metric, dataset)
    return [row for row in rows if svg.fits_axis(row["value"])]


def list_defined_rows(run: RunTables, metric: Definition, dataset: str) -> list[Row]:
    """Return a metric's rows on one dataset, the mean over seeds and folds if there are several.

    Rows whose value is undefined are excluded.
    """
    rows = _group_rows(run).get((metric.title, dataset), [])
    return [row for row in rows if not math.isnan(row["value"])]


def list_labels(run: RunTables, metric: Definition, dataset: str, column: str) -> list[str]:
    """Return the groups or targets of a metric's rows, those of undefined values too."""
    rows = _group_rows(run).get((metric.title, dataset), [])
    return list(filter(None, list_distinct(rows, column)))


def describe_direction(metric: Definition, *, groups: bool = False) -> str:
    """Return which direction is better, of values by group with ``groups``; blank if none is."""
    direction = metric.group_direction if groups else metric.direction
    return "" if direction == "none" else views.DIRECTION_LABELS[direction]


def add_omitted(plot: svg.Plot, models: Sequence[str]) -> svg.Plot:
    """Return a plot of one model whose caption names the models without a plot."""
    omitted = models[MOST_MODELS:]
    note = f" The table also has {join_names(omitted)}." if omitted else ""
    return replace(plot, caption=f"{plot.caption}{note}")


_ROOM = 44.0  # the least distance of two ticks
_LOG_RATIO = 30  # the ratio of the ends from which an axis is logarithmic


def draw_lines(
    lines: Mapping[str, Sequence[tuple[float, svg.Interval]]],
    *,
    x_title: tuple[str, str],
    y_title: tuple[str, str],
    may_be_log: bool = False,
    zero: bool = False,
    labels: Mapping[str, Sequence[str]] | None = None,
    **texts: str,
) -> svg.Plot:
    """Return a chart of named lines of points with intervals, over what they depend on.

    Args:
        lines: The points of each line, in order.
        x_title: What they depend on, and a note.
        y_title: The value, and a note.
        may_be_log: Whether a wide horizontal axis is logarithmic.
        zero: Whether the chart has a line at 0.
        labels: The texts of the points that show on hover; without them the points are at
            settings, which are the ticks.
        **texts: The name, the title and the caption of the plot.
    """
    xs = sorted({x for points in lines.values() for x, _ in points})
    ends = [end for points in lines.values() for _, interval in points for end in interval.ends()]
    is_log = may_be_log and xs[0] > 0 and xs[-1] / xs[0] >= _LOG_RATIO
    x_range = (xs[0] / 1.2, xs[-1] * 1.2) if is_log else svg.pad_range(xs)
    axes = svg.make_axes(x_range, svg.pad_range([*ends, *[0.0] * zero]), log_x=is_log)
    setting = x_title[0].lower()
    curves = {
        name: svg.Curve(
            [axes.at(x, interval.value) for x, interval in points],
            number,
            name,
            labels[name]
            if labels
            else [f"{name}, {setting} {x:g}: {y.describe(4)}" for x, y in points],
            [
                (axes.at(x, interval.high), axes.at(x, interval.low))
                for x, interval in points
                if interval.bounded
            ],
        )
        for number, (name, points) in enumerate(lines.items())
    }
    left, right = axes.at(x_range[0], 0.0), axes.at(x_range[1], 0.0)
    intervals = [interval for points in lines.values() for _, interval in points]
    texts["caption"] = " ".join([texts["caption"], *svg.describe_lines(intervals)])
    return svg.draw_chart(
        axes,
        *[svg.draw_polyline([left, right], "reference")] * zero,
        svg.draw_curves(curves, axes.frame),
        x_title=x_title,
        y_title=y_title,
        drawn=axes.draw(None if labels else _choose_ticks(axes.x, xs)),
        **texts,
    )


def _choose_ticks(scale: svg.Scale, values: Sequence[float]) -> Sequence[float]:
    """Return the values if their labels have room, else round values."""
    places = [scale.at(value) for value in values]
    if all(end - start >= _ROOM for start, end in itertools.pairwise(places)):
        return values
    return (svg.choose_log_ticks if scale.log else svg.choose_ticks)(scale.low, scale.high)


def select_drawable(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return the rows whose values all fit an axis."""
    return frame[(frame[list(columns)].abs() <= svg.LARGEST).all(axis=1)]


@lru_cache(maxsize=2)
def _group_rows(run: RunTables) -> Mapping[tuple[str, str], list[Row]]:
    rows: dict[tuple[str, str], list[Row]] = {}
    for row in to_records(views.select_headline(run, views.collect_estimates(run))):
        rows.setdefault((views.format_title(row["metric"], row["k"]), row["dataset"]), []).append(
            row
        )
    return rows


def read_units(run: RunTables, metric: Definition, dataset: str) -> pd.DataFrame:
    """Return a metric's value for each unit, its mean over seeds and folds.

    Returns:
        ``model``, ``group``, ``target``, ``unit_id`` (categories) and ``value``, in the order of
        the file; no rows without ``per_unit.parquet``.
    """
    keys = ["model", "group", "target", "unit_id"]
    path = run.folder / "per_unit.parquet"
    if not has_file(path):
        return pd.DataFrame(columns=[*keys, "value"]).astype({"unit_id": "category"})
    import pyarrow.parquet as pq

    columns = [*keys, "seed", "fold", "metric", "k", "value"]
    labels = [metric.title, metric.title.rpartition("@")[0]]
    filters = [("dataset", "==", dataset), ("metric", "in", labels)]
    with convert_parquet_errors(path):
        units: pd.DataFrame = pq.read_table(path, columns=columns, filters=filters).to_pandas()
    keeps = units["value"].notna()
    for pair in units[["metric", "k"]].drop_duplicates().itertuples(index=False):
        if views.format_title(*pair) != metric.title:
            keeps &= ~(units["metric"].isin([pair.metric]) & units["k"].isin([pair.k]))
    units = units[keeps].astype({**dict.fromkeys(keys[:3], object), "unit_id": "category"})
    units = name_values(run, units)
    if len(units[["seed", "fold"]].drop_duplicates()) >= 2:
        units = units.groupby(keys, sort=False, observed=True)["value"].mean().reset_index()
    return units[[*keys, "value"]].reset_index(drop=True)


def sort_models(run: RunTables, present: Iterable[str]) -> list[str]:
    """Return models in the order of the run."""
    present = set(present)
    return [model for model in views.list_models(run) if model in present]


def list_distinct(rows: Iterable[Row], column: str) -> list[str]:
    """Return the distinct values of a column in order of appearance."""
    return list(dict.fromkeys(str(row[column]) for row in rows))


def join_names(names: Sequence[str], most: int = 4) -> str:
    """Return names in a sentence; above ``most`` the others are counted.

    >>> join_names(["a", "b", "c"]), join_names(["a", "b", "c"], 2)
    ('a, b and c', 'a, b and 1 more')
    """
    items = [*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])]
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))


def get_label_value(label: str) -> str:
    """Return the value of a label; compound labels and conditions are returned unchanged.

    >>> get_label_value("location=office"), get_label_value("race=black&gender=F")
    ('office', 'race=black&gender=F')
    >>> get_label_value("age < 18"), get_label_value("categories=Coffee & Tea")
    ('age < 18', 'Coffee & Tea')
    """
    return label if _COMPOUND.search(label) else label.partition("=")[2] or label


def get_label_name(labels: Iterable[str]) -> str:
    """Return the name that all labels share, blank if there is none.

    >>> get_label_name(["race=black", "race=white"]), get_label_name(["age < 18", "not age < 18"])
    ('race', '')
    """
    names = set()
    for label in labels:
        terms = label.split("&") if _COMPOUND.search(label) else [label]
        if not all("=" in term for term in terms):
            return ""
        names.add("&".join(term.partition("=")[0] for term in terms))
    return names.pop() if len(names) == 1 else ""
