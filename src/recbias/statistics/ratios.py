"""The ratio of two means of the same units, with an interval."""

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
    (s_xx, s_xy), (_, s_yy) = np.cov(numerators, denominators)
    factor = float(stdtrit(n - 1, 1 - alpha / 2)) ** 2 / n
    # θ² (ȳ² - f s_yy) - 2 θ (x̄ ȳ - f s_xy) + x̄² - f s_xx = 0
    square = mean_y**2 - factor * s_yy
    if square <= 0:
        return ratio, math.nan, math.nan
    middle = mean_x * mean_y - factor * s_xy
    root = math.sqrt(max(middle**2 - square * (mean_x**2 - factor * s_xx), 0.0))
    return ratio, float((middle - root) / square), float((middle + root) / square)
