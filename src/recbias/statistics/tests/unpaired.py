"""Tests of independent groups, from their moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.scores import Contrast
from recbias.statistics.tests.pair_moments import ROUNDING, list_pairs

Pairs: TypeAlias = tuple[AnyArray, AnyArray]
"""The groups a and the groups b of some comparisons."""


@dataclass(frozen=True, eq=False)
class Moments:
    """The number, mean and sample variance (n - 1) of the defined values of each group, ``[g]``.

    The mean is NaN without a value, the variance below two.
    """

    n: AnyArray
    mean: FloatArray
    variance: FloatArray


def compute_moments(values: FloatArray, codes: AnyArray, n_groups: int) -> Moments:
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
    return Moments(n, mean, variance)


def welch_contrasts(
    names: tuple[str, ...], moments: Moments, *, between: str, pairs: Pairs | None = None
) -> list[Contrast]:
    """Compare all pairs of groups by Welch's t-test, which allows unequal variances.

        t = (m_a - m_b) / sqrt(s_a^2/n_a + s_b^2/n_b),    two-sided,

    with Satterthwaite's degrees of freedom. The effect size is Cohen's d, with the pooled standard
    deviation. t, p and the interval are NaN if a group has fewer than two values, or if the values
    within both groups are equal, up to rounding: there is no standard error then.
    ``between`` is the kind of groups: ``groups`` for queries. ``pairs`` are the groups a and b of
    each comparison, all pairs by default.

    Source:
        Welch, "The generalization of Student's problem when several different population variances
        are involved", Biometrika 1947.
    """
    a, b = list_pairs(len(names)) if pairs is None else pairs
    parts = moments.variance / np.maximum(moments.n, 1)
    columns = compare_means(moments, (a, b), (parts[a], parts[b]), (moments.n[a], moments.n[b]))
    return make_contrasts(names, (a, b), columns, between=between, test="welch_t")


def make_contrasts(
    names: tuple[str, ...], pairs: Pairs, columns: dict[str, AnyArray], *, between: str, test: str
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


def welch_anova(moments: Moments) -> tuple[float, float, float]:
    """Return Welch's test of equal means: F, its numerator degrees of freedom, and p.

        F = [Σ w_i (m_i - m)² / (G - 1)] / [1 + 2 (G - 2) / (G² - 1) Λ],    w_i = n_i / s_i²,
        m = Σ w_i m_i / Σ w_i,    Λ = Σ (1 - w_i / Σ w)² / (n_i - 1)

    with G - 1 and (G² - 1) / (3 Λ) degrees of freedom. All three are NaN if a group has fewer
    than two values, or if its values are equal up to rounding.

    Source:
        Welch, "On the comparison of several mean values: an alternative approach", Biometrika
        1951.
    """
    from scipy.special import fdtrc

    size, has_spread = moments.n.size, np.sqrt(moments.variance) > ROUNDING * np.abs(moments.mean)
    if size < 2 or (moments.n < 2).any() or not has_spread.all():
        return math.nan, math.nan, math.nan
    weights = moments.n / moments.variance
    mean = (weights * moments.mean).sum() / weights.sum()
    spread = ((1 - weights / weights.sum()) ** 2 / (moments.n - 1)).sum()
    between = (weights * (moments.mean - mean) ** 2).sum() / (size - 1)
    statistic = between / (1 + 2 * (size - 2) / (size**2 - 1) * spread)
    denominator_df = (size**2 - 1) / (3 * spread)
    return float(statistic), float(size - 1), float(fdtrc(size - 1, denominator_df, statistic))


def compare_means(
    moments: Moments, pairs: Pairs, parts: Sequence[AnyArray], sizes: Sequence[AnyArray]
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
        "effect_size": np.where(np.isnan(error), np.nan, effect),
    }
