"""The values of single seeds and folds, computed again from values of units and from samples."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from recbias.config.plugin_spec import PluginSpec
from recbias.core.measurements.columns import ALL, POOLED
from recbias.core.measurements.ranges import UNBOUNDED, limit_interval
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.runner.comparison.run_comparison import to_text
from recbias.runner.recomputation.derivations import Derivation
from recbias.runner.recomputation.stored_tables import Key, StoredTables, make_row_key
from recbias.runner.results.metric_rows import ModelMeasurement
from recbias.statistics.bootstrap.sample_interval import compute_sample_interval
from recbias.statistics.group_gaps import measure_gap

Basis: TypeAlias = Literal["units", "values", "samples", "means", "stored"]
"""What is computed again: the value and its interval; the value; the interval; the mean of other
rows; nothing."""

_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class RebuiltRow:
    """A row of ``metrics.csv`` for one seed and fold, with its measurement made again.

    Args:
        stored: The value, interval and counts of the file.
        basis: What is computed again.
    """

    key: Key
    row: ModelMeasurement
    stored: Measurement
    basis: Basis

    @property
    def has_same_value(self) -> bool:
        """Whether a defined value is that of the file."""
        computed = self.row.measurement.value
        return math.isclose(computed, self.stored.value, rel_tol=_CLOSE, abs_tol=1e-15)

    @property
    def is_defined(self) -> bool:
        """Whether the value is defined, computed again or in the file."""
        return not (math.isnan(self.row.measurement.value) and math.isnan(self.stored.value))

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval, computed again or in the file."""
        return not (math.isnan(self.row.measurement.ci_low) and math.isnan(self.stored.ci_low))

    @property
    def has_same_interval(self) -> bool:
        """Whether a defined interval is that of the file."""
        stored = self.stored
        distance = _measure_distance(self.row.measurement, stored)
        scale = max(map(abs, (stored.value, stored.ci_low, stored.ci_high)))
        return math.isfinite(stored.ci_low) and distance <= max(_CLOSE * scale, 1e-15)


def rebuild_all_rows(tables: StoredTables) -> list[RebuiltRow]:
    """Return each value, computed again if it has units, samples or groups.

    - A value with values of units is their mean, with its standard deviation, counts, and
      Student's interval, or Wilson's for a proportion.
    - A gap between groups follows from the values of the groups; its interval from its samples.
    - A value of a whole set of lists stays; its interval is that of its bootstrap samples.
    """
    is_single = ~(tables.metrics[["dataset", "seed", "fold"]].isin([ALL, POOLED])).any(axis=1)
    rows = [_rebuild(tables, row) for row in tables.metrics[is_single].to_dict("records")]
    return _rebuild_gaps(tables, rows)


def keep_stored(row: RebuiltRow) -> RebuiltRow:
    """Return a row with the value and interval of the file, and its units and samples."""
    computed = row.row.measurement
    measurement = replace(
        row.stored,
        units=computed.units,
        replicates=computed.replicates,
        df=computed.df,
        log_scale=computed.log_scale,
        own_interval=computed.own_interval,
    )
    return replace(row, row=replace(row.row, measurement=measurement), basis="stored")


def _rebuild(tables: StoredTables, row: Mapping[Any, Any]) -> RebuiltRow:
    key, stored = make_row_key(row), restore_measurement(row)
    derivation = tables.find_derivation(key[4], stored.target)
    measurement, basis, bounds = stored, "stored", UNBOUNDED
    if (units := tables.units.get(key)) is not None:
        limit = partial(limit_as_stored, tables, key, stored=stored)
        measurement, basis = _summarize(units, stored, derivation, limit), "units"
    elif (samples := tables.samples.get(key)) is not None:
        values, df, log_scale = samples
        measurement = replace(stored, replicates=values, df=df, log_scale=log_scale)
        measurement, basis = _add_interval(measurement), "samples"
    limited = limit_as_stored(tables, key, measurement, stored)
    if limited is not measurement:
        measurement, bounds = limited, tables.find_bounds(key[4])
    names = (str(row["dataset"]), str(row["model"]), _to_part(row["seed"]), _to_part(row["fold"]))
    metric = _make_metric(tables, row)
    measured = ModelMeasurement(*names, metric, measurement, bounds=bounds)
    return RebuiltRow(key, measured, stored, cast("Basis", basis))


def limit_as_stored(
    tables: StoredTables, key: Key, measurement: Measurement, stored: Measurement
) -> Measurement:
    """Return a value with its interval within the range of its metric, as the file has it.

    Earlier versions did not limit intervals: one that is nearer to that of the file stays.
    """
    limited = limit_interval(measurement, tables.find_bounds(key[4]))
    is_limited = tables.find_derivation(key[4], stored.target) is not None or (
        _measure_distance(limited, stored) <= _measure_distance(measurement, stored)
    )
    return limited if is_limited else measurement


def _add_interval(measurement: Measurement) -> Measurement:
    """Return a value of a whole set with the interval of its bootstrap samples."""
    if measurement.replicates is None:
        return measurement
    low, high = compute_sample_interval(
        measurement.value,
        measurement.replicates,
        df=measurement.df,
        log_scale=measurement.log_scale,
    )
    if math.isnan(measurement.ci_low) and not high > low:
        return measurement
    return replace(measurement, ci_low=low, ci_high=high)


def _rebuild_gaps(tables: StoredTables, rows: Sequence[RebuiltRow]) -> list[RebuiltRow]:
    """Return the rows, in which gaps are those of the values of their groups."""
    groups: dict[Key, list[Measurement]] = defaultdict(list)
    for row in rows:
        if row.basis == "units" and row.row.measurement.group:
            groups[(*row.key[:6], row.key[7])].append(row.row.measurement)
    return [_rebuild_gap(tables, row, groups) for row in rows]


def _rebuild_gap(
    tables: StoredTables, row: RebuiltRow, groups: Mapping[Key, list[Measurement]]
) -> RebuiltRow:
    settings = tables.get_settings(row.key[4])
    kind, least = settings.get("gap"), int(settings.get("min_group") or 0)
    if kind not in {"difference", "ratio", "std"}:
        return row
    label = tables.find_groups(row.key[4])
    computed = groups.get((*row.key[:4], label, row.key[5], row.key[7]), [])
    means = np.array([[group.value for group in computed if group.n >= least]])
    if means.shape[1] < 2:
        return keep_stored(row)
    value = float(measure_gap(means, kind)[0])
    gap = _add_interval(replace(row.row.measurement, value=value))
    if gap.replicates is not None:
        low, high = max(gap.ci_low, 0.0), min(gap.ci_high, 1.0 if kind == "ratio" else math.inf)
        low, high = (low, high) if gap.ci_high > gap.ci_low else (math.nan, math.nan)
        gap = replace(gap, ci_low=low, ci_high=high)
    return replace(row, row=replace(row.row, measurement=gap), basis="units")


def _make_metric(tables: StoredTables, row: Mapping[Any, Any]) -> PluginSpec:
    label, k = str(row["metric"]), None if math.isnan(row["k"]) else int(row["k"])
    name = str(tables.definitions.get(label, {}).get("name") or label)
    return PluginSpec("metrics", name, label, None, {"k": k}, ())


def restore_measurement(row: Mapping[Any, Any]) -> Measurement:
    """Return the value of a row of a table, without units and samples."""
    n, undefined = (0 if math.isnan(row[name]) else int(row[name]) for name in ("n", "undefined"))
    return Measurement(
        value=float(row["value"]),
        std=float(row["std"]),
        n=n,
        undefined=undefined,
        ci_low=float(row["ci_low"]),
        ci_high=float(row["ci_high"]),
        group=str(row["group"]),
        target=str(row["target"]),
    )


def _summarize(
    units: UnitScores,
    stored: Measurement,
    derivation: Derivation | None,
    limit: Callable[[Measurement], Measurement],
) -> Measurement:
    """Return the mean of units, with the interval of the manifest or the one nearer to the file's.

    A proportion, of values 0 and 1, has Wilson's interval.
    """
    labels = {"group": stored.group, "target": stored.target}
    mean = Measurement.from_units(units, **labels)
    defined = units.values[~np.isnan(units.values)]
    if not np.isin(defined, (0.0, 1.0)).all():
        return mean
    share = Measurement.from_units(replace(units, share=True), **labels)
    if derivation is not None and derivation.interval in {"t", "wilson"}:
        return share if derivation.interval == "wilson" else mean
    return min((mean, share), key=lambda other: _measure_distance(limit(other), stored))


def _measure_distance(computed: Measurement, stored: Measurement) -> float:
    """Return how far the ends of two intervals are apart; infinite if only one is defined."""
    ends: Iterable[tuple[float, float]] = (
        (computed.ci_low, stored.ci_low),
        (computed.ci_high, stored.ci_high),
    )
    distances = [0.0 if math.isnan(a) and math.isnan(b) else abs(a - b) for a, b in ends]
    return math.inf if any(map(math.isnan, distances)) else sum(distances)


def _to_part(value: object) -> int | str:
    """Return a seed or fold: a number, or ``all``."""
    text = to_text(value)
    return int(text) if text.isascii() and text.isdigit() else text
