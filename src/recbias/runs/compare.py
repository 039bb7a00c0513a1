"""Comparison of runs: the values and gaps that they share, paired over the shared units."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, get_args

import numpy as np
import pandas as pd

from recbias.core.dataset import FloatArray
from recbias.core.errors import MixedRuns, UnknownName
from recbias.core.files import to_canonical_json
from recbias.core.grouping import JOIN
from recbias.core.measures import ALL, FIT_COLUMNS, METRIC_KEY_COLUMNS, POOLED
from recbias.core.plugins import OUTPUTS
from recbias.core.text import suggest
from recbias.reports.run import RunTables
from recbias.reports.views import format_title
from recbias.statistics.bootstrap import compare_replicates
from recbias.statistics.groups import (
    average_folds,
    compute_moments,
    measure_gap,
    welch_contrasts,
)
from recbias.statistics.paired import Correction, PairedT, adjust_distinct, count_tests
from recbias.statistics.spread import MOST_COMPARED, NAME, compare_spreads, find_df

_Key: TypeAlias = tuple[Hashable, ...]
"""What identifies a value or a test."""

_TEST_COLUMNS = ("n", "ci_low", "ci_high", "p")


@dataclass(frozen=True, eq=False)
class _SharedUnits:
    """The units for which two runs define a metric value, with both values, ``float64[2, u]``.

    Args:
        others: The number of further units of each run.
    """

    ids: tuple[Any, ...]
    values: FloatArray
    others: tuple[int, int] = (0, 0)

    def test(self, difference: float) -> dict[str, Any]:
        """Return Student's paired t-test of the second run minus the first: ``_TEST_COLUMNS``.

        The interval is around the difference of the values, which are means over folds and seeds
        where the units are not in all of them.
        """
        columns = PairedT().pairs(self.values[::-1], np.random.default_rng(0))
        shifts = dict.fromkeys(("ci_low", "ci_high"), difference - columns["difference"][0])
        test = {name: float(columns[name][0] + shifts.get(name, 0.0)) for name in _TEST_COLUMNS}
        return test | {"test": "paired_t"}

    @cached_property
    def content(self) -> _Key:
        """What equals that of other units with the same values."""
        return (self.ids, self.values.tobytes())


@dataclass(frozen=True, eq=False)
class _SharedReplicates:
    """The values of two runs on the same bootstrap samples, ``float64[2, b]``."""

    values: FloatArray
    df: float

    def test(self, row: Mapping[Hashable, Any]) -> dict[str, Any]:
        """Return the paired bootstrap of the second run minus the first, as in ``run``."""
        points = np.array([row["value_b"], row["value_a"]])
        columns = compare_replicates(points, self.values[::-1], 0.05, df=self.df)
        test = {name: float(columns[name][0]) for name in _TEST_COLUMNS}
        return test | {"n": row.get("n_b", 0), "test": "paired_bootstrap"}

    @cached_property
    def content(self) -> _Key:
        """What equals that of other samples with the same values."""
        return (self.values.tobytes(), self.df)


def label_runs(folders: Sequence[Path]) -> list[str]:
    """Return the names of runs: their experiments, or their run ids if two have the same one.

    >>> label_runs([Path("results/a/1"), Path("results/b/2")])
    ['a', 'b']
    >>> label_runs([Path("results/a/1"), Path("results/a/2")])
    ['1', '2']
    """
    experiments = [folder.parent.name for folder in folders]
    is_unique = len({*experiments}) == len(folders)
    return experiments if is_unique else [folder.name for folder in folders]


_NO_TEST: dict[str, Any] = {
    **dict.fromkeys(("ci_low", "ci_high", "p"), math.nan),
    **dict.fromkeys(("n", "only_a", "only_b"), 0),
    "test": "",
}
"""The columns of a value without a test."""


_CONTEXT = ("dataset", "seed", "fold")

_EQUAL = {"ci_low": 0.0, "ci_high": 0.0, "p": 1.0}
"""The test of a gap of units of which none has changed, as of Student's t-test."""


_KEY_COLUMNS = [*FIT_COLUMNS, *METRIC_KEY_COLUMNS]
"""The columns that match rows of ``metrics.csv`` of two runs."""

COLUMNS = (
    *(*_KEY_COLUMNS, "a", "b", "value_a", "value_b", "difference"),
    *("ci_low", "ci_high", "n", "only_a", "only_b", "test", "p", "p_adjusted", "family_size"),
)
"""The columns of a comparison of runs."""


@dataclass(frozen=True, eq=False)
class RunFrames:
    """The tables of one run.

    Args:
        per_unit: ``per_unit.parquet``, or None if no metric has units.
        replicates: ``replicates.parquet``, or None if there is no such file.
        manifest: ``manifest.json``; its addresses, definitions of metrics, and digests of queries
            and test items are used.
    """

    label: str
    metrics: pd.DataFrame
    per_unit: pd.DataFrame | None
    replicates: pd.DataFrame | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def addresses(self) -> Mapping[_Key, Mapping[_Key, str]]:
        """The addresses by dataset, seed and fold, of each model, metric and cutoff."""
        addresses: dict[_Key, dict[_Key, str]] = defaultdict(dict)
        for row in self.manifest.get("addresses", []):
            text = {name: _to_text(value) for name, value in row.items()}
            location = (text["dataset"], text["seed"], text["fold"])
            addresses[text["model"], text["metric"], text["k"]][location] = text["address"]
        return addresses

    @cached_property
    def groupings(self) -> Mapping[str, str]:
        """The ``by:`` of each metric that has one."""
        definitions = self.manifest.get("metrics", [])
        parameters = {row["metric"]: row.get("parameters") or {} for row in definitions}
        return {name: str(values["by"]) for name, values in parameters.items() if values.get("by")}

    @cached_property
    def definitions(self) -> Mapping[tuple[str, str], Mapping[str, Any]]:
        """The definition of each metric and cutoff."""
        rows = self.manifest.get("metrics", [])
        return {(_to_text(row["metric"]), _to_text(row.get("k"))): row for row in rows}

    def list_contents(self, name: str) -> Mapping[_Key, str]:
        """Return the digest of the ``queries`` or ``test`` items by dataset, seed and fold."""
        rows = self.manifest.get("evaluated", [])
        return {tuple(_to_text(row[key]) for key in _CONTEXT): row[name] for row in rows}

    def get_addresses(self, row: Mapping[Hashable, Any]) -> Mapping[_Key, str]:
        """Return the addresses of the results that a metric row is computed from."""
        location = tuple(row[name] for name in _CONTEXT)
        addresses = self.addresses.get((row["model"], row["metric"], row["k"]), {})
        return {key: address for key, address in addresses.items() if _is_of(location, key)}


def _is_of(location: _Key, context: _Key) -> bool:
    """Return whether a value is of a dataset, seed and fold, alone or among others."""
    pairs = zip(location, context, strict=True)
    return all(value in {ALL, POOLED, part} for value, part in pairs)


def _list_different(a: RunFrames, b: RunFrames, name: str) -> list[_Key]:
    """Return the dataset, seed and fold of which the runs have other ``queries`` or ``test``."""
    of_a, of_b = a.list_contents(name), b.list_contents(name)
    return [key for key in of_a if key in of_b and of_a[key] != of_b[key]]


def read_frames(label: str, run: RunTables) -> RunFrames:
    """Return the tables of a run that are compared."""
    return RunFrames(label, run.metrics, run.per_unit, run.replicates, run.manifest)


@dataclass(frozen=True, eq=False)
class _Gap:
    """A gap between groups, with the units of each that both runs have."""

    kind: str
    groups: Sequence[_SharedUnits]

    @property
    def is_restricted(self) -> bool:
        """Whether a group has further units in one of the runs."""
        return any(any(group.others) for group in self.groups)

    def measure(self, side: int) -> float:
        """Return the gap of the first or the second run over the shared units."""
        return _measure_gap([group.values[side] for group in self.groups], self.kind)

    def test(self) -> dict[str, Any]:
        """Return the test of the change over the shared units; nothing where there is none.

        Of two groups it is that of the difference of their changes, if the same group is higher
        in both runs.
        """
        changes = [group.values[1] - group.values[0] for group in self.groups]
        n = len({unit for group in self.groups for unit in group.ids})
        others = np.sum([group.others for group in self.groups], axis=0).tolist()
        counts = {"n": n, "only_a": others[0], "only_b": others[1]}
        if len(changes) > 1 and not any(change.any() for change in changes):
            return _EQUAL | {"test": "paired_t"} | counts
        if len(changes) > 2:
            return _test_gap(self.groups) if self.kind == "difference" else {}
        before, after = ([group.values[side].mean() for group in self.groups] for side in (0, 1))
        if len(changes) < 2 or n < sum(map(len, changes)) or self.kind == "ratio":
            return {}
        if (before[0] - before[1]) * (after[0] - after[1]) <= 0:
            return {}
        high, low = changes if after[0] > after[1] else changes[::-1]
        test, scale = _test_unpaired(high, low), math.sqrt(2) if self.kind == "std" else 1.0
        return test | {name: test[name] / scale for name in ("ci_low", "ci_high")} | counts


def _measure_gap(groups: Sequence[FloatArray | pd.Series], kind: str) -> float:
    return float(measure_gap(np.array([[group.mean() for group in groups]]), kind)[0])


@dataclass(frozen=True, eq=False)
class RunPair:
    """Two runs, of which each value with units is that of the units for which both define it.

    Args:
        units: The units of both, by ``_KEY_COLUMNS``, where there are some.
        gaps: The gaps of groups whose units are known.
        incomparable: The other values of queries, where the runs have other queries.
    """

    a: RunFrames
    b: RunFrames
    units: Mapping[_Key, _SharedUnits]
    gaps: Mapping[_Key, _Gap]
    incomparable: frozenset[_Key]

    def merge(self) -> pd.DataFrame:
        """Return the values that both have; one that cannot be compared has no difference."""
        rows = merge_metrics(self.a, self.b)
        is_comparable = np.array([key not in self.incomparable for key in _list_keys(rows)])
        return rows.assign(difference=rows["difference"].where(is_comparable))


def is_incomparable(rows: pd.DataFrame) -> pd.Series:
    """Return which rows of ``RunPair.merge`` are of queries that differ between the runs."""
    return rows["difference"].isna() & rows["value_a"].notna() & rows["value_b"].notna()


def pair_runs(runs: Sequence[RunFrames]) -> list[RunPair]:
    """Return all pairs of runs, the earlier one first, over the units that both have.

    A gap is computed again where the units of its groups are known. Other values of queries are
    not compared where the queries differ: a coverage of other users has changed with the users.
    """
    return [_pair_up(a, b) for a, b in combinations(runs, 2)]


def _pair_up(a: RunFrames, b: RunFrames) -> RunPair:
    units_a, units_b = (_read_units(run) for run in (a, b))
    shared = {}
    for key in units_a.keys() & units_b.keys():
        pair = (units_a[key], units_b[key])
        if not pair[0].index.equals(pair[1].index):
            if not all(units.index.is_unique for units in pair):
                continue
            ids = pair[0].index.intersection(pair[1].index)
            pair = (pair[0].loc[ids], pair[1].loc[ids])
        if len(pair[0]):
            values: FloatArray = np.stack([series.to_numpy(np.float64) for series in pair])
            others = (len(units_a[key]) - len(pair[0]), len(units_b[key]) - len(pair[0]))
            shared[key] = _SharedUnits(tuple(pair[0].index), values, others)
    gaps, different = _collect_gaps(b, shared), _list_different(a, b, "queries")
    incomparable = frozenset(
        key
        for key in _list_keys(b.metrics)
        if key not in shared
        and key not in gaps
        and any(_is_of((key[0], *key[2:4]), context) for context in different)
        and _is_of_queries(b.definitions.get((str(key[4]), str(key[5])), {}))
    )
    a, b = (_restrict(run, shared, gaps, side) for side, run in enumerate((a, b)))
    return RunPair(a, b, shared, gaps, incomparable)


def _is_of_queries(definition: Mapping[str, Any]) -> bool:
    """Return whether a metric is of the answers of a model, not of its embeddings or the data."""
    return bool({*definition.get("needs", ())} & (OUTPUTS - {"embeddings"}))


def _read_units(run: RunFrames) -> dict[_Key, pd.Series]:
    """Return the defined values of the units of each value; ``average_folds`` for several."""
    units = _split_values(run.per_unit, "unit_id")
    divided = _divide_units(run, units)
    values = {key: of_value.dropna() for key, of_value in units.items()} | divided
    averaged = {key for key in _list_keys(run.metrics) if ALL in key[2:4]}
    parts: dict[_Key, list[pd.Series]] = defaultdict(list)
    for key, of_value in values.items():
        group = "" if key in divided else key[6]
        for seed, fold in product({key[2], ALL}, {key[3], ALL}):
            if (*key[:2], seed, fold, *key[4:6], group, key[7]) in averaged:
                parts[*key[:2], seed, fold, *key[4:]].append(of_value)
    for key, folds in parts.items():
        codes, ids = pd.factorize(np.concatenate([part.index for part in folds]))
        of_folds = np.repeat(np.arange(len(folds)), [len(part) for part in folds])
        scores = np.concatenate([part.to_numpy(np.float64) for part in folds])
        values[key] = pd.Series(average_folds(scores, codes, of_folds, len(ids)), ids)
    return values


def _list_keys(table: pd.DataFrame) -> list[_Key]:
    """Return the ``_KEY_COLUMNS`` of each row, as text."""
    return [*_keys_to_text(table)[_KEY_COLUMNS].itertuples(index=False, name=None)]


def _restrict(
    run: RunFrames, shared: Mapping[_Key, _SharedUnits], gaps: Mapping[_Key, _Gap], side: int
) -> RunFrames:
    """Return a run with the values of the shared units, where one of the runs has others."""
    restricted = {
        key: float(units.values[side].mean()) for key, units in shared.items() if any(units.others)
    }
    restricted |= {key: gap.measure(side) for key, gap in gaps.items() if gap.is_restricted}
    keys, old = _list_keys(run.metrics), run.metrics["value"]
    values = [restricted.get(key, value) for key, value in zip(keys, old.tolist(), strict=True)]
    return replace(run, metrics=run.metrics.assign(value=values)) if restricted else run


_GROUPING = ("by", "gap", "min_group", "reference_group", "pairs")
"""The settings of a metric that group its values."""


class _GapEntry(NamedTuple):
    """A gap of a run: labels of its groups, or of its metric and one by the same groups."""

    label: str
    groups: str
    kind: str
    least: int
    whole: str = ""
    alike: str = ""


def _list_gaps(run: RunFrames) -> Iterator[_GapEntry]:
    """Yield each gap of which the run has the groups, or the metric and groups of another one."""
    labels: dict[str, str] = {}
    alike: dict[str, str] = {}
    gaps = []
    for row in run.manifest.get("metrics", []):
        settings = dict(row.get("parameters") or {})
        by, kind, least, *_ = [settings.pop(name, None) for name in _GROUPING]
        label, least = str(row.get("metric")), int(least or 0)
        metric = to_canonical_json([row.get("name"), settings])
        groups = to_canonical_json([metric, by, least])
        if by is None:
            labels[metric] = label
        elif kind == "groups":
            labels[groups] = alike[str(by)] = label
        elif kind in {"difference", "ratio", "std", "ugf"}:
            kind = "difference" if kind == "ugf" else str(kind)
            gaps.append((_GapEntry(label, label, kind, least), groups, metric, str(by)))
    for gap, groups, metric, by in gaps:
        if groups in labels:
            yield gap._replace(groups=labels[groups])
        elif metric in labels and by in alike:
            yield gap._replace(whole=labels[metric], alike=alike[by])


def _divide_units(run: RunFrames, units: Mapping[_Key, pd.Series]) -> dict[_Key, pd.Series]:
    """Return the units of the groups of gaps that have no groups of their own in the run.

    They are those of the metric, in the groups of another metric, if these give the same gap.
    """
    divided: dict[_Key, pd.Series] = {}
    gaps = dict(zip(_list_keys(run.metrics), run.metrics["value"].tolist(), strict=True))
    for gap in _list_gaps(run):
        members: dict[_Key, dict[str, Any]] = defaultdict(dict)
        for key, of_group in units.items() if gap.alike else ():
            if key[4] == gap.alike and key[6]:
                members[key[:4]].setdefault(str(key[6]), of_group.index)
        for key, whole in units.items():
            if key[4] != gap.whole or key[6] or key[:4] not in members:
                continue
            groups = {
                (*key[:4], gap.label, key[5], name, key[7]): whole[whole.index.isin(ids)].dropna()
                for name, ids in members[key[:4]].items()
            }
            value = gaps.get((*key[:4], gap.label, *key[5:]), math.nan)
            large = [group for group in groups.values() if len(group) >= max(gap.least, 1)]
            if math.isclose(_measure_gap(large, gap.kind), value, abs_tol=1e-12):
                divided |= groups
    return divided


def describe_differences(a: RunFrames, b: RunFrames) -> list[str]:
    """Return a sentence on what two runs have under one name that is not the same."""
    sentences = [f"Left out: {text}." for text in _list_redefined(a, b).values()]
    for name, noun in (("queries", "queries"), ("test", "test items")):
        if places := _list_different(a, b, name):
            datasets = ", ".join(dict.fromkeys(str(place[0]) for place in places))
            sentences.append(f"{a.label} and {b.label} have different {noun} of {datasets}.")
    return sentences


def _list_redefined(a: RunFrames, b: RunFrames) -> dict[tuple[str, str], str]:
    """Return the metrics and cutoffs that have one label and two definitions, in words."""
    redefined = {}
    for title in sorted(a.definitions.keys() & b.definitions.keys()):
        rows = [run.definitions[title] for run in (a, b)]
        of_a, of_b = (row.get("parameters") or {} for row in rows)
        names = [str(row.get("name")) for row in rows]
        others = [key for key in {**of_a, **of_b} if of_a.get(key) != of_b.get(key)]
        text = f"{format_title(title[0], float(title[1] or 'nan'))} is {names[0]} in {a.label} and"
        if names[0] != names[1]:
            redefined[title] = f"{text} {names[1]} in {b.label}"
        elif others:
            redefined[title] = f"{text} in {b.label}, with other settings ({', '.join(others)})"
    return redefined


def compare_runs(runs: list[RunFrames], *, correction: str = "bonferroni") -> pd.DataFrame:
    """Return every metric value that two runs share, with a test of the difference.

        difference = value of the later run b - value of the earlier run a

    Both values, the difference, its 95% interval and the test are over the ``n`` units for which
    both runs define the value; ``only_a`` and ``only_b`` count those of one run, which do not
    count. The test is Student's paired t-test, over seeds and folds of ``average_folds``, or for
    values of whole sets the bootstrap of ``recbias run``, if both runs have the same queries; the
    gap of three groups or more is tested by ``compare_spreads``, if the runs have the groups too.
    The difference is NaN if the value is of all queries together, and the queries differ. Values
    whose results have the same address in both runs are excluded: nothing changed. All tests of
    the comparison are one family, in which the test of a group that holds all units counts once
    with that of the whole. The p-value is NaN if the metric has no units, or the runs share none.

    Raises:
        MixedRuns: Two of the runs share no metric value.
        UnknownName: The correction does not exist.
    """
    tables = [_compare_pair(pair) for pair in pair_runs(runs)]
    return _adjust_p_values(pd.concat(tables, ignore_index=True), correction)


def _adjust_p_values(table: pd.DataFrame, correction: str) -> pd.DataFrame:
    """Return a table of tests with the p-values adjusted as one family."""
    method = {str(name): name for name in get_args(Correction)}.get(correction)
    if method is None:
        remedy = suggest(correction, get_args(Correction))
        raise UnknownName(f"no correction is called {correction!r}", remedy=remedy)
    p = table["p"].to_numpy(dtype=np.float64)
    names = table["test_key"] if "test_key" in table else pd.Series(range(len(table)))
    tests = pd.factorize(names)[0]
    adjusted = adjust_distinct(p, tests, method)
    return table.assign(p_adjusted=adjusted, family_size=count_tests(p, tests))[list(COLUMNS)]


def _compare_pair(pair: RunPair) -> pd.DataFrame:
    a, b, units = pair.a, pair.b, pair.units
    rows = _select_changed(a, b, pair.merge())
    replicates = _match_replicates(a, b)
    keys = rows[_KEY_COLUMNS].itertuples(index=False, name=None)
    tests = []
    test_keys: list[_Key] = []
    for key, row in zip(keys, rows.to_dict("records"), strict=True):
        gap = pair.gaps.get(key)
        is_restricted = gap is not None and gap.is_restricted
        shared = units.get(key) or (None if is_restricted else replicates.get(key))
        if isinstance(shared, _SharedUnits):
            only_a, only_b = shared.others
            test = shared.test(row["difference"]) | {"only_a": only_a, "only_b": only_b}
        elif shared is not None:
            test = shared.test(row)
        else:
            is_defined = not math.isnan(row["difference"])
            test = gap.test() if gap is not None and is_defined else {}
        tests.append(_NO_TEST | test)
        location = tuple(row[name] for name in _KEY_COLUMNS if name != "group")
        part = row["group"] if shared is None else shared.content
        test_keys.append((a.label, b.label, *location, part))
    columns = {name: [test[name] for test in tests] for name in _NO_TEST}
    return rows.assign(**columns, test_key=pd.Series(test_keys, rows.index, dtype=object)).astype(
        dict.fromkeys(("n", "only_a", "only_b"), np.int64)
    )


def _collect_gaps(run: RunFrames, units: Mapping[_Key, _SharedUnits]) -> dict[_Key, _Gap]:
    """Return each gap whose groups have shared units, by ``_KEY_COLUMNS``."""
    gaps: dict[_Key, tuple[str, list[_SharedUnits]]] = {}
    for gap in _list_gaps(run):
        for key, group in units.items():
            if key[4] == gap.groups and key[6] and len(group.ids) >= gap.least:
                of_gap = (*key[:4], gap.label, key[5], "", key[7])
                gaps.setdefault(of_gap, (gap.kind, []))[1].append(group)
    return {key: _Gap(*gap) for key, gap in gaps.items()}


def _test_gap(groups: Sequence[_SharedUnits]) -> dict[str, Any]:
    """Return the test of the change of the gap of more than two groups without common units."""
    sizes = np.array([len(group.ids) for group in groups])
    ids = {unit for group in groups for unit in group.ids}
    if not 3 <= sizes.size <= MOST_COMPARED or sizes.min() < 2 or len(ids) < sizes.sum():
        return {}
    means = np.stack([group.values[::-1].mean(axis=1) for group in groups], axis=1)
    parts = [np.cov(group.values[::-1]) / len(group.ids) for group in groups]
    covariance = np.block(
        [[np.diag([part[i, j] for part in parts]) for j in (0, 1)] for i in (0, 1)]
    )
    df = min(
        find_df(row, np.diag(covariance).reshape(2, -1)[at], sizes) for at, row in enumerate(means)
    )
    test = compare_spreads(means, covariance, df, 0.05, np.random.default_rng(0))
    others = np.sum([group.others for group in groups], axis=0).tolist()
    counts = {"n": int(sizes.sum()), "only_a": others[0], "only_b": others[1]}
    return {name: test[name] for name in ("ci_low", "ci_high", "p")} | counts | {"test": NAME}


def merge_metrics(a: RunFrames, b: RunFrames) -> pd.DataFrame:
    """Return the metric values that two runs share, with their difference.

    Raises:
        MixedRuns: There are none.
    """
    rows = _keys_to_text(a.metrics).merge(
        _keys_to_text(b.metrics), on=_KEY_COLUMNS, suffixes=("_a", "_b")
    )
    if redefined := _list_redefined(a, b):
        titles = zip(rows["metric"], rows["k"], strict=True)
        rows = rows[[title not in redefined for title in titles]]
    if rows.empty:
        shared = f"{a.label} and {b.label} share no metric value"
        message = ": ".join([shared, *redefined.values()][:2])
        remedy = "give datasets, models and metrics the same labels, and the same seeds"
        raise MixedRuns(message, remedy=remedy)
    return rows.assign(a=a.label, b=b.label, difference=rows["value_b"] - rows["value_a"])


def list_missing(a: RunFrames, b: RunFrames) -> pd.DataFrame:
    """Return the defined metric values of the first run that the second one lacks."""
    kept = merge_metrics(a, b)[_KEY_COLUMNS].drop_duplicates()
    rows = _keys_to_text(a.metrics).merge(kept, on=_KEY_COLUMNS, how="left", indicator=True)
    return rows[(rows["_merge"] == "left_only") & rows["value"].notna()]


def _select_changed(a: RunFrames, b: RunFrames, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of ``merge_metrics`` whose results do not have the same address."""
    pairs = ((a.get_addresses(row), b.get_addresses(row)) for row in rows.to_dict("records"))
    is_changed = [not first or first != second for first, second in pairs]
    return rows[np.array(is_changed, dtype=bool)]


def _match_replicates(a: RunFrames, b: RunFrames) -> Mapping[_Key, _SharedReplicates]:
    """Return the bootstrap samples of each metric value, if both runs have the same queries."""
    samples_a, samples_b = (_split_values(run.replicates, ["queries", "df"]) for run in (a, b))
    shared = {}
    for key in samples_a.keys() & samples_b.keys():
        pair = (samples_a[key], samples_b[key])
        if len({series.index[0][0] for series in pair}) == 1 and pair[0].size == pair[1].size:
            values: FloatArray = np.stack([series.to_numpy(np.float64) for series in pair])
            shared[key] = _SharedReplicates(values, np.fmin(*(x.index[0][1] for x in pair)))
    return shared


def _keys_to_text(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the key columns as text, since CSV and Parquet differ in types."""
    return table.assign(
        **{name: table[name].astype(object).map(_to_text) for name in _KEY_COLUMNS}
    )


def _to_text(value: object) -> str:
    """Return a key as text, blank if it is missing.

    >>> _to_text(10.0), _to_text(None), _to_text("all")
    ('10', '', 'all')
    """
    if value is None or value is pd.NA or value != value:  # noqa: PLR0124  NaN
        return ""
    is_integer = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_integer else str(value)  # type: ignore[call-overload]


def _split_values(table: pd.DataFrame | None, index: str | list[str]) -> Mapping[_Key, pd.Series]:
    if table is None or table.empty:
        return {}
    values = table.set_index(index)["value"]
    groups = _keys_to_text(table).groupby(_KEY_COLUMNS, sort=False, observed=True).indices
    return {tuple(key): values.iloc[rows] for key, rows in groups.items()}  # type: ignore[arg-type]


MAX_GROUPS = 10
"""Pairs of more groups than this are not compared."""

_EQUALITY = re.compile(r"(?P<label>[^<>=!]+)=(?!=)")
"""A value of a label: ``race=white``."""

_CONDITION = re.compile(r"[<>]=?|[=!]=|\sin\s*[\[(]")
"""Occurs in every condition: ``age >= 25``."""


def compare_gaps(runs: list[RunFrames], *, correction: str = "bonferroni") -> pd.DataFrame:
    """Return the gap between every two groups in each of two runs, and test its change.

        Δ = (m_b(g) - m_b(h)) - (m_a(g) - m_a(h)) = mean of d over g - mean of d over h

    m(g) is the metric value of group g, a mean over its units; d is the value of a unit in the
    later run b minus its value in run a. If g and h have different units (names), the test is
    Welch's t-test of the d of both groups; if they share their units (templates), Student's paired
    t-test. Both are over the units that both runs have. Values without shared units are excluded,
    values with the same address
    in both, and metrics with more than ``MAX_GROUPS`` groups. The p-value of Welch's test is NaN
    if d is constant within the groups.
    All tests of the table are one family.

    Returns:
        The columns of ``compare_runs``; ``group`` is ``g - h``, the values are the gaps.

    Raises:
        UnknownName: The correction does not exist.
    """
    rows = [row for pair in pair_runs(runs) for row in _compare_gap_pair(pair)]
    return _adjust_p_values(pd.DataFrame(rows, columns=list(COLUMNS)), correction)


def _compare_gap_pair(pair: RunPair) -> Iterator[dict[str, Any]]:
    a, b, units = pair.a, pair.b, pair.units
    metrics = _select_changed(a, b, pair.merge())
    keys = metrics[_KEY_COLUMNS].itertuples(index=False, name=None)
    groups = [
        {**row, "units": units[key], "label": label}
        for row, key in zip(metrics.to_dict("records"), keys, strict=True)
        if key in units and (label := _find_label(row, b))
    ]
    if not groups:
        return
    shared_keys = [*(name for name in _KEY_COLUMNS if name != "group"), "label"]
    for _, family in pd.DataFrame(groups).groupby(shared_keys, sort=False):
        if len(family) <= MAX_GROUPS:
            for g, h in combinations(family.to_dict("records"), 2):
                yield _compare_groups(g, h)


def _find_label(row: Mapping[Hashable, Any], run: RunFrames) -> str:
    """Return the label or condition of a metric row's group, blank if it has none."""
    group = str(row["group"])
    return group and (run.groupings.get(row["metric"]) or extract_label(group))


def extract_label(group: str) -> str:
    """Return the label or condition of a group, blank if it is neither.

    >>> extract_label("race=white&gender=female"), extract_label("neutral")
    ('race&gender', '')
    >>> extract_label("gender=F&not age >= 25"), extract_label("age >= 25")
    ('gender&age >= 25', 'age >= 25')
    """
    parts = [_extract_part(part) for part in group.split(JOIN)]
    return JOIN.join(parts) if all(parts) else ""


def _extract_part(part: str) -> str:
    if (match := _EQUALITY.match(part)) is not None:
        return match["label"]
    return part.removeprefix("not ") if _CONDITION.search(part) else ""


def _compare_groups(g: dict[Any, Any], h: dict[Any, Any]) -> dict[str, Any]:
    gaps = {name: g[name] - h[name] for name in ("value_a", "value_b", "difference")}
    before, after = ([row["units"].values[run] for row in (h, g)] for run in (0, 1))
    changes = [new - old for old, new in zip(before, after, strict=True)]
    if g["units"].ids == h["units"].ids:
        test = _SharedUnits(g["units"].ids, np.stack(changes)).test(gaps["difference"])
        others = np.max([row["units"].others for row in (g, h)], axis=0)
    else:
        test = _test_unpaired(changes[1], changes[0])
        others = np.sum([row["units"].others for row in (g, h)], axis=0)
    only = dict(zip(("only_a", "only_b"), others.tolist(), strict=True))
    return {**g, **gaps, **test, **only, "group": f"{g['group']} - {h['group']}"}


def _test_unpaired(g: FloatArray, h: FloatArray) -> dict[str, Any]:
    if not g.any() and not h.any():
        return _EQUAL | {"n": g.size + h.size, "test": "welch_t"}
    codes = np.repeat([0, 1], [g.size, h.size])
    moments = compute_moments(np.concatenate([g, h]), codes, 2)
    (contrast,) = welch_contrasts(("g", "h"), moments, between="groups")
    return {name: getattr(contrast, name) for name in ("n", "ci_low", "ci_high", "p", "test")}
