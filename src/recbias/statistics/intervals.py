"""Intervals of a mean and of a bootstrapped figure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import FloatArray


def t_interval(
    mean: npt.ArrayLike, std: npt.ArrayLike, n: npt.ArrayLike, alpha: float = 0.05
) -> tuple[FloatArray, FloatArray]:
    """Return the t interval of means, of level 1 - alpha.

        mean ± t(1 - α/2; n - 1) · std / √n

    Args:
        mean: Means, any shape.
        std: Sample standard deviations (n - 1).
        n: Units of each mean; below 2 there is no interval: NaN.
        alpha: One minus the level.

    >>> low, high = t_interval(0.5, 0.5, 4)
    >>> round(float(low), 4), round(float(high), 4)
    (-0.2956, 1.2956)

    Source:
        Student, "The probable error of a mean", Biometrika 1908.
    """
    from scipy.special import stdtrit

    counts = np.asarray(n, dtype=np.float64)
    enough = np.where(counts > 1, counts, np.nan)
    half = stdtrit(enough - 1.0, 1.0 - alpha / 2.0) * np.asarray(std) / np.sqrt(enough)
    middle = np.asarray(mean)
    return np.asarray(middle - half), np.asarray(middle + half)


def spread(replicates: npt.ArrayLike) -> FloatArray:
    """Return the bootstrap standard error: the standard deviation (n - 1) over the samples.

    Args:
        replicates: The figure on each bootstrap sample, ``float64[..., b]``; NaN is left out.

    Returns:
        ``float64[...]``; NaN where fewer than two samples are defined.

    >>> float(spread(np.array([1.0, 2.0, 3.0, np.nan])))
    1.0

    Source:
        Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, equation 6.6.
    """
    rows = np.asarray(replicates, dtype=np.float64)
    defined = ~np.isnan(rows)
    counts = defined.sum(axis=-1)
    total = np.where(defined, rows, 0.0).sum(axis=-1)
    mean = total / np.maximum(counts, 1)
    gaps = np.where(defined, rows - mean[..., None], 0.0)
    variance = (gaps**2).sum(axis=-1) / np.maximum(counts - 1, 1)
    return np.asarray(np.where(counts > 1, np.sqrt(variance), np.nan))


def normal_interval(
    point: npt.ArrayLike, replicates: npt.ArrayLike, alpha: float = 0.05
) -> tuple[FloatArray, FloatArray]:
    """Return the bootstrap normal interval of figures, of level 1 - alpha.

        point ± z(1 - α/2) · se,    se the standard deviation over the samples

    It lies around the figure itself. Where a figure counts what is there at all, as coverage does,
    its samples lie lower than it: a sample holds fewer distinct queries. Their spread is of use,
    their place is not, so percentiles would miss the figure.

    Args:
        point: The figures, any shape.
        replicates: Each on every bootstrap sample, ``float64[..., b]``; NaN is left out.
        alpha: One minus the level.

    >>> low, high = normal_interval(2.0, np.array([1.0, 2.0, 3.0]))
    >>> round(float(low), 3), round(float(high), 3)
    (0.04, 3.96)

    Source:
        Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, section 13.2.
    """
    from scipy.special import ndtri

    half = ndtri(1.0 - alpha / 2.0) * spread(replicates)
    middle = np.asarray(point)
    return np.asarray(middle - half), np.asarray(middle + half)
