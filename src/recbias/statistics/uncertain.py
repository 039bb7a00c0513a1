"""Means of a metric for groups that are known as probabilities, and their gaps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from recbias.core.dataset import FloatArray
from recbias.core.grouping import UncertainGroups
from recbias.core.measures import Contrast, Measurement
from recbias.statistics.bootstrap import resample_group_sums
from recbias.statistics.groups import (
    GapKind,
    estimate_gap_interval,
    get_units,
    list_group_pairs,
    measure_gap,
    orient_gap,
)
from recbias.statistics.intervals import t_interval


@dataclass(frozen=True, eq=False)
class _GroupContributions:
    """The estimated mean of each group, and what each query contributes to it.

        m_g = Σ_u w_ug x_u,    z_ug = m_g + √(n (n - 1)) (d_ug - mean of d),
        d_ug = w_ug e_ug / √(1 - h_ug)

    With P the probabilities ``[n, g]`` and x the values:

    - ``probability``: W = P (P'P)⁻¹, the least-squares fit x ≈ P m, with e = x - P m and h its
      leverage. It is right if x is independent of p given the group: then E[x | p] = Σ_g p_g m_g.
    - ``weight``: w_ug = p_ug / Σ_v p_vg, the weighted mean, with e_ug = x_u - m_g and h = w. It is
      right if x is independent of the group given p: then E[p_g x] = E[p_g] m_g.

    In both, p is the probability of the group given what it was predicted from. The mean of z over
    the queries is m_g, and its variance over n estimates that of m_g (HC2), which includes the
    sampling of the queries and the unknown groups. For certain labels m_g and its standard error
    are those of the mean of the group.

    Args:
        means: ``float64[g]``.
        values: z, ``float64[n, g]``; NaN where the metric or the probability is undefined.
        weights: w, ``float64[m, g]``, of the defined values.
        spread: Σ_u p_ug e_ug², ``float64[g]``.
        expected: The expected number of queries of each group, Σ_u p_ug, ``float64[g]``.

    Source:
        Weighted means: Chen et al., "Fairness under unawareness", FAT* 2019. Least squares:
        McCartan et al., "Estimating racial disparities when race is not observed", JASA 2025.
        Both assumptions for rankings: Ghazimatin et al., "Measuring fairness of rankings under
        noisy sensitive information", FAccT 2022. Standard error: MacKinnon and White, Journal of
        Econometrics 1985.
    """

    means: FloatArray
    values: FloatArray
    weights: FloatArray
    spread: FloatArray
    expected: FloatArray

    @property
    def df(self) -> FloatArray:
        """The degrees of freedom of each mean, ``float64[g]``; see ``count_df``."""
        return count_df(self.weights, 1)


def count_df(weights: FloatArray, lost: int) -> FloatArray:
    """Return the degrees of freedom of Σ w² e² for each column of weights, ``float64[...]``.

        df = (Σ w²)² / Σ w⁴ - lost

    For certain labels it is n_g - 1 for the mean of a group (``lost`` 1).

    >>> count_df(np.array([[0.5], [0.5], [0.0]]), 1).tolist()
    [1.0]

    Source:
        Satterthwaite, "An approximate distribution of estimates of variance components",
        Biometrics Bulletin 1946.
    """
    squares = weights**2
    return np.asarray(squares.sum(axis=0) ** 2 / (squares**2).sum(axis=0) - lost)


def measure_contributions(values: FloatArray, groups: UncertainGroups) -> _GroupContributions:
    """Return the estimated means of the groups, and the contribution of each query.

    >>> p = np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]])
    >>> groups = UncertainGroups("probability of a", ("a", "not a"), p, "probability")
    >>> measure_contributions(2.0 * p[:, 0] + 1.0, groups).means.round(6).tolist()
    [3.0, 1.0]
    """
    used = ~np.isnan(values) & ~np.isnan(groups.probabilities[:, 0])
    x, p = values[used], groups.probabilities[used]
    n_groups, n = len(groups.names), x.size
    contributions = np.full((values.size, n_groups), np.nan)
    if n < 2:
        undefined, blank = np.full(n_groups, np.nan), np.full((n, n_groups), np.nan)
        return _GroupContributions(undefined, contributions, blank, undefined, undefined)
    weights = _weigh(p, groups)
    means = weights.T @ x
    if groups.assumption == "probability":
        fit = np.linalg.pinv(p, rcond=_SINGULAR).T  # also of groups without a mean
        residuals = np.repeat((x - p @ (fit.T @ x))[:, None], n_groups, axis=1)
        leverage = np.sum(p * fit, axis=1)[:, None]
    else:
        residuals, leverage = x[:, None] - means, weights
    scaled = weights * residuals / np.sqrt(np.maximum(1.0 - leverage, 1e-12))
    scaled -= scaled.mean(axis=0)
    contributions[used] = means + math.sqrt(n * (n - 1.0)) * scaled
    spread = np.sum(p * residuals**2, axis=0)
    measured = _GroupContributions(means, contributions, weights, spread, p.sum(axis=0))
    contributions[:, measured.df < 1.0] = np.nan
    return replace(measured, means=np.where(measured.df < 1.0, np.nan, means))


_SINGULAR = 1e-6
"""Below this share of the largest, singular values of the probabilities count as 0."""


def _weigh(p: FloatArray, groups: UncertainGroups) -> FloatArray:
    """Return the weight of each query in each mean; NaN for a mean that is not determined."""
    if groups.assumption == "weight":
        is_solvable, weights = p.sum(axis=0) > 0, p / np.maximum(p.sum(axis=0), 1e-300)
    else:
        inverse = np.linalg.pinv(p, rcond=_SINGULAR)
        resolution = inverse @ p  # a row of the unit matrix for a mean that x determines
        is_solvable = np.abs(resolution - np.eye(len(resolution))).max(axis=1) < _SINGULAR
        is_solvable &= len(p) > round(float(np.trace(resolution)))  # the rank of p
        weights = inverse.T
    return np.where(is_solvable, weights, np.nan)


_ROUNDING = 1e-12
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
    units = get_units(measurement)
    measured = measure_contributions(units.values, groups)
    rows = []
    for code, name in enumerate(groups.names):
        scores = replace(units, values=measured.values[:, code], share=False)
        row = Measurement.from_units(scores, group=name, target=measurement.target)
        error = row.std / math.sqrt(row.n) if row.n else math.nan
        low, high = _make_interval(row.value, error, float(measured.df[code]))
        rows.append(replace(row, ci_low=low, ci_high=high))
    pairs = zip(*list_group_pairs(np.zeros(len(rows)), 0, reference), strict=True)
    tests = [compare_contributions(groups.names, measured, pair) for pair in pairs]
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
    values = [get_units(group).values for group in groups]
    return [
        _contrast_contributions((names[a], names[b]), values[a], values[b], groups[a].n - 1.0)
        for a, b in zip(*list_group_pairs(np.zeros(len(names)), 0, at), strict=True)
    ]


def _make_interval(value: float, error: float, df: float) -> tuple[float, float]:
    low, high = t_interval(value, error * math.sqrt(df + 1.0), df + 1.0)
    return float(low), float(high)


def compare_contributions(
    names: tuple[str, ...], measured: _GroupContributions, pair: tuple[int, int]
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
    test = _contrast_contributions(
        (names[a], names[b]), measured.values[:, a], measured.values[:, b], df
    )
    effect = test.difference / effect_std if effect_std > 0 else math.nan
    return replace(test, effect_size=effect)


def _contrast_contributions(
    sides: tuple[str, str], of_a: FloatArray, of_b: FloatArray, df: float
) -> Contrast:
    """Return the t-test of the mean difference of contributions, without an effect size."""
    from scipy.special import stdtr

    defined = ~np.isnan(of_a - of_b)
    n = int(np.count_nonzero(defined))
    summary = Measurement.from_values((of_a - of_b)[defined])
    means = [Measurement.from_values(side[defined]).value for side in (of_a, of_b)]
    error = summary.std / math.sqrt(n) if n > 1 else math.nan
    slack = _ROUNDING * max(map(abs, means))
    is_tested = error > slack and df >= 1.0
    difference = 0.0 if abs(summary.value) <= slack else summary.value
    t = difference / error if is_tested else math.nan
    low, high = _make_interval(difference, error if is_tested else math.nan, df)
    p = float(2.0 * stdtr(df, -abs(t))) if is_tested else math.nan
    others = {"test": TEST, "n": n, "difference": difference, "statistic": t, "p": p}
    return Contrast.of_means("groups", sides, means, **others, df=df, ci_low=low, ci_high=high)


def compute_uncertain_gap(
    measurement: Measurement,
    groups: UncertainGroups,
    kind: GapKind,
    *,
    rng: np.random.Generator,
    n_samples: int = 1000,
) -> Measurement:
    """Return the gap between the estimated means, as ``groups.compute_gap_of``.

    The bootstrap samples the contributions of all queries together. Its standard error has the
    degrees of freedom of the test. More than two groups have no interval and no test of all.
    """
    measured = measure_contributions(get_units(measurement).values, groups)
    test = compare_contributions(groups.names, measured, (0, 1))
    gap = _measure_gap(measured.values, measured.means, test, kind, rng, n_samples)
    return replace(gap, target=measurement.target)


def compute_pooled_uncertain_gap(
    groups: Sequence[Measurement],
    kind: GapKind,
    *,
    rng: np.random.Generator,
    n_samples: int = 1000,
) -> Measurement:
    """Return the gap of groups whose units have their mean contribution over folds or seeds."""
    values = np.stack([get_units(group).values for group in groups], axis=1)
    means = np.array([group.value for group in groups])
    test = compare_pooled_contributions(groups)[0]
    gap = _measure_gap(values, means, test, kind, rng, n_samples)
    return replace(gap, target=groups[0].target)


def _measure_gap(
    contributions: FloatArray,
    means: FloatArray,
    test: Contrast,
    kind: GapKind,
    rng: np.random.Generator,
    n_samples: int,
) -> Measurement:
    """Return the gap of the means of contributions ``[n, g]``, with the interval of the test."""
    value = float(measure_gap(means[None, :], kind)[0])
    defined = contributions[~np.isnan(contributions).any(axis=1)]
    n = 0 if math.isnan(value) else len(defined)
    gap = Measurement(value, n, len(contributions) - n)
    if means.size != 2 or math.isnan(value):
        return gap
    gap = replace(gap, contrasts=(test,)) if kind == "difference" else gap
    if math.isnan(test.p):
        return gap
    covariance = np.cov(defined.T) / n
    low, high = estimate_gap_interval(means, covariance, test.df, kind)
    samples = orient_gap(_resample(contributions, n_samples, rng), means, kind)
    return replace(gap, replicates=samples, df=test.df, ci_low=low, ci_high=high)


def _resample(contributions: FloatArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Return the means of bootstrap samples of the contributions, ``float64[b, g]``."""
    columns = np.column_stack([np.ones(len(contributions)), contributions])
    columns[np.isnan(contributions).any(axis=1)] = 0.0
    codes = np.zeros(len(columns), dtype=np.int32)
    sums = resample_group_sums(columns, codes, 1, n_samples, rng)[:, 0]
    return np.asarray(sums[:, 1:] / np.maximum(sums[:, :1], 1.0))
