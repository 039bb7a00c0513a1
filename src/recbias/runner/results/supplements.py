"""Counts behind the values of a run, and the directions of embeddings that values refer to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.measurements.columns import FIT_COLUMNS, METRIC_KEY_COLUMNS
from recbias.runner.results.metric_rows import ModelMeasurement

COUNTS = "counts.csv"
"""One row per count: the keys of its value in ``metrics.csv``, ``name`` and ``count``."""

DIRECTIONS = "directions.csv"
"""One row per direction: ``dataset`` to ``metric``, ``direction``, ``dimensions`` and ``file``."""

FOLDER = "directions"
"""The folder of the files ``1.npy``, ``2.npy``, ..., each a unit vector, ``float64[d]``."""


def write_counts(folder: Path, measured: Sequence[ModelMeasurement]) -> None:
    """Write the counts that determine values; no file without such values."""
    rows = [row for value in measured for row in _list_counts(value)]
    if rows:
        columns = [*FIT_COLUMNS, *METRIC_KEY_COLUMNS, "name", "count"]
        table = pd.DataFrame(rows, columns=columns).astype({"k": "Int64"})
        table.to_csv(folder / COUNTS, index=False, lineterminator="\n")


def write_directions(folder: Path, measured: Sequence[ModelMeasurement]) -> None:
    """Write each direction once, and the table of them; nothing without directions.

    Each file can be the ``direction`` of a metric. A direction that is undefined has no file.
    """
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for value in measured:
        keys = {name: vars(value)[name] for name in FIT_COLUMNS} | {"metric": value.metric.label}
        for name, axis in value.measurement.axes.items():
            row = keys | {"direction": name}
            if tuple(row.values()) in rows or np.isnan(axis).any():
                continue
            file = f"{FOLDER}/{len(rows) + 1}.npy"
            rows[tuple(row.values())] = row | {"dimensions": axis.size, "file": file}
            (folder / FOLDER).mkdir(exist_ok=True)
            np.save(folder / file, axis, allow_pickle=False)
    if rows:
        table = pd.DataFrame([*rows.values()])
        table.to_csv(folder / DIRECTIONS, index=False, lineterminator="\n")


def _list_counts(value: ModelMeasurement) -> list[dict[str, Any]]:
    counts = value.measurement.counts
    if counts is None:
        return []
    keys = {name: vars(value)[name] for name in FIT_COLUMNS} | value.metric_keys
    numbered = [f"count_{number}" for number in range(1, counts.size + 1)]
    names = getattr(value.metric.plugin, "count_names", numbered)
    rows = zip(names, counts.ravel().tolist(), strict=True)
    return [{**keys, "name": name, "count": count} for name, count in rows]
