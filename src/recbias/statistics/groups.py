"""Group means of a metric with a value for each query, the gaps between them, and their tests.

Groups may share units, and may be pooled over several seeds or folds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.dataset import AnyArray, FloatArray, count_distinct, divide
from recbias.core.grouping import Groups, order_labels
from recbias.core.measures import Contrast, Measurement, UnitScores, linearize_ratio
from recbias.statistics.bootstrap import resample_group_means, resample_shared_units
from recbias.statistics.intervals import compare_share_ratio, compare_shares, solve_fieller
from recbias.statistics.paired import ROUNDING, list_pairs
from recbias.statistics.prediction_powered import (
    Audit,
    CorrectedMeans,
    compare_corrected,
    resample_corrected,
)
from recbias.statistics.spread import MOST_COMPARED, compare_trend, estimate_spread

LEAST_VALUES = 5
"""From this many values in each group on, the interval of a gap holds the truth in 95 of 100."""

_MEANS = "m_g is the mean over the queries of g of"
_VALUES = "x is, for each query,"
_ATKINSON = "e_g = (mean of √x over g)²"

DIFFERENCES = frozenset({"difference", "std", "ugf", "mad"})
"""The gaps that are at most as wide as the range of the metric; ``std`` divided by √2."""


class _GapDefinition(NamedTuple):
    """The words for a gap, its formula, what the formula is of, and its range."""

    text: str
    formula: str
    subject: str
    values: str


UNCERTAIN_MEANS = {
    "probability": "m = (P'P)⁻¹ P'x with the probabilities P of the groups and the values x: "
    "right if x is independent of the probability given the group",
    "weight": "m_g = Σ p_g x / Σ p_g with the probabilities p_g of the groups and the values x: "
    "right if x is independent of the group given the probability",
}
"""The means of groups that are known as probabilities, by what is assumed."""

DEFINITIONS = {
    "difference": _GapDefinition(
        "difference between the largest and the smallest mean",
        "max m_g - min m_g",
        _MEANS,
        "0 or more; 0 if all means are equal",
    ),
    "ratio": _GapDefinition(
        "ratio of the smallest to the largest mean",
        "min m_g / max m_g",
        _MEANS,
        "0 to 1; 1 if all means are equal; undefined if a mean is negative",
    ),
    "std": _GapDefinition(
        "standard deviation of the means",
        "std of the m_g",
        _MEANS,
        "0 or more; 0 if all means are equal",
    ),
    "ugf": _GapDefinition(
        "absolute difference between the means (UGF, Li et al., WWW 2021)",
        "|m_1 - m_2|",
        _MEANS,
        "0 or more; 0 if both means are equal",
    ),
    "mad": _GapDefinition(
        "mean absolute difference between the means of two groups (Deldjoo et al., UMUAI 2021)",
        "mean of |m_g - m_h| over all pairs",
        _MEANS,
        "0 or more; 0 if all means are equal",
    ),
    "cross_entropy": _GapDefinition(
        "generalised cross entropy of the means (β = 2; minus that of Deldjoo et al., UMUAI 2021)",
        "( Σ_g f² / p_g - 1 ) / 2 with p_g = m_g / Σ_h m_h and f = 1 / G",
        _MEANS,
        "0 or more; 0 if all means are equal; undefined for negative values or a mean of 0",
    ),
    "atkinson": _GapDefinition(
        "Atkinson index of the groups' equally distributed equivalents (ε = 0.5)",
        f"1 - ( Σ_g w_g √e_g )² / Σ_g w_g e_g with {_ATKINSON} and w_g the share of the queries",
        _VALUES,
        "0 to 1; 0 if the groups are equal; undefined for negative values or if all are 0",
    ),
    "atkinson_within": _GapDefinition(
        "Atkinson index within the groups (ε = 0.5)",
        f"Σ_g s_g ( 1 - e_g / m_g ) with {_ATKINSON} and s_g the share of the sum of x",
        _VALUES,
        "0 to 1; 0 if all values of each group are equal; undefined for negative values",
    ),
    "atkinson_total": _GapDefinition(
        "Atkinson index of all queries, within and between the groups (ε = 0.5)",
        "1 - (mean of √x)² / mean of x",
        _VALUES,
        "0 to 1; 0 if all values are equal; undefined for negative values or if all are 0",
    ),
    "worst": _GapDefinition("mean of the worst", "the worst m_g", _MEANS, ""),
    "worst_quarter": _GapDefinition(
        "mean of the worst quarter",
        "mean of the m_g that are not better than a quarter of them",
        _MEANS,
        "",
    ),
}
"""The definitions of the gaps, by name; one without a range has that of the metric."""


_Pairs: TypeAlias = tuple[AnyArray, AnyArray]
"""The groups a and the groups b of some comparisons."""


@dataclass(frozen=True, eq=False)
class _Moments:
    """The number, mean and sample variance (n - 1) of the defined values of each group, ``[g]``.

    The mean is NaN without a value, the variance below two.
    """

    n: AnyArray
    mean: FloatArray
    variance: FloatArray


def compute_moments(values: FloatArray, codes: AnyArray, n_groups: int) -> _Moments:
    """Return the moments of each group of ``values[n]``; NaN and values of group -1 are excluded.

    >>> moments = compute_moments(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1]), 2)
    >>> moments.n.tolist(), moments.mean.tolist(), moments.variance.tolist()
    ([2, 1], [2.0, 5.0], [2.0, nan])
    """
    included = (codes >= 0) & ~np.isnan(values)
    values, codes = values[included], codes[included]
    n = np.bincount(codes, minlength=n_groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(codes, weights=values, minlength=n_groups) / n
        squares = np.bincount(codes, weights=(values - mean[codes]) ** 2, minlength=n_groups)
        variance = np.where(n > 1, squares / (n - 1), np.nan)
    return _Moments(n, mean, variance)


@dataclass(frozen=True, eq=False)
class Members:
    """The members of groups: queries, or the units of several seeds and folds.

    Args:
        codes: The group of each membership, ``int[m]``.
        units: The unit of each membership, ``int[m]``; one in several groups has several.
        values: The value of each membership, ``float64[m]``; NaN if undefined.
        n_units: The number of units, also of those without a group.
        share: Whether every value is 0 or 1.
        audit: The errors that corrected values share, a row for each membership.
    """

    names: tuple[str, ...]
    codes: AnyArray
    units: AnyArray
    values: FloatArray
    n_units: int
    target: str = ""
    share: bool = False
    audit: Audit | None = None

    @classmethod
    def of_queries(cls, measurement: Measurement, groups: Groups) -> Self:
        """Return the queries of each group, with their values."""
        scores, inside = get_units(measurement), np.flatnonzero(groups.codes >= 0)
        rows = inside if groups.rows is None else groups.rows[inside]
        part, fields = scores.take(rows), (measurement.target, scores.share)
        n_units, codes = scores.values.size, groups.codes[inside]
        values = part.values
        if part.totals is not None:
            for code in range(len(groups.names)):
                values[codes == code] = linearize_ratio(part.totals[codes == code])
        return cls(groups.names, codes, rows, values, n_units, *fields, part.errors)

    @classmethod
    def of_pooled(cls, groups: Sequence[Measurement]) -> Self:
        """Return the units of pooled groups, with their means over seeds and folds."""
        names, scores = tuple(group.group for group in groups), [*map(get_units, groups)]
        codes = np.repeat(np.arange(len(names)), [row.values.size for row in scores])
        values = np.concatenate([row.values for row in scores])
        ids, units = np.unique(np.concatenate([row.ids for row in scores]), return_inverse=True)
        share = all(row.share for row in scores)
        audit = _stack_audits(scores)
        return cls(names, codes, units, values, ids.size, groups[0].target, share, audit)

    @cached_property
    def moments(self) -> _Moments:
        """The number, mean and variance of the defined values of each group."""
        return compute_moments(self.values, self.codes, len(self.names))

    @cached_property
    def corrected(self) -> CorrectedMeans | None:
        """The means of corrected values, with their errors; None for other values."""
        if self.audit is None:
            return None
        return self.audit.estimate(self.values, self.codes, len(self.names))

    @cached_property
    def overlap(self) -> bool:
        """Whether a unit is in several groups."""
        return count_distinct(self.units) < self.units.size

    @property
    def n_defined(self) -> int:
        """The number of units of the groups with a defined value, each counted once."""
        return count_distinct(self.units[~np.isnan(self.values)])

    def tabulate(self) -> FloatArray:
        """Return the value of each unit in each group, ``float64[g, u]``; NaN if it has none."""
        table = np.full((len(self.names), self.n_units), np.nan)
        table[self.codes, self.units] = self.values
        return table

    def select_large(self, least: int) -> tuple[Self, bool]:
        """Return the groups of at least so many defined values, and if all models have these."""
        counts = np.bincount(self.codes, minlength=len(self.names))
        is_large = self.moments.n >= least
        recode = np.cumsum(is_large) - 1
        inside = is_large[self.codes]
        large = replace(
            self,
            names=tuple(name for name, kept in zip(self.names, is_large, strict=True) if kept),
            codes=recode[self.codes[inside]],
            units=self.units[inside],
            values=self.values[inside],
            audit=None if self.audit is None else self.audit.take(np.flatnonzero(inside)),
        )
        return large, bool((is_large == (counts >= least)).all())


_FEW, _BESIDE = 20, 5


def mark_few_beside_many(sizes: AnyArray) -> AnyArray:
    """Return which groups have so few values beside many that skewed ones make intervals narrow.

    They have 5 to 19 values beside at least 5 times as many (studies/calibration).
    """
    is_few = (sizes >= LEAST_VALUES) & (sizes < _FEW)
    return np.asarray(is_few & (sizes * _BESIDE <= sizes.max(initial=0)))


def _mark_constant(moments: _Moments) -> AnyArray:
    """Return which groups have at least two values, all equal up to rounding."""
    with np.errstate(invalid="ignore"):
        return (moments.n > 1) & (np.sqrt(moments.variance) <= ROUNDING * np.abs(moments.mean))


def _fill_pairs(moments: _Moments, pairs: _Pairs) -> tuple[FloatArray, FloatArray]:
    """Return the variances of the sides of pairs; of a side of equal values that of the other."""
    a, b = pairs
    variance, is_constant = moments.variance, _mark_constant(moments)
    return (
        np.where(is_constant[a], variance[b], variance[a]),
        np.where(is_constant[b], variance[a], variance[b]),
    )


def _fill_variance(moments: _Moments) -> FloatArray:
    """Return the variance of each group; of one of equal values that within the others."""
    is_constant = _mark_constant(moments)
    spread = (moments.n > 1) & ~is_constant
    if not is_constant.any() or not spread.any():
        return moments.variance
    weights = (moments.n - 1)[spread]
    pooled = (weights * moments.variance[spread]).sum() / weights.sum()
    return np.where(is_constant, pooled, moments.variance)


def welch_contrasts(
    names: tuple[str, ...], moments: _Moments, *, between: str, pairs: _Pairs | None = None
) -> list[Contrast]:
    """Compare all pairs of groups by Welch's t-test, which allows unequal variances.

        t = (m_a - m_b) / sqrt(s_a^2/n_a + s_b^2/n_b),    two-sided,

    with Satterthwaite's degrees of freedom. A group whose values are all equal has the variance of
    the other one: five zeros beside values of which most are 0 are no sign of a group without
    spread. The effect size is Cohen's d, with the pooled standard deviation. t, p and the interval
    are NaN if a group has fewer than two values, or if the values within both groups are equal, up
    to rounding: there is no standard error then. If such groups differ, p is the exact one of the
    permutation of their labels: the share of the divisions into groups of these sizes that are as
    far apart, 1 of C(n, n_a), or 2 if both have one size.
    ``between`` is the kind of groups: ``groups`` for queries. ``pairs`` are the groups a and b of
    each comparison, all pairs by default.

    Source:
        Welch, "The generalization of Student's problem when several different population variances
        are involved", Biometrika 1947.
    """
    a, b = list_pairs(len(names)) if pairs is None else pairs
    n = np.maximum(moments.n, 1)
    of_a, of_b = _fill_pairs(moments, (a, b))
    parts = of_a / n[a], of_b / n[b]
    columns = _compare_means(moments, (a, b), parts, (moments.n[a], moments.n[b]))
    lacks_spread = (moments.n[a] > 1) & (moments.n[b] > 1) & np.isnan(columns["statistic"])
    columns["p"] = np.where(lacks_spread, _permute_constants(moments, (a, b)), columns["p"])
    return _make_contrasts(names, (a, b), columns, between=between, test="welch_t")


def share_contrasts(names: tuple[str, ...], moments: _Moments, pairs: _Pairs) -> list[Contrast]:
    """Compare pairs of groups of values of 0 and 1 by Newcombe's interval of two shares.

    p is that of the same interval (``compare_shares``), and the statistic the quantile of p, with
    the sign of the difference. Both are NaN if a group has fewer than two values. Student's t is
    wrong for few hits: if those of a small group are equal, its standard error is 0.
    """
    from scipy.special import ndtri

    a, b = pairs
    parts = moments.variance / np.maximum(moments.n, 1)
    columns = _compare_means(moments, pairs, (parts[a], parts[b]), (moments.n[a], moments.n[b]))
    testable = np.minimum(moments.n[a], moments.n[b]) > 1
    ends = compare_shares(moments.mean[a], moments.n[a], moments.mean[b], moments.n[b])
    low, high, p = (np.where(testable, column, np.nan) for column in ends)
    statistic = -np.sign(columns["difference"]) * ndtri(p / 2.0)
    columns |= {"statistic": statistic, "p": p, "df": np.full(p.shape, np.nan)}
    columns |= {"ci_low": low, "ci_high": high}
    return _make_contrasts(names, pairs, columns, between="groups", test="newcombe")


def _permute_constants(moments: _Moments, pairs: _Pairs) -> FloatArray:
    """Return the permutation p of pairs of groups of which each has equal values.

    NaN if those of both are equal.
    """
    from scipy.special import comb

    a, b = pairs
    n_a, n_b, mean_a, mean_b = moments.n[a], moments.n[b], moments.mean[a], moments.mean[b]
    is_equal = np.abs(mean_a - mean_b) <= ROUNDING * np.fmax(np.abs(mean_a), np.abs(mean_b))
    extreme = np.where(n_a == n_b, 2.0, 1.0) / comb(n_a + n_b, n_a)
    return np.where(is_equal, np.nan, extreme)


def _permute_all_constants(moments: _Moments) -> float:
    """Return the permutation p of groups of which each has equal values; NaN if all are equal."""
    order = np.argsort(moments.mean)
    sizes, means = moments.n[order], moments.mean[order]
    slack = ROUNDING * np.fmax(np.abs(means[1:]), np.abs(means[:-1]))
    starts = np.flatnonzero(np.append(True, np.diff(means) > slack))
    totals = np.add.reduceat(sizes, starts)
    if totals.size < 2:
        return math.nan
    divisions = math.factorial(int(sizes.sum()))
    for n in sizes.tolist():
        divisions //= math.factorial(n)
    return (
        _count_fillings(tuple(sorted(sizes.tolist())), tuple(sorted(totals.tolist()))) / divisions
    )


@cache
def _count_fillings(sizes: tuple[int, ...], totals: tuple[int, ...]) -> int:
    """Return in how many ways groups of these sizes fill bins of these totals."""
    if not sizes:
        return 1
    *others, largest = sizes
    return sum(
        _count_fillings(
            tuple(others), tuple(sorted((*totals[:bin_], *totals[bin_ + 1 :], total - largest)))
        )
        for bin_, total in enumerate(totals)
        if total >= largest
    )


def _make_contrasts(
    names: tuple[str, ...], pairs: _Pairs, columns: dict[str, AnyArray], *, between: str, test: str
) -> list[Contrast]:
    """Return the contrasts of some pairs of groups, from a column for each field."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    sides = zip(*(side.tolist() for side in pairs), strict=True)
    return [
        Contrast(
            between=between,
            a=names[first],
            b=names[second],
            test=test,
            **dict(zip(columns, row, strict=True)),
        )
        for (first, second), row in zip(sides, rows, strict=True)
    ]


def welch_anova(moments: _Moments) -> tuple[float, float, float]:
    """Return Welch's test of equal means: F, its numerator degrees of freedom, and p.

        F = [Σ w_i (m_i - m)² / (G - 1)] / [1 + 2 (G - 2) / (G² - 1) Λ],    w_i = n_i / s_i²,
        m = Σ w_i m_i / Σ w_i,    Λ = Σ (1 - w_i / Σ w)² / (n_i - 1)

    with G - 1 and (G² - 1) / (3 Λ) degrees of freedom. A group whose values are all equal has the
    variance within the others. All three are NaN if a group has fewer than two values, or if the
    values of each group are equal. If they are, but not those of all, p is the exact one of the
    permutation of the labels: the share of the divisions into groups of these sizes that leave
    every group with equal values.

    Source:
        Welch, "On the comparison of several mean values: an alternative approach", Biometrika
        1951.
    """
    from scipy.special import fdtrc

    size = moments.n.size
    if size < 2 or (moments.n < 2).any():
        return math.nan, math.nan, math.nan
    if _mark_constant(moments).all():
        return math.nan, math.nan, _permute_all_constants(moments)
    weights = moments.n / _fill_variance(moments)
    mean = (weights * moments.mean).sum() / weights.sum()
    spread = ((1 - weights / weights.sum()) ** 2 / (moments.n - 1)).sum()
    between = (weights * (moments.mean - mean) ** 2).sum() / (size - 1)
    statistic = between / (1 + 2 * (size - 2) / (size**2 - 1) * spread)
    denominator_df = (size**2 - 1) / (3 * spread)
    return float(statistic), float(size - 1), float(fdtrc(size - 1, denominator_df, statistic))


def _compare_means(
    moments: _Moments, pairs: _Pairs, parts: Sequence[AnyArray], sizes: Sequence[AnyArray]
) -> dict[str, AnyArray]:
    """Return the fields of the contrasts of pairs of groups; ``n`` counts a shared unit twice.

        t = (m_a - m_b) / sqrt(Σ v),    df = (Σ v)² / Σ v² / (n - 1)

    ``parts`` are the independent parts v of the variance of each difference, and ``sizes`` the
    number n of units that each was estimated from; a part of fewer than two units has one degree
    of freedom. Without a spread, t, p, the interval and the effect size are NaN.
    """
    from scipy.special import stdtr, stdtrit

    a, b = pairs
    n_a, n_b = moments.n[a], moments.n[b]
    difference = moments.mean[a] - moments.mean[b]
    with np.errstate(invalid="ignore", divide="ignore"):
        total = sum(parts)
        shares = [part**2 / np.maximum(n - 1, 1) for part, n in zip(parts, sizes, strict=True)]
        df, error = total**2 / sum(shares), np.sqrt(total)
        slack = ROUNDING * np.fmax(np.abs(moments.mean[a]), np.abs(moments.mean[b]))
        error = np.where(error > slack, error, np.nan)
        t = difference / error
        pooled = (n_a - 1) * moments.variance[a] + (n_b - 1) * moments.variance[b]
        effect = difference / np.sqrt(pooled / (n_a + n_b - 2))
        half_width = stdtrit(df, 0.975) * error
    return {
        "n": n_a + n_b,
        "mean_a": moments.mean[a],
        "mean_b": moments.mean[b],
        "difference": difference,
        "statistic": t,
        "p": 2.0 * stdtr(df, -np.abs(t)),
        "df": df,
        "ci_low": difference - half_width,
        "ci_high": difference + half_width,
        "effect_size": np.where(np.isnan(error) | (np.abs(effect) > 1e12), np.nan, effect),
    }


def overlap_contrasts(
    names: tuple[str, ...], values: FloatArray, members: AnyArray, *, between: str, pairs: _Pairs
) -> list[Contrast]:
    """Compare pairs of groups that may share units by a t-test of the difference of their means.

        t = (m_a - m_b) / sqrt(Σ_u w_u²),    two-sided,
        w_u = [u in a] (x_u - m_a) / sqrt(n_a (n_a - 1))
              - [u in b] (x_u - m_b) / sqrt(n_b (n_b - 1))

    A unit of both groups adds to both means, so its two terms are subtracted before they are
    squared; without shared units the test is Welch's. The degrees of freedom are Satterthwaite's
    for the sums of w² over the units of a alone, of b alone, and of both. ``values[u]``, or
    ``values[g, u]`` if x_u depends on the group, may be NaN (undefined); ``members[g, u]`` says
    which units are in which group. ``n`` counts a shared
    unit once. p is NaN if a group has fewer than two values, if all values are equal, or if the
    groups have the same units.

    Source:
        Särndal, Swensson and Wretman, "Model Assisted Survey Sampling", 1992, chapter 5
        (the linearised variance of a difference of domain means).
    """
    inside = (members & ~np.isnan(values)).astype(np.float64)
    groups, units = np.nonzero(inside)
    used = np.broadcast_to(values, inside.shape)[groups, units]
    moments = compute_moments(used, groups, len(inside))
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = 1.0 / np.sqrt(moments.n * (moments.n - 1.0))
        weights = np.where(inside > 0, (values - moments.mean[:, None]) * scale[:, None], 0.0)
    a, b = pairs
    shared, squares, products = (inside @ inside.T), (weights**2) @ inside.T, weights @ weights.T
    sums = (
        squares[a, a] - squares[a, b],
        squares[b, b] - squares[b, a],
        squares[a, b] + squares[b, a] - 2.0 * products[a, b],
    )
    sizes = (shared[a, a] - shared[a, b], shared[b, b] - shared[a, b], shared[a, b])
    parts = [np.where(size > 0, part, 0.0) for part, size in zip(sums, sizes, strict=True)]
    is_constant, filled = _mark_constant(moments), _fill_pairs(moments, pairs)
    for row, (side, variance) in enumerate(zip(pairs, filled, strict=True)):
        parts[row] += np.where(is_constant[side], variance / np.maximum(moments.n[side], 1), 0.0)
    columns = _compare_means(moments, pairs, parts, sizes)
    columns["n"] = columns["n"] - shared[a, b].astype(np.int64)
    undefined = (moments.n[a] < 2) | (moments.n[b] < 2) | (sizes[0] + sizes[1] == 0)
    is_constant = np.isnan(columns["statistic"]) & (sizes[2] == 0)
    columns["p"] = np.where(is_constant, _permute_constants(moments, pairs), columns["p"])
    for name in ("statistic", "p", "df", "ci_low", "ci_high", "effect_size"):
        columns[name] = np.where(undefined, np.nan, columns[name])
    return _make_contrasts(names, pairs, columns, between=between, test="overlap_t")


MAX_PAIRS = 500
"""With more pairs of groups, pairs are not tested: few would be significant after correction."""


def summarize_groups(
    measurement: Measurement,
    groups: Groups,
    *,
    min_group: int = 0,
    reference: int = -1,
    named: Sequence[tuple[int, int]] = (),
) -> list[Measurement]:
    """Return the mean of each group; pairs are compared by Welch's t-test, or as two shares.

    ``n`` counts the queries of the group with a defined value, ``undefined`` the others; the
    interval is the t interval of the group's mean. Groups of fewer than ``min_group`` defined
    values are not compared. The ``named`` pairs of groups are compared, or with a ``reference``
    each other group with it, else each pair. Groups that share queries are compared by
    ``overlap_contrasts``. The tests are contrasts of the first group.
    """
    units = get_units(measurement)
    measurements = []
    for code, name in enumerate(groups.names):
        group_units = units.take(groups.find_rows(code))
        measurements.append(
            Measurement.from_units(group_units, group=name, target=measurement.target)
        )
    sizes = np.array([group.n for group in measurements])
    pairs = list_group_pairs(sizes, min_group, reference, named)
    if 0 < pairs[0].size <= MAX_PAIRS:
        tests = _compare_groups(Members.of_queries(measurement, groups), pairs)
        measurements[0] = replace(measurements[0], contrasts=tuple(tests))
    return measurements


def list_group_pairs(
    sizes: AnyArray, min_group: int, reference: int, named: Sequence[tuple[int, int]] = ()
) -> _Pairs:
    """Return the groups a and b of each comparison; b is the reference if there is one."""
    if named:
        a, b = np.array(named).T
        is_large = np.minimum(sizes[a], sizes[b]) >= min_group
        return a[is_large], b[is_large]
    compared = np.flatnonzero(sizes >= min_group)
    if reference >= 0:
        others = compared[compared != reference] if reference in compared else compared[:0]
        return others, np.full(others.size, reference)
    a, b = list_pairs(compared.size)
    return compared[a], compared[b]


def _compare_groups(members: Members, pairs: _Pairs) -> list[Contrast]:
    if members.corrected is not None:
        return compare_corrected(members.names, members.corrected, pairs)
    if members.share and not members.overlap:
        return share_contrasts(members.names, members.moments, pairs)
    if not members.overlap:
        return welch_contrasts(members.names, members.moments, between="groups", pairs=pairs)
    table = members.tabulate()
    inside = ~np.isnan(table)
    return overlap_contrasts(members.names, table, inside, between="groups", pairs=pairs)


GapKind: TypeAlias = Literal["difference", "ratio", "std"]
"""The gaps that are differences or ratios of means."""


def compute_gap(
    measurement: Measurement,
    groups: Groups,
    kind: GapKind,
    *,
    rng: np.random.Generator,
    n_samples: int = 1000,
    min_group: int = 0,
) -> Measurement:
    """Return the gap between the means of groups of queries; see ``compute_gap_of``."""
    members = Members.of_queries(measurement, groups)
    return compute_gap_of(members, kind, rng=rng, n_samples=n_samples, min_group=min_group)


def compute_gap_of(
    members: Members,
    kind: GapKind,
    *,
    rng: np.random.Generator,
    n_samples: int = 1000,
    min_group: int = 0,
) -> Measurement:
    """Return the gap between the group means, as one number.

        difference = max_g m_g - min_g m_g,    ratio = min_g m_g / max_g m_g,
        std = sqrt((1 / (G - 1)) Σ_g (m_g - mean of m)²)

    The gap of two groups has the interval of its test (``estimate_gap_interval``; for
    values of 0 and 1 ``estimate_share_gap``), the difference
    of more groups that of ``estimate_spread``; ratio and std of more have none. Bootstrap samples
    compare the gaps of models. Those of two groups are of the signed difference, since the
    absolute one varies less near 0; those of the difference of more are the means of each group,
    in ``parts``, for ``compare_spreads``.

    A contrast of ``difference`` tests whether the groups differ: of two groups the test of
    ``summarize_groups``, of more Welch's analysis of variance, whose sides are the groups with the
    largest and the smallest mean, and if their names are numbers or ranges (``age=18-24``) the
    test of a trend (``compare_trend``). The gap is
    undefined if a group has no defined value or there is only one group; the ratio also if a mean
    is negative or the largest is 0. There is no interval if a group has one value or the values
    of both are equal. ``rng`` is the same for all models that are compared.

    Groups of fewer than ``min_group`` defined values are excluded. If that excludes other groups
    than the numbers of queries would, the gap has no samples, since other models may have other
    groups. If groups share queries, there is no analysis of variance, and the bootstrap of two
    groups is not stratified: it samples the queries of both together.
    """
    total, target = members.n_units, members.target
    members, is_same = members.select_large(min_group)
    means = members.moments.mean
    value = float(measure_gap(means[None, :], kind)[0])
    n = 0 if math.isnan(value) else members.n_defined
    tests = _test_gap(members)
    gap = Measurement(
        value, n, total - n, target=target, contrasts=tests if kind == "difference" else ()
    )
    if math.isnan(value) or (means.size > 2 and kind != "difference"):
        return gap
    if means.size == 2 and math.isnan(tests[0].ci_low):
        return gap
    samples: FloatArray
    parts: dict[str, FloatArray] = {}
    replicates: FloatArray | None
    if members.corrected is not None:
        samples = resample_corrected(members.corrected, members.codes, n_samples)
    elif members.overlap:
        samples = resample_shared_units(members.tabulate(), n_samples, rng)
    else:
        samples = resample_group_means(members.values, members.codes, means.size, n_samples, rng)
    covariance = _measure_covariance(members)
    if means.size == 2:
        replicates, df = orient_gap(samples, means, kind), tests[0].df
        if tests[0].test == "newcombe":
            df, (low, high) = n - 2.0, estimate_share_gap(means, members.moments.n, kind)
        else:
            low, high = estimate_gap_interval(means, covariance, df, kind)
    else:
        low, high, df = estimate_spread(means, covariance, members.moments.n, rng)
        if math.isnan(low):
            return gap
        table = np.vstack([means, samples]).T
        parts, replicates = dict(zip(members.names, table, strict=True)), None
    parts, replicates = (parts, replicates) if is_same else ({}, None)
    parts = parts if len(parts) <= MOST_COMPARED else {}
    return replace(gap, replicates=replicates, parts=parts, df=df, ci_low=low, ci_high=high)


def _measure_covariance(members: Members) -> FloatArray:
    """Return the covariance matrix of the means; groups without shared units have covariance 0."""
    if members.corrected is not None:
        return members.corrected.covariance
    n, variance = members.moments.n, _fill_variance(members.moments)
    covariance = np.diag(variance / n)
    if members.overlap:
        deviations = np.nan_to_num(members.tabulate() - members.moments.mean[:, None])
        with np.errstate(invalid="ignore"):  # a group of one has no variance
            weights = deviations / np.sqrt(n * (n - 1.0))[:, None]
        covariance = np.diag(np.where(_mark_constant(members.moments), variance / n, 0.0))
        covariance += weights @ weights.T
    return covariance


def estimate_gap_interval(
    means: FloatArray, covariance: FloatArray, df: float, kind: GapKind
) -> tuple[float, float]:
    """Return the 95% interval of the gap of two means, within the range of the gap.

        difference:  |m_1 - m_2| ± t(0.975; df) · se,    se² = v_11 + v_22 - 2 v_12
        std:         that of the difference, divided by √2
        ratio:       {θ : (m_low - θ m_high)² ≤ t² (v_low - 2 θ v_12 + θ² v_high)}

    v is the ``covariance`` of the means, and ``df`` the degrees of freedom of the test of their
    difference. So the interval of the difference is that of the test (Welch's), and the interval
    of the ratio holds 1 if and only if the other one holds 0. The ratio has the whole range, 0
    to 1, where the larger mean is not significantly above 0.

    >>> interval = estimate_gap_interval(np.array([0.5, 0.2]), 0.01 * np.eye(2), 8.0, "difference")
    >>> [round(end, 4) for end in interval]  # 0.3 ± 2.306 · 0.1414, of which -0.03 counts as 0
    [0.0, 0.6261]

    Source:
        Welch, Biometrika 1947; Fieller, "Some problems in interval estimation", J. R. Stat. Soc. B
        1954.
    """
    from scipy.special import stdtrit

    t, order = float(stdtrit(df, 0.975)), np.argsort(means, kind="stable")
    low, high = means[order].tolist()
    if kind == "ratio":
        ends = solve_fieller(low, high, t**2 * covariance[np.ix_(order, order)])
        return (0.0, 1.0) if math.isnan(ends[0]) else (max(ends[0], 0.0), min(ends[1], 1.0))
    scale = math.sqrt(2.0) if kind == "std" else 1.0
    half_width = t * math.sqrt(covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1])
    return max(high - low - half_width, 0.0) / scale, (high - low + half_width) / scale


def estimate_share_gap(means: FloatArray, n: AnyArray, kind: GapKind) -> tuple[float, float]:
    """Return the 95% interval of the gap of two shares; see ``compare_shares``.

    >>> ends = estimate_share_gap(np.array([48 / 80, 56 / 70]), np.array([80, 70]), "difference")
    >>> [round(end, 4) for end in ends]
    [0.0524, 0.3339]
    """
    low, high = np.argsort(means, kind="stable")
    if kind == "ratio":
        ends = compare_share_ratio(means[low], n[low], means[high], n[high])
        return ends[0], min(ends[1], 1.0)
    scale = math.sqrt(2.0) if kind == "std" else 1.0
    least, most, _ = compare_shares(means[high], n[high], means[low], n[low])
    return max(float(least), 0.0) / scale, float(most) / scale


def _test_gap(members: Members) -> tuple[Contrast, ...]:
    """Return the tests of all groups; none if more than two groups share queries."""
    if len(members.names) == 2:
        pairs = np.array([0]), np.array([1])
        return tuple(_compare_groups(members, pairs)) if members.moments.n.all() else ()
    if members.overlap or members.audit is not None:
        return ()
    return (*_compare_all_groups(members.names, members.moments), *_test_order(members))


def _test_order(members: Members) -> Iterator[Contrast]:
    """Yield the test of a trend over three or more groups that have an order."""
    order = order_labels([name.partition("=")[2] for name in members.names])
    if order is not None and len(order) > 2:
        names = tuple(members.names[at] for at in order)
        yield compare_trend(names, members.values, np.argsort(order)[members.codes])


def _compare_all_groups(names: tuple[str, ...], group_moments: _Moments) -> list[Contrast]:
    """Return Welch's analysis of variance of the groups of at least two values.

    A group of one value has no variance. The sides of the contrast have the largest and the
    smallest mean of the groups that are compared, and its n counts their values.
    """
    has_variance = group_moments.n > 1
    if np.isnan(group_moments.mean).any() or np.count_nonzero(has_variance) < 2:
        return []
    names = tuple(np.array(names, dtype=object)[has_variance].tolist())
    group_moments = _Moments(*(part[has_variance] for part in vars(group_moments).values()))
    ends = [int(group_moments.mean.argmax()), int(group_moments.mean.argmin())]
    statistic, df, p = welch_anova(group_moments)
    others = {"test": "welch_anova", "statistic": statistic, "p": p, "df": df}
    others["n"] = int(group_moments.n.sum())
    sides = [names[end] for end in ends]
    return [Contrast.of_means("groups", sides, group_moments.mean[ends], **others)]


def measure_gap(means: FloatArray, kind: str) -> FloatArray:
    """Return the gap of each row of group means, ``float64[b]``; NaN where a mean is NaN.

    ``kind`` is ``difference``, ``ratio`` or ``std``, as in ``compute_gap_of``.

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
    return divide(np.where(low >= 0, low, np.nan), high)


def orient_gap(means: FloatArray, observed: FloatArray, kind: str) -> FloatArray:
    """Return the signed gap of each row of two means, ``float64[b]``.

    It is negative, or a ratio above 1, where the other group than in the ``observed`` means is the
    higher one.
    """
    low, high = means[:, int(observed.argmin())], means[:, 1 - int(observed.argmin())]
    if kind == "ratio":
        return divide(np.where(low >= 0, low, np.nan), high)
    return np.asarray((high - low) / (math.sqrt(2) if kind == "std" else 1.0))


def average_folds(
    values: FloatArray, units: AnyArray, folds: AnyArray, n_units: int
) -> FloatArray:
    """Return one value for each unit, ``float64[n_units]``, whose mean is the mean over folds.

        m = (1/F) Σ_f m_f,    z_u = m + Σ_f (x_uf - m) U / (F n_f)

    m_f is the mean of the n_f defined values of fold f (or of a seed), the inner sum is over the
    folds in which u has one, and U units have one in any of the F folds. z_u is the mean of a unit
    that has a value in every fold as all others have, and its only value where folds are disjoint
    and of equal size. In other designs the mean of the units' means would be another quantity than
    m. The variance of z is that of m, with units as clusters; it is conservative where the means
    of the folds differ and few units are in all of them.

    Args:
        values: x, ``float64[n]``; NaN if undefined.
        units: The unit of each value, ``int[n]``.
        folds: The fold of each value, ``int[n]``.
        n_units: The number of units, also of those without a value, whose z is NaN.

    >>> x, units, folds = np.array([1.0, 3.0, 8.0]), np.array([0, 1, 0]), np.array([0, 0, 1])
    >>> average_folds(x, units, folds, 2).tolist()  # m = 5: 5 - 4/2 + 3 and 5 - 2/2
    [6.0, 4.0]
    """
    weights, of_units = _weigh_folds(values, units, folds), compute_moments(values, units, n_units)
    rows = weights > 0
    if np.allclose(weights[rows] * of_units.n[units[rows]], 1.0):
        return of_units.mean
    n = np.count_nonzero(of_units.n)
    mean = float(weights[rows] @ values[rows]) / n
    terms = weights[rows] * (values[rows] - mean)
    return np.where(of_units.n > 0, mean + np.bincount(units[rows], terms, n_units), np.nan)


def average_units(folds: Sequence[tuple[Any, FloatArray]]) -> tuple[AnyArray, FloatArray]:
    """Return the units of folds, each once in the order of the folds, with ``average_folds``.

    Args:
        folds: The identifiers of the units of each fold, and their values.
    """
    codes, units = pd.factorize(np.concatenate([ids for ids, _ in folds]))
    of_folds = np.repeat(np.arange(len(folds)), [len(values) for _, values in folds])
    values = np.concatenate([values for _, values in folds])
    return units, average_folds(values, codes, of_folds, len(units))


def _weigh_folds(values: FloatArray, units: AnyArray, folds: AnyArray) -> FloatArray:
    """Return the weight of each value in ``average_folds``, U / (F n_f); 0 of undefined ones."""
    rows = ~np.isnan(values)
    n, weights = np.bincount(folds[rows]), np.zeros(values.size)
    weights[rows] = count_distinct(units[rows]) / (np.count_nonzero(n) * n[folds[rows]])
    return weights


def pool_groups(folds: Sequence[Measurement]) -> list[Measurement]:
    """Return each group with one value for each unit, whose mean is the mean over folds.

    The values are those of ``average_folds``: a unit that is in the group in every seed and fold
    has its mean. ``n`` counts units, not values.

    Args:
        folds: The groups of all seeds and folds, each with its units, of one target.

    >>> ids = [np.array(names, dtype=object) for names in (["a", "b"], ["b", "c"])]
    >>> folds = [
    ...     Measurement.from_units(UnitScores("user", names, np.array(values)), group="g")
    ...     for names, values in zip(ids, ([1.0, 2.0], [4.0, np.nan]), strict=True)
    ... ]
    >>> (group,) = pool_groups(folds)  # the mean of 1.5 and 4; c is undefined
    >>> group.group, group.value, group.n, group.undefined
    ('g', 2.75, 2, 1)
    """
    units_by_group: dict[tuple[str, str], list[UnitScores]] = defaultdict(list)
    for fold in folds:
        units_by_group[fold.group, fold.target].append(get_units(fold))
    return [
        Measurement.from_units(_average_units(units), group=group, target=target)
        for (group, target), units in units_by_group.items()
    ]


def compare_pooled_groups(
    groups: Sequence[Measurement],
    *,
    min_group: int = 0,
    reference: str = "",
    named: Sequence[tuple[str, str]] = (),
) -> list[Contrast]:
    """Return the tests of pairs of pooled groups, as in ``summarize_groups``.

    A unit that is in several groups, or whose group depends on the seed, is in each of them, and
    ``overlap_contrasts`` makes the tests. Groups of fewer than ``min_group`` defined units are not
    compared.
    """
    members = Members.of_pooled(groups)
    at = members.names.index(reference) if reference in members.names else -1
    codes = [(members.names.index(a), members.names.index(b)) for a, b in named]
    pairs = list_group_pairs(members.moments.n, min_group, at, codes)
    return _compare_groups(members, pairs) if 0 < pairs[0].size <= MAX_PAIRS else []


def _average_units(folds: Sequence[UnitScores]) -> UnitScores:
    """Return the values of ``average_folds``; shares of units with one value stay 0 and 1."""
    values = np.concatenate([units.values for units in folds])
    ids, codes = np.unique(np.concatenate([units.ids for units in folds]), return_inverse=True)
    share = all(units.share for units in folds) and ids.size == codes.size
    of_folds = np.repeat(np.arange(len(folds)), [units.values.size for units in folds])
    if share:
        of_folds[:] = 0
    means = average_folds(values, codes, of_folds, ids.size)
    audit = _stack_audits(folds)
    if audit is not None:
        audit = audit.average(_weigh_folds(values, codes, of_folds), codes, ids.size)
    return replace(folds[0], ids=ids, values=means, share=share, errors=audit)


def _stack_audits(parts: Sequence[UnitScores]) -> Audit | None:
    """Return the shared errors of all parts, None if the values are not corrected."""
    audits = [part.errors for part in parts if part.errors is not None]
    return Audit.stack(audits) if audits else None


def get_units(group: Measurement) -> UnitScores:
    """Return the values of the units; ValueError if the metric has none."""
    if group.units is None:
        message = "a metric without a value for each query cannot be grouped"
        raise ValueError(message)
    return group.units


def compare_ranks(
    names: tuple[str, str], a: FloatArray, b: FloatArray, *, between: str
) -> Contrast:
    """Compare two samples by the Wilcoxon-Mann-Whitney rank-sum test.

        U = #{ (i, j): a_i > b_j } + #{ (i, j): a_i = b_j } / 2

    The two-sided p is from the normal approximation with correction for ties and continuity.
    The effect size is the rank-biserial correlation 2 U / (n_a n_b) - 1: 1 if every value of a is
    above every value of b. p is NaN if a sample has fewer than two values, and 1 if all values are
    equal.

    >>> import numpy as np
    >>> test = compare_ranks(("a", "b"), np.array([2.0, 3.0]), np.array([1.0, 1.0]), between="x")
    >>> test.statistic, test.effect_size
    (4.0, 1.0)

    Args:
        names: The names of the samples.
        a: The first sample, ``float64[n_a]``, without NaN.
        b: The second sample, ``float64[n_b]``.
        between: What the samples are: ``groups``, ``targets``, ``directions``.

    Source:
        Mann and Whitney, "On a test of whether one of two random variables is stochastically
        larger than the other", Annals of Mathematical Statistics 1947.
    """
    from scipy.stats import mannwhitneyu

    means = [side.mean() if side.size else math.nan for side in (a, b)]
    u = p = effect_size = math.nan
    if min(a.size, b.size) > 1:
        result = mannwhitneyu(a, b, alternative="two-sided", method="asymptotic")
        u = float(result.statistic)
        is_constant = a.min() == a.max() == b.min() == b.max()
        p = 1.0 if is_constant else float(result.pvalue)
        effect_size = 2.0 * u / (a.size * b.size) - 1.0
    others = {"test": "rank_sum", "n": a.size + b.size, "statistic": u, "p": p}
    return Contrast.of_means(between, names, means, **others, effect_size=effect_size)
