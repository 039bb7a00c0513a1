"""The bootstrap over the members of a set, and the jackknife."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray

BLOCK_VALUES = 2**21
"""Resampled values held in memory at once."""


def resample_means(values: FloatArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Return the mean of each bootstrap sample of a set, ``float64[b]``.

    A sample is n - 1 values sampled with replacement, so that the variance over the samples is
    that of the mean itself; sampling n would give (n - 1)/n of it. The sampled positions depend on
    the generator and the number of values only, so that sets of the same size share their samples.
    NaN is returned for n = 1, as the variance is unknown.

    >>> resample_means(np.array([2.0, 2.0]), 3, np.random.default_rng(0)).tolist()
    [2.0, 2.0, 2.0]

    Source:
        Rao and Wu, "Resampling inference with complex survey data", JASA 1988.
    """
    return resample_mean_rows(values[:, None], n_samples, rng)[:, 0]


def resample_mean_rows(rows: FloatArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Return ``resample_means`` of a set of vectors ``float64 (n, d)``, ``float64 (b, d)``."""
    n = len(rows)
    means = np.full((n_samples, rows.shape[1]), np.nan)
    if n > 1:
        for samples, counts in sample_counts(n, n_samples, BLOCK_VALUES, rng):
            means[samples] = counts.astype(np.float64) @ rows / (n - 1)
    return means


def sample_counts(
    n: int, n_samples: int, block_values: int, rng: np.random.Generator
) -> Iterator[tuple[slice, AnyArray]]:
    """Yield blocks of samples, and the count of each of n members in n - 1 random choices."""
    size = max(1, block_values // n)
    for start in range(0, n_samples, size):
        rows = min(size, n_samples - start)
        cells = rng.integers(n, size=(rows, n - 1)) + n * np.arange(rows)[:, None]
        counts = np.bincount(cells.ravel(), minlength=n * rows).reshape(rows, n)
        yield slice(start, start + rows), counts


def sample_jackknife(
    point: float, without: FloatArray, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """Return samples of an estimate whose variance is the jackknife's, ``float64[b]``.

        sample = point + (1/n) Σ_i c_i u_i,    u_i = (n - 1) (mean of t - t_i)

    t_i is the estimate without unit i (``without``), and c_i the count of unit i among n units
    sampled with replacement. This is the bootstrap of the estimate linearised in its units. It is
    used for estimates such as the number of distinct items, which a bootstrap sample with repeated
    units would bias. All NaN if a t_i is undefined, or if there is one unit.

    >>> values = np.array([1.0, 2.0, 6.0])  # for a mean, equal to the bootstrap
    >>> without = np.array([4.0, 3.5, 1.5])
    >>> samples = sample_jackknife(3.0, without, 4, np.random.default_rng(0))
    >>> bool(np.allclose(samples, resample_means(values, 4, np.random.default_rng(0))))
    True

    Source:
        Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 11 and 20.
    """
    if without.size < 2:
        return np.full(n_samples, np.nan)
    influence = (without.size - 1) * (without.mean() - without)
    return point + resample_means(influence, n_samples, rng)
