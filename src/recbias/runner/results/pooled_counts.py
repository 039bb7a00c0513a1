"""Figures over several datasets together, from counts that add up."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from recbias.core.arrays import FloatArray


def total_counts(
    found: Mapping[str, FloatArray | None], beside: Mapping[str, FloatArray | None]
) -> FloatArray:
    """Return the counts of a figure, summed over the datasets.

    Counts of two rows say in the first what a target adds and in the second what all targets of a
    group share, such as the number of recommended places: a dataset that lacks the target adds 0
    to the first and its own to the second. Counts of one row add up as they are.

    Args:
        found: The counts in each dataset that has the figure.
        beside: The counts of another target of the same group, in each dataset.

    >>> total_counts({"a": np.array([[1.0], [4.0]])}, {"b": np.array([[9.0], [6.0]])}).tolist()
    [[1.0], [10.0]]
    """
    own = [each for each in found.values() if each is not None]
    total = np.sum(own, axis=0)
    if total.ndim == 2:
        lacking = [each for name, each in beside.items() if name not in found and each is not None]
        for each in lacking:
            total[1] += each[1]
    return np.asarray(total, dtype=np.float64)
