"""What is behind the values of a run: units, bootstrap samples, counts and directions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.measurements.columns import FIT_COLUMNS, METRIC_KEY_COLUMNS
from recbias.runner.results.metric_rows import ModelMeasurement
from recbias.runner.results.parquet_writer import (
    TableWriter,
    encode_column,
    encode_constant,
)

COUNTS = "counts.csv"
"""One row per count: the keys of its value in ``metrics.csv``, ``name`` and ``count``."""

DIRECTIONS = "directions.csv"
"""One row per direction: ``dataset`` to ``metric``, ``direction``, ``dimensions`` and ``file``."""

FOLDER = "directions"
"""The folder of the files ``1.npy``, ``2.npy``, ..., each a unit vector, ``float64[d]``."""


QueryDigests: TypeAlias = Mapping[tuple[str, int | str, int | str], str]
"""The digest of the queries of each dataset, seed and fold."""


def write_supplements(
    folder: Path, measured: Sequence[ModelMeasurement], query_digests: QueryDigests
) -> None:
    """Write units, bootstrap samples, counts and directions; see ``build_replicate_tables``."""
    tables = {
        "per_unit.parquet": build_unit_tables(measured),
        "replicates.parquet": build_replicate_tables(measured, query_digests),
    }
    for name, chunks in tables.items():
        with TableWriter(folder / name) as writer:
            for chunk in chunks:
                writer.add(chunk)
    write_counts(folder, measured)
    write_directions(folder, measured)


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


def build_unit_tables(measurements: Iterable[ModelMeasurement]) -> Iterator[dict[str, Any]]:
    """Yield ``per_unit.parquet`` in chunks: one chunk per measurement that has units."""
    for row in measurements:
        if (units := row.measurement.units) is None:
            continue
        n = units.values.size
        ids = {"unit": encode_constant(units.unit, n)}
        ids["unit_id"] = encode_column(np.arange(n), units.ids)
        yield {**_repeat_fit_keys(row, n), **ids, **_repeat_metric_keys(row, n)} | {
            "value": units.values
        }


def build_replicate_tables(
    measurements: Iterable[ModelMeasurement],
    query_digests: QueryDigests,
) -> Iterator[dict[str, Any]]:
    """Yield ``replicates.parquet`` in chunks: the bootstrap samples of values of whole sets.

    Values of a target are excluded, since there may be many thousands.

    Args:
        measurements: The measurements of a run.
        query_digests: The digest of the queries of each dataset, seed and fold. Runs with the same
            queries share their samples.
    """
    for row in measurements:
        replicates, units = row.measurement.replicates, row.measurement.units
        if replicates is None or units is not None or row.measurement.target:
            continue
        n, digest = replicates.size, query_digests[row.dataset, row.seed, row.fold]
        yield {**_repeat_fit_keys(row, n), **_repeat_metric_keys(row, n)} | {
            "queries": encode_constant(digest, n),
            "df": np.full(n, row.measurement.df, dtype=np.float64),
            "log_scale": np.full(n, row.measurement.log_scale),
            "value": replicates,
        }


def _repeat_fit_keys(row: ModelMeasurement, n: int) -> dict[str, Any]:
    return {
        "dataset": encode_constant(row.dataset, n),
        "model": encode_constant(row.model, n),
        "seed": np.full(n, row.seed),
        "fold": np.full(n, row.fold),
    }


def _repeat_metric_keys(row: ModelMeasurement, n: int) -> dict[str, Any]:
    keys = row.metric_keys
    return {
        "metric": encode_constant(keys["metric"], n),
        "k": np.full(n, math.nan if keys["k"] is None else keys["k"], dtype=np.float64),
        "group": encode_constant(keys["group"], n),
        "target": encode_constant(keys["target"], n),
    }
