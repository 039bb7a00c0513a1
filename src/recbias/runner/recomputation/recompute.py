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
from recbias.runner.recomputation.rebuilt_rows import RebuiltRow, rebuild_rows
from recbias.runner.recomputation.recomputed_checks import recompute_checks
from recbias.runner.recomputation.recomputed_tests import (
    rebuild_estimates,
    recompute_significance,
)
from recbias.runner.recomputation.stored_tables import Key, StoredTables, make_row_key
from recbias.runner.results.metric_rows import build_metrics_table
from recbias.statistics.compared_estimates import SystemEstimates
from recbias.statistics.group_pooling import pool_groups


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
        is_tested: For each row of ``significance``, whether the test is made again; elsewhere only
            the correction is.
        faults: Why tests could not be made again.
    """

    metrics: pd.DataFrame
    groups: pd.DataFrame | None
    significance: pd.DataFrame
    checks: Sequence[Mapping[str, Any]]
    basis: Sequence[str]
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
    metrics, basis = _replace_values(tables, rebuilt)
    groups, by_group = _recompute_groups(tables, rebuilt)
    estimates: list[SystemEstimates] = []
    faults: list[str] = []
    try:
        estimates = rebuild_estimates(tables, rebuilt)
    except UnalignedScores as error:
        faults.append(str(error))
    significance, is_tested = recompute_significance(tables, estimates, by_group, tests, seed)
    checks = recompute_checks(tables.manifest.get("checks", []), spec, metrics, estimates)
    return Recomputation(metrics, groups, significance, checks, basis, is_tested, faults)


def _replace_values(
    tables: StoredTables, rebuilt: Sequence[RebuiltRow]
) -> tuple[pd.DataFrame, list[str]]:
    """Return ``metrics.csv`` with recomputed values, and the basis of each row."""
    if not rebuilt:
        return tables.metrics, ["stored"] * len(tables.metrics)
    table = build_metrics_table([row.row for row in rebuilt])
    computed = {
        make_row_key(row): row for row in table.astype({"k": "Float64"}).to_dict("records")
    }
    bases = {row.key: row.basis for row in rebuilt}
    has_interval = _list_poolable(rebuilt)
    rows: list[dict[Hashable, Any]] = []
    basis: list[str] = []
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
        rows.append({name: values.get(str(name), value) for name, value in row.items()})
        basis.append(kind)
    return pd.DataFrame(rows, columns=tables.metrics.columns), basis


def _list_poolable(rebuilt: Sequence[RebuiltRow]) -> set[Key]:
    """Return the keys of means over folds whose folds all have units, or all have samples.

    A fold that has samples for tests only, and no interval, has none that could be pooled.
    """
    folds: dict[tuple[str, ...], list[RebuiltRow]] = defaultdict(list)
    for row in rebuilt:
        folds[row.key[0], row.key[1], *row.key[4:]].append(row)
    varying = [len({row.key[at] for row in rebuilt}) > 1 for at in (2, 3)]
    return {
        (key[0], key[1], *_name_means(rows[0].key, varying), *key[2:])
        for key, rows in folds.items()
        if all(row.basis == "units" for row in rows)
        or all(
            row.row.measurement.replicates is not None and not math.isnan(row.stored.ci_low)
            for row in rows
        )
    }


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
            (computed[key],) = pool_groups(measurements)
        values = _get_values(computed[key]) if key in computed else {}
        rows.append({name: values.get(str(name), value) for name, value in row.items()})
    return pd.DataFrame(rows, columns=tables.groups.columns), computed


def _get_values(measurement: Measurement) -> Mapping[str, float]:
    return {name: float(vars(measurement)[name]) for name in VALUE_COLUMNS}
