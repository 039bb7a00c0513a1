"""The bootstrap of group means over clusters: names within their label, or templates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, FloatArray
from recbias.statistics.bootstrap.set_bootstrap import sample_counts
from recbias.statistics.intervals import bootstrap_standard_error, t_interval

BLOCK_VALUES = 2**22
"""Sampled clusters held in memory at once."""


def sample_cluster_weights(
    strata: AnyArray, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """Return the count of each cluster in each bootstrap sample, ``float64[b, n]``.

    From a stratum of n clusters, n - 1 are sampled with replacement, so that the variance of a
    mean over the samples is that of the mean itself; sampling n would give (n - 1)/n of it. The
    samples depend on the generator and on ``strata``, the stratum of each cluster, only. A stratum
    of one cluster, whose variance is unknown, has NaN.

    >>> weights = sample_cluster_weights(np.array([0, 0, 0, 1]), 2, np.random.default_rng(0))
    >>> weights.sum(axis=1).tolist()
    [nan, nan]

    Source:
        Rao and Wu, "Resampling inference with complex survey data", JASA 1988.
    """
    weights = np.full((n_samples, strata.size), np.nan)
    for stratum in np.unique(strata):
        clusters = np.flatnonzero(strata == stratum)
        if clusters.size > 1:
            for samples, counts in sample_counts(clusters.size, n_samples, BLOCK_VALUES, rng):
                weights[samples, clusters] = counts
    return weights


def compute_group_means(
    values: FloatArray, groups: AnyArray, n_groups: int, weights: FloatArray | None = None
) -> FloatArray:
    """Return the weighted means of the units of each group, ``float64[..., g, c]``.

    The ``values[u, c]`` must not be NaN. Without ``weights`` of the units in each sample,
    ``float64[b, u]``, they are equal and there is no sample axis. A group without weight has NaN.

    >>> values, groups = np.array([[1.0], [3.0], [5.0]]), np.array([0, 0, 1])
    >>> compute_group_means(values, groups, 2).tolist()
    [[2.0], [5.0]]
    >>> compute_group_means(values, groups, 2, np.array([[0.0, 2.0, 1.0]])).tolist()
    [[[3.0], [5.0]]]
    """
    sample_weights = np.ones((1, len(values))) if weights is None else weights
    means = np.empty((len(sample_weights), n_groups, values.shape[1]))
    for group in range(n_groups):
        members = groups == group
        group_weights = sample_weights[:, members]
        with np.errstate(invalid="ignore", divide="ignore"):
            means[:, group] = (group_weights @ values[members]) / group_weights.sum(
                axis=1, keepdims=True
            )
    return means[0] if weights is None else means


def bootstrap_t_interval(
    point: npt.ArrayLike, replicates: npt.ArrayLike, df: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return 95% bootstrap-t intervals, which account for few clusters.

        point ± t(0.975; df) · se,    se the bootstrap standard error

    ``df`` is the number of clusters minus that of strata, for all estimates or for each; below 1
    there is no interval. Replicates are ``float64[..., b]``; NaN is excluded.

    >>> low, high = bootstrap_t_interval(2.0, np.array([1.0, 2.0, 3.0]), 10)
    >>> round(float(low), 3), round(float(high), 3)
    (-0.228, 4.228)

    Source:
        Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, section 12.2.
    """
    degrees = np.asarray(df, dtype=np.float64)
    return t_interval(
        point, bootstrap_standard_error(replicates) * np.sqrt(degrees + 1.0), degrees + 1.0
    )


def logit_t_interval(point: float, replicates: FloatArray, df: float) -> tuple[float, float]:
    """Return the 95% bootstrap-t interval of a share, on the scale of its logit.

        logit x ± t(0.975; df) · se,    logit x = log( x / (1 - x) )

    se is the standard deviation of the logits of the replicates. A share of few clusters has a
    skewed distribution, whose variance depends on the share; that of the logit is nearly
    symmetric, and its interval within 0 and 1. Where the share or a replicate is 0 or 1, it has
    no logit: the interval is then that of ``bootstrap_t_interval``, within 0 and 1. Replicates are
    ``float64[b]``; NaN is excluded.

    >>> low, high = logit_t_interval(0.5, np.array([0.25, 0.5, 0.75]), 10)
    >>> round(low, 4), round(high, 4)  # logit ± 2.2281 · log 3
    (0.0796, 0.9204)

    Source:
        The logit as the scale of intervals of shares: Agresti, "Categorical Data Analysis", 2013,
        section 1.4; bootstrap-t as in ``bootstrap_t_interval``.
    """
    from scipy.special import expit, logit

    rows = replicates[~np.isnan(replicates)]
    if not 0.0 < point < 1.0 or not ((rows > 0.0) & (rows < 1.0)).all():
        low, high = bootstrap_t_interval(point, rows, df)
        return float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0))
    low, high = bootstrap_t_interval(logit(point), logit(rows), df)
    return float(expit(low)), float(expit(high))


def arcsine_t_interval(point: float, replicates: FloatArray, df: float) -> tuple[float, float]:
    """Return the 95% bootstrap-t interval of a share that may be 0, on the scale of its arcsine.

        sin²( g ± t(0.975; df) · se ),    g = arcsin √x,    within 0 and 1

    se is the standard deviation of the arcsines of the roots of the replicates. The variance of a
    share falls towards 0 and 1, and that of the arcsine of its root hardly; unlike the logit it is
    finite at 0 and 1. Replicates are ``float64[b]``; NaN is excluded.

    >>> low, high = arcsine_t_interval(0.25, np.array([0.25, 0.75]), 10)
    >>> round(low, 4), round(high, 4)  # π/6 ± 2.2281 · π/6 / √2, of which -0.30 counts as 0
    (0.0, 0.9514)

    Source:
        Anscombe, "The transformation of Poisson, binomial and negative-binomial data", Biometrika
        1948; bootstrap-t as in ``bootstrap_t_interval``.
    """
    rows = np.arcsin(np.sqrt(np.clip(replicates[~np.isnan(replicates)], 0.0, 1.0)))
    ends = bootstrap_t_interval(np.arcsin(np.sqrt(point)), rows, df)
    low, high = (float(np.sin(np.clip(end, 0.0, np.pi / 2)) ** 2) for end in ends)
    return low, high
