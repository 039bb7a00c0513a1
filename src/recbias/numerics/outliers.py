"""Which values lie far from the others."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import BoolArray, FloatArray


def within_deviations(values: FloatArray, deviations: float) -> BoolArray:
    """Return which values lie within some standard deviations of their mean, ``bool[n]``.

        |x - m| ≤ c σ,    σ² = (1/n) Σ (x - m)²

    σ is the population standard deviation. A value that is NaN is neither counted nor within;
    where all values are the same, all are within.

    Args:
        values: ``float64[n]``.
        deviations: c, how many standard deviations.

    >>> within_deviations(np.array([1.0, 1, 1, 1, 9, np.nan]), 1.5).tolist()
    [True, True, True, True, False, False]
    """
    known = ~np.isnan(values)
    if not known.any():
        return known
    mean, deviation = values[known].mean(), values[known].std()
    slack = 1e-12 * np.abs(values[known]).max()  # a mean of equal values may be off by a digit
    return np.asarray(np.abs(values - mean) <= deviations * deviation + slack)
