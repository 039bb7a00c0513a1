"""Comparison of runs: the same value of the same model, paired over the shared units."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any, get_args

import numpy as np
import pandas as pd

from recbias.core.arrays import FloatArray
from recbias.core.errors import MixedRuns, UnknownName
from recbias.core.measurements.columns import ALL, FIT_COLUMNS, METRIC_KEY_COLUMNS, POOLED
from recbias.core.suggestions import suggest
from recbias.runner.comparison.shared_values import (
    NO_TEST,
    Key,
    SharedReplicates,
    SharedUnits,
)
from recbias.statistics.corrections import Correction, adjust_distinct, count_tests

KEY_COLUMNS = [*FIT_COLUMNS, *METRIC_KEY_COLUMNS]
"""The columns that match rows of ``metrics.csv`` of two runs."""

COLUMNS = (
    *(*KEY_COLUMNS, "a", "b", "value_a", "value_b", "difference"),
    *("ci_low", "ci_high", "n", "test", "p", "p_adjusted", "family_size"),
)
"""The columns of a comparison of runs."""


@dataclass(frozen=True, eq=False)
class RunFrames:
    """The tables of one run.

    Args:
        per_unit: ``per_unit.parquet``, or None if no metric has units.
        replicates: ``replicates.parquet``, or None if there is no such file.
        manifest: ``manifest.json``; its addresses and groupings are used.
    """

    label: str
    metrics: pd.DataFrame
    per_unit: pd.DataFrame | None
    replicates: pd.DataFrame | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def addresses(self) -> Mapping[Key, Mapping[Key, str]]:
        """The addresses by dataset, seed and fold, of each model, metric and cutoff."""
        addresses: dict[Key, dict[Key, str]] = defaultdict(dict)
        for row in self.manifest.get("addresses", []):
            text = {name: to_text(value) for name, value in row.items()}
            location = (text["dataset"], text["seed"], text["fold"])
            addresses[text["model"], text["metric"], text["k"]][location] = text["address"]
        return addresses

    @cached_property
    def groupings(self) -> Mapping[str, str]:
        """The ``by:`` of each metric that has one."""
        definitions = self.manifest.get("metrics", [])
        parameters = {row["metric"]: row.get("parameters") or {} for row in definitions}
        return {name: str(values["by"]) for name, values in parameters.items() if values.get("by")}

    def get_addresses(self, row: Mapping[Hashable, Any]) -> Mapping[Key, str]:
        """Return the addresses of the results that a metric row is computed from."""
        names = ("dataset", "seed", "fold")
        location = [None if row[name] in {ALL, POOLED} else row[name] for name in names]
        addresses = self.addresses.get((row["model"], row["metric"], row["k"]), {})
        return {
            key: address
            for key, address in addresses.items()
            if all(value in {None, part} for value, part in zip(location, key, strict=True))
        }


def compare_runs(runs: list[RunFrames], *, correction: str = "bonferroni") -> pd.DataFrame:
    """Return every metric value that two runs share, with a test of the difference.

        difference = value of the later run b - value of the earlier run a

    The test is Student's paired t-test over the units that both runs have, or for values of whole
    sets the bootstrap of ``recbias run``, if both runs have the same queries. The interval is its
    95% interval. Values whose results have the same address in both runs are excluded: nothing
    changed. All tests of the comparison are one family, in which the test of a group that holds
    all units counts once with that of the whole. The p-value is NaN if the metric has no units or
    the runs have different units (another split, other queries).

    Raises:
        MixedRuns: Two of the runs share no metric value.
        UnknownName: The correction does not exist.
    """
    tables = [_compare_pair(a, b) for a, b in combinations(runs, 2)]
    return adjust_p_values(pd.concat(tables, ignore_index=True), correction)


def adjust_p_values(table: pd.DataFrame, correction: str) -> pd.DataFrame:
    """Return a table of tests with the p-values adjusted as one family.

    Tests with the same ``test_key``, if there is such a column, count once.

    Raises:
        UnknownName: The correction does not exist.
    """
    method = {str(name): name for name in get_args(Correction)}.get(correction)
    if method is None:
        remedy = suggest(correction, get_args(Correction))
        raise UnknownName(f"no correction is called {correction!r}", remedy=remedy)
    p = table["p"].to_numpy(dtype=np.float64)
    names = table["test_key"] if "test_key" in table else pd.Series(range(len(table)))
    tests = pd.factorize(names)[0]
    adjusted = adjust_distinct(p, tests, method)
    return table.assign(p_adjusted=adjusted, family_size=count_tests(p, tests))[list(COLUMNS)]


def _compare_pair(a: RunFrames, b: RunFrames) -> pd.DataFrame:
    rows = select_changed(a, b, merge_metrics(a, b))
    units, replicates = match_units(a, b), match_replicates(a, b)
    keys = rows[KEY_COLUMNS].itertuples(index=False, name=None)
    tests = []
    test_keys: list[Key] = []
    for key, row in zip(keys, rows.to_dict("records"), strict=True):
        shared = units.get(key) or replicates.get(key)
        if isinstance(shared, SharedUnits):
            tests.append(shared.test())
        else:
            tests.append(NO_TEST if shared is None else shared.test(row))
        location = tuple(row[name] for name in KEY_COLUMNS if name != "group")
        part = row["group"] if shared is None else shared.content
        test_keys.append((a.label, b.label, *location, part))
    columns = {name: [test[name] for test in tests] for name in NO_TEST}
    return rows.assign(**columns, test_key=pd.Series(test_keys, rows.index, dtype=object)).astype(
        {"n": np.int64}
    )


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
    return rows.assign(a=a.label, b=b.label, difference=rows["value_b"] - rows["value_a"])


def list_missing(a: RunFrames, b: RunFrames) -> pd.DataFrame:
    """Return the defined metric values of the first run that the second one lacks."""
    kept = _keys_to_text(b.metrics)[list(KEY_COLUMNS)].drop_duplicates()
    rows = _keys_to_text(a.metrics).merge(kept, on=KEY_COLUMNS, how="left", indicator=True)
    return rows[(rows["_merge"] == "left_only") & rows["value"].notna()]


def select_changed(a: RunFrames, b: RunFrames, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of ``merge_metrics`` whose results do not have the same address."""
    pairs = ((a.get_addresses(row), b.get_addresses(row)) for row in rows.to_dict("records"))
    is_changed = [not first or first != second for first, second in pairs]
    return rows[np.array(is_changed, dtype=bool)]


def match_units(a: RunFrames, b: RunFrames) -> Mapping[Key, SharedUnits]:
    """Return the units of each metric value, by ``KEY_COLUMNS``, if both runs have the same."""
    units_a, units_b = (_split_values(run.per_unit, "unit_id") for run in (a, b))
    shared = {}
    for key in units_a.keys() & units_b.keys():
        pair = (units_a[key], units_b[key])
        ids_a, ids_b = (tuple(series.index) for series in pair)
        if ids_a == ids_b:
            values: FloatArray = np.stack([series.to_numpy(np.float64) for series in pair])
            shared[key] = SharedUnits(ids_a, values)
    return shared


def match_replicates(a: RunFrames, b: RunFrames) -> Mapping[Key, SharedReplicates]:
    """Return the bootstrap samples of each metric value, if both runs have the same queries."""
    samples_a, samples_b = (_split_values(run.replicates, ["queries", "df"]) for run in (a, b))
    shared = {}
    for key in samples_a.keys() & samples_b.keys():
        pair = (samples_a[key], samples_b[key])
        if len({series.index[0][0] for series in pair}) == 1 and pair[0].size == pair[1].size:
            values: FloatArray = np.stack([series.to_numpy(np.float64) for series in pair])
            shared[key] = SharedReplicates(values, np.fmin(*(x.index[0][1] for x in pair)))
    return shared


def _keys_to_text(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the key columns as text, since CSV and Parquet differ in types."""
    return table.assign(**{name: table[name].astype(object).map(to_text) for name in KEY_COLUMNS})


def to_text(value: object) -> str:
    """Return a key as text, blank if it is missing.

    >>> to_text(10.0), to_text(None), to_text("all")
    ('10', '', 'all')
    """
    if value is None or value is pd.NA or value != value:  # noqa: PLR0124  NaN
        return ""
    is_integer = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_integer else str(value)  # type: ignore[call-overload]


def _split_values(table: pd.DataFrame | None, index: str | list[str]) -> Mapping[Key, pd.Series]:
    if table is None or table.empty:
        return {}
    values = table.set_index(index)["value"]
    groups = _keys_to_text(table).groupby(KEY_COLUMNS, sort=False, observed=True).indices
    return {tuple(key): values.iloc[rows] for key, rows in groups.items()}  # type: ignore[arg-type]
