"""Comparison of runs: the values and gaps that they share, paired over the shared units.

And the tolerances of ``compare --fail-over``.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import Any, TypeAlias, get_args

import numpy as np
import pandas as pd

from recbias.core.dataset import FloatArray
from recbias.core.errors import MixedRuns, OutOfRange, UnknownName, WrongType
from recbias.core.files import to_canonical_json
from recbias.core.grouping import JOIN
from recbias.core.measures import (
    ALL,
    FIT_COLUMNS,
    METRIC_KEY_COLUMNS,
    POOLED,
    Direction,
    to_loss,
)
from recbias.core.plugins import OUTPUTS
from recbias.core.text import normalize_name, suggest
from recbias.reports.run import RunTables, to_records
from recbias.reports.views import Definition, format_title
from recbias.reports.wording import format_count
from recbias.statistics.bootstrap import compare_replicates
from recbias.statistics.groups import (
    average_units,
    compute_moments,
    measure_gap,
    welch_contrasts,
)
from recbias.statistics.paired import Correction, PairedT, adjust_distinct, count_tests
from recbias.statistics.spread import MOST_COMPARED, NAME, compare_spreads, find_df

_KEY_COLUMNS = [*FIT_COLUMNS, *METRIC_KEY_COLUMNS]
"""The columns that match rows of ``metrics.csv`` of two runs."""

_Key: TypeAlias = tuple[str, ...]
"""The ``_KEY_COLUMNS`` of a value, or its dataset, seed and fold, as text."""

COLUMNS = (
    *(*_KEY_COLUMNS, "a", "b", "value_a", "value_b", "difference"),
    *("ci_low", "ci_high", "n", "only_a", "only_b", "test", "p", "p_adjusted", "family_size"),
)
"""The columns of a comparison of runs."""

_TEST_COLUMNS = ("n", "ci_low", "ci_high", "p")

_NO_TEST: dict[str, Any] = {
    **dict.fromkeys(("ci_low", "ci_high", "p"), math.nan),
    **dict.fromkeys(("n", "only_a", "only_b"), 0),
    "test": "",
}
"""The columns of a value without a test."""

_EQUAL = {"ci_low": 0.0, "ci_high": 0.0, "p": 1.0}
"""The test of a gap of units of which none has changed, as of Student's t-test."""


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


# ---- the tables of a run ----


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
    def rows(self) -> pd.DataFrame:
        """The values, with keys as text."""
        return _keys_to_text(self.metrics)

    @cached_property
    def definitions(self) -> Mapping[tuple[str, str], Mapping[str, Any]]:
        """The definition of each metric and cutoff."""
        rows = self.manifest.get("metrics", [])
        return {(_to_text(row["metric"]), _to_text(row.get("k"))): row for row in rows}

    @cached_property
    def groupings(self) -> Mapping[str, str]:
        """The ``by:`` of each metric that has one."""
        rows = {row["metric"]: row.get("parameters") or {} for row in self.definitions.values()}
        return {name: str(settings["by"]) for name, settings in rows.items() if settings.get("by")}

    @cached_property
    def addresses(self) -> Mapping[_Key, Mapping[_Key, str]]:
        """The addresses by dataset, seed and fold, of each model, metric and cutoff."""
        addresses: dict[_Key, dict[_Key, str]] = defaultdict(dict)
        for row in self.manifest.get("addresses", []):
            of = {name: _to_text(value) for name, value in row.items()}
            addresses[of["model"], of["metric"], of["k"]][_get_place(of)] = of["address"]
        return addresses

    def find_addresses(self, key: _Key) -> Mapping[_Key, str]:
        """Return the addresses of the results that a value is computed from."""
        of_metric = self.addresses.get((key[1], key[4], key[5]), {})
        return {place: address for place, address in of_metric.items() if _is_of(key, place)}

    def list_contents(self, name: str) -> Mapping[_Key, str]:
        """Return the digest of the ``queries`` or ``test`` items by dataset, seed and fold."""
        return {_get_place(row): row[name] for row in self.manifest.get("evaluated", [])}


def read_frames(label: str, run: RunTables) -> RunFrames:
    """Return the tables of a run that are compared."""
    return RunFrames(label, run.metrics, run.per_unit, run.replicates, run.manifest)


def _get_place(row: Mapping[str, Any]) -> _Key:
    return tuple(_to_text(row[name]) for name in ("dataset", "seed", "fold"))


def _is_of(key: _Key, place: _Key) -> bool:
    """Return whether a value is of a dataset, seed and fold, alone or among others."""
    pairs = zip((key[0], *key[2:4]), place, strict=True)
    return all(value in {ALL, POOLED, part} for value, part in pairs)


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


def _list_keys(table: pd.DataFrame) -> list[_Key]:
    return [*table[_KEY_COLUMNS].itertuples(index=False, name=None)]


def _split_values(table: pd.DataFrame | None, index: str | list[str]) -> dict[_Key, pd.Series]:
    if table is None or table.empty:
        return {}
    values = table.set_index(index)["value"]
    groups = _keys_to_text(table).groupby(_KEY_COLUMNS, sort=False, observed=True).indices
    return {tuple(key): values.iloc[rows] for key, rows in groups.items()}  # type: ignore[arg-type]


def _read_units(run: RunFrames) -> dict[_Key, pd.Series]:
    """Return the defined values of the units of each value; ``average_folds`` for several."""
    units = _split_values(run.per_unit, "unit_id")
    values = {key: of_value.dropna() for key, of_value in units.items()}
    averaged = {key for key in _list_keys(run.rows) if ALL in key[2:4]}
    parts: dict[_Key, list[pd.Series]] = defaultdict(list)
    for key, of_value in values.items():
        for seed, fold in product({key[2], ALL}, {key[3], ALL}):
            if (whole := (*key[:2], seed, fold, *key[4:])) in averaged:
                parts[whole].append(of_value)
    for key, folds in parts.items():
        ids, of_units = average_units([(part.index, part.to_numpy(np.float64)) for part in folds])
        values[key] = pd.Series(of_units, ids)
    return values


# ---- what two runs share ----


@dataclass(frozen=True, eq=False)
class _SharedUnits:
    """The units for which two runs define a metric value, with both values, ``float64[2, u]``.

    Args:
        others: The number of further units of each run.
    """

    ids: tuple[Any, ...]
    values: FloatArray
    others: tuple[int, int] = (0, 0)

    @property
    def changes(self) -> FloatArray:
        """The value of each unit in the second run minus that in the first."""
        return np.asarray(self.values[1] - self.values[0])

    @property
    def content(self) -> tuple[Hashable, ...]:
        """What equals that of other units with the same values."""
        return (self.ids, self.values.tobytes())

    def test(self, difference: float) -> dict[str, Any]:
        """Return Student's paired t-test of the second run minus the first.

        The interval is around the difference of the values, which are means over folds and seeds
        where the units are not in all of them.
        """
        columns = PairedT().pairs(self.values[::-1], np.random.default_rng(0))
        shifts = dict.fromkeys(("ci_low", "ci_high"), difference - columns["difference"][0])
        test = {name: float(columns[name][0] + shifts.get(name, 0.0)) for name in _TEST_COLUMNS}
        return test | _count_others([self]) | {"test": "paired_t"}


def _count_others(groups: Sequence[_SharedUnits]) -> dict[str, int]:
    others = np.sum([group.others for group in groups], axis=0).tolist()
    return dict(zip(("only_a", "only_b"), others, strict=True))


@dataclass(frozen=True, eq=False)
class _SharedReplicates:
    """The values of two runs on the same bootstrap samples, ``float64[2, b]``."""

    values: FloatArray
    df: float

    @property
    def content(self) -> tuple[Hashable, ...]:
        """What equals that of other samples with the same values."""
        return (self.values.tobytes(), self.df)

    def test(self, row: Mapping[Hashable, Any]) -> dict[str, Any]:
        """Return the paired bootstrap of the second run minus the first, as in ``run``."""
        points = np.array([row["value_b"], row["value_a"]])
        columns = compare_replicates(points, self.values[::-1], 0.05, df=self.df)
        test = {name: float(columns[name][0]) for name in _TEST_COLUMNS}
        return test | {"n": row.get("n_b", 0), "test": "paired_bootstrap"}


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
        means = np.array([[group.values[side].mean() for group in self.groups]])
        return float(measure_gap(means, self.kind)[0])

    def test(self) -> dict[str, Any]:
        """Return the test of the change over the shared units; nothing where there is none.

        Of two groups it is that of the difference of their changes, if the same group is higher
        in both runs.
        """
        changes = [group.changes for group in self.groups]
        n = len({unit for group in self.groups for unit in group.ids})
        counts = {"n": n} | _count_others(self.groups)
        if len(changes) > 1 and not any(change.any() for change in changes):
            return _EQUAL | {"test": "paired_t"} | counts
        if len(changes) < 2 or n < sum(map(len, changes)) or self.kind == "ratio":
            return {}
        if len(changes) > 2:
            test = _test_spread(self.groups) if self.kind == "difference" else {}
            return test and test | counts
        before, after = ([group.values[side].mean() for group in self.groups] for side in (0, 1))
        if (before[0] - before[1]) * (after[0] - after[1]) <= 0:
            return {}
        high, low = changes if after[0] > after[1] else changes[::-1]
        test, scale = _test_unpaired(high, low), math.sqrt(2) if self.kind == "std" else 1.0
        return test | {name: test[name] / scale for name in ("ci_low", "ci_high")} | counts


def _test_spread(groups: Sequence[_SharedUnits]) -> dict[str, Any]:
    """Return the test of the change of the gap of more than two groups without common units."""
    sizes = np.array([len(group.ids) for group in groups])
    if sizes.size > MOST_COMPARED or sizes.min() < 2:
        return {}
    means = np.stack([group.values[::-1].mean(axis=1) for group in groups], axis=1)
    parts = [np.cov(group.values[::-1]) / len(group.ids) for group in groups]
    covariance = np.block(
        [[np.diag([part[i, j] for part in parts]) for j in (0, 1)] for i in (0, 1)]
    )
    variances = np.diag(covariance).reshape(2, -1)
    df = min(find_df(*side, sizes) for side in zip(means, variances, strict=True))
    test = compare_spreads(means, covariance, df, 0.05, np.random.default_rng(0))
    return {name: test[name] for name in ("ci_low", "ci_high", "p")} | {"test": NAME}


def _test_unpaired(g: FloatArray, h: FloatArray) -> dict[str, Any]:
    if not g.any() and not h.any():
        return _EQUAL | {"n": g.size + h.size, "test": "welch_t"}
    codes = np.repeat([0, 1], [g.size, h.size])
    moments = compute_moments(np.concatenate([g, h]), codes, 2)
    (contrast,) = welch_contrasts(("g", "h"), moments, between="groups")
    return {name: getattr(contrast, name) for name in (*_TEST_COLUMNS, "test")}


@dataclass(frozen=True, eq=False)
class RunPair:
    """Two runs, of which each value with units is that of the units for which both define it.

    Args:
        rows: The values that both have, with keys as text; one that cannot be compared has no
            difference.
        units: The units of both, by ``_KEY_COLUMNS``, where there are some.
        gaps: The gaps of groups whose units are known.
    """

    a: RunFrames
    b: RunFrames
    rows: pd.DataFrame
    units: Mapping[_Key, _SharedUnits]
    gaps: Mapping[_Key, _Gap]

    @cached_property
    def changed(self) -> pd.DataFrame:
        """The rows whose results do not have the same address."""
        pairs = ([run.find_addresses(key) for run in (self.a, self.b)] for key in self.keys)
        return self.rows[np.array([not old or old != new for old, new in pairs], dtype=bool)]

    @cached_property
    def keys(self) -> list[_Key]:
        """The ``_KEY_COLUMNS`` of the rows."""
        return _list_keys(self.rows)

    @property
    def missing(self) -> pd.DataFrame:
        """The defined values of the first run that the second one lacks."""
        kept, rows = {*self.keys}, self.a.rows
        is_missing = [key not in kept for key in _list_keys(rows)]
        return rows[np.array(is_missing, dtype=bool) & rows["value"].notna().to_numpy()]

    def describe_differences(self) -> list[str]:
        """Return a sentence on what the runs have under one name that is not the same."""
        a, b = self.a, self.b
        sentences = [f"Left out: {text}." for text in _list_redefined(a, b).values()]
        for name, noun in (("queries", "queries"), ("test", "test items")):
            if places := _list_different(a, b, name):
                datasets = ", ".join(dict.fromkeys(place[0] for place in places))
                sentences.append(f"{a.label} and {b.label} have different {noun} of {datasets}.")
        return sentences


def is_incomparable(rows: pd.DataFrame) -> pd.Series:
    """Return which rows of a ``RunPair`` are of queries that differ between the runs."""
    return rows["difference"].isna() & rows["value_a"].notna() & rows["value_b"].notna()


def pair_runs(runs: Sequence[RunFrames]) -> list[RunPair]:
    """Return all pairs of runs, the earlier one first, over the units that both have.

    A gap is computed again where the units of its groups are known. Other values of queries are
    not compared where the queries differ: a coverage of other users has changed with the users.

    Raises:
        MixedRuns: Two of the runs share no metric value.
    """
    return [_pair_up(a, b) for a, b in combinations(runs, 2)]


def _pair_up(a: RunFrames, b: RunFrames) -> RunPair:
    rows, units = _merge(a, b), _share_units(a, b)
    gaps, different = _collect_gaps(b, units), _list_different(a, b, "queries")
    keys, values = _list_keys(rows), rows[["value_a", "value_b"]].to_numpy(np.float64)
    for at, key in enumerate(keys):
        gap, shared = gaps.get(key), units.get(key)
        if shared is not None and any(shared.others):
            values[at] = shared.values.mean(axis=1)
        elif gap is not None and gap.is_restricted:
            values[at] = gap.measure(0), gap.measure(1)
    is_comparable = [
        key in units
        or key in gaps
        or not any(_is_of(key, place) for place in different)
        or not _is_of_queries(b.definitions.get((key[4], key[5]), {}))
        for key in keys
    ]
    difference = np.where(is_comparable, values[:, 1] - values[:, 0], math.nan)
    rows = rows.assign(value_a=values[:, 0], value_b=values[:, 1], difference=difference)
    return RunPair(a, b, rows.assign(a=a.label, b=b.label), units, gaps)


def _merge(a: RunFrames, b: RunFrames) -> pd.DataFrame:
    rows = a.rows.merge(b.rows, on=_KEY_COLUMNS, suffixes=("_a", "_b"))
    if redefined := _list_redefined(a, b):
        titles = zip(rows["metric"], rows["k"], strict=True)
        rows = rows[[title not in redefined for title in titles]]
    if rows.empty:
        shared = f"{a.label} and {b.label} share no metric value"
        message = ": ".join([shared, *redefined.values()][:2])
        remedy = "give datasets, models and metrics the same labels, and the same seeds"
        raise MixedRuns(message, remedy=remedy)
    return rows


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


def _list_different(a: RunFrames, b: RunFrames, name: str) -> list[_Key]:
    of_a, of_b = a.list_contents(name), b.list_contents(name)
    return [key for key in of_a if key in of_b and of_a[key] != of_b[key]]


def _is_of_queries(definition: Mapping[str, Any]) -> bool:
    """Return whether a metric is of the answers of a model, not of its embeddings or the data."""
    return bool({*definition.get("needs", ())} & (OUTPUTS - {"embeddings"}))


def _share_units(a: RunFrames, b: RunFrames) -> dict[_Key, _SharedUnits]:
    units_a, units_b = (_read_units(run) for run in (a, b))
    shared = {}
    for key in [key for key in units_a if key in units_b]:  # in an order that every process has
        pair = (units_a[key], units_b[key])
        if not pair[0].index.equals(pair[1].index):
            if not all(units.index.is_unique for units in pair):
                continue
            ids = pair[0].index.intersection(pair[1].index)
            pair = (pair[0].loc[ids], pair[1].loc[ids])
        if n := len(pair[0]):
            values: FloatArray = np.stack([series.to_numpy(np.float64) for series in pair])
            others = (len(units_a[key]) - n, len(units_b[key]) - n)
            shared[key] = _SharedUnits(tuple(pair[0].index), values, others)
    return shared


def _collect_gaps(run: RunFrames, units: Mapping[_Key, _SharedUnits]) -> dict[_Key, _Gap]:
    """Return each gap of a run whose groups have shared units, by ``_KEY_COLUMNS``."""
    labels: dict[str, str] = {}
    listed: list[tuple[str, str, str, int]] = []
    for row in run.manifest.get("metrics", []):
        settings = dict(row.get("parameters") or {})
        names = ("by", "gap", "min_group", "reference_group", "pairs")
        by, kind, least, *_ = [settings.pop(name, None) for name in names]
        groups = to_canonical_json([row.get("name"), settings, by, int(least or 0)])
        if kind == "groups":
            labels[groups] = str(row.get("metric"))
        elif kind in {"difference", "ratio", "std", "ugf"}:
            kind = "difference" if kind == "ugf" else str(kind)
            listed.append((groups, str(row.get("metric")), kind, int(least or 0)))
    gaps: dict[_Key, tuple[str, list[_SharedUnits]]] = {}
    for groups, label, kind, least in listed:
        for key, group in units.items():
            if key[4] == labels.get(groups) and key[6] and len(group.ids) >= least:
                of_gap = (*key[:4], label, key[5], "", key[7])
                gaps.setdefault(of_gap, (kind, []))[1].append(group)
    return {key: _Gap(*gap) for key, gap in gaps.items()}


def _match_replicates(a: RunFrames, b: RunFrames) -> Mapping[_Key, _SharedReplicates]:
    """Return the bootstrap samples of each metric value, if both runs have the same queries."""
    samples_a, samples_b = (_split_values(run.replicates, ["queries", "df"]) for run in (a, b))
    shared = {}
    for key in [key for key in samples_a if key in samples_b]:
        pair = (samples_a[key], samples_b[key])
        if len({series.index[0][0] for series in pair}) == 1 and pair[0].size == pair[1].size:
            values: FloatArray = np.stack([series.to_numpy(np.float64) for series in pair])
            shared[key] = _SharedReplicates(values, np.fmin(*(x.index[0][1] for x in pair)))
    return shared


# ---- the two tables ----


def compare_runs(pairs: Sequence[RunPair], *, correction: str = "bonferroni") -> pd.DataFrame:
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
        UnknownName: The correction does not exist.
    """
    tables = [_compare_pair(pair) for pair in pairs]
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
    rows, replicates = pair.changed, _match_replicates(pair.a, pair.b)
    tests: list[dict[str, Any]] = []
    test_keys: list[Hashable] = []
    for key, row in zip(_list_keys(rows), rows.to_dict("records"), strict=True):
        units, gap = pair.units.get(key), pair.gaps.get(key)
        samples = None if gap is not None and gap.is_restricted else replicates.get(key)
        test: dict[str, Any] = {}
        content: Hashable = key[6]
        if units is not None:
            test, content = units.test(row["difference"]), units.content
        elif samples is not None:
            test, content = samples.test(row), samples.content
        elif gap is not None and not math.isnan(row["difference"]):
            test = gap.test()
        tests.append(_NO_TEST | test)
        test_keys.append((pair.a.label, pair.b.label, *key[:6], key[7], content))
    columns = {name: [test[name] for test in tests] for name in _NO_TEST}
    return rows.assign(**columns, test_key=pd.Series(test_keys, rows.index, dtype=object)).astype(
        dict.fromkeys(("n", "only_a", "only_b"), np.int64)
    )


MAX_GROUPS = 10
"""Pairs of more groups than this are not compared."""

_EQUALITY = re.compile(r"(?P<label>[^<>=!]+)=(?!=)")
"""A value of a label: ``race=white``."""

_CONDITION = re.compile(r"[<>]=?|[=!]=|\sin\s*[\[(]")
"""Occurs in every condition: ``age >= 25``."""


def compare_gaps(pairs: Sequence[RunPair], *, correction: str = "bonferroni") -> pd.DataFrame:
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
    rows = [row for pair in pairs for row in _compare_gap_pair(pair)]
    return _adjust_p_values(pd.DataFrame(rows, columns=list(COLUMNS)), correction)


def _compare_gap_pair(pair: RunPair) -> Iterator[dict[str, Any]]:
    families: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for key, row in zip(_list_keys(pair.changed), pair.changed.to_dict("records"), strict=True):
        group = key[6]
        label = group and (pair.b.groupings.get(key[4]) or _extract_label(group))
        if label and key in pair.units:
            of_group = {str(name): value for name, value in row.items()}
            families[*key[:6], key[7], label].append(of_group | {"units": pair.units[key]})
    for family in families.values():
        if len(family) <= MAX_GROUPS:
            for g, h in combinations(family, 2):
                yield _compare_groups(g, h)


def _extract_label(group: str) -> str:
    """Return the label or condition of a group, blank if it is neither.

    >>> _extract_label("race=white&gender=female"), _extract_label("neutral")
    ('race&gender', '')
    >>> _extract_label("gender=F&not age >= 25"), _extract_label("age >= 25")
    ('gender&age >= 25', 'age >= 25')
    """
    parts = [_extract_part(part) for part in group.split(JOIN)]
    return JOIN.join(parts) if all(parts) else ""


def _extract_part(part: str) -> str:
    if (match := _EQUALITY.match(part)) is not None:
        return match["label"]
    return part.removeprefix("not ") if _CONDITION.search(part) else ""


def _compare_groups(g: dict[str, Any], h: dict[str, Any]) -> dict[str, Any]:
    gaps = {name: g[name] - h[name] for name in ("value_a", "value_b", "difference")}
    of_g, of_h = g["units"], h["units"]
    if of_g.ids == of_h.ids:
        others = np.max([of_g.others, of_h.others], axis=0)
        paired = _SharedUnits(of_g.ids, of_g.values - of_h.values, (others[0], others[1]))
        test = paired.test(gaps["difference"])
    else:
        test = _test_unpaired(of_g.changes, of_h.changes) | _count_others([of_g, of_h])
    return {**g, **gaps, **test, "group": f"{g['group']} - {h['group']}"}


# ---- tolerances ----

_OPTION = "--fail-over"
_ROUNDING = 1e-12
"""Differences that exceed a tolerance by less are errors of rounding."""


@dataclass(frozen=True)
class Tolerances:
    """The largest differences that are tolerated, by metric; a blank one is of all metrics."""

    limits: Mapping[str, float]

    def require_known(self, names: Iterable[str]) -> None:
        """Raise UnknownName if a tolerance is of a metric that is not compared."""
        valid = sorted({*names})
        known = {"", *map(normalize_name, valid)}
        for metric in self.limits:
            if normalize_name(metric) not in known:
                message = f"no compared metric is called {metric!r}"
                raise UnknownName(message, where=_OPTION, remedy=suggest(metric, valid))

    def find_limit(self, names: Sequence[str], default: float = math.inf) -> float:
        """Return the tolerance of a metric, or the default if it has none.

        The first of its names that has a tolerance counts, and the last tolerance of that name.

        >>> tolerances = Tolerances({"": 0.1, "nDCG": 0.01})
        >>> tolerances.find_limit(["nDCG@10", "nDCG"]), tolerances.find_limit(["HR@10", "HR"])
        (0.01, 0.1)
        """
        by_name = {normalize_name(metric): limit for metric, limit in self.limits.items()}
        found = (by_name.get(normalize_name(name)) for name in (*names, ""))
        return next((limit for limit in found if limit is not None), default)


def parse_tolerances(texts: Iterable[str]) -> Tolerances:
    """Return the tolerances in texts such as ``0.05`` and ``nDCG@10=0.05``.

    >>> parse_tolerances(["0.1", "nDCG(by=gender, gap=difference)@10=0.05"]).limits
    {'': 0.1, 'nDCG(by=gender, gap=difference)@10': 0.05}

    Raises:
        WrongType: One has no number.
        OutOfRange: A number is negative.
    """
    limits: dict[str, float] = {}
    for text in texts:
        metric, _, number = text.rpartition("=")
        try:
            limit = float(number)
        except ValueError:
            remedy = f"write {_OPTION} 0.05, or {_OPTION} nDCG=0.05"
            raise WrongType(f"{text!r} has no number", where=_OPTION, remedy=remedy) from None
        if not 0 <= limit < math.inf:
            message = f"must be at least 0, found {number}"
            raise OutOfRange(message, where=_OPTION, remedy="give 0.05")
        limits[metric.strip()] = limit
    return Tolerances(limits)


def measure_worsening(old: float, new: float, direction: Direction) -> float:
    """Return how much worse a new value is than the old one; negative if it is better.

        old - new    if higher is better
        new - old    if lower is better
        |new| - |old|  if 0 is best, and for metrics without a better direction

    Infinite if only the new value is undefined; 0 if the old one is undefined.

    >>> measure_worsening(0.5, 0.25, "higher"), measure_worsening(-0.5, 0.25, "none")
    (0.25, -0.25)
    """
    if math.isnan(old) or math.isnan(new):
        return math.inf if math.isnan(new) and not math.isnan(old) else 0.0
    judged: Direction = "zero" if direction == "none" else direction
    return to_loss(new, judged) - to_loss(old, judged)


def _read_title(row: Mapping[str, Any]) -> str:
    return format_title(row["metric"], float(row["k"] or "nan"))


def find_worse_values(
    pair: RunPair, definitions: Mapping[str, Definition], tolerances: Tolerances
) -> list[dict[str, Any]]:
    """Return the values of two runs that became worse by more than their tolerance."""
    excesses = []
    for row in to_records(pair.rows[~is_incomparable(pair.rows)]):
        title = _read_title(row)
        metric = definitions[title]
        limit = tolerances.find_limit(metric.names)
        worsening = measure_worsening(row["value_a"], row["value_b"], metric.direction)
        if worsening > limit + _ROUNDING:
            names = ("model", "dataset", "seed", "fold", "group", "target", "a", "b")
            excesses.append(
                {
                    "metric": title,
                    **{name: row[name] for name in names},
                    "old": row["value_a"],
                    "new": row["value_b"],
                    "direction": metric.direction,
                    "worse_by": worsening,
                    "tolerance": limit,
                }
            )
    return excesses


def find_missing_values(
    pair: RunPair, definitions: Mapping[str, Definition], tolerances: Tolerances
) -> list[dict[str, Any]]:
    """Return the metrics of each model with a tolerance whose values a later run lacks.

    Those that it has of other queries, and cannot be compared, are ``incomparable``.
    """
    rows = []
    different = pair.rows[is_incomparable(pair.rows)]
    for reason, table in {"missing": pair.missing, "incomparable": different}.items():
        counts = Counter(
            (title, row["model"])
            for row in to_records(table)
            if math.isfinite(tolerances.find_limit(definitions[title := _read_title(row)].names))
        )
        sides = {"a": pair.a.label, "b": pair.b.label}
        rows += [
            {"metric": title, "model": model, **sides, reason: n}
            for (title, model), n in counts.items()
        ]
    return rows


def find_distant_values(table: pd.DataFrame, tolerances: Tolerances) -> list[dict[str, Any]]:
    """Return the rows of ``compare_published`` whose distance exceeds their tolerance.

    The distance is infinite where only one of the values is undefined.
    """
    excesses = []
    for row in to_records(table):
        title, pair = format_title(row["metric"], row["k"]), (row["measured"], row["published"])
        limit, distance = tolerances.find_limit([title, row["metric"]]), abs(pair[0] - pair[1])
        if math.isnan(distance):
            distance = 0.0 if all(map(math.isnan, pair)) else math.inf
        if distance > limit + _ROUNDING:
            keys = {"metric": title, "model": row["system"], "table": row["table"]}
            values = {name: row[name] for name in ("published", "measured")}
            excesses.append({**keys, **values, "distance": distance, "tolerance": limit})
    return excesses


def list_published_names(table: pd.DataFrame) -> list[str]:
    """Return the names by which a tolerance may select a published metric."""
    rows = to_records(table[["metric", "k"]])
    return [
        name for row in rows for name in (format_title(row["metric"], row["k"]), row["metric"])
    ]


def explain_distance(row: Mapping[str, Any]) -> str:
    """Return the sentence on a value that is too far from the published one."""
    return (
        f"out of tolerance: {row['metric']} of {row['model']} is {row['measured']:.4g}, "
        f"published {row['published']:.4g}: differs by {row['distance']:.4g}, "
        f"more than {row['tolerance']:g}"
    )


def explain_excess(row: Mapping[str, Any], metric: Definition) -> str:
    """Return the sentence on a value that became worse, or that the later run lacks."""
    place = f"out of tolerance: {metric.heading} of {row['model']}:"
    if "missing" in row:
        values = format_count(row["missing"], "value")
        return f"{place} {row['b']} lacks {values} of {row['a']}"
    if "incomparable" in row:
        values = format_count(row["incomparable"], "value")
        return f"{place} not comparable, {values} of {row['b']} of other queries than {row['a']}"
    place = " ".join(filter(None, (row["group"], row["target"])))
    subject = f"{metric.name_values(row['group'])} of {row['model']}"
    subject += f" for {place}" if place else ""
    further = "further from 0" if row["direction"] in {"zero", "none"} else "worse"
    return (
        f"out of tolerance: {subject} is {row['new']:.4g} in {row['b']}, {row['old']:.4g} in "
        f"{row['a']}: {further} by {row['worse_by']:.4g}, more than {row['tolerance']:g}"
    )
