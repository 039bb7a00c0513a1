"""Means and spreads of the paired differences of every two systems, in one pass over the values.

The differences of systems a and b are ``x[a] - x[b]`` over the units that both define. Their
moments follow from sums of products, which are matrix products over all systems at once; no
difference is formed. Where two systems are so alike that the sums would cancel, their differences
are formed after all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, FloatArray
from recbias.statistics.intervals import t_interval

Places = npt.NDArray[np.intp]

LEAST_SHARE = 1e-2
"""A spread below this share of its terms has lost digits, and is worked out again."""

BLOCK_VALUES = 2**22
"""How many differences are held at once."""


@dataclass(frozen=True, eq=False)
class PairMoments:
    """What is known of every pair of systems, in the order (0, 1), (0, 2), ..., (1, 2), ...

    Args:
        a: The first system of each pair, ``intp[p]``.
        b: The second.
        n: Units that both define, ``float64[p]``.
        mean_a: Mean of the first over those units; NaN without any.
        mean_b: Mean of the second.
        difference: Mean of the differences.
        std: Sample standard deviation (n - 1) of the differences; NaN below two units.
    """

    a: Places
    b: Places
    n: FloatArray
    mean_a: FloatArray
    mean_b: FloatArray
    difference: FloatArray
    std: FloatArray

    def columns(self, alpha: float) -> dict[str, AnyArray]:
        """Return the columns of ``significance.csv`` that every test over units shares.

        ``n``, ``mean_a``, ``mean_b`` and ``difference`` are over the units that both systems
        define; ``ci_low`` and ``ci_high`` are the t interval of the difference, of level
        1 - ``alpha``, not corrected for the family.
        """
        shared = ("a", "b", "n", "mean_a", "mean_b", "difference")
        low, high = t_interval(self.difference, self.std, self.n, alpha)
        return {**{name: vars(self)[name] for name in shared}, "ci_low": low, "ci_high": high}


def all_pairs(n_systems: int) -> tuple[Places, Places]:
    """Return both places of every pair, the first always the lower.

    >>> [each.tolist() for each in all_pairs(3)]
    [[0, 0, 1], [1, 2, 2]]
    """
    return np.triu_indices(n_systems, 1)


def pair_moments(values: FloatArray) -> PairMoments:
    """Return the moments of the differences of every pair.

    Args:
        values: ``float64[s, u]``, the value of each unit under each system; NaN is undefined, and
            leaves the unit out of the pairs of that system.

    >>> found = pair_moments(np.array([[1.0, 2.0, np.nan], [0.0, 3.0, 5.0]]))
    >>> found.n.tolist(), found.difference.tolist(), found.std.round(4).tolist()
    ([2.0], [0.0], [1.4142])
    """
    a, b = all_pairs(len(values))
    centres, n, sums, squares = _sums(values)
    n, sum_a, sum_b = n[a, b], sums[a, b], sums[b, a]
    terms = squares[0][a, b] + squares[0][b, a]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_a, mean_b = centres[a] + sum_a / n, centres[b] + sum_b / n
        spread = terms - 2.0 * squares[1][a, b] - (sum_a - sum_b) ** 2 / n
        std = np.sqrt(np.maximum(spread, 0.0) / (n - 1.0))
    std[n < 2] = np.nan
    difference = mean_a - mean_b
    alike = np.flatnonzero(~(spread > LEAST_SHARE * terms) & (n > 1))
    for block, gaps in differences(values, a[alike], b[alike]):
        places = alike[block]
        difference[places], std[places] = _directly(gaps)
    return PairMoments(a, b, n, mean_a, mean_b, difference, std)


def differences(values: FloatArray, a: Places, b: Places) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the differences of the pairs, block by block, in bounded memory.

    Args:
        values: ``float64[s, u]``.
        a: The first system of each pair, ``[p]``.
        b: The second.

    Yields:
        Which of the pairs, and their differences ``float64[block, u]``; NaN where one is NaN.
    """
    size = max(1, BLOCK_VALUES // max(values.shape[1], 1))
    for start in range(0, len(a), size):
        block = slice(start, min(start + size, len(a)))
        yield block, values[a[block]] - values[b[block]]


def _sums(
    values: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, tuple[FloatArray, FloatArray]]:
    """Return the mean of each system and, around it, the sums over the units of each pair.

    Returns:
        Means ``[s]``; units that both define ``[s, s]``; sums of the row's values over the units
        of the pair ``[s, s]``; and the sums of the row's squares and of the products, likewise.
    """
    defined = ~np.isnan(values)
    if defined.all():
        return _sums_of_all(values)
    n_systems = len(values)
    counts = defined.astype(np.float64)
    totals = np.where(defined, values, 0.0).sum(axis=1)
    centres = totals / np.maximum(counts.sum(axis=1), 1.0)
    centred = np.where(defined, values - centres[:, None], 0.0)
    stacked = np.concatenate([counts, centred, centred**2])
    products = (stacked @ stacked.T).reshape(3, n_systems, 3, n_systems)
    pairs = products.transpose(0, 2, 1, 3)
    return centres, pairs[0, 0], pairs[1, 0], (pairs[2, 0], pairs[1, 1])


def _sums_of_all(
    values: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, tuple[FloatArray, FloatArray]]:
    """Return the same where every system defines every unit."""
    n_systems, n_units = values.shape
    centres = values.sum(axis=1) / max(n_units, 1)
    centred = values - centres[:, None]
    products = centred @ centred.T
    squares = np.repeat(np.diag(products)[:, None], n_systems, axis=1)
    counts = np.full((n_systems, n_systems), float(n_units))
    return centres, counts, np.zeros((n_systems, n_systems)), (squares, products)


def _directly(gaps: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the sample standard deviation of each row, NaN left out."""
    defined = ~np.isnan(gaps)
    n = defined.sum(axis=1)
    mean = np.where(defined, gaps, 0.0).sum(axis=1) / n
    rest = np.where(defined, gaps - mean[:, None], 0.0)
    return mean, np.sqrt((rest**2).sum(axis=1) / (n - 1))
