"""How heavy the long tail is: the power law of popularity, and Zipf's law of popularity by rank.

Two exponents describe the same tail from two sides. ``fit_power_law`` gives the exponent of the
*distribution*, P(φ = x) ~ x^-α; ``zipf_exponent`` that of the *curve* of popularity over rank,
φ_(r) ~ r^-s. An exact power law has s = 1 / (α - 1). The Pareto coefficient, by which P(φ > x) ~
x^-b, is b = α - 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray

MOST_STARTS = 1000
"""How many lower ends of the tail are tried."""

STEEPEST = 20.0
"""The largest exponent that is tried."""

CELLS = 2**20
"""How many values of the distribution function are held at once."""


@dataclass(frozen=True)
class PowerLaw:
    """A power law fitted to the upper tail of whole numbers: P(X = x) ~ x^-exponent from xmin on.

    Args:
        exponent: α, above 1; NaN where nothing can be fitted.
        xmin: The least value that the law describes.
        n: How many values are at least that.
        ks: The Kolmogorov-Smirnov distance of the law from those values, 0 to 1.
    """

    exponent: float
    xmin: float
    n: int
    ks: float

    @property
    def pareto(self) -> float:
        """The Pareto coefficient: P(X > x) falls as x^-pareto."""
        return self.exponent - 1.0


def fit_power_law(counts: AnyArray) -> PowerLaw:
    """Return the discrete power law that fits the upper tail best.

        p(x) = x^-α / ζ(α, xmin),    x = xmin, xmin + 1, ...

    For each value that occurs, but the largest, as ``xmin``, α is the maximum of the likelihood of
    the values from it on, found numerically between 1 and 20; the xmin is taken whose law has the
    smallest distance D = max |S(x) - P(X ≥ x)| from them, S being their share that is at least x.
    Of more than 1,000 different values 1,000, spread evenly over their ranks, are tried.

    Args:
        counts: Whole numbers, ``[n]``; those of 0 are left out.

    Returns:
        The law; all NaN, of no values, below two different values.

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
    n_starts = min(values.size - 1, MOST_STARTS)
    starts = np.unique(np.linspace(0, values.size - 2, n_starts).round().astype(np.int64))
    n_tail = np.cumsum(times[::-1])[::-1].astype(np.float64)
    logs = np.cumsum((times * np.log(values))[::-1])[::-1]
    exponents = _most_likely(values[starts], logs[starts] / n_tail[starts])
    distances = _distances(values, n_tail, starts, exponents)
    best = int(distances.argmin())
    start = starts[best]
    return PowerLaw(
        exponent=float(exponents[best]),
        xmin=float(values[start]),
        n=int(n_tail[start]),
        ks=float(distances[best]),
    )


def zipf_exponent(counts: AnyArray) -> float:
    """Return how steeply popularity falls with its rank: φ_(r) ~ r^-s.

    s is minus the slope of the straight line through (ln r, ln φ_(r)) of all items above 0, by
    least squares; the most popular item has rank 1.

    Args:
        counts: Popularities, ``[n]``; those of 0 are left out.

    Returns:
        s; 0 where all are as popular, NaN below two items.

    >>> round(zipf_exponent(60 / np.array([1, 2, 3, 4])), 6)
    1.0

    Source:
        Zipf, "Human Behavior and the Principle of Least Effort", 1949.
    """
    counts = np.asarray(counts, dtype=np.float64)
    falling = -np.sort(-counts[counts > 0])
    if falling.size < 2:
        return math.nan
    x, y = np.log(np.arange(1, falling.size + 1)), np.log(falling)
    x -= x.mean()
    return float(abs(x @ (y - y.mean())) / (x @ x))


def _most_likely(xmin: FloatArray, mean_log: FloatArray) -> FloatArray:
    """Return the exponents of the highest likelihood, by golden sections, ``float64[s]``.

    The log-likelihood of a value, -ln ζ(α, xmin) - α mean_log, is concave in α.
    """
    from scipy.special import zeta

    low, high = np.full(xmin.shape, 1.0 + 1e-9), np.full(xmin.shape, STEEPEST)
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    while (high - low).max() > 1e-9:
        width = golden * (high - low)
        left, right = high - width, low + width
        worth = [-np.log(zeta(each, xmin)) - each * mean_log for each in (left, right)]
        rises = worth[1] > worth[0]
        low, high = np.where(rises, left, low), np.where(rises, high, right)
    return np.asarray((low + high) / 2.0)


def _distances(
    values: FloatArray, n_tail: FloatArray, starts: AnyArray, exponents: FloatArray
) -> FloatArray:
    """Return the Kolmogorov-Smirnov distance of the law of each start, ``float64[s]``."""
    size = max(1, CELLS // values.size)
    parts = [
        _block_distances(values, n_tail, starts[at : at + size], exponents[at : at + size])
        for at in range(0, starts.size, size)
    ]
    return np.concatenate(parts)


def _block_distances(
    values: FloatArray, n_tail: FloatArray, starts: AnyArray, exponents: FloatArray
) -> FloatArray:
    """Return the largest gap at, and right behind, each value that occurs.

    Between two values S is level and the law falls, so the gap is largest at an end.
    """
    from scipy.special import zeta

    first = int(starts.min())
    values, n_tail, starts = values[first:], n_tail[first:], starts - first
    alphas = exponents[:, None]
    scale = zeta(alphas, values[starts][:, None])
    law = zeta(alphas, values) / scale
    behind_law = law - values**-alphas / scale
    share = n_tail / n_tail[starts][:, None]
    behind_share = np.append(n_tail[1:], 0.0) / n_tail[starts][:, None]
    gaps = np.maximum(np.abs(law - share), np.abs(behind_law - behind_share))
    gaps[np.arange(values.size) < starts[:, None]] = 0.0
    return np.asarray(gaps.max(axis=1))
