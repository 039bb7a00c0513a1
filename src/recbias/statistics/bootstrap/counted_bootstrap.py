"""The bootstrap of users from whom counts are taken, for functions of them that are not smooth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.statistics.bootstrap.joined_rows import LARGE, N_SETS, add_in_sets
from recbias.statistics.bootstrap.query_bootstrap import prepare_sums

N_SAMPLES = 200
"""The number of bootstrap samples."""

BLOCK = 50
"""The number of samples whose sums are held at once, a divisor of ``N_SAMPLES``."""

MAX_QUERIES = 500
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
    chosen = np.sort(rng.permutation(defined)[:MAX_QUERIES])
    evaluate, before = prepare(chosen), values[chosen]
    sums, set_of_user = _join_users(counts, users[defined], rng)
    n_sets = sums.shape[0]
    # the last set, of queries without a user, always has a weight of 1
    set_of_query = np.append(set_of_user, n_sets)[users]
    sizes = np.bincount(set_of_query[defined], minlength=n_sets + 1)
    totals = np.bincount(set_of_query[defined], values[defined] - mean, minlength=n_sets + 1)
    estimates, shifts = np.empty(N_SAMPLES), np.empty(N_SAMPLES)
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
    n_sets = sums.shape[0]
    add_weighted = prepare_sums(sums)
    for _ in range(0, N_SAMPLES, BLOCK):
        drawn = [
            np.bincount(rng.integers(n_sets, size=n_sets), minlength=n_sets) for _ in range(BLOCK)
        ]
        weights = np.stack(drawn)
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
