"""Counts of a metric, summed over datasets."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from recbias.core.arrays import FloatArray


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
