"""Measures of how evenly recommendations are distributed over items, and their extreme counts."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray


def jain(counts: AnyArray) -> FloatArray:
    """Return Jain's index: 1 if all counts are equal, 1/n if one of n counts has the total.

        J = (Σ_i x_i)² / ( n Σ_i x_i² )

    NaN where all counts ``(..., n)``, which must not be negative, are 0.

    >>> float(jain(np.array([2, 2, 2, 2]))), float(jain(np.array([0, 0, 0, 8])))
    (1.0, 0.25)

    Source:
        Jain, Chiu and Hawe, DEC TR-301, 1984.
    """
    values = np.asarray(counts, dtype=np.float64)
    squares = np.einsum("...i,...i->...", values, values) * values.shape[-1]
    undefined = np.full(squares.shape, np.nan)
    return np.asarray(
        np.divide(values.sum(axis=-1) ** 2, squares, out=undefined, where=squares > 0)
    )


def cover(counts: AnyArray) -> FloatArray:
    """Return the share of the counts ``(..., n)`` that are above 0.

    >>> float(cover(np.array([5, 0, 2, 1])))
    0.75
    """
    return np.asarray(np.count_nonzero(counts, axis=-1) / np.shape(counts)[-1])


def fair_share(counts: AnyArray) -> FloatArray:
    """Return the share of the counts that are at least the total divided by n, rounded down.

    NaN where all counts ``int (..., n)``, which must not be negative, are 0.

    >>> float(fair_share(np.array([5, 2, 2, 1])))  # 10 // 4 is 2
    0.75
    """
    totals = counts.sum(axis=-1, keepdims=True)
    shares = np.mean(counts >= totals // counts.shape[-1], axis=-1)
    return np.asarray(np.where(totals[..., 0] > 0, shares, np.nan))


def make_even_counts(totals: AnyArray, n: int) -> AnyArray:
    """Return the counts of n items that distribute each total most evenly, ``int (t, n)``.

    >>> make_even_counts(np.array([7]), 3).tolist()
    [[3, 2, 2]]
    """
    totals = np.asarray(totals)[:, None]
    return np.asarray(totals // n + (np.arange(n) < totals % n))


def make_uneven_counts(lengths: AnyArray, n: int) -> AnyArray:
    """Return the counts of n items if all lists begin with the same items, ``int (t, n)``.

    No lists of these lengths, each of distinct items, distribute the recommendations less evenly.

    Args:
        lengths: The number of lists with at least 1, 2, ... items, ``int (t, k)``.
        n: The number of items, at least the length of the longest list.

    >>> make_uneven_counts(np.array([[3, 3, 1]]), 5).tolist()
    [[3, 3, 1, 0, 0]]

    Source:
        The conjugate sequence: Marshall, Olkin and Arnold, "Inequalities: theory of majorization
        and its applications", 2011, section 7.C.
    """
    columns = lengths[:, :n]
    return np.pad(columns, ((0, 0), (0, n - columns.shape[1])))
