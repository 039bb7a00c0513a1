"""How often each item is recommended, by model, over items in order of popularity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from recbias.core.arrays import FloatArray
from recbias.core.input_files import has_file
from recbias.reports.views.run_tables import RunTables


@dataclass(frozen=True, eq=False)
class Exposure:
    """Cumulative shares over items, the most popular first.

    Args:
        models: For each model the share of its recommendations that go to the first items,
            ``float64[n_items]``, from above 0 to 1.
        training: The same of the training interactions, or None where they are not known.
    """

    models: Mapping[str, FloatArray]
    training: FloatArray | None

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return next(iter(self.models.values())).size


def recommended(run: RunTables) -> pd.DataFrame:
    """Return how often each model recommends each item, over all seeds and folds.

    Returns:
        ``dataset``, ``model``, ``item_id`` and ``lists``; no rows without ``lists.parquet``. The
        file is read a row group at a time.
    """
    path = run.folder / "lists.parquet"
    columns = ["dataset", "model", "item_id"]
    if not has_file(path):
        return pd.DataFrame(columns=[*columns, "lists"])
    return _counted(path, columns)


def _counted(path: Path, columns: list[str]) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, read_dictionary=columns) as file:
        counts = []
        for number in range(file.num_row_groups):
            group = file.read_row_group(number, columns=columns).unify_dictionaries()
            counted = group.group_by(columns).aggregate([([], "count_all")])
            plain = [counted[each].cast(pa.string()) for each in columns]
            counts.append(pa.table([*plain, counted["count_all"]], [*columns, "lists"]))
    if not counts:
        return pd.DataFrame(columns=[*columns, "lists"])
    total = pa.concat_tables(counts).group_by(columns, use_threads=False)
    found: pd.DataFrame = total.aggregate([("lists", "sum")]).to_pandas()
    return found.rename(columns={"lists_sum": "lists"})


def exposure(run: RunTables, lists: pd.DataFrame, dataset: str) -> Exposure | None:
    """Return the shares of one dataset; None where it has no recommendation, or no interaction.

    Items stand in order of training interactions, ties by identifier; without
    ``popularity.parquet`` in order of recommendations over all models.

    Args:
        run: The run.
        lists: What ``recommended`` returned.
        dataset: The dataset.
    """
    here = lists[lists["dataset"] == dataset]
    if here.empty:
        return None
    wide = here.pivot_table(
        index="item_id", columns="model", values="lists", aggfunc="sum", fill_value=0, sort=False
    )
    training = _training(run, dataset)
    if training is not None and not training.any():
        return None
    order_by = wide.sum(axis=1) if training is None else training
    items = order_by.index.union(wide.index)
    keys = order_by.reindex(items, fill_value=0).sort_index()
    order = keys.sort_values(ascending=False, kind="stable").index
    wide = wide.reindex(order, fill_value=0)
    known = None if training is None else _shares(training.reindex(order, fill_value=0))
    return Exposure({str(each): _shares(wide[each]) for each in wide.columns}, known)


def _training(run: RunTables, dataset: str) -> pd.Series | None:
    if run.popularity is None:
        return None
    here = run.popularity[run.popularity["dataset"] == dataset]
    if here.empty:
        return None
    here = here[np.isfinite(here["interactions"].to_numpy(dtype=np.float64))]
    items = here["item_id"].astype(object)
    counts: pd.Series = here["interactions"].groupby(items, sort=False).sum()
    return counts


def _shares(counts: pd.Series) -> FloatArray:
    total: FloatArray = counts.to_numpy(dtype=np.float64).cumsum()
    return total / max(float(total[-1]), 1.0)
