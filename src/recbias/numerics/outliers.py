"""Detect outliers by their distance from the mean."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import BoolArray, FloatArray


def mark_within_deviations(values: FloatArray, deviations: float) -> BoolArray:
    """Mark the values within a number of standard deviations of the mean, ``bool[n]``.

        |x - m| ≤ c σ,    σ² = (1/n) Σ (x - m)²

    m is the mean and σ the population standard deviation of the values that are not NaN. NaN is
    never within; equal values always are.

    Args:
        values: ``float64[n]``.
        deviations: c, the number of standard deviations.

    >>> mark_within_deviations(np.array([1.0, 1, 1, 1, 9, np.nan]), 1.5).tolist()
    [True, True, True, True, False, False]
    """
    defined = ~np.isnan(values)
    if not defined.any():
        return defined
    mean, deviation = values[defined].mean(), values[defined].std()
    slack = 1e-12 * np.abs(values[defined]).max()  # the mean of equal values has a rounding error
    return np.asarray(np.abs(values - mean) <= deviations * deviation + slack)
