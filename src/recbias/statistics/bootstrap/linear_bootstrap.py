"""The bootstrap of the linear part of an estimate, found by leaving out each row in turn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.statistics.bootstrap.joined_rows import join_rows
from recbias.statistics.intervals import bootstrap_standard_error

BLOCK_VALUES = 2**22
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
        leave_out: Computes θ_(j) of all rows of a matrix of 0 and 1 faster, ``float64[q]``.

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
    from scipy.sparse import csr_array

    rng = np.random.default_rng(seed)
    rows = join_rows(matrix, rng)
    q = rows.shape[0]
    value = float(estimate(_sum_rows(rows)))
    if q < 2:
        return np.full(n_samples, np.nan), math.nan
    if leave_out is not None and _is_binary(rows):
        left = leave_out(csr_array(rows))
    else:
        left = _leave_out_rows(rows, estimate)
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
    size = max(1, BLOCK_VALUES // max(rows.shape[1], 1))
    blocks = [
        estimate(totals - _to_array(rows[start : start + size]))
        for start in range(0, rows.shape[0], size)
    ]
    return np.concatenate(blocks)


def _sum_rows(rows: Any) -> AnyArray:
    return np.asarray(rows.sum(axis=0)).ravel()


def _to_array(rows: Any) -> AnyArray:
    return rows if isinstance(rows, np.ndarray) else rows.toarray()


def _is_binary(rows: Any) -> bool:
    """Return whether all entries are 1, and no column is in a row twice."""
    if isinstance(rows, np.ndarray):
        return bool(((rows == 0) | (rows == 1)).all())
    return bool((rows.data == 1).all()) and not _has_duplicates(rows)


def _has_duplicates(rows: Matrix) -> bool:
    merged = rows.copy()
    merged.sum_duplicates()
    return bool(merged.nnz < rows.nnz)
