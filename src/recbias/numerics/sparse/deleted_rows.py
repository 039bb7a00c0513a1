"""Measures of the column sums of a matrix of 0 and 1 without each of its rows in turn.

The rows are lists, the columns items. Without a row the counts of its items are smaller by 1, so
that all values together take a time that grows with the number of entries only.
"""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix


def cover_without_rows(rows: Matrix) -> FloatArray:
    """Return ``cover`` of the sums without each row of a CSR matrix ``(q, n)``, ``float64[q]``.

    >>> from scipy.sparse import csr_array
    >>> cover_without_rows(csr_array([[1, 1], [1, 0]])).tolist()
    [0.5, 1.0]
    """
    counts = _sum_columns(rows)
    n_single = _sum_items(rows, counts == 1)
    return np.asarray((np.count_nonzero(counts) - n_single) / counts.size)


def jain_without_rows(rows: Matrix) -> FloatArray:
    """Return ``jain`` of the sums without each row, ``float64[q]``; NaN if nothing is left.

    >>> from scipy.sparse import csr_array
    >>> jain_without_rows(csr_array([[1, 1], [1, 0]])).tolist()
    [0.5, 1.0]
    """
    counts = _sum_columns(rows)
    remaining = counts.sum() - np.diff(rows.indptr)
    squares = (counts**2).sum() - _sum_items(rows, 2 * counts - 1)
    return _divide(remaining.astype(np.float64) ** 2, squares * counts.size)


def entropy_without_rows(rows: Matrix) -> FloatArray:
    """Return ``entropy``, in nats, of the sums without each row, ``float64[q]``.

    NaN if nothing is left.

    >>> from scipy.sparse import csr_array
    >>> entropy_without_rows(csr_array([[1, 1], [1, 0]])).round(4).tolist()
    [0.0, 0.6931]
    """
    from scipy.special import xlogy

    counts = _sum_columns(rows)
    remaining = counts.sum() - np.diff(rows.indptr)
    products = xlogy(counts, counts)
    less = np.maximum(counts - 1, 0)
    total = products.sum() - _sum_items(rows, products - xlogy(less, less))
    logs = np.log(remaining, out=np.full(remaining.shape, np.nan), where=remaining > 0)
    return np.asarray(np.abs(logs - _divide(total, remaining)))


def gini_without_rows(rows: Matrix) -> FloatArray:
    """Return ``gini`` of the sums without each row, ``float64[q]``; NaN if nothing is left.

        G_j = ( D + Σ_{i in j} (n - 2 r_i) - Σ_v t_jv² ) / ( n S_j ),    D = Σ_{i<l} |x_i - x_l|

    r_i is the number of counts below x_i, t_jv the number of items of row j with count v, and S_j
    the sum of all counts without those of row j.

    >>> from scipy.sparse import csr_array
    >>> gini_without_rows(csr_array([[1, 1], [1, 0]])).tolist()
    [0.5, 0.0]
    """
    counts = _sum_columns(rows)
    n, q = counts.size, rows.shape[0]
    ordered = np.sort(counts)
    below = np.searchsorted(ordered, counts)
    differences = (2.0 * np.arange(1, n + 1) - n - 1) @ ordered
    changes = _sum_items(rows, n - 2 * below)
    lists = np.repeat(np.arange(q), np.diff(rows.indptr))
    ties, sizes = np.unique(lists * (n + 1) + below[rows.indices], return_counts=True)
    squares = np.bincount(ties // (n + 1), sizes.astype(np.float64) ** 2, minlength=q)
    remaining = counts.sum() - np.diff(rows.indptr)
    return _divide(differences + changes - squares, remaining * n)


def _sum_columns(rows: Matrix) -> AnyArray:
    return np.asarray(rows.sum(axis=0), dtype=np.int64).ravel()


def _sum_items(rows: Matrix, values: AnyArray) -> AnyArray:
    """Return the sum of the values of the items of each row, ``[q]``."""
    return np.asarray(rows @ values.astype(np.float64))


def _divide(numerator: AnyArray, divisor: AnyArray) -> FloatArray:
    numerator, divisor = np.broadcast_arrays(numerator, divisor)
    undefined = np.full(divisor.shape, np.nan)
    return np.asarray(np.divide(numerator, divisor, out=undefined, where=divisor > 0))
