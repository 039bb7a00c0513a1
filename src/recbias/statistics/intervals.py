"""Confidence intervals of means and of bootstrapped estimates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import FloatArray


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
    n, z = (
        min(values.size * ratio, float(max(n_ratings, values.size))),
        float(ndtri(1 - alpha / 2)),
    )
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half_width = z / (1 + z**2 / n) * np.sqrt(binomial / n + z**2 / (4 * n**2))
    return max(0.0, centre - half_width), min(1.0, centre + half_width)


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


def normal_interval(
    point: npt.ArrayLike, replicates: npt.ArrayLike, alpha: float = 0.05
) -> tuple[FloatArray, FloatArray]:
    """Return the bootstrap normal interval of estimates at level 1 - alpha.

        point ± z(1 - α/2) · se,    se the bootstrap standard error

    The interval is centred on the estimate. For metrics such as coverage, resampled values are
    biased downwards because a resample holds fewer distinct queries; a percentile interval would
    then miss the estimate. ``replicates`` are as for ``bootstrap_standard_error``.

    >>> low, high = normal_interval(2.0, np.array([1.0, 2.0, 3.0]))
    >>> round(float(low), 3), round(float(high), 3)
    (0.04, 3.96)

    Source:
        Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, section 13.2.
    """
    from scipy.special import ndtri

    half_width = ndtri(1.0 - alpha / 2.0) * bootstrap_standard_error(replicates)
    center = np.asarray(point)
    return np.asarray(center - half_width), np.asarray(center + half_width)


def log_interval(
    point: float, replicates: npt.ArrayLike, alpha: float = 0.05
) -> tuple[float, float]:
    """Return the bootstrap interval of a positive estimate, normal on the scale of its logarithm.

        point · exp( ± z(1 - α/2) · se ),    se the standard error of the log of the replicates

    The sampling distribution of a ratio of sums has a longer tail above; that of its logarithm is
    nearly symmetric. Where the estimate or a replicate is 0, it has no logarithm: the interval is
    then that of ``normal_interval``. ``replicates`` are as for ``bootstrap_standard_error``.

    >>> low, high = log_interval(2.0, np.exp([-1.0, 0.0, 1.0]))
    >>> round(low, 4), round(high, 4)  # 2 / e^1.95996 and 2 e^1.95996
    (0.2817, 14.1981)

    Source:
        Katz, Baptista, Azen and Pike, "Obtaining confidence intervals for the risk ratio in cohort
        studies", Biometrics 1978.
    """
    from scipy.special import ndtri

    rows = np.asarray(replicates, dtype=np.float64)
    if not point > 0 or bool((rows <= 0).any()):
        low, high = normal_interval(point, rows, alpha)
        return float(low), float(high)
    factor = float(np.exp(ndtri(1.0 - alpha / 2.0) * bootstrap_standard_error(np.log(rows))))
    return point / factor, point * factor
