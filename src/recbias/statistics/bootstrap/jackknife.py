"""The jackknife: how far a figure spreads, from what it is without each of its units."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.statistics.bootstrap.set_bootstrap import resampled_means


def jackknife_samples(
    point: float, without: FloatArray, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """Return samples of a figure whose spread is the jackknife's, ``float64[b]``.

        sample = point + (1/n) Σ_i c_i u_i,    u_i = (n - 1) (mean of t - t_i)

    t_i is the figure without unit i, and c_i how often i is drawn, n units with replacement. It is
    the bootstrap of the figure made linear in its units. For figures that count what occurs at
    all, a bootstrap sample itself would mislead: it holds some units twice.

    Args:
        point: The figure.
        without: The figure without each unit, ``float64[n]``; NaN where nothing is left.
        n_samples: How many samples are drawn.
        rng: Where chance comes from; which units are drawn depends on it and on n only, so that
            two systems of the same units are resampled alike.

    Returns:
        All NaN where a figure without a unit is not defined, or there is one unit.

    >>> values = np.array([1.0, 2.0, 6.0])  # of a mean: that of the bootstrap
    >>> without = np.array([4.0, 3.5, 1.5])
    >>> rng = np.random.default_rng(0)
    >>> found = jackknife_samples(3.0, without, 4, rng)
    >>> bool(np.allclose(found, resampled_means(values, 4, np.random.default_rng(0))))
    True

    Source:
        Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 11 and 20.
    """
    n = without.size
    if n < 2:
        return np.full(n_samples, np.nan)
    influence = (n - 1) * (without.mean() - without)
    return point + resampled_means(influence, n_samples, rng)
