"""Means of a metric over folds and seeds, with intervals, and counts summed over datasets.

A user in five folds is one user, not five: the uncertainty is in the sample of users, so the
interval of a mean over folds is that of the users' means, not of the five values. Where the folds
are disjoint samples of users, it is that of the users of all samples together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from recbias.core.arrays import FloatArray, Ids
from recbias.core.measurements.ranges import Bounds, widen_ends
from recbias.core.measurements.scores import Measurement
from recbias.statistics.bootstrap.sample_interval import compute_sample_interval


def share_units(measurements: Sequence[Measurement]) -> bool:
    """Return whether all measurements with units have the same units in the same order."""
    units = [measurement.units.ids for measurement in measurements if measurement.units]
    return all(ids is units[0] or np.array_equal(ids, units[0]) for ids in units[1:])


def can_pool(measurements: Sequence[Measurement]) -> bool:
    """Return whether measurements have the same units, or no unit in common."""
    if share_units(measurements):
        return True
    ids = [measurement.units.ids for measurement in measurements if measurement.units]
    return len(set(np.concatenate(ids).tolist())) == sum(map(len, ids))


def pool_units(measurements: Sequence[Measurement]) -> FloatArray | None:
    """Return the value of each unit, ``float64[u]``; None if a measurement has no units.

    It is the mean of the unit if all measurements have the same units; if they have disjoint
    units, those of one measurement follow those of the other.
    """
    values = [measurement.units.values for measurement in measurements if measurement.units]
    if len(values) < len(measurements):
        return None
    return average_defined(values) if share_units(measurements) else np.concatenate(values)


def pool_ids(measurements: Sequence[Measurement]) -> Ids | None:
    """Return the units of ``pool_units``, ``[u]``; None if a measurement has no units."""
    ids = [measurement.units.ids for measurement in measurements if measurement.units]
    if len(ids) < len(measurements):
        return None
    return ids[0] if share_units(measurements) else np.concatenate(ids)


def _are_shares(measurements: Sequence[Measurement]) -> bool:
    """Return whether the pooled values are 0 and 1, as those of disjoint units can be."""
    shares = [
        measurement.units is not None and measurement.units.share for measurement in measurements
    ]
    return all(shares) and (len(shares) == 1 or not share_units(measurements))


def average_replicates(measurements: Sequence[Measurement]) -> FloatArray | None:
    """Return the mean of each bootstrap replicate, ``float64[b]``; None if there are none."""
    replicates = [row.replicates for row in measurements if row.replicates is not None]
    return average_defined(replicates) if len(replicates) == len(measurements) else None


def find_df(measurements: Sequence[Measurement]) -> float:
    """Return the smallest degrees of freedom of the bootstrap samples; NaN if none has some."""
    return min((row.df for row in measurements if not math.isnan(row.df)), default=math.nan)


def estimate_interval(measurements: Sequence[Measurement], mean: float) -> tuple[float, float]:
    """Return the 95% interval of a mean over folds and seeds; NaN if units differ in part.

    Samples without a spread give none where those of single folds gave none.

    Intervals that do not follow from the units are averaged, which is conservative: the standard
    error of a mean is at most the mean of the standard errors.
    """
    if not can_pool(measurements):
        return math.nan, math.nan
    if any(row.own_interval for row in measurements):
        ends = np.array([[row.ci_low, row.ci_high] for row in measurements])
        low, high = ends.mean(axis=0)
        return float(low), float(high)
    values, replicates = pool_units(measurements), average_replicates(measurements)
    if replicates is not None:
        log_scale = all(row.log_scale for row in measurements)
        low, high = compute_sample_interval(
            mean, replicates, df=find_df(measurements), log_scale=log_scale
        )
        has_interval = any(not math.isnan(row.ci_low) for row in measurements)
        return (low, high) if has_interval or low != high else (math.nan, math.nan)
    if values is not None:
        summary = Measurement.from_values(values, share=_are_shares(measurements))
        shift = mean - summary.value
        return summary.ci_low + shift, summary.ci_high + shift
    return math.nan, math.nan


def widen_interval(
    ends: Bounds, measurements: Sequence[Measurement], bounds: Bounds, mean: float
) -> Bounds:
    """Return the interval of a mean over folds and seeds; see ``widen_ends`` for equal values."""
    values = pool_units(measurements) if ends[0] == ends[1] else None
    if values is None or any(row.own_interval for row in measurements):
        return ends
    return widen_ends(ends, bounds, mean, int((~np.isnan(values)).sum()))


def average_defined(values: Sequence[FloatArray | float]) -> FloatArray:
    """Return the mean over the first axis without NaN; NaN if all values are NaN.

    >>> average_defined([np.array([1.0, np.nan]), np.array([3.0, np.nan])]).tolist()
    [2.0, nan]
    """
    stacked = np.stack([np.asarray(value, dtype=np.float64) for value in values])
    defined = ~np.isnan(stacked)
    total = np.where(defined, stacked, 0.0).sum(axis=0)
    counts = defined.sum(axis=0)
    mean: FloatArray = np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
    return mean


def sum_counts(
    counts: Mapping[str, FloatArray | None], group_counts: Mapping[str, FloatArray | None]
) -> FloatArray:
    """Return the sum of the counts of a target over the datasets.

    Counts of one row are added. Counts of two rows hold the counts of the target, then the totals
    that all targets of a group share, such as the number of recommended items: a dataset without
    the target adds 0 to the first row and its totals to the second.

    Args:
        counts: The counts of each dataset that has the target.
        group_counts: The counts of any target of the same group, for each dataset.

    >>> sum_counts({"a": np.array([[1.0], [4.0]])}, {"b": np.array([[9.0], [6.0]])}).tolist()
    [[1.0], [10.0]]
    """
    total = np.sum([array for array in counts.values() if array is not None], axis=0)
    if total.ndim == 2:
        for dataset, array in group_counts.items():
            if dataset not in counts and array is not None:
                total[1] += array[1]
    return np.asarray(total, dtype=np.float64)
