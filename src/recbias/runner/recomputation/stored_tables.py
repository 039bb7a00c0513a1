"""The tables of a finished run, and the values of units and the bootstrap samples in them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.arrays import FloatArray
from recbias.core.errors import MissingRun
from recbias.core.measurements.columns import FIT_COLUMNS, METRIC_KEY_COLUMNS
from recbias.core.measurements.ranges import Bounds, read_bounds
from recbias.core.measurements.scores import UnitScores
from recbias.runner.comparison.run_comparison import to_text
from recbias.runner.recomputation.derivations import ENTRIES, UNKNOWN, Derivation, read_entries

KEYS = (*FIT_COLUMNS, *METRIC_KEY_COLUMNS)
"""The columns that identify a value."""

Key: TypeAlias = tuple[str, ...]
"""The values of ``KEYS`` as text."""


class Samples(NamedTuple):
    """Bootstrap samples, and of what kind the interval is: as in ``Measurement``."""

    values: FloatArray
    df: float
    log_scale: bool


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

    def find_groups(self, label: str) -> str:
        """Return the metric with the values of the groups of a gap; blank if there is none."""
        identity = self._identify_groups(label)
        labels = (
            other for other in self.definitions if self.get_settings(other).get("gap") == "groups"
        )
        return next((other for other in labels if self._identify_groups(other) == identity), "")

    def _identify_groups(self, label: str) -> tuple[object, dict[str, Any]]:
        """Return what a metric by group and its gaps share: the name and other settings."""
        settings = {name: v for name, v in self.get_settings(label).items() if name != "gap"}
        return self.definitions.get(label, {}).get("name"), settings

    def get_settings(self, label: str) -> Mapping[str, Any]:
        """Return the settings of a metric."""
        return self.definitions.get(label, {}).get("parameters") or {}

    def find_bounds(self, label: str) -> Bounds:
        """Return the bounds of the values of a metric, or of a gap between groups."""
        return read_bounds(str(self.definitions.get(label, {}).get("values") or ""))

    @cached_property
    def _derivations(self) -> Mapping[tuple[str, str | None], Derivation] | None:
        entries = self.manifest.get(ENTRIES)
        return None if entries is None else read_entries(entries)

    def find_derivation(self, label: str, target: str) -> Derivation | None:
        """Return what follows from the files; None for a run of an earlier version."""
        if (known := self._derivations) is None:
            return None
        return known.get((label, None), known.get((label, target), UNKNOWN))

    @cached_property
    def units(self) -> Mapping[Key, UnitScores]:
        """The values of the units of each value."""
        return {
            key: UnitScores(str(rows["unit"].iloc[0]), _to_ids(rows["unit_id"]), _to_floats(rows))
            for key, rows in _split(self.per_unit, "per_unit.parquet", ("unit", "unit_id"))
        }

    def has_means(self, label: str) -> bool:
        """Return whether a metric is the mean of its units, as one that declares a unit must be.

        A gap between groups is none.
        """
        declared = self.definitions.get(label, {}).get("unit")
        return bool(declared) and self.get_settings(label).get("gap", "groups") == "groups"

    @cached_property
    def samples(self) -> Mapping[Key, Samples]:
        """The bootstrap samples of each value of a whole set."""
        return {
            key: Samples(
                _to_floats(rows),
                float(rows["df"].iloc[0]),
                # earlier versions had no intervals of the logarithm
                bool(rows["log_scale"].iloc[0]) if "log_scale" in rows else False,
            )
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


def make_row_key(row: Mapping[Any, Any]) -> Key:
    """Return the key of a row of ``metrics.csv`` or ``significance.csv``."""
    return tuple(to_text(row[name]) for name in KEYS)
