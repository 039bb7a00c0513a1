"""The values of single seeds and folds, computed again where they follow from other files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pandas as pd

from recbias.core.measurements.columns import METRICS_COLUMNS
from recbias.runner.recomputation.derivations import (
    Derivation,
    IntervalKind,
    Quantity,
    find_common,
    list_entries,
)
from recbias.runner.recomputation.rebuilt_rows import (
    Basis,
    RebuiltRow,
    keep_stored,
    rebuild_all_rows,
)
from recbias.runner.recomputation.stored_tables import Samples, StoredTables, make_row_key
from recbias.runner.results.metric_rows import ModelMeasurement


def rebuild_rows(tables: StoredTables) -> list[RebuiltRow]:
    """Return the values of single seeds and folds, computed again where the files allow it.

    The manifest tells which values and intervals of a metric follow so. Where it does not, as in
    runs of earlier versions, no value or interval of a metric and target is computed again of
    which none in the file is the one computed here.
    """
    rows = rebuild_all_rows(tables)
    by_kind: dict[tuple[str, str], list[RebuiltRow]] = defaultdict(list)
    for row in rows:
        by_kind[row.row.metric.label, row.row.measurement.target].append(row)
    derivations = {
        (label, target): tables.find_derivation(label, target)
        or guess_derivation(alike, is_mean=tables.has_means(label))
        for (label, target), alike in by_kind.items()
    }
    return [
        _settle(row, derivations[row.row.metric.label, row.row.measurement.target]) for row in rows
    ]


def guess_derivation(alike: Sequence[RebuiltRow], *, is_mean: bool) -> Derivation:
    """Return what follows from the files, as the values of a metric and target show it.

    Args:
        alike: The values.
        is_mean: Whether the metric is the mean of its units by its declaration.
    """
    has_units = any(row.row.measurement.units for row in alike)
    has_interval = any(row.has_same_interval for row in alike)
    kind: IntervalKind = "t" if has_units else "samples"
    return Derivation(
        value=(is_mean and has_units) or any(row.has_same_value for row in alike),
        interval=kind if has_interval else "own",
    )


def _settle(row: RebuiltRow, derivation: Derivation) -> RebuiltRow:
    """Return a row with the value or interval of the file where its metric defines another."""
    if derivation.averaged:
        measurement = replace(row.row.measurement, own_interval=True)
        row = replace(row, row=replace(row.row, measurement=measurement))
    if row.basis == "stored":
        return row
    if row.basis == "units" and not derivation.value:
        return keep_stored(row)
    if derivation.interval != "own":
        return row
    stored, basis = row.stored, "stored" if row.basis == "samples" else "values"
    measurement = replace(row.row.measurement, ci_low=stored.ci_low, ci_high=stored.ci_high)
    return replace(row, row=replace(row.row, measurement=measurement), basis=cast("Basis", basis))


def describe_derivations(
    measured: Sequence[ModelMeasurement], manifest: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return what of the values of a run follows from its files, for its manifest.

    The values are computed again as they would be from the files, and compared.
    """
    rows = [row.row() for row in measured]
    metrics = pd.DataFrame(rows, columns=list(METRICS_COLUMNS)).astype({"k": "float64"})
    tables = StoredTables(metrics, None, metrics, None, None, manifest)
    keys = [make_row_key(row) for row in metrics.to_dict("records")]
    parts = [(key, row.measurement) for key, row in zip(keys, measured, strict=True)]
    vars(tables)["units"] = {key: row.units for key, row in parts if row.units is not None}
    vars(tables)["samples"] = {
        key: Samples(row.replicates, row.df, row.log_scale)
        for key, row in parts
        if row.replicates is not None and row.units is None and not row.target
    }
    kinds: dict[Quantity, list[Derivation]] = defaultdict(list)
    for row, known in zip(rebuild_all_rows(tables), measured, strict=True):
        quantity = (known.metric.label, known.measurement.target)
        kinds[quantity] += [_derive(row, known)] if row.is_defined or row.has_interval else []
    return list_entries({quantity: find_common(listed) for quantity, listed in kinds.items()})


def _derive(row: RebuiltRow, known: ModelMeasurement) -> Derivation:
    """Return what of a value follows from the files."""
    kind: IntervalKind = "own"
    units = known.measurement.units
    if row.basis != "stored" and (row.has_same_interval or not row.has_interval):
        kind = "samples" if units is None else "wilson" if units.share else "t"
    is_same = row.has_same_value or not row.is_defined
    averaged = known.measurement.own_interval
    return Derivation(value=row.basis == "units" and is_same, interval=kind, averaged=averaged)
