"""The bootstrap over the members of a set."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import FloatArray

BLOCK_VALUES = 2**21
"""Resampled values held in memory at once."""


def resample_means(values: FloatArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Return the mean of each bootstrap sample of a set, ``float64[b]``.

    A sample is n - 1 values sampled with replacement, so that the variance over the samples is
    that of the mean itself; sampling n would give (n - 1)/n of it. The sampled positions depend on
    the generator and the number of values only, so that sets of the same size share their samples.

    Args:
        values: ``float64[n]``; NaN is returned for n = 1, as the variance is unknown.
        n_samples: The number of samples.
        rng: The random generator.

    >>> resample_means(np.array([2.0, 2.0]), 3, np.random.default_rng(0)).tolist()
    [2.0, 2.0, 2.0]

    Source:
        Rao and Wu, "Resampling inference with complex survey data", JASA 1988.
    """
    return resample_mean_rows(values[:, None], n_samples, rng)[:, 0]


def resample_mean_rows(rows: FloatArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Return the mean vector of each bootstrap sample of a set of vectors, ``float64 (b, d)``.

    Args:
        rows: ``float64 (n, d)``, as for ``resample_means``.
        n_samples: The number of samples.
        rng: The random generator; the sampled positions depend on it and on n only.
    """
    n = len(rows)
    if n == 1:
        return np.full((n_samples, rows.shape[1]), np.nan)
    size = max(1, BLOCK_VALUES // n)
    means = np.empty((n_samples, rows.shape[1]))
    for start in range(0, n_samples, size):
        block_rows = min(size, n_samples - start)
        cells = rng.integers(n, size=(block_rows, n - 1)) + n * np.arange(block_rows)[:, None]
        counts = np.bincount(cells.ravel(), minlength=n * block_rows).reshape(block_rows, n)
        means[start : start + block_rows] = counts.astype(np.float64) @ rows / (n - 1)
    return means
