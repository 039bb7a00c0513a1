"""The jackknife: the variance of an estimate from its values without each unit."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.statistics.bootstrap.set_bootstrap import resample_means


def sample_jackknife(
    point: float, without: FloatArray, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """Return samples of an estimate whose variance is the jackknife's, ``float64[b]``.

        sample = point + (1/n) Σ_i c_i u_i,    u_i = (n - 1) (mean of t - t_i)

    t_i is the estimate without unit i, and c_i the count of unit i among n units sampled with
    replacement. This is the bootstrap of the estimate linearised in its units. It is used for
    estimates such as the number of distinct items, which a bootstrap sample with repeated units
    would bias.

    Args:
        point: The estimate.
        without: The estimate without each unit, ``float64[n]``; NaN if it is undefined.
        n_samples: The number of samples.
        rng: The random generator; the sampled units depend on it and on n only, so that two
            systems with the same units share their samples.

    Returns:
        All NaN if the estimate without a unit is undefined, or if there is one unit.

    >>> values = np.array([1.0, 2.0, 6.0])  # for a mean, equal to the bootstrap
    >>> without = np.array([4.0, 3.5, 1.5])
    >>> rng = np.random.default_rng(0)
    >>> samples = sample_jackknife(3.0, without, 4, rng)
    >>> bool(np.allclose(samples, resample_means(values, 4, np.random.default_rng(0))))
    True

    Source:
        Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 11 and 20.
    """
    n = without.size
    if n < 2:
        return np.full(n_samples, np.nan)
    influence = (n - 1) * (without.mean() - without)
    return point + resample_means(influence, n_samples, rng)
