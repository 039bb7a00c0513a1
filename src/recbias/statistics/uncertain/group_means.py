"""Means of a per-query metric for groups that are known as probabilities, and their gaps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Contrast, Measurement, UnitScores
from recbias.core.queries.groups import Groups
from recbias.core.queries.uncertain_groups import UncertainGroups
from recbias.statistics.bootstrap.cluster_bootstrap import bootstrap_t_interval
from recbias.statistics.bootstrap.group_bootstrap import resample_group_sums
from recbias.statistics.group_gaps import measure_gap, orient_gap
from recbias.statistics.intervals import t_interval
from recbias.statistics.uncertain.contributions import (
    GroupContributions,
    count_df,
    measure_contributions,
)

ROUNDING = 1e-12
"""Errors below this share of the means are rounding errors and count as 0."""

TEST = "uncertain_t"
"""The name of the test of two groups that are known as probabilities."""


def summarize_uncertain_groups(
    measurement: Measurement, groups: UncertainGroups, *, reference: int = -1
) -> list[Measurement]:
    """Return the estimated mean of each group; pairs are compared by ``compare_contributions``.

    ``n`` counts the queries with a value and a probability, for every group. The values of the
    units are their contributions. The tests are contrasts of the first group.
    """
    units = _require_units(measurement)
    measured = measure_contributions(units.values, groups)
    rows = []
    for code, name in enumerate(groups.names):
        scores = replace(units, values=measured.values[:, code], share=False)
        row = Measurement.from_units(scores, group=name, target=measurement.target)
        error = row.std / math.sqrt(row.n) if row.n else math.nan
        low, high = _make_interval(row.value, error, float(measured.df[code]))
        rows.append(replace(row, ci_low=low, ci_high=high))
    tests = [
        compare_contributions(groups.names, measured, pair)
        for pair in _list_pairs(len(rows), reference)
    ]
    rows[0] = replace(rows[0], contrasts=tuple(tests))
    return rows


def compare_pooled_contributions(
    groups: Sequence[Measurement], *, reference: str = ""
) -> list[Contrast]:
    """Return the tests of groups whose units have their mean contribution over folds or seeds.

    As ``summarize_uncertain_groups``, with n - 1 degrees of freedom and without an effect size.
    """
    names = [group.group for group in groups]
    at = names.index(reference) if reference in names else -1
    values = [_require_units(group).values for group in groups]
    return [
        contrast_contributions((names[a], names[b]), values[a], values[b], groups[a].n - 1.0)
        for a, b in _list_pairs(len(names), at)
    ]


def _list_pairs(n: int, reference: int) -> list[tuple[int, int]]:
    """Return the groups a and b of each comparison; b is the reference if there is one."""
    if reference >= 0:
        return [(code, reference) for code in range(n) if code != reference]
    return list(combinations(range(n), 2))


def _make_interval(value: float, error: float, df: float) -> tuple[float, float]:
    low, high = t_interval(value, error * math.sqrt(df + 1.0), df + 1.0)
    return float(low), float(high)


def compare_contributions(
    names: tuple[str, ...], measured: GroupContributions, pair: tuple[int, int]
) -> Contrast:
    """Return the t-test of two groups that are known as probabilities.

        t = (m_a - m_b) / se,    se² = Var(z_a - z_b) / n,    df by ``count_df``

    The queries are the same for both groups, so the contributions are subtracted first. The effect
    size is Cohen's d, with the expected variances of the values about the fit within both groups.
    p is NaN without variance. ``n`` counts each query once.
    """
    a, b = pair
    weights = measured.weights[:, a] - measured.weights[:, b]
    df = float(count_df(weights, 2)) if weights.any() else math.nan
    total = float(measured.spread[[a, b]].sum())
    size = float(measured.expected[[a, b]].sum()) - 2.0
    effect_std = math.sqrt(total / size) if size > 0 else math.nan
    test = contrast_contributions(
        (names[a], names[b]), measured.values[:, a], measured.values[:, b], df
    )
    effect = test.difference / effect_std if effect_std > 0 else math.nan
    return replace(test, effect_size=effect)


def contrast_contributions(
    sides: tuple[str, str], of_a: FloatArray, of_b: FloatArray, df: float
) -> Contrast:
    """Return the t-test of the mean difference of contributions, without an effect size."""
    from scipy.special import stdtr

    defined = ~np.isnan(of_a - of_b)
    n = int(np.count_nonzero(defined))
    summary = Measurement.from_values((of_a - of_b)[defined])
    means = [Measurement.from_values(side[defined]).value for side in (of_a, of_b)]
    error = summary.std / math.sqrt(n) if n > 1 else math.nan
    is_tested = error > ROUNDING * max(map(abs, means)) and df >= 1.0
    t = summary.value / error if is_tested else math.nan
    low, high = _make_interval(summary.value, error if is_tested else math.nan, df)
    return Contrast(
        between="groups",
        a=sides[0],
        b=sides[1],
        test=TEST,
        n=n,
        mean_a=means[0],
        mean_b=means[1],
        difference=summary.value,
        statistic=t,
        p=float(2.0 * stdtr(df, -abs(t))) if is_tested else math.nan,
        df=df,
        ci_low=low,
        ci_high=high,
    )


def compute_uncertain_gap(
    measurement: Measurement,
    groups: UncertainGroups,
    kind: Literal["difference", "ratio", "std"],
    *,
    rng: np.random.Generator,
    n_samples: int = 1000,
) -> Measurement:
    """Return the gap between the estimated means, as ``group_gaps.compute_gap``.

    The bootstrap samples the contributions of all queries together. Its standard error has the
    degrees of freedom of the test. More than two groups have no interval and no test of all.
    """
    units = _require_units(measurement)
    measured = measure_contributions(units.values, groups)
    value = float(measure_gap(measured.means[None, :], kind)[0])
    n = 0 if math.isnan(value) else int(np.count_nonzero(~np.isnan(measured.values).any(axis=1)))
    gap = Measurement(value, n, units.values.size - n, target=measurement.target)
    if len(groups.names) != 2 or math.isnan(value):
        return gap
    test = compare_contributions(groups.names, measured, (0, 1))
    if kind == "difference":
        gap = replace(gap, contrasts=(test,))
    if math.isnan(test.p):
        return gap
    samples = orient_gap(_resample(measured.values, n_samples, rng), measured.means, kind)
    df = float(math.floor(test.df))
    low, high = (float(bound) for bound in bootstrap_t_interval(value, samples, df))
    low, high = max(low, 0.0), min(high, 1.0) if kind == "ratio" else high
    return replace(gap, replicates=samples, df=df, ci_low=low, ci_high=high)


def _resample(contributions: FloatArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Return the means of bootstrap samples of the contributions, ``float64[b, g]``."""
    columns = np.column_stack([np.ones(len(contributions)), contributions])
    columns[np.isnan(contributions).any(axis=1)] = 0.0
    everybody = Groups("", ("all",), np.zeros(len(columns), dtype=np.int32), (("all",),))
    sums = resample_group_sums(columns, everybody, n_samples, rng)[:, 0]
    return np.asarray(sums[:, 1:] / np.maximum(sums[:, :1], 1.0))


def _require_units(measurement: Measurement) -> UnitScores:
    if measurement.units is None:
        message = "a metric without a value for each query cannot be grouped"
        raise ValueError(message)
    return measurement.units
