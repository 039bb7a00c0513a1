"""The same figure over folds and seeds: each unit's mean, and the interval that it gives.

A user of five folds is one user, not five: what is uncertain is which users there are, so the
interval of a mean over folds is that of the users' own means, not of the five figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from recbias.core.arrays import FloatArray, Ids
from recbias.core.measurements.scores import Measurement
from recbias.statistics.intervals import normal_interval


def same_units(found: Sequence[Measurement]) -> bool:
    """Return whether all measurements that have units have the same ones, in the same order."""
    first: Ids | None = None
    for each in found:
        if each.units is None:
            continue
        if first is None:
            first = each.units.ids
        elif each.units.ids is not first and not np.array_equal(each.units.ids, first):
            return False
    return True


def unit_means(found: Sequence[Measurement]) -> FloatArray | None:
    """Return each unit's mean, ``float64[u]``; None where a measurement has no units."""
    held = [each.units.values for each in found if each.units is not None]
    return defined_mean(held) if len(held) == len(found) else None


def sample_means(found: Sequence[Measurement]) -> FloatArray | None:
    """Return the mean of each bootstrap sample, ``float64[b]``; None where there are none."""
    held = [each.replicates for each in found if each.replicates is not None]
    return defined_mean(held) if len(held) == len(found) else None


def pooled_interval(found: Sequence[Measurement], mean: float) -> tuple[float, float]:
    """Return the 95% interval of a mean over folds and seeds; NaN where the units differ.

    Args:
        found: The figure on each fold and seed.
        mean: Their mean.
    """
    if not same_units(found):
        return math.nan, math.nan
    values, samples = unit_means(found), sample_means(found)
    if samples is not None:
        low, high = normal_interval(mean, samples)
        return float(low), float(high)
    if values is not None:
        pooled = Measurement.from_values(values)
        half = (pooled.ci_high - pooled.ci_low) / 2
        return mean - half, mean + half
    return math.nan, math.nan


def defined_mean(values: Sequence[FloatArray | float]) -> FloatArray:
    """Return the mean over the first axis, leaving NaN out; NaN where all are.

    >>> defined_mean([np.array([1.0, np.nan]), np.array([3.0, np.nan])]).tolist()
    [2.0, nan]
    """
    stacked = np.stack([np.asarray(each, dtype=np.float64) for each in values])
    defined = ~np.isnan(stacked)
    total = np.where(defined, stacked, 0.0).sum(axis=0)
    counts = defined.sum(axis=0)
    mean: FloatArray = np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
    return mean
