"""The tables of a run that its power is computed from."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True, eq=False)
class PowerTables:
    """The tables of a run that its power is computed from.

    Args:
        per_unit: ``per_unit.parquet``, or None if no metric has units.
        read_lists: Reads ``lists.parquet``, or None if no model recommends lists.
    """

    metrics: pd.DataFrame
    significance: pd.DataFrame
    per_unit: pd.DataFrame | None
    manifest: Mapping[str, Any]
    read_lists: Callable[[], pd.DataFrame | None]

    @cached_property
    def query_ids(self) -> Sequence[object]:
        """The ids of the queries that have lists."""
        lists = self.read_lists()
        return [] if lists is None else list(lists["query_id"].unique())

    @cached_property
    def definitions(self) -> Mapping[str, Mapping[str, Any]]:
        """The metrics of the manifest by their label."""
        return {entry["metric"]: entry for entry in self.manifest.get("metrics", [])}

    @cached_property
    def groups(self) -> Mapping[tuple[Any, ...], list[dict[str, Any]]]:
        """The rows of ``metrics.csv`` by model, seed, fold, metric and cutoff."""
        rows: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
        for row in self.metrics.to_dict("records"):
            rows[make_key(row)].append({str(name): value for name, value in row.items()})
        return rows

    @cached_property
    def units(self) -> Mapping[str, str]:
        """The unit of each metric that has one."""
        if self.per_unit is None:
            return {}
        pairs = self.per_unit[["metric", "unit"]].drop_duplicates().astype(str)
        return dict(pairs.itertuples(index=False, name=None))

    def name_unit(self, row: Mapping[str, Any]) -> str:
        """Return what a comparison counts: ``user``, ``sentence pair``, ..."""
        default = self._name_query()
        declared = self.definitions.get(row["metric"], {}).get("unit", "")
        unit = self.units.get(row["metric"], default if declared in {"", "query"} else declared)
        if row["between"] == "groups" and unit == "item":
            return default  # the groups are of users, whatever the values of the metric are of
        is_of_sentences = (unit, row["test"]) == ("sentence_pair", "welch_t")
        return "sentence" if is_of_sentences else unit.replace("_", " ")

    def _name_query(self) -> str:
        requested = {entry.get("unit", "unit") for entry in self.manifest.get("queries", [])}
        unit = str(requested.pop()) if len(requested) == 1 else "unit"
        return "name or template" if unit == "prompt" else unit

    def select_prompts(self, row: Mapping[str, Any]) -> list[pd.Series]:
        """Return the values of both models of a comparison by prompt; empty for other units."""
        if self.per_unit is None or self.units.get(row["metric"]) != "prompt":
            return []
        keys = ("dataset", "seed", "fold", "metric", "group", "target")
        chosen = np.ones(len(self.per_unit), dtype=bool)
        for name in keys:
            chosen &= (self.per_unit[name].astype(str) == str(row[name])).to_numpy()
        rows = self.per_unit[chosen]
        models = [rows[rows["model"].astype(str) == row[side]] for side in ("a", "b")]
        return [frame.set_index("unit_id")["value"] for frame in models]


def make_key(row: Mapping[Any, Any], metric: str | None = None) -> tuple[Any, ...]:
    """Return what the values of a metric for a fitted model share; of another metric if named."""
    k = None if math.isnan(row["k"]) else row["k"]
    names = ("dataset", "model", "seed", "fold")
    return (*(str(row[name]) for name in names), metric or row["metric"], k)
