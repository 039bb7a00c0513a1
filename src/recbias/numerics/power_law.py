"""Exponents of the popularity distribution: power law and Zipf's law.

``fit_power_law`` estimates the exponent of the distribution, P(φ = x) ~ x^-α; ``zipf_exponent``
that of popularity by rank, φ_(r) ~ r^-s. An exact power law has s = 1 / (α - 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray

MAX_STARTS = 1000
"""Maximum number of candidates for ``xmin``."""

MAX_EXPONENT = 20.0
"""Upper end of the search for the exponent."""

BLOCK_CELLS = 2**20
"""Values of the distribution function in memory at once."""


@dataclass(frozen=True)
class PowerLaw:
    """A power law fitted to the upper tail of counts: P(X = x) ~ x^-exponent for x >= xmin.

    Args:
        exponent: α, above 1; NaN if undefined.
        xmin: Smallest value of the tail.
        n: Number of values in the tail.
        ks: Kolmogorov-Smirnov distance between the law and the tail, 0 to 1.
    """

    exponent: float
    xmin: float
    n: int
    ks: float

    @property
    def pareto(self) -> float:
        """The Pareto coefficient b = α - 1, by which P(X > x) ~ x^-b."""
        return self.exponent - 1.0


def fit_power_law(counts: AnyArray) -> PowerLaw:
    """Fit a discrete power law to the upper tail of counts.

        p(x) = x^-α / ζ(α, xmin),    x = xmin, xmin + 1, ...

    Each observed value but the largest is a candidate for ``xmin`` (at most 1,000 candidates, at
    evenly spaced ranks). For each candidate, α between 1 and 20 maximises the likelihood of the
    values from ``xmin`` on. The result is the candidate with the smallest Kolmogorov-Smirnov
    distance D = max |S(x) - P(X ≥ x)|, where S(x) is the share of them that is at least x.

    Args:
        counts: Non-negative integers, ``[n]``; zeros are excluded.

    Returns:
        The fitted law; NaN with ``n`` 0 if there are fewer than two distinct values.

    >>> law = fit_power_law(np.repeat([1, 2, 3, 4, 5], [656, 140, 56, 29, 17]))
    >>> law.xmin, law.n, round(law.exponent, 1)
    (1.0, 898, 2.6)

    Source:
        Clauset, Shalizi and Newman, "Power-law distributions in empirical data", SIAM Review 51,
        2009, equations 3.5 and 3.9.
    """
    counts = np.asarray(counts, dtype=np.float64)
    values, times = np.unique(counts[counts > 0], return_counts=True)
    if values.size < 2:
        return PowerLaw(math.nan, math.nan, 0, math.nan)
    n_starts = min(values.size - 1, MAX_STARTS)
    starts = np.unique(np.linspace(0, values.size - 2, n_starts).round().astype(np.int64))
    n_tail = np.cumsum(times[::-1])[::-1].astype(np.float64)
    logs = np.cumsum((times * np.log(values))[::-1])[::-1]
    exponents = _maximize_likelihood(values[starts], logs[starts] / n_tail[starts])
    distances = _compute_distances(values, n_tail, starts, exponents)
    best = int(distances.argmin())
    start = starts[best]
    return PowerLaw(
        exponent=float(exponents[best]),
        xmin=float(values[start]),
        n=int(n_tail[start]),
        ks=float(distances[best]),
    )


def zipf_exponent(counts: AnyArray) -> float:
    """Return the exponent s of Zipf's law of popularity by rank, φ_(r) ~ r^-s.

    s is minus the least-squares slope of ln φ_(r) on ln r over the items with a popularity above
    0; the most popular item has rank 1.

    Args:
        counts: Popularity of each item, ``[n]``; zeros are excluded.

    Returns:
        s; 0 if all items are equally popular, NaN for fewer than two items.

    >>> round(zipf_exponent(60 / np.array([1, 2, 3, 4])), 6)
    1.0

    Source:
        Zipf, "Human Behavior and the Principle of Least Effort", 1949.
    """
    counts = np.asarray(counts, dtype=np.float64)
    descending = -np.sort(-counts[counts > 0])
    if descending.size < 2:
        return math.nan
    x, y = np.log(np.arange(1, descending.size + 1)), np.log(descending)
    x -= x.mean()
    return float(abs(x @ (y - y.mean())) / (x @ x))


def _maximize_likelihood(xmin: FloatArray, mean_log: FloatArray) -> FloatArray:
    """Return the maximum likelihood exponents by golden-section search, ``float64[s]``.

    The mean log-likelihood, -ln ζ(α, xmin) - α mean_log, is concave in α.
    """
    from scipy.special import zeta

    low, high = np.full(xmin.shape, 1.0 + 1e-9), np.full(xmin.shape, MAX_EXPONENT)
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    while (high - low).max() > 1e-9:
        width = golden * (high - low)
        left, right = high - width, low + width
        left_likelihood = -np.log(zeta(left, xmin)) - left * mean_log
        right_likelihood = -np.log(zeta(right, xmin)) - right * mean_log
        rises = right_likelihood > left_likelihood
        low, high = np.where(rises, left, low), np.where(rises, high, right)
    return np.asarray((low + high) / 2.0)


def _compute_distances(
    values: FloatArray, n_tail: FloatArray, starts: AnyArray, exponents: FloatArray
) -> FloatArray:
    """Return the Kolmogorov-Smirnov distance for each ``xmin``, ``float64[s]``."""
    size = max(1, BLOCK_CELLS // values.size)
    blocks = [slice(start, start + size) for start in range(0, starts.size, size)]
    return np.concatenate(
        [
            _compute_block_distances(values, n_tail, starts[block], exponents[block])
            for block in blocks
        ]
    )


def _compute_block_distances(
    values: FloatArray, n_tail: FloatArray, starts: AnyArray, exponents: FloatArray
) -> FloatArray:
    """Return the largest difference at, and just above, each observed value.

    Between two observed values S is constant and the law decreases, so the maximum is at an end.
    """
    from scipy.special import zeta

    lowest = int(starts.min())
    values, n_tail, starts = values[lowest:], n_tail[lowest:], starts - lowest
    alphas = exponents[:, None]
    scale = zeta(alphas, values[starts][:, None])
    law = zeta(alphas, values) / scale
    law_above = law - values**-alphas / scale
    share = n_tail / n_tail[starts][:, None]
    share_above = np.append(n_tail[1:], 0.0) / n_tail[starts][:, None]
    gaps = np.maximum(np.abs(law - share), np.abs(law_above - share_above))
    gaps[np.arange(values.size) < starts[:, None]] = 0.0
    return np.asarray(gaps.max(axis=1))
