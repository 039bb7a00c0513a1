"""Stored measurements of metrics."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, Ids
from recbias.core.measurements.scores import Contrast, Measurement, UnitScores
from recbias.runner.storage.array_files import load_arrays, load_ids, save_arrays, save_ids

_SCALARS = ("value", "std", "n", "undefined", "group", "target", "ci_low", "ci_high", "df")


def save_measurements(measurements: Sequence[Measurement], folder: Path) -> None:
    """Write the measurements of a metric to a folder; shared arrays of ids are written once."""
    records: list[dict[str, Any]] = []
    arrays: dict[str, AnyArray] = {}
    unit_ids: list[Ids] = []
    for index, measurement in enumerate(measurements):
        record = {name: _to_json(vars(measurement)[name]) for name in _SCALARS}
        units = measurement.units
        if units is not None:
            arrays[f"values_{index}"] = units.values
            record |= {"unit": units.unit, "ids": _find_or_append(unit_ids, units.ids)}
            record["share"] = units.share
        if measurement.replicates is not None:
            arrays[f"replicates_{index}"] = measurement.replicates
        if measurement.counts is not None:
            arrays[f"counts_{index}"] = measurement.counts
        if measurement.contrasts:
            record["contrasts"] = [
                {name: _to_json(value) for name, value in vars(contrast).items()}
                for contrast in measurement.contrasts
            ]
        records.append(record)
    for index, ids in enumerate(unit_ids):
        save_ids(ids, folder / f"units_{index}.parquet")
    save_arrays(arrays, folder / "arrays.npz")
    (folder / "measurements.json").write_text(json.dumps(records), encoding="utf-8")


def load_measurements(folder: Path) -> tuple[Measurement, ...]:
    """Read the measurements of a metric."""
    records = json.loads((folder / "measurements.json").read_text(encoding="utf-8"))
    arrays = load_arrays(folder / "arrays.npz")
    n_ids = 1 + max((record["ids"] for record in records if "ids" in record), default=-1)
    unit_ids = [load_ids(folder / f"units_{index}.parquet") for index in range(n_ids)]
    return tuple(
        Measurement(
            **_read_numbers({name: record[name] for name in _SCALARS}),
            units=_read_units(record, arrays.get(f"values_{index}"), unit_ids),
            replicates=arrays.get(f"replicates_{index}"),
            counts=arrays.get(f"counts_{index}"),
            contrasts=tuple(
                Contrast(**_read_numbers(contrast)) for contrast in record.get("contrasts", [])
            ),
        )
        for index, record in enumerate(records)
    )


def _read_units(
    record: Mapping[str, Any], values: AnyArray | None, unit_ids: Sequence[Ids]
) -> UnitScores | None:
    if values is None:
        return None
    return UnitScores(record["unit"], unit_ids[record["ids"]], values, record["share"])


def _find_or_append(arrays: list[Ids], ids: Ids) -> int:
    """Return the index of an array in a list, to which it is appended if it is new."""
    for index, array in enumerate(arrays):
        if array is ids:
            return index
    arrays.append(ids)
    return len(arrays) - 1


def _to_json(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and math.isnan(plain) else plain


def _read_numbers(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: math.nan if value is None else value for name, value in record.items()}
