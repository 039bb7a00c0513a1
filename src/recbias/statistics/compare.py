"""Comparison of all pairs of systems, corrected within a family: ``significance.csv``."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset import AnyArray, FloatArray, Ids
from recbias.core.files import make_generator
from recbias.core.grouping import JOIN
from recbias.core.measures import PAIR_COLUMNS, SIGNIFICANCE, Contrast
from recbias.statistics import bootstrap, spread
from recbias.statistics.paired import (
    CorrectedTest,
    PairedT,
    PairedTest,
    adjust_distinct,
    count_tests,
    list_pairs,
)

ESTIMATE_KEYS = ("dataset", "seed", "fold", "metric", "k", "group", "target")
"""The columns that identify an estimate."""


@dataclass(frozen=True, eq=False)
class SystemEstimates:
    """The estimates of one quantity for all systems, measured on the same units.

    Args:
        values: The value of each unit, ``float64[s, u]``; None for a metric of the whole set.
        points: The estimates, ``float64[s]``.
        replicates: The estimate on each bootstrap sample of the queries, ``float64[s, b]``, with
            the same samples for all systems; for metrics of the whole set.
        keys: Dataset, seed, fold, metric, k, group and target.
        n: The number of queries, for a metric of the whole set.
        df: Degrees of freedom of the bootstrap standard error; NaN for the normal distribution.
        ids: The units, ``[u]``; None if they are not known.
        parts: For gaps of several groups the mean of each group, and its bootstrap samples,
            ``float64[s, g, 1 + b]``.
    """

    systems: tuple[str, ...]
    values: FloatArray | None
    points: FloatArray
    replicates: FloatArray | None
    keys: Mapping[str, object]
    n: int | None = None
    df: float = math.nan
    ids: Ids | None = None
    parts: FloatArray | None = None

    @property
    def comparable(self) -> bool:
        """Whether there are two systems, and values or replicates to compare them by."""
        evidence = (self.values, self.replicates, self.parts)
        return len(self.systems) > 1 and any(each is not None for each in evidence)


@dataclass(frozen=True, eq=False)
class ModelContrasts:
    """The tests that one metric made within one model, each with its group and target: one family.

    ``keys`` are dataset, model, seed, fold, metric and k.
    """

    keys: Mapping[str, object]
    contrasts: Sequence[tuple[str, str, Contrast]]


def _identify_estimate(estimate: SystemEstimates) -> Hashable:
    """Return what estimates of the same units and values share; None if units are not known.

    Two estimates are the same if they differ in the group only, and the groups hold the same
    units: a category that is the only one, beside all units. Then each test of one is that of the
    other.
    """
    if estimate.values is None or estimate.ids is None:
        return None
    content = sha256(np.ascontiguousarray(estimate.values).tobytes())
    content.update(pd.util.hash_array(estimate.ids).tobytes())
    keys = (str(estimate.keys[key]) for key in ESTIMATE_KEYS if key != "group")
    return (*keys, estimate.systems, estimate.points.tobytes(), content.digest())


def _find_same_contrasts(contrasts: Sequence[tuple[str, str, Contrast]]) -> list[int]:
    """Return, for each test of a metric within a model, the number of the first that is the same.

    The test of a group is that of the whole if its sides are those of the whole within the group
    (``category=age&group=T1`` and ``group=T1``), with as many units and the same means: then the
    group holds all units.
    """
    wholes: dict[tuple[Hashable, ...], int] = {}
    for number, (group, target, contrast) in enumerate(contrasts):
        if not group:
            wholes.setdefault(_identify_contrast(group, target, contrast), number)
    return [
        wholes.get(_identify_contrast(*contrast), number)
        for number, contrast in enumerate(contrasts)
    ]


def _identify_contrast(group: str, target: str, contrast: Contrast) -> tuple[Hashable, ...]:
    """Return what the test of the whole and that of a group with all its units share."""
    sides = (side.removeprefix(f"{group}{JOIN}") for side in (contrast.a, contrast.b))
    means = (contrast.mean_a, contrast.mean_b, contrast.difference)
    return (target, contrast.test, contrast.between, *sides, contrast.n, *means)


_REQUESTED = "requested"
"""The column with the test of the spec; ``test`` may name another one for some comparisons."""

_FAMILY_KEYS = ["dataset", "between", "seed", "fold", "metric", "k", _REQUESTED]
"""The columns that the comparisons of the family ``metric`` share, whatever model and group."""


def compare(
    estimates: Sequence[SystemEstimates],
    test: PairedTest,
    *,
    name: str,
    seed: int,
    model_contrasts: Sequence[ModelContrasts] = (),
    label: str = "",
) -> pd.DataFrame:
    """Compare all pairs of systems on each quantity and correct the p-values within families.

    Estimates with per-unit values are tested by ``test``, estimates with replicates by the paired
    bootstrap at the same level and with the same correction. Estimates with neither, or of one
    system only, have no row.

    The family ``metric`` of the test is all pairs of systems on one metric, over all groups and
    targets, and of ``model_contrasts`` those of one metric and kind of test, over all models. With
    ``against``, a pair is another system and this one, and quantities that it lacks have no row.
    ``report`` is
    all comparisons; an integer is the family size itself. A comparison without a p-value (NaN)
    does not count. A group that holds all units of the whole, or of another group, is not tested
    again: its rows repeat the numbers of the first, and both count as one test. Each quantity has
    a generator of its own from ``seed`` and the ``name`` of the test, so that it does not depend
    on what else is compared. The column ``test`` has the ``label``, by default the name.

    Returns:
        The columns of ``significance.csv``, one row per pair: (0, 1), (0, 2), ..., (1, 2), ...
        ``n``, ``k`` and ``family_size`` are ``Int64``, missing where they do not apply.
    """
    against = getattr(test, "against", None)
    compared = [_move_last(estimate, against) for estimate in estimates if estimate.comparable]
    compared = [row for row in compared if against in {None, row.systems[-1]}]
    results: list[Mapping[str, AnyArray]] = []
    numbers: list[AnyArray] = []
    firsts: dict[Hashable, int] = {}
    n_tests = 0
    for number, estimate in enumerate(compared):
        content = _identify_estimate(estimate)
        if content is not None and (first := firsts.setdefault(content, number)) < number:
            results.append(results[first])
            numbers.append(numbers[first])
            continue
        columns = _test_pairs(estimate, test, name=name, seed=seed)
        if against is not None:
            is_named = columns["b"] == len(estimate.systems) - 1
            columns = {column: values[is_named] for column, values in columns.items()}
        results.append(columns)
        numbers.append(n_tests + np.arange(columns["p"].size))
        n_tests += columns["p"].size
    keys = _collect_keys(compared, results, label or name)
    return _build_table(keys, results, numbers, model_contrasts, test)


def _move_last(estimate: SystemEstimates, system: str | None) -> SystemEstimates:
    """Return the estimates with one of the systems as the last, where it is there."""
    order = sorted(range(len(estimate.systems)), key=lambda at: estimate.systems[at] == system)
    return _select_systems(estimate, order)


def _select_systems(estimate: SystemEstimates, at: list[int]) -> SystemEstimates:
    select = partial(np.take, indices=at, axis=0)
    return replace(
        estimate,
        systems=tuple(estimate.systems[position] for position in at),
        values=None if estimate.values is None else select(estimate.values),
        points=select(estimate.points),
        replicates=None if estimate.replicates is None else select(estimate.replicates),
        parts=None if estimate.parts is None else select(estimate.parts),
    )


def compare_two(estimate: SystemEstimates, a: str, b: str) -> dict[str, float]:
    """Return the difference of two systems, a - b, with its 95% interval and p-value.

    By Student's paired t-test over the units, or the paired bootstrap of their replicates. The
    columns are ``PAIR_COLUMNS``.
    """
    pair = _select_systems(estimate, [estimate.systems.index(a), estimate.systems.index(b)])
    columns = _test_pairs(pair, PairedT(), name="", seed=0)
    return {name: float(columns[name][0]) for name in PAIR_COLUMNS}


def correct_contrasts(model_contrasts: Sequence[ModelContrasts]) -> pd.DataFrame:
    """Correct the tests that metrics made within models, if no test of models is specified."""
    return _build_table(_collect_keys([], [], ""), [], [], model_contrasts, CorrectedTest())


def _build_table(
    keys: dict[str, list[object]],
    results: Sequence[Mapping[str, AnyArray]],
    numbers: Sequence[AnyArray],
    model_contrasts: Sequence[ModelContrasts],
    level: CorrectedTest | PairedTest,
) -> pd.DataFrame:
    """Return the table; rows of comparisons that are one test have the same of ``numbers``."""
    families = [family for family in model_contrasts if family.contrasts]
    blocks = [*results, *(_tabulate_contrasts(family) for family in families)]
    if not blocks:
        return SIGNIFICANCE.build()
    firsts: list[AnyArray] = [np.concatenate([np.zeros(0, dtype=np.int64), *numbers])]
    n_rows = firsts[0].size
    for family in families:
        _append_contrast_keys(keys, family)
        firsts.append(n_rows + np.array(_find_same_contrasts(family.contrasts), dtype=np.int64))
        n_rows += len(family.contrasts)
    columns = {
        column: np.concatenate([block[column] for block in blocks]) for column in PAIR_COLUMNS
    }
    table = pd.DataFrame({**keys, **columns})
    table = table.assign(**_correct_families(table, level, np.concatenate(firsts)))
    return SIGNIFICANCE.build(table)


def _tabulate_contrasts(family: ModelContrasts) -> Mapping[str, AnyArray]:
    firsts = _find_same_contrasts(family.contrasts)
    rows = [vars(family.contrasts[first][-1]) for first in firsts]
    return {
        column: np.array([row[column] for row in rows], dtype=np.float64)
        for column in PAIR_COLUMNS
    }


def _append_contrast_keys(keys: dict[str, list[object]], family: ModelContrasts) -> None:
    for group, target, contrast in family.contrasts:
        row = {**family.keys, "group": group, "target": target}
        row |= {name: getattr(contrast, name) for name in ("a", "b", "test", "between")}
        row[_REQUESTED] = contrast.test
        for column, values in keys.items():
            values.append(row[column])


def _test_pairs(
    estimate: SystemEstimates, test: PairedTest, *, name: str, seed: int
) -> Mapping[str, AnyArray]:
    if estimate.values is not None and estimate.replicates is None:
        keys = (estimate.keys[key] for key in ESTIMATE_KEYS)
        rng = make_generator(seed, "test", name, *keys)
        return test.pairs(np.asarray(estimate.values, dtype=np.float64), rng)
    if estimate.parts is not None:
        return _compare_gaps(estimate.points, estimate.parts, estimate.df, test.alpha)
    replicates = np.asarray(estimate.replicates, dtype=np.float64)
    columns = bootstrap.compare_replicates(estimate.points, replicates, test.alpha, df=estimate.df)
    if estimate.n is None:
        return columns
    return {**columns, "n": np.full(columns["p"].size, estimate.n)}


def _compare_gaps(
    points: FloatArray, parts: FloatArray, df: float, alpha: float
) -> Mapping[str, AnyArray]:
    """Return the columns of the tests of all pairs of gaps of several groups."""
    a, b = list_pairs(len(points))
    rows = []
    for pair in zip(a, b, strict=True):
        both = parts[list(pair)]
        covariance = np.cov(both[..., 1:].reshape(-1, both.shape[-1] - 1))
        rng = make_generator(0, spread.NAME)
        rows.append(spread.compare_spreads(both[..., 0], covariance, df, alpha, rng))
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    missing = dict.fromkeys(("n", "effect_size"), np.full(a.size, np.nan))
    return {**columns, **missing, "a": a, "b": b, "mean_a": points[a], "mean_b": points[b]}


def _collect_keys(
    estimates: Sequence[SystemEstimates], results: Sequence[Mapping[str, AnyArray]], name: str
) -> dict[str, list[object]]:
    names = (*ESTIMATE_KEYS, "a", "b", "test", _REQUESTED)
    keys: dict[str, list[object]] = {column: [] for column in names}
    for estimate, columns in zip(estimates, results, strict=True):
        n_pairs = columns["p"].size
        for column in ESTIMATE_KEYS:
            keys[column] += [estimate.keys[column]] * n_pairs
        for side in ("a", "b"):
            keys[side] += [estimate.systems[system] for system in columns[side]]
        test_name = name if estimate.replicates is None else bootstrap.NAME
        test_name = test_name if estimate.parts is None else spread.NAME
        keys[_REQUESTED] += [test_name] * n_pairs
        keys["test"] += [
            pair_test or test_name for pair_test in columns.get("test", [""] * n_pairs)
        ]
    n_rows = len(keys["a"])
    return {**keys, "model": [""] * n_rows, "between": ["models"] * n_rows}


def _correct_families(
    table: pd.DataFrame, level: CorrectedTest | PairedTest, tests: AnyArray
) -> dict[str, Any]:
    """Return the columns of ``significance.csv`` that follow from the p-values of all rows.

    They are the adjusted p-value, the correction, the family and its size, the level, and whether
    the adjusted p-value is at most the level. Rows with the same number in ``tests`` are one test.
    """
    p = table["p"].to_numpy(dtype=np.float64)
    families: AnyArray = np.zeros(p.size, dtype=np.int64)
    if level.family == "metric":
        families = table.groupby(_FAMILY_KEYS, sort=False, dropna=False).ngroup().to_numpy()
    fixed_size = level.family if isinstance(level.family, int) else None
    adjusted, sizes = np.empty(p.size), np.empty(p.size)
    for family in range(int(families.max(initial=-1)) + 1):
        rows = np.flatnonzero(families == family)
        adjusted[rows] = adjust_distinct(p[rows], tests[rows], level.correction, fixed_size)
        sizes[rows] = count_tests(p[rows], tests[rows]) if fixed_size is None else fixed_size
    return {
        "p_adjusted": adjusted,
        "correction": level.correction,
        "family": str(level.family),
        "family_size": sizes.astype(np.int64),
        "alpha": level.alpha,
        "significant": adjusted <= level.alpha,
    }
