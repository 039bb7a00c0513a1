"""Exponents of the popularity distribution: power law and Zipf's law.

``fit_power_law`` estimates the exponent of the distribution, P(φ = x) ~ x^-α; ``zipf_exponent``
that of popularity by rank, φ_(r) ~ r^-s. An exact power law has s = 1 / (α - 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recbias.core.dataset import AnyArray, FloatArray

MAX_STARTS = 1000
"""Maximum number of candidates for ``xmin``."""

_MAX_EXPONENT = 20.0
"""Upper end of the search for the exponent."""

BLOCK_CELLS = 2**20
"""Values of the distribution function in memory at once."""


@dataclass(frozen=True)
class PowerLaw:
    """A power law fitted to the ``n`` largest counts: P(X = x) ~ x^-exponent for x >= xmin.

    ``ks`` is the Kolmogorov-Smirnov distance between the law and the tail, 0 to 1.
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
    distance D = max |S(x) - P(X ≥ x)|, where S(x) is the share of them that is at least x. Counts
    of 0 are excluded; NaN with ``n`` 0 if there are fewer than two distinct values.

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
    exponent, xmin, ks = exponents[best], values[starts[best]], distances[best]
    return PowerLaw(float(exponent), float(xmin), int(n_tail[starts[best]]), float(ks))


def zipf_exponent(counts: AnyArray) -> float:
    """Return the exponent s of Zipf's law of popularity by rank, φ_(r) ~ r^-s.

    s is minus the least-squares slope of ln φ_(r) on ln r over the items with a popularity above
    0; the most popular item has rank 1. It is 0 if all items are equally popular, and NaN for
    fewer than two items.

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
    """Return the exponents of the largest -ln ζ(α, xmin) - α mean_log, which is concave in α."""
    from scipy.special import zeta

    def compute_likelihood(exponent: FloatArray) -> FloatArray:
        return np.asarray(-np.log(zeta(exponent, xmin)) - exponent * mean_log)

    low, high = np.full(xmin.shape, 1.0 + 1e-9), np.full(xmin.shape, _MAX_EXPONENT)
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    while (high - low).max() > 1e-9:
        width = golden * (high - low)
        left, right = high - width, low + width
        rises = compute_likelihood(right) > compute_likelihood(left)
        low, high = np.where(rises, left, low), np.where(rises, high, right)
    return np.asarray((low + high) / 2.0)


def _compute_distances(
    values: FloatArray, n_tail: FloatArray, starts: AnyArray, exponents: FloatArray
) -> FloatArray:
    """Return the Kolmogorov-Smirnov distance for each ``xmin``, ``float64[s]``."""
    from scipy.special import zeta

    distances = np.empty(starts.size)
    size = max(1, BLOCK_CELLS // values.size)
    for first in range(0, starts.size, size):
        block = slice(first, first + size)
        lowest = int(starts[block].min())
        tail, n, begins = values[lowest:], n_tail[lowest:], starts[block] - lowest
        alphas = exponents[block, None]
        scale = zeta(alphas, tail[begins][:, None])
        law = zeta(alphas, tail) / scale
        law_above = law - tail**-alphas / scale
        share, share_above = (x / n[begins][:, None] for x in (n, np.append(n[1:], 0.0)))
        gaps = np.maximum(np.abs(law - share), np.abs(law_above - share_above))
        gaps[np.arange(tail.size) < begins[:, None]] = 0.0
        distances[block] = gaps.max(axis=1)
    return distances
