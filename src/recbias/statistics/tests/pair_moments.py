"""Moments of the paired differences of all pairs of systems, by sums of products.

Differences of two systems so similar that these sums cancel are computed explicitly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, FloatArray
from recbias.statistics.intervals import t_interval

Indices = npt.NDArray[np.intp]

MIN_RELATIVE_SPREAD = 1e-2
"""Below this share of its terms a variance has lost digits and is computed explicitly."""

ROUNDING = 1e-12
"""Differences and spreads below this share of the means are rounding errors and count as 0."""

BLOCK_VALUES = 2**22
"""Differences held in memory at once."""


@dataclass(frozen=True, eq=False)
class PairMoments:
    """Moments of every pair of systems, in the order (0, 1), (0, 2), ..., (1, 2), ...

    Args:
        a: The first system of each pair, ``intp[p]``; ``b`` is the second.
        n: Number of units that both define, ``float64[p]``.
        mean_a: Mean of the first system over those units; NaN without any.
        difference: Mean of the differences.
        std: Sample standard deviation (n - 1) of the differences; NaN below two units, 0 if all
            differences are equal up to rounding.
    """

    a: Indices
    b: Indices
    n: FloatArray
    mean_a: FloatArray
    mean_b: FloatArray
    difference: FloatArray
    std: FloatArray

    @property
    def lacks_spread(self) -> AnyArray:
        """Whether all differences of a pair are equal and not 0, so that it has no error."""
        return np.asarray((self.std == 0) & (self.difference != 0))

    def columns(self, alpha: float) -> dict[str, AnyArray]:
        """Return the columns of ``significance.csv`` that all tests over units share.

        The interval is the t interval of the difference, not corrected for the family; there is
        none if all differences are equal and not 0.
        """
        shared = ("a", "b", "n", "mean_a", "mean_b", "difference")
        std = np.where(self.lacks_spread, np.nan, self.std)
        low, high = t_interval(self.difference, std, self.n, alpha)
        return {**{name: vars(self)[name] for name in shared}, "ci_low": low, "ci_high": high}


def list_pairs(n_systems: int) -> tuple[Indices, Indices]:
    """Return the indices of every pair, the lower index first.

    >>> [indices.tolist() for indices in list_pairs(3)]
    [[0, 0, 1], [1, 2, 2]]
    """
    return np.triu_indices(n_systems, 1)


def compute_pair_moments(values: FloatArray) -> PairMoments:
    """Return the moments of the differences of every pair of rows of ``float64[s, u]``.

    A value of NaN is undefined and excludes its unit from the pairs of that system.

    >>> moments = compute_pair_moments(np.array([[1.0, 2.0, np.nan], [0.0, 3.0, 5.0]]))
    >>> moments.n.tolist(), moments.difference.tolist(), moments.std.round(4).tolist()
    ([2.0], [0.0], [1.4142])
    """
    a, b = list_pairs(len(values))
    means, n, sums, squares = _sum_pairs(values)
    n, sum_a, sum_b = n[a, b], sums[a, b], sums[b, a]
    terms = squares[0][a, b] + squares[0][b, a]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_a, mean_b = means[a] + sum_a / n, means[b] + sum_b / n
        spread = terms - 2.0 * squares[1][a, b] - (sum_a - sum_b) ** 2 / n
        std = np.sqrt(np.maximum(spread, 0.0) / (n - 1.0))
    std[n < 2] = np.nan
    difference = mean_a - mean_b
    cancelled = np.flatnonzero(~(spread > MIN_RELATIVE_SPREAD * terms) & (n > 1))
    for block, block_differences in iterate_differences(values, a[cancelled], b[cancelled]):
        pairs = cancelled[block]
        difference[pairs], std[pairs] = _compute_mean_std(block_differences)
    slack = ROUNDING * np.fmax(np.abs(mean_a), np.abs(mean_b))
    std = np.where(std <= slack, 0.0, std)
    difference = np.where((std == 0) & (np.abs(difference) <= slack), 0.0, difference)
    return PairMoments(a, b, n, mean_a, mean_b, difference, std)


def iterate_differences(
    values: FloatArray, a: Indices, b: Indices
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield slices of the pairs and their differences ``float64[block, u]``, in bounded memory."""
    size = max(1, BLOCK_VALUES // max(values.shape[1], 1))
    for start in range(0, len(a), size):
        block = slice(start, min(start + size, len(a)))
        yield block, values[a[block]] - values[b[block]]


def _sum_pairs(
    values: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, tuple[FloatArray, FloatArray]]:
    """Return the mean of each system ``[s]`` and sums of centred values over pairs ``[s, s]``.

    The sums are the number of units of the pair, the sums of the row's values over them, and the
    sums of the row's squares and of the products.
    """
    defined = ~np.isnan(values)
    if defined.all():
        return _sum_complete_pairs(values)
    n_systems = len(values)
    counts = defined.astype(np.float64)
    totals = np.where(defined, values, 0.0).sum(axis=1)
    means = totals / np.maximum(counts.sum(axis=1), 1.0)
    centred = np.where(defined, values - means[:, None], 0.0)
    stacked = np.concatenate([counts, centred, centred**2])
    products = (stacked @ stacked.T).reshape(3, n_systems, 3, n_systems)
    pairs = products.transpose(0, 2, 1, 3)
    return means, pairs[0, 0], pairs[1, 0], (pairs[2, 0], pairs[1, 1])


def _sum_complete_pairs(
    values: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, tuple[FloatArray, FloatArray]]:
    """Return the same if every system defines every unit."""
    n_systems, n_units = values.shape
    means = values.sum(axis=1) / max(n_units, 1)
    centred = values - means[:, None]
    products = centred @ centred.T
    squares = np.repeat(np.diag(products)[:, None], n_systems, axis=1)
    counts = np.full((n_systems, n_systems), float(n_units))
    return means, counts, np.zeros((n_systems, n_systems)), (squares, products)


def _compute_mean_std(differences: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the sample standard deviation of each row, without NaN."""
    defined = ~np.isnan(differences)
    n = defined.sum(axis=1)
    mean = np.where(defined, differences, 0.0).sum(axis=1) / n
    deviations = np.where(defined, differences - mean[:, None], 0.0)
    return mean, np.sqrt((deviations**2).sum(axis=1) / (n - 1))
