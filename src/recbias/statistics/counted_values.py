"""Intervals of means whose values depend on counts of the sample, such as the popularity of items.

A sample of users gives both the values and the counts, so that the sampling error of the counts
is part of that of the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Matrix

BLOCK_ROWS = 2**14
"""The number of queries whose derivatives are multiplied by counts at once."""


@dataclass(frozen=True, eq=False)
class Slopes:
    """Derivatives r_u x_ui c_i of the value of each query u by each count i.

    Args:
        rows: x, CSR ``(q, m)``: of ones where the value depends on the count.
        of_query: r, ``float64[q]``.
        of_count: c, ``float64[m]``.
    """

    rows: Matrix
    of_query: FloatArray
    of_count: FloatArray

    def scale(self, of_query: FloatArray | float = 1.0, of_count: Any = 1.0) -> Slopes:
        """Return the derivatives times a factor of their query and one of their count."""
        return Slopes(self.rows, self.of_query * of_query, self.of_count * of_count)

    def add_queries(self, included: BoolArray) -> FloatArray:
        """Return the sum of the derivatives by each count over some queries, ``float64[m]``."""
        totals: FloatArray = self.rows.T @ np.where(included, self.of_query, 0.0)
        return totals * self.of_count

    def multiply(self, queries: AnyArray, counts: Matrix) -> float:
        """Return the sum of the products of the derivatives of queries with rows of counts."""
        rows = _take_rows(self.rows, queries)
        blocks = [slice(at, at + BLOCK_ROWS) for at in range(0, queries.size, BLOCK_ROWS)]
        sums = [rows[block].multiply(counts[block]) @ self.of_count for block in blocks]
        return float(self.of_query[queries] @ np.concatenate([np.empty(0), *sums]))


@dataclass(frozen=True, eq=False)
class CountedValues:
    """Values of queries that depend on how often each item occurs in the sample.

    Args:
        values: The value of each query, ``float64[q]``; NaN if it is undefined.
        users: The row of each query in ``counts``, ``int[q]``; -1 for none.
        counts: The contribution of each user to the count of each item, CSR ``(n, m)``; the count
            is the column sum.
        slopes: The derivatives of the value of each query by each count, which add up.
        curvatures: The second derivatives by each count, summed over the queries, ``float64[m]``.
    """

    values: FloatArray
    users: AnyArray
    counts: Matrix
    slopes: Sequence[Slopes]
    curvatures: FloatArray

    def compute_interval(self) -> tuple[float, float]:
        """Return the 95% interval of the mean over all users that could be sampled.

            θ - b ± t(0.975; n - 1) · √( n / (n - 1) Σ_v (θ'_v - mean θ')² )
            θ'_v = Σ_{u of v} (x_u - θ) / q + Σ_i h_vi g_i,    g_i = (1/q) Σ_u ∂x_u / ∂φ_i
            b = (1/q) [ Σ_u Σ_i h_ui ∂x_u / ∂φ_i - Σ_u Σ_i h_ui g_i
                        + ½ Σ_i c_i (Σ_v h_vi² - φ_i² / n) ]

        θ is the mean of the values x_u of the q defined queries u, h_vi the contribution of user v
        to the count φ_i of item i, and c_i the curvature. θ'_v is the derivative of the mean by
        the weight of user v, and b the bias of the mean to second order in the weights, without
        the curvature between two items: a user's own interactions are counted too, and a curved
        function of a count is not the function of its expectation.

        Returns:
            The two ends; NaN for fewer than two users.

        >>> from scipy.sparse import csr_array
        >>> counts = csr_array(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))
        >>> values, users = np.array([1.0, 2.0, 3.0]), np.arange(3)
        >>> counted = CountedValues(values, users, counts, (), np.zeros(2))
        >>> [round(end, 4) for end in counted.compute_interval()]  # no slopes: 2 ± 4.3027 / √3
        [-0.4841, 4.4841]

        Source:
            Jaeckel, "The infinitesimal jackknife", Bell Laboratories 1972; Efron, "The jackknife,
            the bootstrap and other resampling plans", 1982, chapter 6.
        """
        from scipy.special import stdtrit

        defined, m = ~np.isnan(self.values), self.counts.shape[1]
        q = int(np.count_nonzero(defined))
        if not q:
            return math.nan, math.nan
        mean = float(self.values[defined].mean())
        rows = self.users[defined]
        gradient = sum((part.add_queries(defined) for part in self.slopes), np.zeros(m)) / q
        of_counts = np.append(self.counts @ gradient, 0.0)  # row -1 reads the last entry
        derivatives = of_counts[:-1].copy()
        deviations = (self.values[defined] - mean) / q
        is_of_user = rows >= 0
        np.add.at(derivatives, rows[is_of_user], deviations[is_of_user])
        is_sampled = np.diff(self.counts.indptr) > 0
        is_sampled[rows[is_of_user]] = True
        influences = np.concatenate([derivatives[is_sampled], deviations[~is_of_user]])
        n = influences.size
        if n < 2:
            return math.nan, math.nan
        error = math.sqrt(n) * float(influences.std(ddof=1))
        totals = np.asarray(self.counts.sum(axis=0)).ravel()
        squares = totals
        if not (self.counts.data == 1).all():
            squares = np.asarray(self.counts.power(2).sum(axis=0)).ravel()
        of_users, own = (
            np.flatnonzero(defined)[is_of_user],
            _take_rows(self.counts, rows[is_of_user]),
        )
        own_slopes = sum(part.multiply(of_users, own) for part in self.slopes)
        bias = own_slopes / q - float(of_counts[rows].sum()) / q
        bias += float(self.curvatures @ (squares - totals**2 / n)) / (2 * q)
        half_width = float(stdtrit(n - 1, 0.975)) * error
        return mean - bias - half_width, mean - bias + half_width


def _take_rows(matrix: Matrix, rows: AnyArray) -> Matrix:
    """Return rows of a matrix: the matrix itself if they are all of it, in order."""
    is_all = np.array_equal(rows, np.arange(matrix.shape[0]))
    return matrix if is_all else matrix[rows]
