"""The bootstrap over queries, for metrics of the whole set of lists such as coverage and Gini."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.statistics.bootstrap.joined_rows import join_rows
from recbias.statistics.intervals import bootstrap_standard_error
from recbias.statistics.tests.pair_moments import list_pairs

NAME = "paired_bootstrap"
"""The name of the test in ``significance.csv``."""

BLOCK_VALUES = 2**19
"""Weights and sums held in memory at once: as many as fit the processor's cache."""

DENSE_BLOCK = 128
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
    size = max(16, BLOCK_VALUES // max(*rows.shape))
    size = min(DENSE_BLOCK if isinstance(rows, np.ndarray) else size, max(n_samples, 1))
    add_weighted = prepare_sums(rows)
    for weights in _draw_weights(rng, n_rows, n_samples, size):
        yield add_weighted(weights).astype(dtype, copy=False)


def resample_squares(matrix: Matrix, n_samples: int, seed: int) -> FloatArray:
    """Return the sum of the squared column sums of bootstrap samples, ``float64[n_samples]``.

        Σ_i ( Σ_j w_j x_ji )² = w' (X X') w

    The samples w are those of ``resample_sums``. The products of joined rows, of which there are
    fewer than columns, are computed once.

    >>> from scipy.sparse import csr_array
    >>> resample_squares(csr_array([[1.0, 0.0], [1.0, 0.0]]), 2, 0).tolist()
    [4.0, 4.0]
    """
    rng = np.random.default_rng(seed)
    rows = join_rows(matrix, rng)
    if not isinstance(rows, np.ndarray) or rows.shape[0] > rows.shape[1]:
        sums = resample_sums(matrix, n_samples, seed)
        squares = [np.square(block, dtype=np.float64).sum(axis=-1) for block in sums]
        return np.concatenate([np.empty(0), *squares])
    rows = rows.astype(np.float64, copy=False)
    products = rows @ rows.T
    squares = [
        ((weights.astype(np.float64) @ products) * weights).sum(axis=1)
        for weights in _draw_weights(rng, rows.shape[0], n_samples, DENSE_BLOCK)
    ]
    return np.concatenate([np.empty(0), *squares])


def _draw_weights(
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
    size = max(1, BLOCK_VALUES // max(rows.shape[1], 1))
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

    Estimates of identical lists may differ by rounding, so d and se count as 0 below 1e-12 of the
    larger of |a|, |b| and the bootstrap standard errors of the two systems.

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
    magnitudes = np.fmax(np.abs(points), bootstrap_standard_error(replicates))
    tolerance = ROUNDING * np.fmax(magnitudes[a], magnitudes[b])
    differences = points[a] - points[b], bootstrap_standard_error(replicates[a] - replicates[b])
    difference, error = (np.where(abs(x) < tolerance, 0.0, x) for x in differences)
    is_same = (error == 0) & (difference == 0)
    error = np.where((error == 0) & ~is_same, np.nan, error)
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
