"""The tables of a finished run, computed again from the values of units in its files."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from recbias.config.experiment import PluginSpec
from recbias.core.errors import UnalignedScores
from recbias.core.measurements.columns import ALL, POOLED, VALUE_COLUMNS
from recbias.core.measurements.scores import Measurement
from recbias.runner.recomputation.rebuilt_rows import (
    RebuiltRow,
    limit_as_stored,
    restore_measurement,
)
from recbias.runner.recomputation.recomputed_checks import recompute_checks
from recbias.runner.recomputation.recomputed_tests import (
    rebuild_estimates,
    recompute_significance,
)
from recbias.runner.recomputation.settled_rows import rebuild_rows
from recbias.runner.recomputation.stored_tables import Key, StoredTables, make_row_key
from recbias.runner.results.metric_rows import build_metrics_table
from recbias.statistics.compared_estimates import SystemEstimates
from recbias.statistics.group_pooling import pool_groups

_OMITTED = {
    "units": {},
    "values": {"interval": True},
    "samples": {"value": True},
    "means": {},
    "stored": {"value": True, "interval": True},
}
"""What is not computed again, by the basis of a row."""


@dataclass(frozen=True, eq=False)
class Recomputation:
    """The tables of a run, with the figures that follow from its other files computed again.

    Args:
        metrics: ``metrics.csv``.
        groups: ``groups.csv``, or None.
        significance: ``significance.csv``.
        checks: The checks as in the manifest.
        basis: For each row of ``metrics``: ``units`` (the value and its interval are computed
            again), ``values`` (the value is), ``samples`` (the interval is), ``means`` (the value
            is, from those of seeds, folds or datasets), ``stored`` (nothing is).
        omitted: For each row of ``metrics``, what is defined and not computed again: ``value``,
            ``interval``, ``value and interval``, or blank.
        is_tested: For each row of ``significance``, whether the test is made again; elsewhere only
            the correction is.
        faults: Why tests could not be made again.
    """

    metrics: pd.DataFrame
    groups: pd.DataFrame | None
    significance: pd.DataFrame
    checks: Sequence[Mapping[str, Any]]
    basis: Sequence[str]
    omitted: Sequence[str]
    is_tested: Sequence[bool]
    faults: Sequence[str]


def recompute_tables(
    tables: StoredTables, spec: Mapping[str, Any], tests: Sequence[PluginSpec], seed: int
) -> Recomputation:
    """Return the tables of a run, computed again.

    Args:
        tables: The tables as they are in the run folder.
        spec: The content of ``spec.yaml``.
        tests: The tests of the spec that can be made again, in its order.
        seed: The first seed of the spec, from which tests draw.

    Raises:
        MissingRun: A file of the run lacks a column.
    """
    rebuilt = rebuild_rows(tables)
    metrics, basis, omitted = _replace_values(tables, rebuilt)
    groups, by_group = _recompute_groups(tables, rebuilt)
    estimates: list[SystemEstimates] = []
    faults: list[str] = []
    try:
        estimates = rebuild_estimates(tables, rebuilt)
    except UnalignedScores as error:
        faults.append(str(error))
    significance, is_tested = recompute_significance(tables, estimates, by_group, tests, seed)
    checks = recompute_checks(tables.manifest.get("checks", []), spec, metrics, estimates)
    return Recomputation(metrics, groups, significance, checks, basis, omitted, is_tested, faults)


def _replace_values(
    tables: StoredTables, rebuilt: Sequence[RebuiltRow]
) -> tuple[pd.DataFrame, list[str], list[str]]:
    """Return ``metrics.csv`` with recomputed values, the basis of each row, and what it omits."""
    if not rebuilt:
        n = len(tables.metrics)
        return tables.metrics, ["stored"] * n, ["value and interval"] * n
    table = build_metrics_table([row.row for row in rebuilt])
    computed = {
        make_row_key(row): row for row in table.astype({"k": "Float64"}).to_dict("records")
    }
    bases = {row.key: row.basis for row in rebuilt}
    has_interval = _list_poolable(tables, rebuilt)
    rows: list[dict[Hashable, Any]] = []
    basis: list[str] = []
    omitted: list[str] = []
    for row in tables.metrics.to_dict("records"):
        key = make_row_key(row)
        new = computed.get(key)
        is_mean = ALL in {row["dataset"], row["seed"], row["fold"]} and row["dataset"] != POOLED
        kind = bases.get(key, "means" if is_mean and new is not None else "stored")
        values = {name: row[name] for name in VALUE_COLUMNS}
        if new is not None and kind != "stored":
            values |= {name: _to_float(new[name]) for name in VALUE_COLUMNS}
        if kind == "means" and row["dataset"] != ALL and key not in has_interval:
            values |= {"ci_low": row["ci_low"], "ci_high": row["ci_high"]}
            omitted.append(_name_omitted(row, interval=True))
        else:
            omitted.append(_name_omitted(row, **_OMITTED[kind]))
        rows.append({name: values.get(str(name), value) for name, value in row.items()})
        basis.append(kind)
    return pd.DataFrame(rows, columns=tables.metrics.columns), basis, omitted


def _name_omitted(
    row: Mapping[Hashable, Any], *, value: bool = False, interval: bool = False
) -> str:
    """Return what of a row is defined and not computed again."""
    names = []
    if value and not math.isnan(row["value"]):
        names.append("value")
    if interval and not (math.isnan(row["ci_low"]) and math.isnan(row["ci_high"])):
        names.append("interval")
    return " and ".join(names)


def _list_poolable(tables: StoredTables, rebuilt: Sequence[RebuiltRow]) -> set[Key]:
    """Return the keys of means over folds whose intervals can be pooled again.

    Those of which all folds have units, or all have samples, or all have intervals that are
    averaged. A fold that has samples for tests only, and no interval, has none to be pooled.
    """
    folds: dict[tuple[str, ...], list[RebuiltRow]] = defaultdict(list)
    for row in rebuilt:
        folds[row.key[0], row.key[1], *row.key[4:]].append(row)
    varying = [len({row.key[at] for row in rebuilt}) > 1 for at in (2, 3)]
    return {
        (key[0], key[1], *_name_means(rows[0].key, varying), *key[2:])
        for key, rows in folds.items()
        if _can_pool(rows, is_known=tables.find_derivation(key[2], key[5]) is not None)
    }


def _can_pool(rows: Sequence[RebuiltRow], *, is_known: bool) -> bool:
    """Return whether the interval of the mean of folds follows from what the files hold.

    Args:
        rows: The folds.
        is_known: Whether the manifest tells which intervals are averaged; the others are those of
            the units, where there are any.
    """
    values = [row.row.measurement for row in rows]
    return (
        all(row.basis == "units" for row in rows)
        or all(value.own_interval for value in values)
        or (is_known and all(value.units is not None for value in values))
        or all(
            value.replicates is not None and not math.isnan(row.stored.ci_low)
            for row, value in zip(rows, values, strict=True)
        )
    )


def _name_means(key: Key, varying: Sequence[bool]) -> tuple[str, ...]:
    return tuple(ALL if is_mean else key[at] for at, is_mean in zip((2, 3), varying, strict=True))


def _to_float(value: Any) -> float:
    return math.nan if pd.isna(value) else float(value)


def _recompute_groups(
    tables: StoredTables, rebuilt: Sequence[RebuiltRow]
) -> tuple[pd.DataFrame | None, dict[Key, Measurement]]:
    """Return ``groups.csv`` computed again, and the measurement of each group by its key.

    With several seeds or folds a group has the mean of each of its units.
    """
    computed = {row.key: row.row.measurement for row in rebuilt if row.row.measurement.units}
    if tables.groups is None:
        return None, computed
    folds: dict[tuple[str, ...], list[Measurement]] = defaultdict(list)
    for key, measurement in computed.items():
        if measurement.group:
            folds[key[0], key[1], *key[4:]].append(measurement)
    rows: list[dict[Hashable, Any]] = []
    for row in tables.groups.to_dict("records"):
        key = make_row_key(row)
        measurements = folds.get((key[0], key[1], *key[4:]), [])
        if ALL in key[2:4] and measurements:
            (pooled,) = pool_groups(measurements)
            computed[key] = limit_as_stored(tables, key, pooled, restore_measurement(row))
        values = _get_values(computed[key]) if key in computed else {}
        rows.append({name: values.get(str(name), value) for name, value in row.items()})
    return pd.DataFrame(rows, columns=tables.groups.columns), computed


def _get_values(measurement: Measurement) -> Mapping[str, float]:
    return {name: float(vars(measurement)[name]) for name in VALUE_COLUMNS}
