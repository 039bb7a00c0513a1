"""The interval of an estimate from its bootstrap samples."""

from __future__ import annotations

import math

from recbias.core.arrays import FloatArray
from recbias.statistics.bootstrap.cluster_bootstrap import bootstrap_t_interval
from recbias.statistics.intervals import log_interval, normal_interval


def compute_sample_interval(
    value: float, replicates: FloatArray, *, df: float = math.nan, log_scale: bool = False
) -> tuple[float, float]:
    """Return the 95% interval of an estimate.

    Args:
        value: The estimate, or the mean of one over folds and seeds.
        replicates: Its value on each bootstrap sample, ``float64[b]``.
        df: Degrees of freedom of their standard deviation, for Student's t; NaN for the normal
            distribution.
        log_scale: Whether the interval is that of the logarithm; then ``df`` does not count.

    >>> import numpy as np
    >>> samples = np.array([1.0, 2.0, 3.0])
    >>> [round(end, 3) for end in compute_sample_interval(2.0, samples)]
    [0.04, 3.96]
    >>> [round(end, 3) for end in compute_sample_interval(2.0, samples, df=10)]
    [-0.228, 4.228]
    >>> [round(end, 3) for end in compute_sample_interval(2.0, samples, log_scale=True)]
    [0.673, 5.942]
    """
    if log_scale:
        return log_interval(value, replicates)
    if math.isnan(df):
        low, high = normal_interval(value, replicates)
    else:
        low, high = bootstrap_t_interval(value, replicates, df)
    return float(low), float(high)
