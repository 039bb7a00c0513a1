"""The bootstrap over the members of a set."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import FloatArray

BLOCK_VALUES = 2**21
"""How many resampled values are held at once."""


def resampled_means(values: FloatArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Return the mean of each bootstrap sample of a set, ``float64[b]``.

    A sample is n - 1 values drawn with replacement, so that the variance over the samples is that
    of the mean itself; drawing n gives (n - 1)/n of it. Which ones depends on the generator and
    the number of values only, so that two sets of one size are resampled alike.

    Args:
        values: ``float64[n]``, two or more; of one alone nothing says how it varies: NaN.
        n_samples: How many samples are drawn.
        rng: Where chance comes from.

    >>> resampled_means(np.array([2.0, 2.0]), 3, np.random.default_rng(0)).tolist()
    [2.0, 2.0, 2.0]

    Source:
        Rao and Wu, "Resampling inference with complex survey data", JASA 1988.
    """
    return resampled_mean_rows(values[:, None], n_samples, rng)[:, 0]


def resampled_mean_rows(rows: FloatArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Return the mean vector of each bootstrap sample of a set of vectors, ``float64 (b, d)``.

    Args:
        rows: ``float64 (n, d)``, two or more; as for ``resampled_means``.
        n_samples: How many samples are drawn.
        rng: Where chance comes from; which samples depends on it and on n only.
    """
    n = len(rows)
    if n == 1:
        return np.full((n_samples, rows.shape[1]), np.nan)
    size = max(1, BLOCK_VALUES // n)
    means = np.empty((n_samples, rows.shape[1]))
    for first in range(0, n_samples, size):
        many = min(size, n_samples - first)
        drawn = rng.integers(n, size=(many, n - 1)) + n * np.arange(many)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=n * many).reshape(many, n)
        means[first : first + many] = counts.astype(np.float64) @ rows / (n - 1)
    return means
