"""The measurements of a finished run, rebuilt from the values of units in its files."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.config.plugin_spec import PluginSpec
from recbias.core.arrays import FloatArray
from recbias.core.errors import MissingRun
from recbias.core.measurements.columns import ALL, FIT_COLUMNS, METRIC_KEY_COLUMNS, POOLED
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.runner.results.metric_rows import ModelMeasurement
from recbias.runner.results.run_comparison import to_text
from recbias.statistics.bootstrap.cluster_bootstrap import bootstrap_t_interval
from recbias.statistics.intervals import normal_interval

KEYS = (*FIT_COLUMNS, *METRIC_KEY_COLUMNS)
"""The columns that identify a value."""

Key: TypeAlias = tuple[str, ...]
"""The values of ``KEYS`` as text."""

Basis: TypeAlias = Literal["units", "samples", "stored"]
"""What a value is computed from again: units; bootstrap samples (its interval only); nothing."""

OWN_INTERVALS = frozenset({"human_rate"})
"""Metrics with values of units whose interval is neither Student's nor Wilson's."""

_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class StoredTables:
    """The files of a run folder as frames; those that do not exist are None."""

    metrics: pd.DataFrame
    groups: pd.DataFrame | None
    significance: pd.DataFrame
    per_unit: pd.DataFrame | None
    replicates: pd.DataFrame | None
    manifest: Mapping[str, Any]

    @cached_property
    def definitions(self) -> Mapping[str, Mapping[str, Any]]:
        """The metrics of the manifest by their label."""
        return {str(entry["metric"]): entry for entry in self.manifest.get("metrics", [])}

    @cached_property
    def units(self) -> Mapping[Key, UnitScores]:
        """The values of the units of each value."""
        return {
            key: UnitScores(str(rows["unit"].iloc[0]), _to_ids(rows["unit_id"]), _to_floats(rows))
            for key, rows in _split(self.per_unit, "per_unit.parquet", ("unit", "unit_id"))
        }

    @cached_property
    def samples(self) -> Mapping[Key, tuple[FloatArray, float]]:
        """The bootstrap samples of each value of a whole set, and the degrees of freedom."""
        return {
            key: (_to_floats(rows), float(rows["df"].iloc[0]))
            for key, rows in _split(self.replicates, "replicates.parquet", ("df",))
        }


def _split(
    table: pd.DataFrame | None, name: str, columns: Sequence[str]
) -> list[tuple[Key, pd.DataFrame]]:
    """Return the rows of each value.

    Raises:
        MissingRun: A column is absent or does not hold numbers.
    """
    if table is None or table.empty:
        return []
    missing = [column for column in (*KEYS, *columns, "value") if column not in table]
    numbers = [column for column in ("k", "value") if column not in missing]
    if missing or not all(pd.api.types.is_numeric_dtype(table[column]) for column in numbers):
        message = f"has no column {', '.join(missing)}" if missing else "holds text for numbers"
        raise MissingRun(message, where=name, remedy="copy the run folder again")
    grouped = table.fillna({"k": -1.0}).groupby(list(KEYS), sort=False, observed=True)
    return [(_make_unit_key(key), table.iloc[rows]) for key, rows in grouped.indices.items()]


def _make_unit_key(key: Hashable) -> Key:
    names = zip(KEYS, key, strict=True)  # type: ignore[call-overload]
    return tuple("" if name == "k" and value == -1.0 else to_text(value) for name, value in names)


def _to_ids(column: pd.Series) -> Any:
    return column.astype(object).to_numpy()


def _to_floats(rows: pd.DataFrame) -> FloatArray:
    return rows["value"].to_numpy(dtype=np.float64)


@dataclass(frozen=True, eq=False)
class RebuiltRow:
    """A row of ``metrics.csv`` for one seed and fold, with its measurement made again."""

    key: Key
    row: ModelMeasurement
    basis: Basis


def make_row_key(row: Mapping[Any, Any]) -> Key:
    """Return the key of a row of ``metrics.csv`` or ``significance.csv``."""
    return tuple(to_text(row[name]) for name in KEYS)


def rebuild_rows(tables: StoredTables) -> list[RebuiltRow]:
    """Return the values of single seeds and folds, computed again where the files allow it.

    - A value with values of units is their mean, with its standard deviation, counts, and Student's
      interval, or Wilson's where every unit is 0 or 1 and the run used it.
    - A value of a whole set of lists stays; its interval is that of its bootstrap samples, for
      metrics of which at least one stored interval is.
    - Another value stays, and so does one of a plug-in outside of recbias.
    """
    is_single = ~(tables.metrics[["dataset", "seed", "fold"]].isin([ALL, POOLED])).any(axis=1)
    rows = [_rebuild(tables, row) for row in tables.metrics[is_single].to_dict("records")]
    sampled = {row.row.metric.label for row in rows if row.basis == "samples"}
    return [_use_samples(row) if row.row.metric.label in sampled else row for row in rows]


def _rebuild(tables: StoredTables, row: Mapping[Any, Any]) -> RebuiltRow:
    key, metric = make_row_key(row), _make_metric(tables, row)
    stored = _restore(row)
    measurement, basis = stored, "stored"
    if (units := tables.units.get(key)) is not None:
        measurement = _summarize(units, stored, metric.name)
        is_builtin = not any(mark in metric.name for mark in "/:")
        basis = "units" if is_builtin or _is_same(measurement, stored) else "stored"
        if basis == "stored":
            measurement = replace(stored, units=units)
    elif (samples := tables.samples.get(key)) is not None:
        measurement = replace(stored, replicates=samples[0], df=samples[1])
        gap = (tables.definitions.get(metric.label, {}).get("parameters") or {}).get("gap")
        is_plain = gap in {None, "groups"} and math.isfinite(stored.ci_low)
        is_sampled = is_plain and _has_interval(_add_interval(measurement), stored)
        basis = "samples" if is_sampled else "stored"
    fit_keys = (str(row["dataset"]), str(row["model"]), _to_part(row["seed"]), _to_part(row["fold"]))
    return RebuiltRow(key, ModelMeasurement(*fit_keys, metric, measurement), basis)  # type: ignore[arg-type]


def _use_samples(row: RebuiltRow) -> RebuiltRow:
    if row.row.measurement.replicates is None:
        return row
    measurement = _add_interval(row.row.measurement)
    return replace(row, row=replace(row.row, measurement=measurement), basis="samples")


def _add_interval(measurement: Measurement) -> Measurement:
    """Return a value of a whole set with the interval of its bootstrap samples."""
    if measurement.replicates is None:
        return measurement
    if math.isnan(measurement.df):
        low, high = normal_interval(measurement.value, measurement.replicates)
    else:
        df = int(measurement.df)
        low, high = bootstrap_t_interval(measurement.value, measurement.replicates, df)
    return replace(measurement, ci_low=float(low), ci_high=float(high))


def _make_metric(tables: StoredTables, row: Mapping[Any, Any]) -> PluginSpec:
    label, k = str(row["metric"]), None if math.isnan(row["k"]) else int(row["k"])
    name = str(tables.definitions.get(label, {}).get("name") or label)
    return PluginSpec("metrics", name, label, None, {"k": k}, ())


def _restore(row: Mapping[Any, Any]) -> Measurement:
    numbers = {name: float(row[name]) for name in ("value", "std", "ci_low", "ci_high")}
    counts = {
        name: 0 if math.isnan(row[name]) else int(row[name]) for name in ("n", "undefined")
    }
    place = {"group": str(row["group"]), "target": str(row["target"])}
    return Measurement(**numbers, **counts, **place)


def _summarize(units: UnitScores, stored: Measurement, name: str) -> Measurement:
    """Return the mean of units, with the one of two intervals that is nearer to the stored one."""
    place = {"group": stored.group, "target": stored.target}
    mean = Measurement.from_units(units, **place)
    if name in OWN_INTERVALS:
        return replace(mean, ci_low=stored.ci_low, ci_high=stored.ci_high)
    defined = units.values[~np.isnan(units.values)]
    if not np.isin(defined, (0.0, 1.0)).all():
        return mean
    share = Measurement.from_units(replace(units, share=True), **place)
    return min((mean, share), key=lambda each: _measure_distance(each, stored))


def _measure_distance(found: Measurement, stored: Measurement) -> float:
    """Return how far the ends of two intervals are apart; infinite if only one is defined."""
    pairs = ((found.ci_low, stored.ci_low), (found.ci_high, stored.ci_high))
    return sum(
        (0.0 if math.isnan(a) and math.isnan(b) else math.inf)
        if math.isnan(a) or math.isnan(b)
        else abs(a - b)
        for a, b in pairs
    )


def _is_same(found: Measurement, stored: Measurement) -> bool:
    return math.isclose(found.value, stored.value, rel_tol=_CLOSE) and _has_interval(found, stored)


def _has_interval(found: Measurement, stored: Measurement) -> bool:
    return _measure_distance(found, stored) <= _CLOSE * max(1.0, abs(stored.value))


def _to_part(value: object) -> int | str:
    """Return a seed or fold: a number, or ``all``."""
    text = to_text(value)
    return int(text) if text.isascii() and text.isdigit() else text
