"""Long-tail curves: how much of a model's recommendations goes to the most popular items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from recbias.core.arrays import FloatArray
from recbias.core.input_files import has_file
from recbias.reports.markup import join
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import Axes, Scale, choose_log_ticks
from recbias.reports.plots.drawing.label_placement import draw_curve_labels
from recbias.reports.run_files import convert_parquet_errors
from recbias.reports.views.headline import list_models
from recbias.reports.views.run_tables import RunTables

_LEFT, _TOP, _RIGHT, _HEIGHT = 48.0, 34.0, 468.0, 360.0
_HEAD = 0.2
_STEPS = 60
_REFERENCE = "training data"


def draw_long_tail(run: RunTables, exposure: Exposure, *, name: str) -> svg.Plot:
    """Return the plot of one dataset's exposure."""
    bottom = _HEIGHT - 54
    axes = Axes(
        Scale(1, max(exposure.n_items, 2), _LEFT, _RIGHT, log=True), Scale(0, 100, bottom, _TOP)
    )
    series = {model: number for number, model in enumerate(list_models(run))}
    shares = dict(sorted(exposure.models.items(), key=lambda item: series.get(item[0], 0)))
    lines = {model: f"curve {svg.format_colour(series.get(model, 0))}" for model in shares}
    texts = {model: f"halo c{series.get(model, 0) % svg.COLOURS}" for model in shares}
    if exposure.training is not None:
        shares = {_REFERENCE: exposure.training, **shares}
        lines[_REFERENCE], texts[_REFERENCE] = "reference", "halo note"
    curves = {}
    for model, column in shares.items():  # the curve at ranks that are equally far apart
        ranks = np.unique(np.geomspace(1, column.size, _STEPS).round().astype(int))
        curves[model] = [axes.at(rank, 100 * column[rank - 1]) for rank in ranks.tolist()]
    order = "recommendations" if exposure.training is None else "training interactions"
    by_order = f"by {order}, log scale"
    return svg.Plot(
        name=name,
        title="Long tail of recommended items",
        caption=_write_caption(exposure),
        height=_HEIGHT,
        body=join(
            axes.draw(choose_log_ticks(1, axes.x.high), unit="%"),
            svg.draw_title((4, 16), "Share of recommendations", "up to this item"),
            svg.draw_title((_RIGHT, _HEIGHT - 8), "Items, most popular first", by_order, "end"),
            *(
                svg.draw_polyline(curve, lines[model], _describe_head(model, shares[model]))
                for model, curve in curves.items()
            ),
            draw_curve_labels(curves, texts, (_LEFT + 4, _TOP, _RIGHT, bottom - 4)),
        ),
    )


def _describe_head(model: str, shares: FloatArray) -> str:
    head = max(1, round(_HEAD * shares.size))
    return (
        f"{model}: {100 * shares[head - 1]:.1f}% go to the {head:,} most popular items "
        f"({_HEAD:.0%} of all)"
    )


def _write_caption(exposure: Exposure) -> str:
    caption = (
        "At each rank, the share of a model's recommendations that go to the items up to it. "
        "A curve further left recommends popular items more."
    )
    if exposure.training is None:
        return f"{caption} Items are sorted by the recommendations of all models."
    return f"{caption} The dotted curve is the share of the training interactions."


_KEYS = ["dataset", "model", "item_id"]


@dataclass(frozen=True, eq=False)
class Exposure:
    """Cumulative shares over items, the most popular first.

    Args:
        models: For each model, the share of its recommendations that go to the first items,
            ``float64[n_items]``, above 0 and up to 1.
        training: The same share of the training interactions, or None if they are not known.
    """

    models: Mapping[str, FloatArray]
    training: FloatArray | None

    @property
    def n_items(self) -> int:
        """The number of items."""
        return next(iter(self.models.values())).size


def count_recommendations(run: RunTables) -> pd.DataFrame:
    """Return how often each model recommends each item, over all seeds and folds.

    The file is read one row group at a time.

    Returns:
        ``dataset``, ``model``, ``item_id`` and ``lists``; no rows without ``lists.parquet``.
    """
    path = run.folder / "lists.parquet"
    if not has_file(path):
        return pd.DataFrame(columns=[*_KEYS, "lists"])
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    with convert_parquet_errors(path), pq.ParquetFile(path, read_dictionary=_KEYS) as file:
        for number in range(file.num_row_groups):
            group = file.read_row_group(number, columns=_KEYS).unify_dictionaries()
            counts = group.group_by(_KEYS).aggregate([([], "count_all")])
            columns = [counts[key].cast(pa.string()) for key in _KEYS]
            tables.append(pa.table([*columns, counts["count_all"]], [*_KEYS, "lists"]))
    if not tables:
        return pd.DataFrame(columns=[*_KEYS, "lists"])
    groups = pa.concat_tables(tables).group_by(_KEYS, use_threads=False)
    frame: pd.DataFrame = groups.aggregate([("lists", "sum")]).to_pandas()
    return frame.rename(columns={"lists_sum": "lists"})


def compute_exposure(run: RunTables, counts: pd.DataFrame, dataset: str) -> Exposure | None:
    """Return the shares of one dataset; None without recommendations or interactions.

    Items are sorted by training interactions, ties by identifier; without ``popularity.parquet``
    by the recommendations of all models.
    """
    counts = counts[counts["dataset"] == dataset]
    if counts.empty:
        return None
    table = counts.pivot_table(
        index="item_id", columns="model", values="lists", aggfunc="sum", fill_value=0, sort=False
    )
    training = _count_interactions(run, dataset)
    if training is not None and not training.any():
        return None
    popularity = table.sum(axis=1) if training is None else training
    items = popularity.index.union(table.index)
    popularity = popularity.reindex(items, fill_value=0).sort_index()
    order = popularity.sort_values(ascending=False, kind="stable").index
    table = table.reindex(order, fill_value=0)
    shares = None if training is None else _accumulate(training.reindex(order, fill_value=0))
    return Exposure({str(model): _accumulate(table[model]) for model in table.columns}, shares)


def _count_interactions(run: RunTables, dataset: str) -> pd.Series | None:
    if run.popularity is None:
        return None
    frame = run.popularity[run.popularity["dataset"] == dataset]
    if frame.empty:
        return None
    frame = frame[np.isfinite(frame["interactions"].to_numpy(dtype=np.float64))]
    items = frame["item_id"].astype(object)
    counts: pd.Series = frame["interactions"].groupby(items, sort=False).sum()
    return counts


def _accumulate(counts: pd.Series) -> FloatArray:
    totals: FloatArray = counts.to_numpy(dtype=np.float64).cumsum()
    return totals / max(float(totals[-1]), 1.0)
