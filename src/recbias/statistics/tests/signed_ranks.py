"""Rank sums of signed differences, and how likely they are when signs are fair coins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, freeze

EXACT = 50
"""Up to so many differences without ties the null distribution is counted out."""


@dataclass(frozen=True, eq=False)
class SignedRanks:
    """What a signed-rank test needs of each row of differences.

    Args:
        n: Differences that are not 0, ``float64[p]``.
        up: Sum of the ranks of the positive ones.
        down: Sum of the ranks of the negative ones.
        ties: Sum of t³ - t over the groups of t equal sizes.
    """

    n: FloatArray
    up: FloatArray
    down: FloatArray
    ties: FloatArray


def signed_ranks(differences: FloatArray) -> SignedRanks:
    """Rank the sizes of the differences of each row; those of 0 and NaN are dropped.

    Sizes that agree to twelve digits of the row's largest are one size: 0.3 - 0.2 and 0.2 - 0.1
    are no different but for the last bit, and ranks must not hang on it.

    Args:
        differences: ``float64[p, u]``.

    >>> found = signed_ranks(np.array([[1.0, -2.0, 0.0, 2.0]]))  # ranks 1, 2.5, none, 2.5
    >>> found.up.tolist(), found.down.tolist(), found.ties.tolist()
    ([3.5], [2.5], [6.0])
    """
    n_rows, n_units = differences.shape
    if not n_units:
        return SignedRanks(*np.zeros((4, n_rows)))
    differences = _rounded(differences)
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
    counted = ~np.isnan(ordered)
    up = np.where(counted & (signs > 0), ranks, 0.0).sum(axis=1)
    down = np.where(counted & (signs < 0), ranks, 0.0).sum(axis=1)
    return SignedRanks(counted.sum(axis=1).astype(np.float64), up, down, ties)


def _rounded(differences: FloatArray) -> FloatArray:
    """Return each row in units of its largest size, to twelve digits."""
    sizes = np.where(np.isfinite(differences), np.abs(differences), 0.0)
    largest = sizes.max(axis=1, keepdims=True)
    return np.asarray(np.round(differences / np.where(largest > 0, largest, 1.0), 12))


def two_sided(ranks: SignedRanks) -> FloatArray:
    """Return the two-sided p-value of each row, ``float64[p]``; 1 where all differences are 0."""
    p = _normal(ranks)
    exact = (ranks.n <= EXACT) & (ranks.ties == 0)
    for n in np.unique(ranks.n[exact]):
        rows = exact & (ranks.n == n)
        lesser = np.minimum(ranks.up[rows], ranks.down[rows]).astype(np.intp)
        p[rows] = np.minimum(2.0 * null_distribution(int(n))[lesser], 1.0)
    return p


@cache
def null_distribution(n: int) -> AnyArray:
    """Return the chance that W⁺ of ``n`` fair signs is w or less, for w from 0 on.

    Of the 2ⁿ signings, those with W⁺ = w are the subsets of 1 ... n that sum to w.

    >>> null_distribution(2).tolist()  # sums 0, 1, 2, 3: one subset each
    [0.25, 0.5, 0.75, 1.0]
    """
    subsets: FloatArray = np.eye(1, n * (n + 1) // 2 + 1)[0]  # the empty one sums to 0
    for rank in range(1, n + 1):
        subsets = subsets + np.concatenate([np.zeros(rank), subsets[:-rank]])
    return freeze(np.cumsum(subsets) / 2.0**n)


def _normal(ranks: SignedRanks) -> FloatArray:
    from scipy.special import ndtr

    n = ranks.n
    mean = n * (n + 1.0) / 4.0
    variance = (n * (n + 1.0) * (2.0 * n + 1.0) - ranks.ties / 2.0) / 24.0
    z = (ranks.up - mean) / np.sqrt(np.where(n > 0, variance, 1.0))
    p: FloatArray = 2.0 * ndtr(-np.abs(z))
    return p
