"""How often each model recommends each item, over items in order of popularity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from recbias.core.arrays import FloatArray
from recbias.core.input_files import has_file
from recbias.reports.views.run_tables import RunTables

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
    return _count_rows(path)


def _count_rows(path: Path) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    with pq.ParquetFile(path, read_dictionary=_KEYS) as file:
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
