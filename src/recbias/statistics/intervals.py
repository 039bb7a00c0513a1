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
