"""Rank sums of signed differences and their null distribution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, freeze

MAX_EXACT = 50
"""The largest number of differences without ties for which p is exact."""


@dataclass(frozen=True, eq=False)
class SignedRanks:
    """Signed-rank statistics of each row of differences, ``float64[p]``.

    ``n`` counts nonzero differences; ``up`` and ``down`` are the sums of the ranks of positive and
    negative ones; ``ties`` is the sum of t³ - t over the groups of t tied differences.
    """

    n: FloatArray
    up: FloatArray
    down: FloatArray
    ties: FloatArray


def rank_differences(differences: FloatArray) -> SignedRanks:
    """Rank the absolute differences of each row, ``float64[p, u]``; zeros and NaN are dropped.

    Absolute differences that agree to twelve digits of the row's largest are ties: 0.3 - 0.2 and
    0.2 - 0.1 differ in the last bit only, and ranks must not depend on it.

    >>> statistics = rank_differences(np.array([[1.0, -2.0, 0.0, 2.0]]))  # ranks 1, 2.5, none, 2.5
    >>> statistics.up.tolist(), statistics.down.tolist(), statistics.ties.tolist()
    ([3.5], [2.5], [6.0])
    """
    n_rows, n_units = differences.shape
    if not n_units:
        return SignedRanks(*np.zeros((4, n_rows)))
    finite = np.where(np.isfinite(differences), np.abs(differences), 0.0)
    largest = finite.max(axis=1, keepdims=True)
    differences = np.round(differences / np.where(largest > 0, largest, 1.0), 12)
    sizes = np.where(differences == 0, np.nan, np.abs(differences))
    order = np.argsort(sizes, axis=1)
    ordered = np.take_along_axis(sizes, order, axis=1)
    signs = np.sign(np.take_along_axis(differences, order, axis=1))
    begins = np.ones(ordered.shape, dtype=bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]  # NaN, at the end, is equal to nothing
    starts = np.flatnonzero(begins)
    lengths = np.diff(np.append(starts, begins.size))
    ranks: AnyArray = np.repeat(starts % n_units + (lengths + 1.0) / 2.0, lengths)
    ranks = ranks.reshape(ordered.shape)
    excess = lengths.astype(np.float64) ** 3 - lengths
    ties: AnyArray = np.bincount(starts // n_units, weights=excess, minlength=n_rows)
    ranked = ~np.isnan(ordered)
    up = np.where(ranked & (signs > 0), ranks, 0.0).sum(axis=1)
    down = np.where(ranked & (signs < 0), ranks, 0.0).sum(axis=1)
    return SignedRanks(ranked.sum(axis=1).astype(np.float64), up, down, ties)


def compute_p_values(ranks: SignedRanks) -> FloatArray:
    """Return the two-sided p-value of each row, ``float64[p]``; 1 if all differences are 0."""
    from scipy.special import ndtr

    n = ranks.n
    variance = (n * (n + 1.0) * (2.0 * n + 1.0) - ranks.ties / 2.0) / 24.0
    z = (ranks.up - n * (n + 1.0) / 4.0) / np.sqrt(np.where(n > 0, variance, 1.0))
    p: FloatArray = 2.0 * ndtr(-np.abs(z))
    exact = (n <= MAX_EXACT) & (ranks.ties == 0)
    for size in np.unique(n[exact]):
        rows = exact & (n == size)
        smaller = np.minimum(ranks.up[rows], ranks.down[rows]).astype(np.intp)
        p[rows] = np.minimum(2.0 * null_distribution(int(size))[smaller], 1.0)
    return p


@cache
def null_distribution(n: int) -> AnyArray:
    """Return P(W⁺ <= w) for ``n`` random signs, for w from 0 on.

    Of the 2ⁿ signings, those with W⁺ = w are the subsets of 1 ... n that sum to w.

    >>> null_distribution(2).tolist()  # sums 0, 1, 2, 3: one subset each
    [0.25, 0.5, 0.75, 1.0]
    """
    subsets: FloatArray = np.eye(1, n * (n + 1) // 2 + 1)[0]  # the empty one sums to 0
    for rank in range(1, n + 1):
        subsets = subsets + np.concatenate([np.zeros(rank), subsets[:-rank]])
    return freeze(np.cumsum(subsets) / 2.0**n)
