"""Power of t-tests: the smallest detectable difference, and how many units a difference needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import BoolArray, FloatArray

MAX_UNITS = 1_000_000_000
"""More units than this are not counted: the needed number is infinite."""

LARGEST_CRITICAL = 500.0
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
    exact = 1.0 - nctdtr(finite, shift, np.minimum(critical, LARGEST_CRITICAL))
    limit = chdtr(finite, finite * (shift / critical) ** 2)
    student = np.where(critical > LARGEST_CRITICAL, limit, exact)
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
    exact = nctdtrinc(finite, miss, np.minimum(critical, LARGEST_CRITICAL))
    limit = critical * np.sqrt(chdtri(finite, miss) / finite)
    student = np.where(critical > LARGEST_CRITICAL, limit, exact)
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
