"""The bootstrap of group means over clusters: names within their label, or whole templates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, FloatArray
from recbias.statistics.intervals import spread, t_interval

BLOCK_VALUES = 2**22
"""How many draws are held at once."""


def cluster_weights(strata: AnyArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Return how often each cluster stands in each bootstrap sample, ``float64[b, n]``.

    From a stratum of n clusters n - 1 are drawn with replacement, which makes the variance of a
    mean over the samples that of the mean itself; drawing n gives (n - 1)/n of it, too little
    where there are few. Which are drawn depends on the strata and the generator only.

    Args:
        strata: The stratum of each cluster, ``int[n]`` from 0.
        n_samples: How many samples are drawn.
        rng: Where chance comes from.

    Returns:
        NaN in the columns of a stratum of one cluster: nothing says how it varies.

    >>> cluster_weights(np.array([0, 0, 0, 1]), 2, np.random.default_rng(0)).sum(axis=1).tolist()
    [nan, nan]

    Source:
        Rao and Wu, "Resampling inference with complex survey data", JASA 1988.
    """
    weights = np.full((n_samples, strata.size), np.nan)
    for stratum in np.unique(strata):
        clusters = np.flatnonzero(strata == stratum)
        if clusters.size > 1:
            weights[:, clusters] = _drawn(clusters.size, n_samples, rng)
    return weights


def _drawn(n: int, n_samples: int, rng: np.random.Generator) -> FloatArray:
    counts = np.empty((n_samples, n))
    rows = max(1, BLOCK_VALUES // n)
    for start in range(0, n_samples, rows):
        size = min(rows, n_samples - start)
        places = rng.integers(n, size=(size, n - 1)) + np.arange(size)[:, None] * n
        counts[start : start + size] = np.bincount(places.ravel(), minlength=size * n).reshape(
            size, n
        )
    return counts


def group_means(
    values: FloatArray, groups: AnyArray, n_groups: int, weights: FloatArray | None = None
) -> FloatArray:
    """Return the weighted means of the units of each group, ``float64[..., g, c]``.

    Args:
        values: ``float64[u, c]``, none NaN.
        groups: The group of each unit, ``int[u]``.
        n_groups: How many groups there are.
        weights: The weight of each unit in each sample, ``float64[b, u]``; None for one sample in
            which every unit counts once, and no first axis.

    Returns:
        NaN for a group without weight.

    >>> values, groups = np.array([[1.0], [3.0], [5.0]]), np.array([0, 0, 1])
    >>> group_means(values, groups, 2).tolist()
    [[2.0], [5.0]]
    >>> group_means(values, groups, 2, np.array([[0.0, 2.0, 1.0]])).tolist()
    [[[3.0], [5.0]]]
    """
    given = np.ones((1, len(values))) if weights is None else weights
    found = np.empty((len(given), n_groups, values.shape[1]))
    for group in range(n_groups):
        inside = groups == group
        own = given[:, inside]
        with np.errstate(invalid="ignore", divide="ignore"):
            found[:, group] = (own @ values[inside]) / own.sum(axis=1, keepdims=True)
    return found[0] if weights is None else found


def bootstrap_t_interval(
    point: npt.ArrayLike, replicates: npt.ArrayLike, df: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return 95% intervals of bootstrapped figures that allow for few clusters.

        point ± t(0.975; df) · se,    se the standard deviation over the samples

    Args:
        point: The figures, any shape.
        replicates: Each on every sample, ``float64[..., b]``; NaN is left out.
        df: Clusters less strata, how many differences the spread was learned from: of all figures
            together or of each; below 1 there is no interval.

    >>> low, high = bootstrap_t_interval(2.0, np.array([1.0, 2.0, 3.0]), 10)
    >>> round(float(low), 3), round(float(high), 3)
    (-0.228, 4.228)

    Source:
        Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, section 12.2.
    """
    known = np.asarray(df, dtype=np.float64)
    return t_interval(point, spread(replicates) * np.sqrt(known + 1.0), known + 1.0)
