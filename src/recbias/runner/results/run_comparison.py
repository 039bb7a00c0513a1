"""Runs side by side: the same figure of the same model, paired over the units of both."""

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

SAME = [*FIT_COLUMNS, *METRIC_KEY_COLUMNS]
"""What two rows of ``metrics.csv`` must share to be the same figure of two runs."""

COLUMNS = (*SAME, "a", "b", "value_a", "value_b", "difference", "n", "p", "p_adjusted")
"""The columns of a comparison of runs."""


@dataclass(frozen=True, eq=False)
class RunFrames:
    """The tables of one run.

    Args:
        label: What the run is called in the comparison.
        metrics: ``metrics.csv``.
        per_unit: ``per_unit.parquet``, or None where nothing has units.
    """

    label: str
    metrics: pd.DataFrame
    per_unit: pd.DataFrame | None


@dataclass(frozen=True, eq=False)
class SharedUnits:
    """The units of a figure that two runs both have, each with its value in either.

    Args:
        ids: Their identifiers.
        values: ``float64[2, u]``.
    """

    ids: tuple[Any, ...]
    values: FloatArray

    def test(self) -> tuple[int, float]:
        """Return the number of pairs and p of Student's paired t-test."""
        found = PairedT().pairs(self.values, np.random.default_rng(0))
        return int(found["n"][0]), float(found["p"][0])


def compare_runs(runs: list[RunFrames], *, correction: str = "bonferroni") -> pd.DataFrame:
    """Return every figure that two runs share: both values, the difference and a paired t-test.

    The family of the correction is every test of the comparison. Figures without units have no
    test, and neither have figures that were measured on other units (another split, other
    queries): their p is NaN.

    Raises:
        MixedRuns: Two of the runs share no figure.
        UnknownName: There is no such correction.
    """
    tables = [_pair(a, b) for a, b in combinations(runs, 2)]
    return adjusted(pd.concat(tables, ignore_index=True), correction)


def adjusted(table: pd.DataFrame, correction: str) -> pd.DataFrame:
    """Return a table of tests with their p-values adjusted as one family.

    Raises:
        UnknownName: There is no such correction.
    """
    method = {str(name): name for name in get_args(Correction)}.get(correction)
    if method is None:
        help_ = suggest(correction, get_args(Correction))
        raise UnknownName(f"no correction is called {correction!r}", remedy=help_)
    p = table["p"].to_numpy(dtype=np.float64)
    return table.assign(p_adjusted=adjust(p, method))[list(COLUMNS)]


def _pair(a: RunFrames, b: RunFrames) -> pd.DataFrame:
    both, units = figures_of_both(a, b), units_of_both(a, b)
    keys = both[SAME].itertuples(index=False, name=None)
    tests = [units[key].test() if key in units else (0, np.nan) for key in keys]
    return both.assign(n=[n for n, _ in tests], p=[p for _, p in tests])


def figures_of_both(a: RunFrames, b: RunFrames) -> pd.DataFrame:
    """Return the figures that two runs share, with both values and their difference.

    Raises:
        MixedRuns: There are none.
    """
    both = _texts(a.metrics).merge(_texts(b.metrics), on=SAME, suffixes=("_a", "_b"))
    if both.empty:
        found = f"{a.label} and {b.label} share no figure"
        help_ = "compare runs with the same dataset and model labels, seeds and metrics"
        raise MixedRuns(found, remedy=help_)
    return both.assign(a=a.label, b=b.label, difference=both["value_a"] - both["value_b"])


def units_of_both(a: RunFrames, b: RunFrames) -> Mapping[tuple[Any, ...], SharedUnits]:
    """Return the units of each figure, by the columns ``SAME``, where both runs have the same."""
    units_a, units_b = _by_figure(a.per_unit), _by_figure(b.per_unit)
    found = {}
    for key in units_a.keys() & units_b.keys():
        both = (units_a[key], units_b[key])
        first, second = (tuple(each.index) for each in both)
        if first == second:
            values: FloatArray = np.stack([each.to_numpy(np.float64) for each in both])
            found[key] = SharedUnits(first, values)
    return found


def _texts(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the columns that name a figure as text, however they were stored."""
    columns = {name: table[name].astype(object).map(_text) for name in SAME}
    return table.assign(**columns)


def _text(value: object) -> str:
    if value is None or value is pd.NA or value != value:  # noqa: PLR0124  NaN
        return ""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value)  # type: ignore[call-overload]


def _by_figure(per_unit: pd.DataFrame | None) -> Mapping[tuple[Any, ...], pd.Series]:
    if per_unit is None or per_unit.empty:
        return {}
    series = per_unit.set_index("unit_id")["value"]
    groups = _texts(per_unit).groupby(SAME, sort=False, observed=True).indices
    return {tuple(key): series.iloc[rows] for key, rows in groups.items()}  # type: ignore[arg-type]
