"""The ratio of two means, or of two estimates with bootstrap samples, with an interval."""

from __future__ import annotations

import math

import numpy as np

from recbias.core.arrays import FloatArray


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
    return ratio, *_solve(mean_x, mean_y, factor * np.cov(numerators, denominators))


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
    return ratio, *_solve(numerator, denominator, quantile**2 * np.cov(defined))


def _solve(x: float, y: float, squares: FloatArray) -> tuple[float, float]:
    """Return the ends of {θ : (x - θ y)² ≤ s_xx - 2 θ s_xy + θ² s_yy}, NaN unless an interval.

    ``squares`` are the variances and the covariance, times the squared quantile.
    """
    (s_xx, s_xy), (_, s_yy) = squares
    # θ² (y² - s_yy) - 2 θ (x y - s_xy) + x² - s_xx = 0
    square = y**2 - s_yy
    if square <= 0:
        return math.nan, math.nan
    middle = x * y - s_xy
    root = math.sqrt(max(middle**2 - square * (x**2 - s_xx), 0.0))
    return float((middle - root) / square), float((middle + root) / square)
