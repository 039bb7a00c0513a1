"""Group means of a per-query metric, and the gaps between them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.scores import Contrast, Measurement, UnitScores
from recbias.core.queries.groups import Groups
from recbias.statistics.bootstrap.group_bootstrap import (
    list_members,
    resample_group_means,
    resample_shared_queries,
)
from recbias.statistics.intervals import normal_interval
from recbias.statistics.tests.overlapping import overlap_contrasts
from recbias.statistics.tests.pair_moments import list_pairs
from recbias.statistics.tests.unpaired import (
    Moments,
    Pairs,
    compute_moments,
    welch_anova,
    welch_contrasts,
)

MAX_PAIRS = 500
"""With more pairs of groups, pairs are not tested: few would be significant after correction."""


def summarize_groups(
    measurement: Measurement, groups: Groups, *, min_group: int = 0, reference: int = -1
) -> list[Measurement]:
    """Return the mean of each group; pairs of groups are compared by Welch's t-test.

    ``n`` counts the queries of the group with a defined value, ``undefined`` the others; the
    interval is the t interval of the group's mean. Groups of fewer than ``min_group`` defined
    values are not compared. With a ``reference``, each other group is compared with it, else each
    pair. Groups that share queries are compared by ``overlap_contrasts``. The tests are contrasts
    of the first group.
    """
    units = _require_units(measurement)
    measurements = []
    for code, name in enumerate(groups.names):
        queries = groups.find_rows(code)
        group_units = replace(units, ids=units.ids[queries], values=units.values[queries])
        measurements.append(
            Measurement.from_units(group_units, group=name, target=measurement.target)
        )
    sizes = np.array([group.n for group in measurements])
    pairs = list_group_pairs(sizes, min_group, reference)
    if 0 < pairs[0].size <= MAX_PAIRS:
        tests = _compare_groups(units.values, groups, pairs)
        measurements[0] = replace(measurements[0], contrasts=tuple(tests))
    return measurements


def list_group_pairs(sizes: AnyArray, min_group: int, reference: int) -> Pairs:
    """Return the groups a and b of each comparison; b is the reference if there is one."""
    compared = np.flatnonzero(sizes >= min_group)
    if reference >= 0:
        others = compared[compared != reference] if reference in compared else compared[:0]
        return others, np.full(others.size, reference)
    a, b = list_pairs(compared.size)
    return compared[a], compared[b]


def _compare_groups(values: FloatArray, groups: Groups, pairs: Pairs) -> list[Contrast]:
    if not groups.overlap:
        moments = compute_moments(_repeat(values, groups), groups.codes, len(groups.names))
        return welch_contrasts(groups.names, moments, between="groups", pairs=pairs)
    members = list_members(groups, values.size)
    return overlap_contrasts(groups.names, values, members, between="groups", pairs=pairs)


def _repeat(values: FloatArray, groups: Groups) -> FloatArray:
    """Return the value of each membership."""
    return values if groups.rows is None else values[groups.rows]


def compute_gap(
    measurement: Measurement,
    groups: Groups,
    kind: Literal["difference", "ratio", "std"],
    *,
    rng: np.random.Generator,
    n_samples: int = 1000,
    min_group: int = 0,
) -> Measurement:
    """Return the gap between the group means, as one number.

        difference = max_g m_g - min_g m_g,    ratio = min_g m_g / max_g m_g,
        std = sqrt((1 / (G - 1)) Σ_g (m_g - mean of m)²)

    The gap of two groups has the normal interval of a stratified bootstrap of the queries, within
    the range of the gap. The samples are of the signed difference, since the absolute one varies
    less near 0. The gap of more than two groups has no interval, and models are not compared by
    it: the largest of several differences is positive by chance, and larger for models whose
    values vary more.
    A contrast of ``difference`` tests whether the groups differ: of two groups the test of
    ``summarize_groups``, of more Welch's analysis of variance, whose sides are the groups with the
    largest and the smallest mean. The gap is
    undefined if a group has no defined value or there is only one group; the ratio also if a mean
    is negative or the largest is 0. There is no interval if a group has one query or all samples
    are equal. ``rng`` is the same for all models that are compared.

    Groups of fewer than ``min_group`` defined values are excluded. If that excludes other groups
    than the numbers of queries would, the gap has no samples, since other models may have other
    groups. If groups share queries, there is no analysis of variance, and the bootstrap of two
    groups is not stratified: it samples the queries of both together.
    """
    units = _require_units(measurement)
    values, is_large = units.values, groups.counts >= min_group
    sizes = compute_moments(_repeat(values, groups), groups.codes, len(groups.names)).n
    is_same = bool(((sizes >= min_group) == is_large).all())
    groups = groups.select(np.flatnonzero(sizes >= min_group))
    group_moments = compute_moments(_repeat(values, groups), groups.codes, len(groups.names))
    value = float(measure_gap(group_moments.mean[None, :], kind)[0])
    defined = 0 if math.isnan(value) else _count_queries(values, groups)
    gap = Measurement(
        value=value,
        n=defined,
        undefined=int(units.values.size) - defined,
        target=measurement.target,
        contrasts=_test_gap(values, groups, group_moments) if kind == "difference" else (),
    )
    if group_moments.n.size != 2 or math.isnan(value) or (group_moments.n < 2).any():
        return gap
    resample = resample_shared_queries if groups.overlap else resample_group_means
    replicates = orient_gap(resample(values, groups, n_samples, rng), group_moments.mean, kind)
    low, high = (float(bound) for bound in normal_interval(value, replicates))
    if high <= low:
        low = high = math.nan
    low, high = max(low, 0.0), min(high, 1.0) if kind == "ratio" else high
    return replace(gap, replicates=replicates if is_same else None, ci_low=low, ci_high=high)


def _count_queries(values: FloatArray, groups: Groups) -> int:
    """Return the number of queries of the groups with a defined value, each counted once."""
    members = np.flatnonzero(groups.codes >= 0)
    rows = members if groups.rows is None else np.unique(groups.rows[members])
    return int(np.count_nonzero(~np.isnan(values[rows])))


def _test_gap(values: FloatArray, groups: Groups, group_moments: Moments) -> tuple[Contrast, ...]:
    """Return the test of all groups; none if more than two groups share queries."""
    if group_moments.n.size == 2:
        pairs = np.array([0]), np.array([1])
        return tuple(_compare_groups(values, groups, pairs)) if group_moments.n.all() else ()
    return () if groups.overlap else tuple(compare_all_groups(groups.names, group_moments))


def compare_all_groups(names: tuple[str, ...], group_moments: Moments) -> list[Contrast]:
    """Return Welch's analysis of variance of the groups of at least two values.

    A group of one value has no variance. The sides of the contrast have the largest and the
    smallest mean of the groups that are compared, and its n counts their values.
    """
    has_variance = group_moments.n > 1
    if np.isnan(group_moments.mean).any() or np.count_nonzero(has_variance) < 2:
        return []
    names = tuple(np.array(names, dtype=object)[has_variance].tolist())
    group_moments = Moments(*(part[has_variance] for part in vars(group_moments).values()))
    mean = group_moments.mean
    top, bottom = int(mean.argmax()), int(mean.argmin())
    statistic, df, p = welch_anova(group_moments)
    return [
        Contrast(
            between="groups",
            a=names[top],
            b=names[bottom],
            test="welch_anova",
            n=int(group_moments.n.sum()),
            mean_a=float(mean[top]),
            mean_b=float(mean[bottom]),
            difference=float(mean[top] - mean[bottom]),
            statistic=statistic,
            p=p,
            df=df,
        )
    ]


def _require_units(measurement: Measurement) -> UnitScores:
    if measurement.units is None:
        message = "a metric without a value for each query cannot be grouped"
        raise ValueError(message)
    return measurement.units


def measure_gap(means: FloatArray, kind: str) -> FloatArray:
    """Return the gap of each row of group means, ``float64[b]``; NaN where a mean is NaN.

    ``kind`` is ``difference``, ``ratio`` or ``std``, as in ``compute_gap``.

    >>> measure_gap(np.array([[0.2, 0.5]]), "ratio").tolist()
    [0.4]
    """
    if means.shape[1] < 2:
        return np.full(len(means), np.nan)
    low, high = means.min(axis=1), means.max(axis=1)
    if kind == "difference":
        return np.asarray(high - low)
    if kind == "std":
        return np.asarray(means.std(axis=1, ddof=1))
    undefined = np.full(low.shape, np.nan)
    return np.asarray(np.divide(low, high, out=undefined, where=(low >= 0) & (high > 0)))


def orient_gap(means: FloatArray, observed: FloatArray, kind: str) -> FloatArray:
    """Return the signed gap of each row of two means, ``float64[b]``.

    It is negative, or a ratio above 1, where the other group than in the ``observed`` means is the
    higher one.
    """
    low, high = means[:, int(observed.argmin())], means[:, 1 - int(observed.argmin())]
    if kind == "ratio":
        undefined = np.full(low.shape, np.nan)
        return np.asarray(np.divide(low, high, out=undefined, where=(low >= 0) & (high > 0)))
    return np.asarray((high - low) / (math.sqrt(2) if kind == "std" else 1.0))
