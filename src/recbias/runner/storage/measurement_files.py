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
_FLAGS = ("log_scale", "own_interval")
_ARRAYS = ("replicates", "counts")


def save_measurements(measurements: Sequence[Measurement], folder: Path) -> None:
    """Write the measurements of a metric to a folder; shared arrays of ids are written once."""
    records: list[dict[str, Any]] = []
    arrays: dict[str, AnyArray | None] = {}
    unit_ids: dict[int, Ids] = {}
    for index, measurement in enumerate(measurements):
        record = {name: _to_json(vars(measurement)[name]) for name in (*_SCALARS, *_FLAGS)}
        if (units := measurement.units) is not None:
            unit_ids.setdefault(id(units.ids), units.ids)
            number = list(unit_ids).index(id(units.ids))
            record |= {"unit": units.unit, "ids": number, "share": units.share}
            arrays[f"values_{index}"] = units.values
        arrays |= {f"{name}_{index}": vars(measurement)[name] for name in _ARRAYS}
        record["axes"] = list(measurement.axes)
        axes = enumerate(measurement.axes.values())
        arrays |= {f"axis_{index}_{number}": axis for number, axis in axes}
        record["contrasts"] = [
            {name: _to_json(value) for name, value in vars(contrast).items()}
            for contrast in measurement.contrasts
        ]
        records.append(record)
    for number, ids in enumerate(unit_ids.values()):
        save_ids(ids, folder / f"units_{number}.parquet")
    save_arrays({name: array for name, array in arrays.items() if array is not None}, folder)
    (folder / "measurements.json").write_text(json.dumps(records), encoding="utf-8")


def load_measurements(folder: Path) -> tuple[Measurement, ...]:
    """Read the measurements of a metric."""
    records = json.loads((folder / "measurements.json").read_text(encoding="utf-8"))
    arrays = load_arrays(folder)
    n_ids = 1 + max((record["ids"] for record in records if "ids" in record), default=-1)
    unit_ids = [load_ids(folder / f"units_{number}.parquet") for number in range(n_ids)]
    measurements = []
    for index, record in enumerate(records):
        units = None
        if (values := arrays.get(f"values_{index}")) is not None:
            units = UnitScores(record["unit"], unit_ids[record["ids"]], values, record["share"])
        contrasts = tuple(
            Contrast(**_read_numbers(contrast)) for contrast in record.get("contrasts", ())
        )
        numbers = _read_numbers({name: record[name] for name in (*_SCALARS, *_FLAGS)})
        shared: dict[str, Any] = {name: arrays.get(f"{name}_{index}") for name in _ARRAYS}
        names = enumerate(record.get("axes", ()))
        axes = {name: arrays[f"axis_{index}_{number}"] for number, name in names}
        measurements.append(
            Measurement(**numbers, **shared, units=units, contrasts=contrasts, axes=axes)
        )
    return tuple(measurements)


def _to_json(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and math.isnan(plain) else plain


def _read_numbers(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: math.nan if value is None else value for name, value in record.items()}
