"""The least numbers of protected items in the prefixes of a list, by a binomial test."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import FloatArray

Minimum = npt.NDArray[np.int64]


def compute_minimum(k: int, share: float, alpha: float) -> Minimum:
    """Return the least number of protected items in the first r items, ``int64[k]``.

    It is the smallest m with ``F(m; r, p) > alpha``, where F is the cumulative distribution
    function of the binomial distribution of r draws with probability p: with fewer, the test
    rejects at the level alpha that the items were drawn so.

    >>> compute_minimum(10, 0.5, 0.1).tolist()
    [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]
    """
    from scipy.stats import binom

    counts = np.arange(k + 1)
    below = binom.cdf(counts[None, :], np.arange(1, k + 1)[:, None], share)
    return np.asarray((below <= alpha).sum(axis=1))


def compute_rejection(minimum: Minimum, share: float) -> float:
    """Return the probability that a list drawn with a share misses a minimum at any rank.

    Computed exactly, by the distribution of the number of protected items over the ranks among
    the lists that have missed no minimum so far.

    >>> compute_rejection(np.array([0, 1]), 0.5)  # both items are not protected
    0.25
    """
    alive = np.zeros(minimum.size + 1)
    alive[0] = 1.0
    for least in minimum:
        alive[1:] = alive[1:] * (1 - share) + alive[:-1] * share
        alive[0] *= 1 - share
        alive[:least] = 0.0
    return float(1 - alive.sum())


def adjust_alpha(k: int, share: float, alpha: float) -> float:
    """Return the largest level of each test at which all k together reject at most ``alpha``.

    The minimum changes only at values of the cumulative distribution function, so these are
    searched, by bisection: the more often one rank rejects, the more often all together do.

    >>> adjust_alpha(1, 0.5, 0.1)
    0.1
    """
    from scipy.stats import binom

    counts = np.arange(k + 1)
    values: FloatArray = binom.cdf(counts[None, :], np.arange(1, k + 1)[:, None], share)
    levels = np.unique(values[values <= alpha])
    low, high = -1, levels.size  # levels[low] keeps the limit, levels[high] does not
    while high - low > 1:
        middle = (low + high) // 2
        rejection = compute_rejection(compute_minimum(k, share, levels[middle]), share)
        low, high = (middle, high) if rejection <= alpha else (low, middle)
    if high == levels.size:
        return alpha
    return float(np.nextafter(levels[high], 0.0))
