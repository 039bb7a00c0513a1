"""Bootstrap samples of the means and sums of groups of queries."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import BoolArray, FloatArray
from recbias.core.queries.groups import Groups
from recbias.statistics.bootstrap.joined_rows import join_rows

BLOCK_VALUES = 2**21
"""Resampled values held in memory at once."""


def list_members(groups: Groups, n: int) -> BoolArray:
    """Return which queries are in which group, ``bool[g, n]``."""
    members = np.zeros((len(groups.names), n), dtype=bool)
    for code in range(len(groups.names)):
        members[code, groups.find_rows(code)] = True
    return members


def resample_group_means(
    values: FloatArray, groups: Groups, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """Return the mean of each group in each bootstrap sample of its queries, ``float64[b, g]``."""
    is_defined = ~np.isnan(values)
    columns = np.stack([is_defined, np.where(is_defined, values, 0.0)], axis=1)
    counts, totals = np.moveaxis(resample_group_sums(columns, groups, n_samples, rng), -1, 0)
    undefined = np.full(counts.shape, np.nan)
    return np.asarray(np.divide(totals, counts, out=undefined, where=counts > 0))


def resample_group_sums(
    columns: FloatArray, groups: Groups, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """Return the sums of the columns over each group, in bootstrap samples of its queries.

    A sample is as many queries of the group as it has, with replacement; no query is in two
    groups. Of a large group, random sets of queries are sampled (``join_rows``). What is sampled
    depends on the generator and the groups only. ``columns`` are ``float64[q, c]``, the sums
    ``float64[b, g, c]``.

    >>> groups = Groups("g", ("g=a",), np.array([0, 0, -1], dtype=np.int32), (("a",),))
    >>> columns = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 9.0]])
    >>> resample_group_sums(columns, groups, 2, np.random.default_rng(0)).tolist()
    [[[2.0, 4.0]], [[2.0, 4.0]]]
    """
    sums = np.zeros((n_samples, len(groups.names), columns.shape[1]))
    for code in range(len(groups.names)):
        members = join_rows(columns[groups.find_rows(code)], rng)
        n = len(members)
        size = max(1, BLOCK_VALUES // max(n, 1))
        for start in range(0, n_samples, size):
            rows = min(size, n_samples - start)
            cells = rng.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
            counts = np.bincount(cells.ravel(), minlength=n * rows).reshape(rows, n)
            sums[start : start + rows, code] = counts.astype(np.float64) @ members
    return sums


def resample_shared_queries(
    values: FloatArray, groups: Groups, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """Return the mean of each group in each bootstrap sample of all queries, ``float64[b, g]``."""
    members = list_members(groups, values.size) & ~np.isnan(values)
    queries = np.flatnonzero(members.any(axis=0))
    weights, terms = members[:, queries].astype(np.float64), values[queries]
    means = np.full((n_samples, len(groups.names)), np.nan)
    size = max(1, BLOCK_VALUES // max(queries.size, 1))
    for start in range(0, n_samples, size):
        rows = means[start : start + size]
        counts = rng.multinomial(queries.size, np.full(queries.size, 1 / queries.size), len(rows))
        totals, numbers = counts @ (weights * terms).T, counts @ weights.T
        np.divide(totals, numbers, out=rows, where=numbers > 0)
    return means
