"""Intervals of means whose values depend on counts of the sample, such as the popularity of items.

A sample of users gives both the values and the counts, so that the sampling error of the counts
is part of that of the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.dataset import AnyArray, BoolArray, FloatArray, Matrix
from recbias.statistics.bootstrap import LARGE, N_SETS, add_in_sets, draw_weights, prepare_sums

_N_SAMPLES = 200
"""The number of bootstrap samples."""

_BLOCK = 50
"""The number of samples whose sums are held at once, a divisor of ``_N_SAMPLES``."""

_MAX_QUERIES = 500
"""The number of queries that are evaluated on each sample; more are a random sample of them."""


def resample_counts(
    values: FloatArray,
    users: AnyArray,
    counts: Matrix,
    prepare: Callable[[AnyArray], Callable[[FloatArray], FloatArray]],
    *,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the 95% interval of a mean whose values depend on counts of the same sample.

        θ ± z(0.975) · √(se² + b²),    θ*_s = θ + Σ_u w_u (x_u - θ) / Σ_u w_u + d_s
        d_s = Σ_{u in M} w_u (x_u(φ*_s) - x_u) / Σ_{u in M} w_u

    w_u is how often the user of query u is in the bootstrap sample s, φ*_s the counts of that
    sample, and M a random set of at most 500 queries: what changes with the counts changes for all
    queries together. A value that a sample leaves undefined counts as unchanged. se is the
    standard deviation of θ*_s, and the bias b the mean of d_s; the root is that of the mean
    squared error. The bias is not subtracted, because the estimate of the bias of a function that
    is not smooth has a sampling error as large as the bias. More than 20,000 users are sampled in
    1,000 random sets.

    Args:
        values: The value of each query, ``float64[q]``; NaN if it is undefined.
        users: The row of each query in ``counts``, ``int[q]``; queries without one (-1) always
            have a weight of 1.
        counts: The contribution of each user to each count, CSR ``(n, m)``.
        prepare: Takes positions of queries, and returns a function from the counts ``float64[m]``
            to their values.
        rng: The random generator.

    Returns:
        The two ends; NaN for fewer than two defined values.

    Source:
        Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 6 and 10.
    """
    from scipy.special import ndtri

    defined = np.flatnonzero(~np.isnan(values))
    if defined.size < 2:
        return math.nan, math.nan
    mean = float(values[defined].mean())
    chosen = np.sort(rng.permutation(defined)[:_MAX_QUERIES])
    evaluate, before = prepare(chosen), values[chosen]
    sums, set_of_user = _join_users(counts, users[defined], rng)
    n_sets = sums.shape[0]
    # the last set, of queries without a user, always has a weight of 1
    set_of_query = np.append(set_of_user, n_sets)[users]
    sizes = np.bincount(set_of_query[defined], minlength=n_sets + 1)
    totals = np.bincount(set_of_query[defined], values[defined] - mean, minlength=n_sets + 1)
    estimates, shifts = np.empty(_N_SAMPLES), np.empty(_N_SAMPLES)
    for sample, (of_set, resampled) in enumerate(_sample_sums(sums, rng)):
        chosen_weights = of_set[set_of_query[chosen]]
        change = np.nan_to_num(evaluate(resampled) - before)
        shifts[sample] = _divide(float(chosen_weights @ change), float(chosen_weights.sum()))
        estimates[sample] = _divide(float(of_set @ totals), float(of_set @ sizes))
    estimates += shifts
    error = math.hypot(float(estimates.std(ddof=1)), float(shifts.mean()))
    half_width = float(ndtri(0.975)) * error
    return mean - half_width, mean + half_width


def _sample_sums(sums: Matrix, rng: np.random.Generator) -> Iterator[tuple[AnyArray, FloatArray]]:
    """Yield the weight of each set in each sample, 1 at the end, and the sums of the sample."""
    add_weighted = prepare_sums(sums)
    for weights in draw_weights(rng, sums.shape[0], _N_SAMPLES, _BLOCK):
        resampled = add_weighted(weights).astype(np.float64)
        for of_set, of_sample in zip(weights, resampled, strict=True):
            yield np.append(of_set, 1), of_sample


def _divide(total: float, weight: float) -> float:
    return total / weight if weight else 0.0


def _join_users(
    counts: Matrix, queried: AnyArray, rng: np.random.Generator
) -> tuple[Matrix, AnyArray]:
    """Return the counts of each set of users that is sampled, and the set of each user."""
    n = counts.shape[0]
    is_sampled = np.diff(counts.indptr) > 0
    is_sampled[queried[queried >= 0]] = True
    sampled = np.flatnonzero(is_sampled)
    n_sets = sampled.size if sampled.size <= LARGE else N_SETS
    sets = np.full(n, -1)
    sets[rng.permutation(sampled)] = np.arange(sampled.size) % n_sets
    sums = add_in_sets(counts, sets, n_sets, are_full=n_sets < sampled.size)
    return sums, np.maximum(sets, 0)


_BLOCK_ROWS = 2**14
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

    def add_counts(self, factors: FloatArray) -> FloatArray:
        """Return the sum of the derivatives of each query times factors, ``float64[q]``."""
        totals: FloatArray = self.rows @ (self.of_count * factors)
        return totals * self.of_query

    def add_own(self, users: AnyArray, counts: Matrix) -> FloatArray:
        """Return the sum of the derivatives of each query times its row of counts."""
        own, totals = np.flatnonzero(users >= 0), np.zeros(users.size)
        for start in range(0, own.size, _BLOCK_ROWS):
            block = own[start : start + _BLOCK_ROWS]
            rows, of_user = _take_rows(self.rows, block), _take_rows(counts, users[block])
            totals[block] = rows.multiply(of_user) @ self.of_count
        return totals * self.of_query


@dataclass(frozen=True, eq=False)
class CountedValues:
    """Values of queries that depend on how often each item occurs in the sample.

    Args:
        values: The value of each query, ``float64[q]``; NaN if it is undefined.
        users: The row of each query in ``counts``, ``int[q]``; -1 for none.
        counts: The contribution of each user to the count of each item, CSR ``(n, m)``; the count
            is the column sum.
        slopes: The derivatives of the value of each query by each count, which add up.
        curvatures: The second derivatives of each query by each count, which add up.
    """

    values: FloatArray
    users: AnyArray
    counts: Matrix
    slopes: Sequence[Slopes]
    curvatures: Sequence[Slopes] = ()

    def correct(self) -> FloatArray:
        """Return the values without the bias that the sampling error of the counts causes.

            x_u - Σ_i (h_ui - φ_i / n) ∂x_u/∂φ_i - ½ Σ_i (Σ_v h_vi² - φ_i² / n) ∂²x_u/∂φ_i²

        h_vi is the contribution of user v to the count φ_i of item i, and n the number of users
        with one, or with a query. A user's own interactions are counted too, and a curved function
        of a count is not the function of its expectation. The mean of the corrections is the bias
        of the mean to second order in the weights of the users, without the curvature between two
        items.

        >>> from scipy.sparse import csr_array
        >>> counts = csr_array(np.array([[1.0], [1.0], [0.0], [0.0]]))
        >>> slopes = [Slopes(csr_array(np.ones((4, 1))), np.ones(4), np.ones(1))]
        >>> counted = CountedValues(np.full(4, 2.0), np.arange(4), counts, slopes)  # x_u = φ
        >>> counted.correct().tolist()  # 2 - (1 - 2 / 4), 2 - (0 - 2 / 4)
        [1.5, 1.5, 2.5, 2.5]

        Source:
            Efron, "The jackknife, the bootstrap and other resampling plans", 1982, chapter 6.
        """
        n = max(int(np.count_nonzero(self._mark_sampled(self.users))), 1)
        items, m = self.counts.indices, self.counts.shape[1]
        totals, squares = (
            np.bincount(items, self.counts.data**power, minlength=m) for power in (1, 2)
        )
        corrected = self.values.copy()
        for part in self.slopes:
            corrected -= part.add_own(self.users, self.counts) - part.add_counts(totals / n)
        for part in self.curvatures:
            corrected -= part.add_counts((squares - totals**2 / n) / 2)
        return corrected

    def compute_interval(self) -> tuple[float, float]:
        """Return the 95% interval of the mean over all users that could be sampled.

            θ ± t(0.975; n - 1) · √( n / (n - 1) Σ_v (θ'_v - mean θ')² )
            θ'_v = Σ_{u of v} (x_u - θ) / q + Σ_i h_vi g_i,    g_i = (1/q) Σ_u ∂x_u / ∂φ_i

        θ is the mean of the values x_u of the q defined queries u, h_vi the contribution of user v
        to the count φ_i of item i, and θ'_v the derivative of the mean by the weight of user v.

        Returns:
            The two ends; NaN for fewer than two users.

        >>> from scipy.sparse import csr_array
        >>> counts = csr_array(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))
        >>> counted = CountedValues(np.array([1.0, 2.0, 3.0]), np.arange(3), counts, ())
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
        derivatives = self.counts @ gradient
        deviations = (self.values[defined] - mean) / q
        is_of_user = rows >= 0
        np.add.at(derivatives, rows[is_of_user], deviations[is_of_user])
        of_users = derivatives[self._mark_sampled(rows)]
        influences = np.concatenate([of_users, deviations[~is_of_user]])
        n = influences.size
        if n < 2:
            return math.nan, math.nan
        error = math.sqrt(n) * float(influences.std(ddof=1))
        half_width = float(stdtrit(n - 1, 0.975)) * error
        return mean - half_width, mean + half_width

    def _mark_sampled(self, queried: AnyArray) -> BoolArray:
        """Return which rows of the counts have a count or one of the queried users."""
        is_sampled = np.diff(self.counts.indptr) > 0
        is_sampled[queried[queried >= 0]] = True
        return np.asarray(is_sampled)


def _take_rows(matrix: Matrix, rows: AnyArray) -> Matrix:
    """Return rows of a matrix: the matrix itself if they are all of it, in order."""
    is_all = np.array_equal(rows, np.arange(matrix.shape[0]))
    return matrix if is_all else matrix[rows]
