"""Intervals of metrics whose popularity is counted in the interactions of the sampled users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from recbias.core.arrays import BoolArray, FloatArray, Matrix
from recbias.core.dataset.interactions import Interactions
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.popularity.item_popularity import read_popularity
from recbias.statistics.counted_values import CountedValues, Slopes


def count_by_user(evidence: Evidence, popularity: str | None) -> Matrix:
    """Return the contribution of each user to the popularity of each item, CSR ``(n, n_items)``.

    These are the training interactions. Where those of all parts of the split are counted, they
    are scaled to their numbers.
    """
    from scipy.sparse import dia_array

    evidence.need("train")
    counts = _count_pairs(evidence.train)  # type: ignore[arg-type]  # need() raises on None
    if popularity != "all":
        return counts
    of_train = evidence.popularity
    ratio = read_popularity(evidence, popularity) / np.where(of_train > 0, of_train, np.inf)
    return counts @ dia_array((ratio[None, :], [0]), shape=(ratio.size, ratio.size)).tocsr()


def _count_pairs(train: Interactions) -> Matrix:
    """Return the number of rows of each user and item, CSR ``float64 (n_users, n_items)``."""
    from scipy.sparse import coo_array, csr_array

    ones, pairs = np.ones(len(train)), train.binary
    if pairs.nnz == len(train):  # no pair is repeated: the positions are shared
        return csr_array((ones, pairs.indices, pairs.indptr), shape=pairs.shape)
    return coo_array((ones, (train.users, train.items)), shape=pairs.shape).tocsr()


def weigh_averages(rows: Matrix, counted: BoolArray) -> Slopes:
    """Return the weight of each item in the mean of its row.

    Args:
        rows: The items of each query, CSR ``(q, n_items)`` of ones.
        counted: Which items have a value, ``bool[n_items]``.
    """
    of_item = counted.astype(np.float64)
    return Slopes(rows, 1.0 / np.maximum(rows @ of_item, 1.0), of_item)


def scale_rows(weights: Matrix, factors: FloatArray) -> Matrix:
    """Return the weights times the factor of their query, CSR ``(q, n_items)``."""
    from scipy.sparse import csr_array

    data = weights.data * np.repeat(factors, np.diff(weights.indptr))
    return csr_array((data, weights.indices, weights.indptr), shape=weights.shape)


def add_counted_interval(
    measurement: Measurement,
    evidence: Evidence,
    popularity: str | None,
    slopes: Sequence[Slopes],
    curvatures: FloatArray | None = None,
) -> Measurement:
    """Return the measurement with the interval over all users that could be sampled.

    Args:
        measurement: The values of the queries.
        evidence: The interactions that are counted.
        popularity: ``train`` or None, or ``all``.
        slopes: The derivatives of the value of each query by the popularity of each item, which
            add up.
        curvatures: The second derivatives, summed over the queries, ``float64[n_items]``.
    """
    values = measurement.units.values  # type: ignore[union-attr]  # a value for each query
    counts = count_by_user(evidence, popularity)
    flat = np.zeros(counts.shape[1]) if curvatures is None else curvatures
    counted = CountedValues(values, evidence.queries.users, counts, slopes, flat)
    low, high = counted.compute_interval()
    return replace(measurement, ci_low=low, ci_high=high, own_interval=True)


def differentiate_logarithms(
    weights: Sequence[Slopes], popularity: FloatArray, base: float = np.e
) -> tuple[Sequence[Slopes], FloatArray]:
    """Return the slopes and curvatures of weighted means of logarithms of the popularity.

    Args:
        weights: The weights of the items in the value of each query, which add up.
        popularity: The popularity, ``float64[n_items]``.
        base: The base of the logarithm.
    """
    inverse = np.divide(1.0, popularity, out=np.zeros(popularity.size), where=popularity > 0)
    slopes = [part.scale(of_count=inverse / np.log(base)) for part in weights]
    every_query = np.ones(weights[0].of_query.size, dtype=bool)
    totals = sum((part.add_queries(every_query) for part in slopes), np.zeros(popularity.size))
    return slopes, -totals * inverse
