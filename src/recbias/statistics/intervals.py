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


def percentile_interval(
    replicates: npt.ArrayLike, alpha: float = 0.05
) -> tuple[FloatArray, FloatArray]:
    """Return the bootstrap percentile interval, of level 1 - alpha.

    Args:
        replicates: The figure on each bootstrap sample, ``float64[..., b]``; NaN is left out.
        alpha: One minus the level.

    Returns:
        The quantiles α/2 and 1 - α/2 of each row, linear between samples; NaN where a row has no
        defined sample.

    >>> low, high = percentile_interval(np.arange(101.0), alpha=0.1)
    >>> float(low), float(high)
    (5.0, 95.0)

    Source:
        Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, section 13.3.
    """
    rows = np.asarray(replicates, dtype=np.float64)
    found = np.full((2, *rows.shape[:-1]), np.nan)
    defined = ~np.isnan(rows).all(axis=-1)
    if defined.any():
        ends = [alpha / 2.0, 1.0 - alpha / 2.0]
        found[:, defined] = np.nanquantile(rows[defined], ends, axis=-1)
    return found[0], found[1]
