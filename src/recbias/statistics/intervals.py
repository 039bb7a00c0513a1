"""Confidence intervals of means, bootstrapped estimates and ratios, and the power of t-tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.dataset import BoolArray, FloatArray
from recbias.core.measures import compute_wilson_interval

MAX_UNITS = 1_000_000_000
"""More units than this are not counted: the needed number is infinite."""

_LARGEST_CRITICAL = 500.0
"""Above this critical value the normal part of a noncentral t is negligible."""

ErrorOfMean: TypeAlias = tuple[FloatArray, FloatArray]
"""The standard error of an estimate, and its degrees of freedom."""

ErrorBySize: TypeAlias = Callable[[FloatArray], ErrorOfMean]
"""From a number of units to the standard error that this many units give."""


def compute_power(
    difference: npt.ArrayLike, error: npt.ArrayLike, df: npt.ArrayLike, alpha: npt.ArrayLike
) -> FloatArray:
    """Return the probability that a two-sided t-test finds a difference, with its sign.

        power = P(T > t(1 - α/2; df)),    T noncentral t with df and noncentrality |D| / se

    A significant difference of the wrong sign does not count. ``df`` may be infinite (z-test).
    The result is NaN if the standard error is 0 or NaN.

    >>> round(float(compute_power(0.5, 1 / np.sqrt(34), 33, 0.05)), 4)  # d = 0.5, n = 34
    0.8078

    Source:
        Cohen, "Statistical Power Analysis for the Behavioral Sciences", 2nd edition, 1988,
        section 2.3; Johnson, Kotz and Balakrishnan, "Continuous Univariate Distributions",
        volume 2, 1995, chapter 31.
    """
    from scipy.special import chdtr, nctdtr, ndtr, ndtri, stdtrit

    level, freedom = np.asarray(alpha, np.float64), np.asarray(df, np.float64)
    se = np.asarray(error, np.float64)
    shift = np.abs(np.asarray(difference, np.float64)) / np.where(se > 0, se, np.nan)
    finite = np.where(np.isinf(freedom), 1.0, freedom)
    critical = stdtrit(finite, 1.0 - level / 2.0)
    exact = 1.0 - nctdtr(finite, shift, np.minimum(critical, _LARGEST_CRITICAL))
    limit = chdtr(finite, finite * (shift / critical) ** 2)
    student = np.where(critical > _LARGEST_CRITICAL, limit, exact)
    return np.asarray(np.where(np.isinf(freedom), ndtr(shift + ndtri(level / 2.0)), student))


def compute_detectable_shift(
    df: npt.ArrayLike, alpha: npt.ArrayLike, power: npt.ArrayLike
) -> FloatArray:
    """Return the difference, in standard errors, that a two-sided t-test finds with some power.

        λ with P(T > t(1 - α/2; df)) = power,    T noncentral t with df and noncentrality λ

    For infinite ``df`` it is z(1 - α/2) + z(power). ``power`` is above ``alpha``. The result is
    NaN for ``df`` below 1.

    >>> compute_detectable_shift([2, 10, np.inf], 0.05, 0.8).round(3).tolist()
    [5.653, 3.11, 2.802]

    Source:
        As ``compute_power``.
    """
    from scipy.special import chdtri, nctdtrinc, ndtri, stdtrit

    level, freedom = np.asarray(alpha, np.float64), np.asarray(df, np.float64)
    finite = np.where(np.isfinite(freedom) & (freedom >= 1), freedom, 1.0)
    critical, miss = stdtrit(finite, 1.0 - level / 2.0), 1.0 - np.asarray(power, np.float64)
    exact = nctdtrinc(finite, miss, np.minimum(critical, _LARGEST_CRITICAL))
    limit = critical * np.sqrt(chdtri(finite, miss) / finite)
    student = np.where(critical > _LARGEST_CRITICAL, limit, exact)
    normal = ndtri(1.0 - level / 2.0) + ndtri(power)
    shift = np.where(np.isinf(freedom), normal, student)
    return np.asarray(np.where(freedom >= 1, np.maximum(shift, 0.0), np.nan))


def compute_detectable_difference(
    error: npt.ArrayLike,
    df: npt.ArrayLike,
    *,
    alpha: npt.ArrayLike = 0.05,
    power: npt.ArrayLike = 0.8,
) -> FloatArray:
    """Return the smallest difference that a test with this standard error finds with some power.

        D = λ(df, α, power) · se

    For a paired test, se = sd(d) / √n with n - 1 degrees of freedom. D is 0 if all units have
    the same difference, and NaN if ``df`` is below 1 or the error is NaN.

    >>> d = np.array([2.0, 1.0, 3.0, 2.0])  # sd 0.8165, 3 degrees of freedom
    >>> error = d.std(ddof=1) / np.sqrt(d.size)
    >>> round(float(compute_detectable_difference(error, d.size - 1)), 3)
    1.737

    Source:
        Bloom, "Minimum detectable effects", Evaluation Review 1995.
    """
    return np.asarray(compute_detectable_shift(df, alpha, power) * np.asarray(error))


def find_sample_size(
    measure_error: ErrorBySize,
    difference: float,
    *,
    smallest: npt.ArrayLike,
    alpha: npt.ArrayLike = 0.05,
    power: float = 0.8,
) -> FloatArray:
    """Return the smallest number of units that finds a difference with some power.

        n = min { n ≥ smallest: λ(df(n), α, power) · se(n) ≤ D }

    which is the iterated form of n = ((z(1 - α/2) + z(power)) sd / D)². The result is infinite
    where ``MAX_UNITS`` units are too few, and NaN where the error is.

    Args:
        measure_error: The standard error and degrees of freedom of a number of units; the error
            must not grow with it.
        difference: The difference D, above 0.
        smallest: The smallest number of units that can be tested; of the shape of the result.
        alpha: The level of a single test.
        power: The probability of a significant result.

    >>> def measure_error(n):
    ...     return 1.0 / np.sqrt(n), n - 1.0
    >>> find_sample_size(measure_error, 0.5, smallest=[2]).tolist()  # (2.80 / 0.5)² = 31.4
    [34.0]

    Source:
        Cohen, "Statistical Power Analysis for the Behavioral Sciences", 2nd edition, 1988,
        section 2.4.
    """
    low = np.asarray(smallest, np.float64) - 1.0  # too few, or not testable

    def is_enough(n: FloatArray) -> BoolArray:
        error, df = measure_error(n)
        found: BoolArray = (
            compute_detectable_difference(error, df, alpha=alpha, power=power) <= difference
        )
        return found

    high = np.full(low.shape, float(MAX_UNITS))
    unreachable = ~is_enough(high)
    while (high - low > 1.0).any():
        middle = np.floor((low + high) / 2.0)
        enough = is_enough(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    undefined = np.isnan(measure_error(np.full(low.shape, float(MAX_UNITS)))[0])
    return np.where(undefined, np.nan, np.where(unreachable, np.inf, high))


def scale_error(error: FloatArray, df: FloatArray, n: FloatArray) -> ErrorBySize:
    """Return the error of other numbers of units than the ``n`` that gave this one.

        se(m) = se √(n / m),    df(m) = m - (n - df)

    for one sample of units: paired differences, or a bootstrap over units. Infinite ``df`` stay.

    >>> measure_error = scale_error(np.array(0.2), np.array(9.0), np.array(10.0))
    >>> [float(x) for x in measure_error(np.array(40.0))]
    [0.1, 39.0]
    """

    def measure_error(m: FloatArray) -> ErrorOfMean:
        return np.asarray(error * np.sqrt(n / m)), np.asarray(m - (n - df))

    return measure_error


def measure_group_error(variance: FloatArray, share: FloatArray) -> ErrorBySize:
    """Return the error of the difference between two groups by the number of units of both.

        se² = v_a + v_b,    v_g = s_g² / (n w_g),    df = (v_a + v_b)² / Σ v_g² / (n w_g - 1)

    Args:
        variance: The variances s² of both groups, ``float64[2, ...]``.
        share: The shares w of the groups among all units, ``float64[2, ...]``.

    >>> error = measure_group_error(np.array([1.0, 1.0]), np.array([0.5, 0.5]))
    >>> [round(float(x), 4) for x in error(np.array(20.0))]
    [0.4472, 18.0]

    Source:
        Welch, "The generalization of Student's problem when several different population variances
        are involved", Biometrika 1947.
    """

    def measure_error(n: FloatArray) -> ErrorOfMean:
        parts = variance / (n * share)
        with np.errstate(invalid="ignore", divide="ignore"):
            df = parts.sum(axis=0) ** 2 / (parts**2 / (n * share - 1.0)).sum(axis=0)
        return np.asarray(np.sqrt(parts.sum(axis=0))), np.asarray(df)

    return measure_error


def measure_crossed_error(
    components: FloatArray, names: npt.ArrayLike, templates: npt.ArrayLike
) -> ErrorOfMean:
    """Return the error of the mean over every name in every template, both being samples.

        se² = σ²_name / J + σ²_template / K + σ²_rest / (J K) = (MS_n + MS_t - MS_r) / (J K),
        df = (MS_n + MS_t - MS_r)² / (MS_n² / (J - 1) + MS_t² / (K - 1) + MS_r² / ((J - 1)(K - 1)))

    with the mean squares MS_n = σ²_rest + K σ²_name, MS_t = σ²_rest + J σ²_template and
    MS_r = σ²_rest (Satterthwaite's degrees of freedom).

    Args:
        components: The variances σ² of name, template and rest, ``float64[3]``.
        names: The number J of names.
        templates: The number K of templates.

    >>> components = np.array([0.3, 0.1, 0.6])
    >>> error, df = measure_crossed_error(components, 6, 4)
    >>> round(float(error**2), 4), round(float(df), 2)  # 0.3 / 6 + 0.1 / 4 + 0.6 / 24
    (0.1, 5.0)

    Source:
        Satterthwaite, "An approximate distribution of estimates of variance components",
        Biometrics Bulletin 1946; Clark, "The language-as-fixed-effect fallacy", Journal of Verbal
        Learning and Verbal Behavior 1973.
    """
    name, template, rest = components
    j, k = np.broadcast_arrays(np.asarray(names, np.float64), np.asarray(templates, np.float64))
    squares = np.stack([rest + k * name, rest + j * template, np.full(j.shape, rest)])
    dfs = np.stack([j - 1.0, k - 1.0, (j - 1.0) * (k - 1.0)])
    total = squares[0] + squares[1] - squares[2]
    with np.errstate(invalid="ignore", divide="ignore"):
        df = total**2 / (squares**2 / dfs).sum(axis=0)
        return np.asarray(np.sqrt(total / (j * k))), np.asarray(df)


_CONTRAST_LEVEL = 0.05
"""The level of the intervals of tests within a model."""

UNTESTABLE = frozenset({"welch_anova", "random_direction", "rank_sum"})
"""Tests without a difference of two means, which have no detectable one."""


def derive_error(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return the standard error and the degrees of freedom behind the interval of a comparison.

        se = (high - low) / (2 t(1 - α/2; df))

    Args:
        row: A row of ``significance.csv``.

    >>> row = {"ci_low": -1.96, "ci_high": 1.96, "df": float("nan"), "n": 10.0}
    >>> error, df = derive_error({**row, "test": "paired_bootstrap", "between": "groups"})
    >>> round(error, 3), df
    (1.0, inf)
    """
    df = _find_df(row)
    level = row["alpha"] if str(row["between"]).startswith("model") else _CONTRAST_LEVEL
    half_width = (row["ci_high"] - row["ci_low"]) / 2.0
    return half_width / _compute_quantile(df, 1.0 - level / 2.0), df


def detect_difference(row: Mapping[str, Any], power: float = 0.8) -> float:
    """Return the smallest true difference that a comparison would find with some power.

        D = λ(df, α / m, power) · se

    where m is the size of the family if the p-values are corrected; for Holm and
    Benjamini-Hochberg D is an upper bound. D is NaN without an interval, without variance, for
    ``UNTESTABLE`` tests, and where no p-value of the test can be as small (``find_least_p``).

    Args:
        row: A row of ``significance.csv``.
        power: The probability of a significant result.

    Source:
        Bloom, "Minimum detectable effects", Evaluation Review 1995.
    """
    error, df = derive_error(row)
    if row["test"] in UNTESTABLE or not error > 0:
        return math.nan
    family_size = row["family_size"] if row["correction"] not in {"", "none"} else 1.0
    level = row["alpha"] / max(family_size, 1.0)
    if find_least_p(str(row["test"]), row["n"]) > level:
        return math.nan
    return float(compute_detectable_difference(error, df, alpha=level, power=power))


def find_least_p(test: str, n: float) -> float:
    """Return the smallest p-value of a test of n units: that of sign flips is 2 / 2ⁿ, else 0.

    >>> find_least_p("sign_flip(permutations=99)", 3), find_least_p("paired_t", 3)
    (0.25, 0.0)
    """
    return float(2.0 ** (1.0 - n)) if test.partition("(")[0] == "sign_flip" else 0.0


def _find_df(row: Mapping[str, Any]) -> float:
    """Return the degrees of freedom of the interval; infinite for the normal distribution."""
    if not math.isnan(row["df"]):
        return float(row["df"])
    if row["test"] == "paired_bootstrap":
        return math.inf
    lost = 1.0 if str(row["between"]).startswith("model") else 2.0
    return float(row["n"]) - lost if row["n"] > lost else math.nan


def _compute_quantile(df: float, share: float) -> float:
    from scipy.special import ndtri, stdtrit

    return float(ndtri(share) if math.isinf(df) else stdtrit(df, share))


def t_interval(
    mean: npt.ArrayLike, std: npt.ArrayLike, n: npt.ArrayLike, alpha: float = 0.05
) -> tuple[FloatArray, FloatArray]:
    """Return the t interval of means at level 1 - alpha.

        mean ± t(1 - α/2; n - 1) · std / √n

    ``std`` is the sample standard deviation (n - 1), of means of any shape; NaN for ``n`` below 2.

    >>> low, high = t_interval(0.5, 0.5, 4)
    >>> round(float(low), 4), round(float(high), 4)
    (-0.2956, 1.2956)

    Source:
        Student, "The probable error of a mean", Biometrika 1908.
    """
    from scipy.special import stdtrit

    counts = np.asarray(n, dtype=np.float64)
    counts = np.where(counts > 1, counts, np.nan)
    half_width = stdtrit(counts - 1.0, 1.0 - alpha / 2.0) * np.asarray(std) / np.sqrt(counts)
    center = np.asarray(mean)
    return np.asarray(center - half_width), np.asarray(center + half_width)


def compare_shares(
    a: npt.ArrayLike, n_a: npt.ArrayLike, b: npt.ArrayLike, n_b: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the 95% interval of the difference of two independent shares, and its p-value.

        d - √((a - l_a)² + (u_b - b)²)  to  d + √((u_a - a)² + (b - l_b)²),    d = a - b

    l and u are the ends of Wilson's intervals of the shares of n_a and n_b values. p is 1 minus
    the level of the interval that ends at 0. Both are defined where all values are equal.

    >>> low, high, p = compare_shares(56 / 70, 70, 48 / 80, 80)  # method 10 in table II: 0.0524
    >>> [round(float(x), 4) for x in (low, high, p)]
    [0.0524, 0.3339, 0.0081]

    Source:
        Newcombe, "Interval estimation for the difference between independent proportions",
        Statistics in Medicine 1998, method 10.
    """
    from scipy.special import ndtr, ndtri

    a, n_a, b, n_b = (np.asarray(x, np.float64) for x in (a, n_a, b, n_b))
    difference = a - b
    below, above = _measure_errors(a, n_a, b, n_b, ndtri(0.975))
    least, most = np.zeros(difference.shape), np.full(difference.shape, 40.0)
    for _ in range(60):  # bisection for the quantile of which the interval ends at 0
        z = (least + most) / 2.0
        errors = _measure_errors(a, n_a, b, n_b, z)
        holds_0 = np.where(difference > 0, errors[0], errors[1]) >= np.abs(difference)
        least, most = np.where(holds_0, least, z), np.where(holds_0, z, most)
    p = np.where(np.isnan(difference), np.nan, 2.0 * ndtr(-most))
    return difference - below, difference + above, p


def _measure_errors(
    a: FloatArray, n_a: FloatArray, b: FloatArray, n_b: FloatArray, z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the distances of a - b from the ends of its interval, by Wilson's quantile z."""
    (low_a, high_a), (low_b, high_b) = (
        compute_wilson_interval(*side, z) for side in ((a, n_a), (b, n_b))
    )
    return np.hypot(a - low_a, high_b - b), np.hypot(high_a - a, b - low_b)


def compare_share_ratio(a: float, n_a: float, b: float, n_b: float) -> tuple[float, float]:
    """Return the 95% interval of the ratio a / b of two independent shares, infinite at most.

        θ with (a - θ b)² = (a - l_a)² + θ² (u_b - b)²  to  the same with u_a and l_b

    l and u are the ends of Wilson's intervals. It holds 1 if and only if the interval of
    ``compare_shares`` holds 0.

    Source:
        Donner and Zou, "Closed-form confidence intervals for functions of the normal mean and
        standard deviation", Statistical Methods in Medical Research 2012.
    """
    (low_a, high_a), (low_b, high_b) = (
        map(float, compute_wilson_interval(share, n)) for share, n in ((a, n_a), (b, n_b))
    )
    low_term, high_term = low_a * (2.0 * a - low_a), high_a * (2.0 * a - high_a)
    root = a * b + math.sqrt(max((a * b) ** 2 - low_term * high_b * (2.0 * b - high_b), 0.0))
    divisor = low_b * (2.0 * b - low_b)
    upper = a * b + math.sqrt(max((a * b) ** 2 - high_term * divisor, 0.0))
    return low_term / root if root else 0.0, upper / divisor if divisor > 0 else math.inf


def rating_share_interval(
    shares: npt.ArrayLike, n_ratings: int, alpha: float = 0.05
) -> tuple[float, float]:
    """Return an interval of a mean share at level 1 - alpha, of ratings that come in clusters.

        Wilson's interval with n* = min( n p (1 - p) / s², m ) in place of n

    The mean p and the variance s² (over n) are those of the shares of n units, such as responses,
    each of which has ratings by several raters; m is the number of all ratings. If raters agree on
    every unit, n* is n, and the interval that of n ratings. It is within 0 and 1. Without a unit
    (NaN is none), both ends are NaN.

    >>> low, high = rating_share_interval([0.0, 0.0, 1.0, 1.0], 12)
    >>> round(float(low), 4), round(float(high), 4)
    (0.15, 0.85)

    Source:
        Wilson, "Probable inference, the law of succession, and statistical inference", JASA 1927;
        the effective number of ratings: Korn and Graubard, "Confidence intervals for proportions
        with small expected number of positive counts estimated from survey data", Survey
        Methodology 1998.
    """
    from scipy.special import ndtri

    values = np.asarray(shares, dtype=np.float64)
    values = values[~np.isnan(values)]
    if not values.size:
        return np.nan, np.nan
    share, variance = float(values.mean()), float(values.var())
    binomial = share * (1.0 - share)
    ratio = binomial / variance if variance > 0 else (np.inf if binomial > 0 else 1.0)
    n = min(values.size * ratio, float(max(n_ratings, values.size)))
    return compute_wilson_interval(share, n, float(ndtri(1 - alpha / 2)))


def bootstrap_standard_error(replicates: npt.ArrayLike) -> FloatArray:
    """Return the standard deviation (n - 1) over the bootstrap samples, ``float64[..., b]``.

    Undefined samples (NaN) are excluded; the result is NaN if fewer than two are defined.

    >>> float(bootstrap_standard_error(np.array([1.0, 2.0, 3.0, np.nan])))
    1.0

    Source:
        Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, equation 6.6.
    """
    rows = np.asarray(replicates, dtype=np.float64)
    defined = ~np.isnan(rows)
    counts = defined.sum(axis=-1)
    total = np.where(defined, rows, 0.0).sum(axis=-1)
    mean = total / np.maximum(counts, 1)
    deviations = np.where(defined, rows - mean[..., None], 0.0)
    variance = (deviations**2).sum(axis=-1) / np.maximum(counts - 1, 1)
    return np.asarray(np.where(counts > 1, np.sqrt(variance), np.nan))


def bootstrap_interval(
    point: npt.ArrayLike, replicates: npt.ArrayLike, df: npt.ArrayLike = math.nan
) -> tuple[FloatArray, FloatArray]:
    """Return 95% intervals of estimates with the bootstrap standard error.

        point ± q · se,    q = z(0.975), or t(0.975; df) with the degrees of freedom df of se

    ``df`` is NaN for the normal distribution, or the number of clusters minus that of strata, for
    all estimates or for each; at 0 there is no interval. The interval is centred on the estimate.
    For metrics such as coverage, resampled values are biased downwards because a resample holds
    fewer distinct queries; a percentile interval would then miss the estimate. ``replicates`` are
    as for ``bootstrap_standard_error``.

    >>> [round(float(end), 3) for end in bootstrap_interval(2.0, np.array([1.0, 2.0, 3.0]))]
    [0.04, 3.96]
    >>> [round(float(end), 3) for end in bootstrap_interval(2.0, np.array([1.0, 2.0, 3.0]), 10)]
    [-0.228, 4.228]

    Source:
        Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, sections 12.2 and 13.2.
    """
    from scipy.special import ndtri

    error, degrees = bootstrap_standard_error(replicates), np.asarray(df, np.float64)
    student = t_interval(point, error * np.sqrt(degrees + 1.0), degrees + 1.0)
    half_width, is_normal = ndtri(0.975) * error, np.isnan(degrees)
    low, high = (
        np.where(is_normal, point + sign * half_width, end)
        for sign, end in zip((-1.0, 1.0), student, strict=True)
    )
    return low, high


def logit_t_interval(point: float, replicates: FloatArray, df: float) -> tuple[float, float]:
    """Return the 95% t interval of a share, on the scale of its logit.

        logit x ± t(0.975; df) · se,    logit x = log( x / (1 - x) )

    se is the standard deviation of the logits of the replicates. A share of few clusters has a
    skewed distribution, whose variance depends on the share; that of the logit is nearly
    symmetric, and its interval within 0 and 1. Where the share or a replicate is 0 or 1, it has
    no logit: the interval is then that of ``bootstrap_interval``, within 0 and 1. Replicates are
    ``float64[b]``; NaN is excluded.

    >>> low, high = logit_t_interval(0.5, np.array([0.25, 0.5, 0.75]), 10)
    >>> round(low, 4), round(high, 4)  # logit ± 2.2281 · log 3
    (0.0796, 0.9204)

    Source:
        The logit as the scale of intervals of shares: Agresti, "Categorical Data Analysis", 2013,
        section 1.4; t as in ``bootstrap_interval``.
    """
    from scipy.special import expit, logit

    rows = replicates[~np.isnan(replicates)]
    if not 0.0 < point < 1.0 or not ((rows > 0.0) & (rows < 1.0)).all():
        low, high = bootstrap_interval(point, rows, df)
        return float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0))
    low, high = bootstrap_interval(logit(point), logit(rows), df)
    return float(expit(low)), float(expit(high))


def arcsine_t_interval(point: float, replicates: FloatArray, df: float) -> tuple[float, float]:
    """Return the 95% t interval of a share that may be 0, on the scale of its arcsine.

        sin²( g ± t(0.975; df) · se ),    g = arcsin √x,    within 0 and 1

    se is the standard deviation of the arcsines of the roots of the replicates. The variance of a
    share falls towards 0 and 1, and that of the arcsine of its root hardly; unlike the logit it is
    finite at 0 and 1. Replicates are ``float64[b]``; NaN is excluded.

    >>> low, high = arcsine_t_interval(0.25, np.array([0.25, 0.75]), 10)
    >>> round(low, 4), round(high, 4)  # π/6 ± 2.2281 · π/6 / √2, of which -0.30 counts as 0
    (0.0, 0.9514)

    Source:
        Anscombe, "The transformation of Poisson, binomial and negative-binomial data", Biometrika
        1948; t as in ``bootstrap_interval``.
    """
    rows = np.arcsin(np.sqrt(np.clip(replicates[~np.isnan(replicates)], 0.0, 1.0)))
    ends = bootstrap_interval(np.arcsin(np.sqrt(point)), rows, df)
    low, high = (float(np.sin(np.clip(end, 0.0, np.pi / 2)) ** 2) for end in ends)
    return low, high


def log_interval(
    point: float, replicates: npt.ArrayLike, *, df: float = math.nan
) -> tuple[float, float]:
    """Return the 95% bootstrap interval of a positive estimate, on the scale of its logarithm.

        point · exp( ± z(0.975) · se ),    se the standard error of the log of the replicates

    With the degrees of freedom ``df`` of se, t(0.975; df) is in place of z. The sampling
    distribution of a ratio of sums has a longer tail above; that of its logarithm is nearly
    symmetric. Where the estimate or a replicate is 0, it has no logarithm: the interval is then
    symmetric. ``replicates`` are as for ``bootstrap_standard_error``.

    >>> low, high = log_interval(2.0, np.exp([-1.0, 0.0, 1.0]))
    >>> round(low, 4), round(high, 4)  # 2 / e^1.95996 and 2 e^1.95996
    (0.2817, 14.1981)

    Source:
        Katz, Baptista, Azen and Pike, "Obtaining confidence intervals for the risk ratio in cohort
        studies", Biometrics 1978.
    """
    quantile = _compute_quantile(math.inf if math.isnan(df) else df, 0.975)
    rows = np.asarray(replicates, dtype=np.float64)
    if not point > 0 or bool((rows <= 0).any()):
        half_width = quantile * float(bootstrap_standard_error(rows))
        return point - half_width, point + half_width
    factor = math.exp(quantile * float(bootstrap_standard_error(np.log(rows))))
    return point / factor, point * factor


def compute_sample_interval(
    value: float, replicates: npt.ArrayLike, *, df: float = math.nan, log_scale: bool = False
) -> tuple[float, float]:
    """Return the 95% interval of an estimate, by ``bootstrap_interval`` or ``log_interval``."""
    if log_scale:
        return log_interval(value, replicates, df=df)
    low, high = bootstrap_interval(value, replicates, df)
    return float(low), float(high)


def estimate_ratio(
    numerators: FloatArray, denominators: FloatArray, alpha: float = 0.05
) -> tuple[float, float, float]:
    """Return the ratio of the means of paired values, and its Fieller interval at 1 - alpha.

        {θ : (x̄ - θ ȳ)² ≤ t² (s_xx - 2 θ s_xy + θ² s_yy) / n},    t = t(1 - α/2; n - 1)

    s are the sample variances and the covariance (n - 1). Where the mean of the denominators is
    not significantly different from 0 at this level, the set is not an interval, and both ends are
    NaN. With fewer than two pairs they are NaN too; with a mean of 0 the ratio is NaN.

    >>> ratio, low, high = estimate_ratio(np.array([1.0, 2.0, 3.0]), np.array([4.0, 4.0, 4.0]))
    >>> ratio, round(low, 4), round(high, 4)  # of a constant: the t interval divided by it
    (0.5, -0.121, 1.121)

    Source:
        Fieller, "Some problems in interval estimation", J. R. Stat. Soc. B 16(2), 1954.
    """
    from scipy.special import stdtrit

    n = numerators.size
    mean_x, mean_y = (
        float(values.mean()) if n else math.nan for values in (numerators, denominators)
    )
    ratio = mean_x / mean_y if mean_y else math.nan
    if n < 2 or math.isnan(ratio):
        return ratio, math.nan, math.nan
    factor = float(stdtrit(n - 1, 1 - alpha / 2)) ** 2 / n
    return ratio, *solve_fieller(mean_x, mean_y, factor * np.cov(numerators, denominators))


def estimate_resampled_ratio(
    numerator: float,
    denominator: float,
    replicates: FloatArray,
    *,
    df: float = math.nan,
    alpha: float = 0.05,
) -> tuple[float, float, float]:
    """Return the ratio of two estimates, and its Fieller interval from joint bootstrap samples.

        {θ : (x - θ y)² ≤ q² (v_xx - 2 θ v_xy + θ² v_yy)}

    v are the variances and the covariance (n - 1) over the bootstrap samples, and q is
    z(1 - α/2), or t(1 - α/2; df) if the samples are of few units. Undefined ends are those of
    ``estimate_ratio``; samples on which an estimate is NaN are excluded.

    Args:
        numerator: The estimate x.
        denominator: The estimate y.
        replicates: Both estimates on the same bootstrap samples, ``float64[2, b]``.
        df: Degrees of freedom of the standard errors; NaN for the normal distribution.
        alpha: 1 minus the level of the interval.

    >>> replicates = np.array([[1.0, 3.0, 2.0], [1.0, 3.0, 2.0]])  # as one estimate: no spread
    >>> estimate_resampled_ratio(4.0, 4.0, replicates)
    (1.0, 1.0, 1.0)

    Source:
        Fieller 1954, as for ``estimate_ratio``; the covariance of two estimates by the bootstrap:
        Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 6.
    """
    from scipy.special import ndtri, stdtrit

    ratio = numerator / denominator if denominator else math.nan
    defined = replicates[:, np.isfinite(replicates).all(axis=0)]
    if defined.shape[1] < 2 or math.isnan(ratio):
        return ratio, math.nan, math.nan
    level = 1 - alpha / 2
    quantile = float(ndtri(level) if math.isnan(df) else stdtrit(df, level))
    return ratio, *solve_fieller(numerator, denominator, quantile**2 * np.cov(defined))


def solve_fieller(x: float, y: float, squares: FloatArray) -> tuple[float, float]:
    """Return the ends of {θ : (x - θ y)² ≤ s_xx - 2 θ s_xy + θ² s_yy}, NaN unless an interval."""
    (s_xx, s_xy), (_, s_yy) = squares
    # θ² (y² - s_yy) - 2 θ (x y - s_xy) + x² - s_xx = 0
    square = y**2 - s_yy
    if square <= 0:
        return math.nan, math.nan
    middle = x * y - s_xy
    root = math.sqrt(max(middle**2 - square * (x**2 - s_xx), 0.0))
    return float((middle - root) / square), float((middle + root) / square)
