"""The comparisons of a finished run, tested and corrected again."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from pydantic import TypeAdapter, ValidationError

from recbias.config.experiment import PluginSpec
from recbias.core.arrays import AnyArray
from recbias.core.errors import MissingRun, UserError
from recbias.core.measurements.columns import PAIR_COLUMNS
from recbias.core.measurements.scores import Contrast, Measurement
from recbias.core.queries.groups import JOIN
from recbias.runner.recomputation.rebuilt_rows import RebuiltRow
from recbias.runner.recomputation.stored_tables import Key, StoredTables, make_row_key
from recbias.runner.results.significance import collect_estimates
from recbias.statistics.bootstrap.query_bootstrap import NAME as BOOTSTRAP
from recbias.statistics.compare import FAMILY_KEYS, REQUESTED, compare, correct_families
from recbias.statistics.compared_estimates import SystemEstimates
from recbias.statistics.corrections import CorrectedTest
from recbias.statistics.group_pooling import compare_pooled_groups
from recbias.statistics.tests.proportions import EXACT

GROUP_TESTS = frozenset({"welch_t", "overlap_t"})
"""The tests of two groups of queries, which share none or some of them."""

_TEST_KEYS = ("test", "between", "a", "b")


def rebuild_estimates(
    tables: StoredTables, rebuilt: Sequence[RebuiltRow]
) -> list[SystemEstimates]:
    """Return the values of all models on each quantity, by which they are compared.

    Raises:
        UnalignedScores: Two models have values of different units.
    """
    undefined = {
        (entry["metric"], entry["k"], entry["model"])
        for entry in tables.manifest.get("undefined", [])
    }
    return collect_estimates(
        [
            row.row
            for row in rebuilt
            if (row.row.metric.label, row.row.metric.cutoff, row.row.model) not in undefined
        ]
    )


def recompute_significance(
    tables: StoredTables,
    estimates: Sequence[SystemEstimates],
    groups: Mapping[Key, Measurement],
    tests: Sequence[PluginSpec],
    seed: int,
) -> tuple[pd.DataFrame, list[bool]]:
    """Return ``significance.csv`` computed again, and whether each test was made again.

    Models are compared by the tests of the run on their units, or on their bootstrap samples;
    groups of queries by ``GROUP_TESTS``. Other tests keep their p-values. All are
    corrected again within their families.
    """
    stored = tables.significance
    if stored.empty:
        return stored, []
    tests = [_name_as_stored(test, stored) for test in tests]
    comparisons = _compare_models(estimates, tests, seed)
    rows: list[dict[Hashable, Any]] = []
    is_tested: list[bool] = []
    for row in stored.to_dict("records"):
        new = comparisons.get(_make_test_key(row)) or _compare_groups(tables, row, groups)
        values = new or {}
        rows.append({name: values.get(str(name), value) for name, value in row.items()})
        is_tested.append(new is not None)
    table = pd.DataFrame(rows, columns=stored.columns)
    return _correct(table, tests, groups), is_tested


def _name_as_stored(test: PluginSpec, stored: pd.DataFrame) -> PluginSpec:
    """Return a test with the label that the file has: earlier versions wrote the name."""
    is_there = bool((stored["test"] == test.label).any())
    return test if is_there else replace(test, label=test.name)


def _make_test_key(row: Mapping[Any, Any]) -> Key:
    return (*make_row_key(row), *(str(row[name]) for name in _TEST_KEYS))


def _compare_models(
    estimates: Sequence[SystemEstimates], tests: Sequence[PluginSpec], seed: int
) -> dict[Key, dict[str, float]]:
    """Return the columns of each comparison of models, by its key."""
    comparisons = {}
    for test in tests:
        table = compare(estimates, test.plugin, name=test.name, seed=seed, label=test.label)
        for row in table.astype({"k": "Float64", "n": "Float64"}).to_dict("records"):
            numbers = {name: _to_float(row[name]) for name in PAIR_COLUMNS}
            comparisons[_make_test_key(row)] = numbers
    return comparisons


def _compare_groups(
    tables: StoredTables, row: Mapping[Any, Any], groups: Mapping[Key, Measurement]
) -> dict[str, float] | None:
    """Return the columns of the t-test of two groups of queries; None for another test."""
    settings = tables.get_settings(str(row["metric"]))
    is_pair = row["test"] in GROUP_TESTS and row["between"] == "groups"
    if not is_pair or not settings.get("by"):
        return None
    has_groups = settings.get("gap") == "groups"
    metric = row["metric"] if has_groups else tables.find_groups(str(row["metric"]))
    side_keys = {**row, "metric": metric}
    a, b = (groups.get(make_row_key({**side_keys, "group": row[side]})) for side in ("a", "b"))
    if a is None or b is None:
        return None
    contrasts = compare_pooled_groups([a, b], "groups")
    same = [contrast for contrast in contrasts if (contrast.a, contrast.b) == (row["a"], row["b"])]
    return _get_numbers(same[0]) if same and same[0].test == row["test"] else None


def _get_numbers(contrast: Contrast) -> dict[str, float]:
    return {name: float(vars(contrast)[name]) for name in PAIR_COLUMNS}


def _correct(
    table: pd.DataFrame, tests: Sequence[PluginSpec], groups: Mapping[Key, Measurement]
) -> pd.DataFrame:
    """Return a table with its p-values corrected again.

    The rows of a test are the comparisons of models by it or by the bootstrap, and the tests
    within models; a run with several tests corrects them with each.
    """
    columns_of_table = list(table.columns)
    of_shares = [test.label for test in tests if test.name == "chi_squared"]
    requested = table["test"].replace({EXACT: next(iter(of_shares), "chi_squared")})
    table = table.assign(**{REQUESTED: requested})
    levels: dict[tuple[str, str, float], list[int]] = defaultdict(list)
    columns = (table[name].tolist() for name in ("correction", "family", "alpha"))
    for position, level in enumerate(zip(*columns, strict=True)):
        levels[level].append(position)
    names = {test.label for test in tests}
    is_other = (table["between"] == "models") & requested.isin(names)
    parts = []
    for (correction, family, alpha), positions in levels.items():
        rows = table.iloc[positions]
        level_of_rows = _read_level(correction, family, alpha)
        used = sorted({*rows.loc[is_other.iloc[positions], REQUESTED]}) or [""]
        for name in used:
            block = rows[~is_other.iloc[positions] | (rows[REQUESTED] == name)]
            parts.append(
                block.assign(
                    **correct_families(block, level_of_rows, _number_tests(block, groups))
                )
            )
    corrected: pd.DataFrame = pd.concat(parts)
    corrected = corrected[~corrected.index.duplicated()].sort_index()
    return corrected[columns_of_table]


def _number_tests(table: pd.DataFrame, groups: Mapping[Key, Measurement]) -> AnyArray:
    """Return the number of the test of each row: a group with all units has that of the whole.

    Comparisons of models are one test if they differ in the group only, and the groups have the
    same units; those by the bootstrap, of metrics without units, are all different.
    """
    names = ["target", "between", *PAIR_COLUMNS]
    keys = table[[*FAMILY_KEYS, *names]].astype(str).agg("|".join, axis=1)
    columns = (table[name].fillna("").astype(str) for name in ("group", "a", "b"))
    firsts: dict[tuple[str, ...], int] = {}
    numbers = np.arange(len(table))
    rows = [*enumerate(zip(keys, *columns, strict=True))]
    for row, (key, group, *sides) in sorted(rows, key=lambda item: item[1][1] != ""):
        test = (key, *(side.removeprefix(f"{group}{JOIN}") for side in sides))
        if table["test"].iloc[row] == BOOTSTRAP:
            continue
        if not group:
            firsts.setdefault(test, row)
        elif table["between"].iloc[row] == "models" and test not in firsts:
            test = (*test, _name_units(table.iloc[row].to_dict(), groups))
            firsts.setdefault(test, row)
        numbers[row] = firsts.get(test, row)
    return numbers


def _name_units(row: Mapping[Any, Any], groups: Mapping[Key, Measurement]) -> str:
    """Return the units of the group of a comparison of models; blank where it has none."""
    measurement = groups.get(make_row_key({**row, "model": row["a"]}))
    units = None if measurement is None else measurement.units
    return "" if units is None else "|".join(map(str, units.ids.tolist()))


def _read_level(correction: str, family: str, alpha: float) -> CorrectedTest:
    """Return the settings of a correction.

    Raises:
        MissingRun: There are none such.
    """
    size = int(family) if family.isascii() and family.isdigit() else family
    try:
        settings = {"correction": correction, "family": size, "alpha": alpha}
        return TypeAdapter(CorrectedTest).validate_python(settings)
    except (ValidationError, UserError) as error:
        message = f"has no correction {correction!r} of family {family!r} at level {alpha:g}"
        remedy = "copy the run folder again"
        raise MissingRun(message, where="significance.csv", remedy=remedy) from error


def _to_float(value: Any) -> float:
    return math.nan if pd.isna(value) else float(value)
