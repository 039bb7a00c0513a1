"""Running means: how a mean over units settles as units are added."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class RunningMeans:
    """The mean of the first 1, 2, ... rows of each column, and its standard error, ``[u, m]``."""

    mean: FloatArray
    error: FloatArray


def compute_running_means(values: FloatArray) -> RunningMeans:
    """Return the running mean of each column and its standard error.

        mean_t = Σ_{s <= t} x_s / n_t,   error_t = √(Σ_{s <= t} (x_s - mean_t)² / (n_t - 1) / n_t)

    n_t is the number of defined values up to row t: NaN is excluded. The mean is NaN while there
    is none, the error while there are fewer than two.

    >>> running = compute_running_means(np.array([[1.0], [3.0], [np.nan], [5.0]]))
    >>> running.mean.ravel().tolist(), running.error.ravel().round(3).tolist()
    ([1.0, 2.0, 2.0, 3.0], [nan, 1.0, 1.0, 1.155])
    """
    defined = ~np.isnan(values)
    n = defined.cumsum(axis=0)
    # The sum of squares of centred values does not cancel.
    centre = np.where(defined, values, 0.0).sum(axis=0) / np.maximum(defined.sum(axis=0), 1)
    centred = np.where(defined, values - centre, 0.0)
    offset = _divide(centred.cumsum(axis=0), n)
    squares = np.maximum((centred**2).cumsum(axis=0) - n * offset**2, 0.0)
    return RunningMeans(centre + offset, np.sqrt(_divide(_divide(squares, n - 1), n)))


def _divide(sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Return quotients, NaN where the count is not positive."""
    quotients: FloatArray = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return quotients
