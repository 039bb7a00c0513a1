"""The bootstrap: of queries, of the members of sets, of clusters, and of the words of slots.

Many rows are sampled as sums of random sets, so that they take no longer than some. Estimates from
all queries together have intervals from samples of the queries, or from the jackknife.

Where values depend on counts of the sample, such as the popularity of items, a sample of users
gives both, so that the sampling error of the counts is part of that of the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from recbias.core.dataset import AnyArray, BoolArray, FloatArray, Matrix, divide
from recbias.core.measures import Measurement
from recbias.statistics.intervals import bootstrap_standard_error, compute_sample_interval
from recbias.statistics.paired import list_pairs
from recbias.statistics.permutation import Exchange

LARGE = 20_000
"""The largest number of rows that are sampled one by one."""

N_SETS = 1_000
"""The number of sets that more rows are joined in."""

DENSE_CELLS = 2**25
"""The largest number of sums of sets that are an array."""


def join_rows(
    rows: Any, rng: np.random.Generator, *, large: int | None = None, n_sets: int | None = None
) -> Any:
    """Return the sums of random sets of rows if there are more than ``large``, else the rows.

    Sampling the sums of sets of one size has the variance of sampling the rows, in expectation,
    and a cost that does not grow with their number. With 1,000 sets the standard error is
    estimated with a relative error of 2%, as it is with 1,000 samples. Sizes differ by one row
    at most.

    The sums are an array, of a CSR matrix as long as they fit ``DENSE_CELLS``: sets of many rows
    are full. Rows that are not joined are returned as they are.

    Args:
        rows: A CSR matrix or an array, ``(q, m)``.
        rng: Gives the sets, which depend on the number of rows only.
        large: By default ``LARGE``.
        n_sets: By default ``N_SETS``.

    >>> join_rows(np.ones((5, 1)), np.random.default_rng(0), large=3, n_sets=2).tolist()
    [[3.0], [2.0]]

    Source:
        The method of random groups: Wolter, "Introduction to variance estimation", 2007, chapter
        2.
    """
    n, n_sets = rows.shape[0], N_SETS if n_sets is None else n_sets
    if n <= (LARGE if large is None else large):
        return rows
    sets = np.empty(n, dtype=np.int64)
    sets[rng.permutation(n)] = np.arange(n) % n_sets
    return add_in_sets(rows, sets, n_sets)


def add_in_sets(rows: Any, sets: AnyArray, n_sets: int, *, are_full: bool = True) -> Any:
    """Return the sums of the rows of each set, ``(n_sets, m)``; a set of -1 is left out.

    Those of a CSR matrix are an array if they are ``are_full`` and not too many, else CSR.

    >>> add_in_sets(np.array([[1.0], [2.0], [4.0]]), np.array([0, 1, 0]), 2).tolist()
    [[5.0], [2.0]]
    """
    from scipy.sparse import csr_array, issparse

    if are_full and issparse(rows) and n_sets * rows.shape[1] <= DENSE_CELLS:
        return _add_cells(rows, sets, n_sets)
    included = np.flatnonzero(sets >= 0)
    ones = np.ones(included.size, dtype=rows.dtype)
    return csr_array((ones, (sets[included], included)), shape=(n_sets, rows.shape[0])) @ rows


def _add_cells(rows: Any, sets: AnyArray, n_sets: int) -> AnyArray:
    """Return the same of a CSR matrix as an array, by one count of the cells of each set."""
    m = rows.shape[1]
    order = np.argsort(sets.astype(np.min_scalar_type(-n_sets)), kind="stable")
    ends = np.searchsorted(sets[order], np.arange(n_sets + 1))
    ordered = rows[order]
    is_one = bool((rows.data == 1).all())  # their sums are counts, whatever the type of the ones
    sums = np.empty((n_sets, m), dtype=np.int32 if is_one else rows.dtype)
    for row, start, stop in zip(sums, *ordered.indptr[[ends[:-1], ends[1:]]], strict=True):
        weights = None if is_one else ordered.data[start:stop]
        row[:] = np.bincount(ordered.indices[start:stop], weights, minlength=m)
    return sums


_BLOCK_VALUES = 2**22
"""Sums without a row that are held in memory at once."""


def resample_linear_part(
    matrix: Matrix,
    estimate: Callable[[AnyArray], FloatArray],
    n_samples: int,
    seed: int | np.random.Generator,
    *,
    leave_out: Callable[[Matrix], FloatArray] | None = None,
) -> tuple[FloatArray, float]:
    """Return bootstrap samples of an estimate from sums of rows, with the jackknife's variance.

        θ*_b = θ + Σ_j w_bj a_j,    a_j = √( (q - 1) / q ) ( mean θ_(l) - θ_(j) )

    θ_(j) is the estimate from the sums without row j, and w_bj how often row j of q is in the
    bootstrap sample b: the samples are those of ``resample_sums``, so that estimates of several
    matrices with as many rows are resampled together. The variance over the samples is that of
    the jackknife, (q - 1)/q Σ_j (θ_(j) - mean θ_(l))², whose expected value is never below the
    variance of the estimate from q - 1 rows. The estimate itself on resampled rows would have
    another one: a sample holds fewer distinct rows, so that coverage and inequality vary with the
    number of distinct rows, and their differences between two models too little.

    More than 20,000 rows are joined in 1,000 random sets (``join_rows``), and the sets are left
    out.

    Args:
        matrix: The rows, CSR ``(q, m)``, at least one.
        estimate: From sums ``(..., m)`` to estimates ``float64[...]``.
        n_samples: The number of samples.
        seed: Determines the samples, with q; or a generator.
        leave_out: Computes θ_(j) of all rows of the matrix faster, ``float64[q]``.

    Returns:
        The samples, ``float64[b]``, NaN for a single row or if an estimate without a row is
        undefined; and the degrees of freedom of their standard deviation, q - 1.

    >>> from scipy.sparse import csr_array
    >>> rows = csr_array([[3.0], [1.0], [2.0]])
    >>> samples, df = resample_linear_part(rows, lambda sums: sums[..., 0] / 3, 1000, 0)
    >>> round(float(samples.mean()), 1), df
    (2.0, 2.0)

    Source:
        Efron and Stein, "The jackknife estimate of variance", Annals of Statistics 1981; sets of
        rows: Wolter, "Introduction to variance estimation", 2007, chapter 4.
    """
    rng = np.random.default_rng(seed)
    rows = join_rows(matrix, rng)
    q = rows.shape[0]
    value = float(estimate(_sum_rows(rows)))
    if q < 2:
        return np.full(n_samples, np.nan), math.nan
    is_fast = leave_out is not None and rows is matrix
    left = leave_out(rows) if is_fast else _leave_out_rows(rows, estimate)  # type: ignore[misc]
    parts = math.sqrt((q - 1) / q) * (left.mean() - left)
    samples = np.empty(n_samples)
    for sample in range(n_samples):
        weights = np.bincount(rng.integers(q, size=q), minlength=q)
        samples[sample] = weights @ parts
    return value + samples, q - 1.0


def widen_samples(value: float, linear: FloatArray, samples: FloatArray) -> FloatArray:
    """Return samples of an estimate whose spread is that of the wider of two bootstraps.

    Where every item is in several lists, no list alone changes coverage: its linear part is
    constant, although coverage varies. The linear samples are stretched to the spread of the
    others where that is larger; constant ones are replaced.

    >>> widen_samples(1.0, np.array([0.0, 2.0]), np.array([-2.0, 4.0])).round(9).tolist()
    [-2.0, 4.0]
    """
    narrow, wide = (float(bootstrap_standard_error(rows)) for rows in (linear, samples))
    if not wide > narrow:
        return linear
    return value + (linear - value) * (wide / narrow) if narrow > 0 else samples


def _leave_out_rows(rows: Any, estimate: Callable[[AnyArray], FloatArray]) -> FloatArray:
    """Return the estimate without each row, ``float64[q]``."""
    totals = _sum_rows(rows)
    size = max(1, _BLOCK_VALUES // max(rows.shape[1], 1))
    blocks = [
        estimate(totals - _to_array(rows[start : start + size]))
        for start in range(0, rows.shape[0], size)
    ]
    return np.concatenate(blocks)


def _sum_rows(rows: Any) -> AnyArray:
    return np.asarray(rows.sum(axis=0)).ravel()


def _to_array(rows: Any) -> AnyArray:
    return rows if isinstance(rows, np.ndarray) else rows.toarray()


NAME = "paired_bootstrap"
"""The name of the test in ``significance.csv``."""

CACHED_VALUES = 2**19
"""Weights and sums held in memory at once: as many as fit the processor's cache."""

_DENSE_BLOCK = 128
"""Samples of a dense matrix at once: so that the matrix is read a few times only."""

ROUNDING = 1e-12
"""Differences below this share of the estimates are rounding errors and count as 0."""


def resample_sums(
    matrix: Matrix, n_samples: int, seed: int | np.random.Generator
) -> Iterator[AnyArray]:
    """Yield the column sums of bootstrap samples of the rows, in blocks.

    A sample is q rows sampled with replacement, of a CSR matrix ``(q, m)`` with at least one row.
    The rows depend on ``seed`` and q only, so that two matrices with the same number of rows share
    their samples. A block is ``int32[block, m]`` for whole numbers, else ``float64``; all have
    ``n_samples`` rows. Many rows are first added up in random sets (``join_rows``).

    >>> from scipy.sparse import csr_array
    >>> [sums.tolist() for sums in resample_sums(csr_array([[1, 0], [1, 0]]), 2, 0)]
    [[[2, 0], [2, 0]]]
    """
    rng = np.random.default_rng(seed)
    rows = join_rows(matrix, rng)
    n_rows, dtype = rows.shape[0], np.float64 if matrix.dtype.kind == "f" else np.int32
    size = max(16, CACHED_VALUES // max(*rows.shape))
    size = min(_DENSE_BLOCK if isinstance(rows, np.ndarray) else size, max(n_samples, 1))
    add_weighted = prepare_sums(rows)
    for weights in draw_weights(rng, n_rows, n_samples, size):
        yield add_weighted(weights).astype(dtype, copy=False)


def draw_weights(
    rng: np.random.Generator, n_rows: int, n_samples: int, size: int
) -> Iterator[AnyArray]:
    """Yield how often each row is in each sample, ``int32[block, n_rows]``."""
    for start in range(0, n_samples, size):
        weights = np.zeros((min(size, n_samples - start), n_rows), dtype=np.int32)
        for row in weights:
            row[:] = np.bincount(rng.integers(n_rows, size=n_rows), minlength=n_rows)
        yield weights


def prepare_sums(rows: Any) -> Callable[[AnyArray], AnyArray]:
    """Return a function from weights ``int[b, q]`` to the weighted sums of rows, ``(b, m)``.

    Args:
        rows: A CSR matrix, or an array of joined rows: the product of it is in single precision
            if all sums over a sample are exact in that.

    >>> prepare_sums(np.array([[1, 0], [1, 2]]))(np.array([[2, 0], [1, 1]])).tolist()
    [[2.0, 0.0], [2.0, 2.0]]
    """
    is_float = rows.dtype.kind == "f"
    if not isinstance(rows, np.ndarray):
        columns = rows.T.tocsr().astype(np.float64 if is_float else np.int32)
        return lambda weights: (columns @ np.ascontiguousarray(weights.T, dtype=columns.dtype)).T
    is_whole = not is_float or _is_whole(rows)
    is_exact = is_whole and rows.shape[0] * max(rows.max(initial=0), -rows.min(initial=0)) < 2**24
    table = rows.astype(np.float32 if is_exact else np.float64, copy=False)
    return lambda weights: weights.astype(table.dtype) @ table


def _is_whole(rows: FloatArray) -> bool:
    size = max(1, CACHED_VALUES // max(rows.shape[1], 1))
    blocks = (rows[start : start + size] for start in range(0, len(rows), size))
    return all((block == np.rint(block)).all() for block in blocks)


def compare_replicates(
    points: FloatArray, replicates: FloatArray, alpha: float, *, df: float = math.nan
) -> Mapping[str, AnyArray]:
    """Compare all pairs of systems on the same bootstrap samples of the queries.

        z = d / se,    p = 2 Φ(-|z|),    interval d ± z(1 - α/2) · se

    d is the difference of the two estimates and se the standard deviation of the resampled
    differences. Only the standard error of the samples is used: a sample holds fewer distinct
    queries, which biases metrics such as coverage, so that percentiles would be misleading. The
    statistic is z; there are no degrees of freedom and no effect size; ``n`` is missing. If all
    resampled differences are equal, z is undefined; p is 1 if the estimates are equal too, else
    p and the interval are undefined: there is no standard error.

    Estimates of identical lists may differ by rounding, so se, and d where se is 0, count as 0
    below 1e-12 of the larger of |a|, |b| and the bootstrap standard errors of the two systems.

    Samples on which one of two systems is undefined are excluded from ``replicates[s, b]``; p is
    NaN below two samples. If the samples are of few units, ``df`` are the degrees of freedom of
    the standard error, and the statistic is Student's t; NaN for the normal distribution.

    >>> replicates = np.array([[3.0, 2, 4], [1, 0, 1]])
    >>> columns = compare_replicates(np.array([3.0, 1.0]), replicates, 0.05)
    >>> columns["difference"].tolist(), columns["statistic"].round(3).tolist()
    ([2.0], [3.464])

    Source:
        Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, sections 6.2 and 13.2.
    """
    from scipy.special import ndtr, ndtri, stdtr, stdtrit

    a, b = list_pairs(len(points))
    difference, changes = points[a] - points[b], replicates[a] - replicates[b]
    error, magnitude = (
        bootstrap_standard_error(changes),
        np.fmax(np.abs(points[a]), np.abs(points[b])),
    )
    for side in (a, b):
        defined = np.where(np.isnan(changes), np.nan, replicates[side])
        magnitude = np.fmax(magnitude, bootstrap_standard_error(defined))
    tolerance = ROUNDING * magnitude
    lacks_spread = error <= tolerance
    is_same = lacks_spread & ((difference == 0) | (np.abs(difference) < tolerance))
    difference = np.where(is_same, 0.0, difference)
    error = np.where(is_same, 0.0, np.where(lacks_spread, np.nan, error))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = difference / error
    normal = math.isnan(df)
    tail = ndtr(-np.abs(z)) if normal else stdtr(df, -np.abs(z))
    p = np.where(is_same, 1.0, 2.0 * tail)
    half_width = error * (ndtri(1.0 - alpha / 2.0) if normal else stdtrit(df, 1.0 - alpha / 2.0))
    missing = np.full(a.size, np.nan)
    return {
        "a": a,
        "b": b,
        "n": missing,
        "mean_a": points[a],
        "mean_b": points[b],
        "difference": difference,
        "ci_low": difference - half_width,
        "ci_high": difference + half_width,
        "statistic": z,
        "df": np.full(a.size, df),
        "p": p,
        "effect_size": missing,
    }


RESAMPLED_VALUES = 2**21
"""Resampled values held in memory at once."""


def resample_means(values: FloatArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Return the mean of each bootstrap sample of a set, ``float64[b]``.

    A sample is n - 1 values sampled with replacement, so that the variance over the samples is
    that of the mean itself; sampling n would give (n - 1)/n of it. The sampled positions depend on
    the generator and the number of values only, so that sets of the same size share their samples.
    NaN is returned for n = 1, as the variance is unknown.

    >>> resample_means(np.array([2.0, 2.0]), 3, np.random.default_rng(0)).tolist()
    [2.0, 2.0, 2.0]

    Source:
        Rao and Wu, "Resampling inference with complex survey data", JASA 1988.
    """
    return resample_mean_rows(values[:, None], n_samples, rng)[:, 0]


def resample_mean_rows(rows: FloatArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Return ``resample_means`` of a set of vectors ``float64 (n, d)``, ``float64 (b, d)``."""
    n = len(rows)
    means = np.full((n_samples, rows.shape[1]), np.nan)
    if n > 1:
        for samples, counts in _sample_counts(n, n_samples, RESAMPLED_VALUES, rng):
            means[samples] = counts.astype(np.float64) @ rows / (n - 1)
    return means


def _sample_counts(
    n: int, n_samples: int, block_values: int, rng: np.random.Generator
) -> Iterator[tuple[slice, AnyArray]]:
    """Yield blocks of samples, and the count of each of n members in n - 1 random choices."""
    size = max(1, block_values // n)
    for start in range(0, n_samples, size):
        rows = min(size, n_samples - start)
        cells = rng.integers(n, size=(rows, n - 1)) + n * np.arange(rows)[:, None]
        counts = np.bincount(cells.ravel(), minlength=n * rows).reshape(rows, n)
        yield slice(start, start + rows), counts


def sample_cluster_weights(
    strata: AnyArray, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """Return the count of each cluster in each bootstrap sample, ``float64[b, n]``.

    From a stratum of n clusters, n - 1 are sampled with replacement, so that the variance of a
    mean over the samples is that of the mean itself; sampling n would give (n - 1)/n of it. The
    samples depend on the generator and on ``strata``, the stratum of each cluster, only. A stratum
    of one cluster, whose variance is unknown, has NaN.

    >>> weights = sample_cluster_weights(np.array([0, 0, 0, 1]), 2, np.random.default_rng(0))
    >>> weights.sum(axis=1).tolist()
    [nan, nan]

    Source:
        Rao and Wu, "Resampling inference with complex survey data", JASA 1988.
    """
    weights = np.full((n_samples, strata.size), np.nan)
    for stratum in np.unique(strata):
        clusters = np.flatnonzero(strata == stratum)
        if clusters.size > 1:
            for samples, counts in _sample_counts(clusters.size, n_samples, _BLOCK_VALUES, rng):
                weights[samples, clusters] = counts
    return weights


def compute_group_means(
    values: FloatArray, groups: AnyArray, n_groups: int, weights: FloatArray | None = None
) -> FloatArray:
    """Return the weighted means of the units of each group, ``float64[..., g, c]``.

    The ``values[u, c]`` must not be NaN. Without ``weights`` of the units in each sample,
    ``float64[b, u]``, they are equal and there is no sample axis. A group without weight has NaN.

    >>> values, groups = np.array([[1.0], [3.0], [5.0]]), np.array([0, 0, 1])
    >>> compute_group_means(values, groups, 2).tolist()
    [[2.0], [5.0]]
    >>> compute_group_means(values, groups, 2, np.array([[0.0, 2.0, 1.0]])).tolist()
    [[[3.0], [5.0]]]
    """
    sample_weights = np.ones((1, len(values))) if weights is None else weights
    means = np.empty((len(sample_weights), n_groups, values.shape[1]))
    for group in range(n_groups):
        members = groups == group
        group_weights = sample_weights[:, members]
        with np.errstate(invalid="ignore", divide="ignore"):
            means[:, group] = (group_weights @ values[members]) / group_weights.sum(
                axis=1, keepdims=True
            )
    return means[0] if weights is None else means


def build_estimate(
    value: float, replicates: FloatArray, n: int, total: int, *, df: float = math.nan
) -> Measurement:
    """Return an estimate with the interval of its bootstrap samples.

    Args:
        value: The estimate; NaN is undefined.
        replicates: Its value on each bootstrap sample, ``float64[b]``.
        n: The number of units that determine it.
        total: The number of all units.
        df: Degrees of freedom of their standard deviation, as in ``Measurement``.
    """
    low, high = compute_sample_interval(value, replicates, df=df)
    n = 0 if np.isnan(value) else n
    return Measurement(
        value=value,
        n=n,
        undefined=total - n,
        ci_low=low,
        ci_high=high,
        replicates=replicates,
        df=df,
    )


def resample_group_means(
    values: FloatArray, codes: AnyArray, n_groups: int, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """Return the mean of each group in each bootstrap sample of its members, ``float64[b, g]``."""
    is_defined = ~np.isnan(values)
    columns = np.stack([is_defined, np.where(is_defined, values, 0.0)], axis=1)
    sums = resample_group_sums(columns, codes, n_groups, n_samples, rng)
    return divide(sums[..., 1], sums[..., 0])


def resample_group_sums(
    columns: FloatArray, codes: AnyArray, n_groups: int, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """Return the sums of the columns over each group, in bootstrap samples of its members.

    A sample is n - 1 of the n members of a group, with replacement, multiplied by n / (n - 1), so
    that the variance of a mean over the samples is that of the mean itself (``resample_means``).
    Of a large group, random sets of members are sampled (``join_rows``). What is sampled depends
    on the generator and the groups only. ``columns`` are ``float64[m, c]``, ``codes`` the groups
    ``[m]``, and the sums ``float64[b, g, c]``.

    >>> columns, codes = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 9.0]]), np.array([0, 0, 1])
    >>> resample_group_sums(columns, codes, 1, 2, np.random.default_rng(0)).tolist()
    [[[2.0, 4.0]], [[2.0, 4.0]]]
    """
    sums = np.zeros((n_samples, n_groups, columns.shape[1]))
    for code in range(n_groups):
        members = join_rows(columns[codes == code], rng)
        n = len(members)
        for samples, counts in _sample_counts(n, n_samples, RESAMPLED_VALUES, rng):
            sums[samples, code] = counts.astype(np.float64) @ members * (n / max(n - 1, 1))
    return sums


def resample_shared_units(
    table: FloatArray, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """Return the mean of each group in each bootstrap sample of all units, ``float64[b, g]``.

    The ``table[g, u]`` has the value of each unit in each group, NaN if it is not in it. A sample
    is n - 1 of n units.
    """
    table = table[:, ~np.isnan(table).all(axis=0)]
    inside, terms = (~np.isnan(table)).astype(np.float64), np.nan_to_num(table)
    means = np.full((n_samples, len(table)), np.nan)
    for samples, counts in _sample_counts(table.shape[1], n_samples, RESAMPLED_VALUES, rng):
        totals, numbers = counts @ terms.T, counts @ inside.T
        np.divide(totals, numbers, out=means[samples], where=numbers > 0)
    return means


def list_slot_sets(n_slots: int) -> list[tuple[int, ...]]:
    """Return all sets of slots, in order of size.

    >>> list_slot_sets(2)
    [(0,), (1,), (0, 1)]
    """
    sizes = range(1, n_slots + 1)
    return [slots for size in sizes for slots in combinations(range(n_slots), size)]


def sample_slot_weights(
    labels: AnyArray, n_samples: int, rng: np.random.Generator
) -> list[FloatArray]:
    """Return the bootstrap weights of each set of slots, in the order of ``list_slot_sets``.

        weight of a combination = 1 + Π_{s in S} (w_s - 1)

    w_s is the count of its word of slot s in the sample: each slot is resampled separately, within
    the class (gender) of the words, with mean 1. A single slot is resampled directly; a set of
    several slots resamples the interaction of their words, but not their separate effects.
    ``labels[n1, n2, ...]`` are those of every combination of words. The weights are
    ``float64[b, n1 n2 ...]`` each; NaN if a word is the only one of its class.

    >>> square = np.array([[0, 0], [0, 0]])
    >>> [weights.shape for weights in sample_slot_weights(square, 5, np.random.default_rng(0))]
    [(5, 4), (5, 4), (5, 4)]
    """
    words = np.indices(labels.shape).reshape(labels.ndim, -1)
    deviations = []
    for strata, word_codes in zip(Exchange.of_slots(labels).strata, words, strict=True):
        sizes = np.bincount(strata)[strata].astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            weights = sample_cluster_weights(strata, n_samples, rng) * (sizes / (sizes - 1.0))
        deviations.append(weights[:, word_codes] - 1.0)
    return [
        1.0 + np.prod([deviations[slot] for slot in slots], axis=0)
        for slots in list_slot_sets(labels.ndim)
    ]


def count_slot_dfs(labels: AnyArray) -> tuple[int, ...]:
    """Return the degrees of freedom of each slot: its number of words minus number of classes.

    >>> count_slot_dfs(np.array([[0, 0, 1], [0, 0, 1]]))  # the third word has its own class
    (1, 1)
    """
    classes = Exchange.of_slots(labels).strata
    return tuple(int(slot_classes.size - slot_classes.max() - 1) for slot_classes in classes)


def combine_slot_samples(
    point: FloatArray, samples: FloatArray, dfs: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Combine the samples of all sets of slots into samples of the estimates, with their df.

        V = max( Σ_S (-1)^(|S| + 1) V_S, V_all )
        sample = point + Σ_s (sample_s - point) · √(V / Σ_s V_s)
        df = (Σ_s V_s)² / Σ_s (V_s² / df_s)

    V_S is the variance over the samples of the set S. The variance of one slot s holds the effects
    of its words and their interaction with the other slots; the interaction is part of every V_s
    and is subtracted by the sets of several slots, so that it counts once.

    The samples are ``float64[S, b, ...]``, in the order of ``list_slot_sets``, and the combined
    ones ``float64[b, ...]``; those of a single slot are returned unchanged.

    >>> samples = np.array([[[0.0], [2.0]], [[1.0], [1.0]], [[1.0], [1.0]]])
    >>> combined, df = combine_slot_samples(np.array([1.0]), samples, (4, 2))
    >>> combined.ravel().tolist(), df.tolist()
    ([0.0, 2.0], [4.0])

    Source:
        Cameron, Gelbach and Miller, "Robust inference with multiway clustering", JBES 2011;
        Satterthwaite, "An approximate distribution of estimates of variance components",
        Biometrics 1946.
    """
    n_slots = len(dfs)
    if n_slots == 1:
        return samples[0], np.full(np.shape(point), float(dfs[0]))
    variance = bootstrap_standard_error(np.moveaxis(samples, 1, -1)) ** 2
    signs = np.array([-1.0 if len(slots) % 2 == 0 else 1.0 for slots in list_slot_sets(n_slots)])
    total = np.maximum(np.tensordot(signs, variance, axes=1), variance[-1])
    single, slot_dfs = variance[:n_slots], np.array(dfs, dtype=np.float64)
    slot_sum = single.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.where(slot_sum == 0, 0.0, np.sqrt(total / slot_sum))
        df = np.where(
            slot_sum == 0,
            slot_dfs.sum(),
            slot_sum**2 / np.tensordot(1 / slot_dfs, single**2, axes=1),
        )
    return point + (samples[:n_slots] - point).sum(axis=0) * scale, df


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
