"""Comparison of runs: the same value of the same model, paired over the shared units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, get_args

import numpy as np
import pandas as pd

from recbias.core.arrays import FloatArray
from recbias.core.errors import MixedRuns, UnknownName
from recbias.core.measurements.columns import FIT_COLUMNS, METRIC_KEY_COLUMNS
from recbias.core.suggestions import suggest
from recbias.statistics.corrections import Correction, adjust
from recbias.statistics.tests.paired import PairedT

KEY_COLUMNS = [*FIT_COLUMNS, *METRIC_KEY_COLUMNS]
"""The columns that match rows of ``metrics.csv`` of two runs."""

COLUMNS = (*KEY_COLUMNS, "a", "b", "value_a", "value_b", "difference", "n", "p", "p_adjusted")
"""The columns of a comparison of runs."""


@dataclass(frozen=True, eq=False)
class RunFrames:
    """The tables of one run.

    Args:
        per_unit: ``per_unit.parquet``, or None if no metric has units.
    """

    label: str
    metrics: pd.DataFrame
    per_unit: pd.DataFrame | None


@dataclass(frozen=True, eq=False)
class SharedUnits:
    """The units of a metric value that two runs share, with both values, ``float64[2, u]``."""

    ids: tuple[Any, ...]
    values: FloatArray

    def test(self) -> tuple[int, float]:
        """Return the number of pairs and the p-value of Student's paired t-test."""
        columns = PairedT().pairs(self.values, np.random.default_rng(0))
        return int(columns["n"][0]), float(columns["p"][0])


def compare_runs(runs: list[RunFrames], *, correction: str = "bonferroni") -> pd.DataFrame:
    """Return every metric value that two runs share, with the difference and a paired t-test.

    All tests of the comparison are one family. The p-value is NaN if the metric has no units or
    the runs have different units (another split, other queries).

    Raises:
        MixedRuns: Two of the runs share no metric value.
        UnknownName: The correction does not exist.
    """
    tables = [_compare_pair(a, b) for a, b in combinations(runs, 2)]
    return adjust_p_values(pd.concat(tables, ignore_index=True), correction)


def adjust_p_values(table: pd.DataFrame, correction: str) -> pd.DataFrame:
    """Return a table of tests with the p-values adjusted as one family.

    Raises:
        UnknownName: The correction does not exist.
    """
    method = {str(name): name for name in get_args(Correction)}.get(correction)
    if method is None:
        remedy = suggest(correction, get_args(Correction))
        raise UnknownName(f"no correction is called {correction!r}", remedy=remedy)
    p = table["p"].to_numpy(dtype=np.float64)
    return table.assign(p_adjusted=adjust(p, method))[list(COLUMNS)]


def _compare_pair(a: RunFrames, b: RunFrames) -> pd.DataFrame:
    rows, units = merge_metrics(a, b), match_units(a, b)
    keys = rows[KEY_COLUMNS].itertuples(index=False, name=None)
    tests = [units[key].test() if key in units else (0, np.nan) for key in keys]
    return rows.assign(n=[n for n, _ in tests], p=[p for _, p in tests])


def merge_metrics(a: RunFrames, b: RunFrames) -> pd.DataFrame:
    """Return the metric values that two runs share, with their difference.

    Raises:
        MixedRuns: There are none.
    """
    rows = _keys_to_text(a.metrics).merge(
        _keys_to_text(b.metrics), on=KEY_COLUMNS, suffixes=("_a", "_b")
    )
    if rows.empty:
        message = f"{a.label} and {b.label} share no metric value"
        remedy = "compare runs with the same dataset and model labels, seeds and metrics"
        raise MixedRuns(message, remedy=remedy)
    return rows.assign(a=a.label, b=b.label, difference=rows["value_a"] - rows["value_b"])


def match_units(a: RunFrames, b: RunFrames) -> Mapping[tuple[Any, ...], SharedUnits]:
    """Return the units of each metric value, by ``KEY_COLUMNS``, if both runs have the same."""
    units_a, units_b = _split_units(a.per_unit), _split_units(b.per_unit)
    shared = {}
    for key in units_a.keys() & units_b.keys():
        pair = (units_a[key], units_b[key])
        ids_a, ids_b = (tuple(series.index) for series in pair)
        if ids_a == ids_b:
            values: FloatArray = np.stack([series.to_numpy(np.float64) for series in pair])
            shared[key] = SharedUnits(ids_a, values)
    return shared


def _keys_to_text(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the key columns as text, since CSV and Parquet differ in types."""
    return table.assign(**{name: table[name].astype(object).map(_to_text) for name in KEY_COLUMNS})


def _to_text(value: object) -> str:
    if value is None or value is pd.NA or value != value:  # noqa: PLR0124  NaN
        return ""
    is_integer = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_integer else str(value)  # type: ignore[call-overload]


def _split_units(per_unit: pd.DataFrame | None) -> Mapping[tuple[Any, ...], pd.Series]:
    if per_unit is None or per_unit.empty:
        return {}
    values = per_unit.set_index("unit_id")["value"]
    groups = _keys_to_text(per_unit).groupby(KEY_COLUMNS, sort=False, observed=True).indices
    return {tuple(key): values.iloc[rows] for key, rows in groups.items()}  # type: ignore[arg-type]
