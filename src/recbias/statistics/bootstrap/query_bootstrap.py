"""The bootstrap over queries, for figures of a whole set of lists such as coverage and Gini."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.statistics.intervals import spread
from recbias.statistics.tests.pair_moments import all_pairs

NAME = "paired_bootstrap"
"""What the test is called in ``significance.csv``."""

BLOCK_VALUES = 2**19
"""How many weights, and sums, are held at once: what fits the processor's cache."""

ROUNDING = 1e-12
"""What is below this share of the size of the figures is 0 but for rounding."""


def resampled_sums(matrix: Matrix, n_samples: int, seed: int) -> Iterator[npt.NDArray[np.int32]]:
    """Yield the column sums of bootstrap samples of the rows, block by block.

    A sample is q rows drawn with replacement; which ones depends on ``seed`` and q only, so that
    two matrices of equally many rows are resampled alike.

    Args:
        matrix: CSR (q, m) of whole numbers, with at least one row.
        n_samples: How many samples are drawn.
        seed: The seed of the samples.

    Yields:
        ``int32[block, m]``; ``n_samples`` rows in all.

    >>> from scipy.sparse import csr_array
    >>> [each.tolist() for each in resampled_sums(csr_array([[1, 0], [1, 0]]), 2, 0)]
    [[[2, 0], [2, 0]]]
    """
    n_rows = matrix.shape[0]
    columns = matrix.T.tocsr().astype(np.int32)
    rng = np.random.default_rng(seed)
    size = min(max(16, BLOCK_VALUES // max(*matrix.shape)), max(n_samples, 1))
    for start in range(0, n_samples, size):
        weights = np.zeros((min(size, n_samples - start), n_rows), dtype=np.int32)
        for row in weights:
            row[:] = np.bincount(rng.integers(n_rows, size=n_rows), minlength=n_rows)
        yield (columns @ np.ascontiguousarray(weights.T)).T


def replicate_pairs(
    points: FloatArray, replicates: FloatArray, alpha: float, *, df: float = math.nan
) -> Mapping[str, AnyArray]:
    """Compare every two systems by the same bootstrap samples of the queries.

        z = d / se,    p = 2 Φ(-|z|),    interval d ± z(1 - α/2) · se

    with d the difference of the two figures and se the standard deviation, over the samples, of
    their difference. The samples give the spread only: a sample holds fewer distinct queries than
    were asked, which shifts figures such as coverage, so no percentile of the samples is used. The
    statistic is z; there are no degrees of freedom and no effect size; ``n`` is missing, since the
    figure is one of the whole set. Where no sample differs from another, z is ±inf and p is 0, or
    z is NaN and p is 1 where the figures are equal.

    Two figures of the same lists differ by how they were added up. So d and se count as 0 below
    1e-12 of the larger of |a|, |b| and the spreads of the two systems over the samples.

    Args:
        points: The figure of each system, ``float64[s]``.
        replicates: The figure on each sample, ``float64[s, b]``, the same samples for all; a
            sample on which one of two systems has no figure is left out of their comparison.
        alpha: One minus the level of the interval.
        df: Degrees of freedom of the spread, where the samples are of few units: the statistic is
            then Student's t; NaN for the normal distribution.

    Returns:
        The columns of ``significance.csv`` for every pair; p is NaN below two samples.

    >>> found = replicate_pairs(np.array([3.0, 1.0]), np.array([[3.0, 2, 4], [1, 0, 1]]), 0.05)
    >>> found["difference"].tolist(), found["statistic"].round(3).tolist()
    ([2.0], [3.464])

    Source:
        Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, sections 6.2 and 13.2.
    """
    from scipy.special import ndtr, ndtri, stdtr, stdtrit

    a, b = all_pairs(len(points))
    sizes = np.fmax(np.abs(points), spread(replicates))
    slack = ROUNDING * np.fmax(sizes[a], sizes[b])
    difference = _unless_rounding(points[a] - points[b], slack)
    error = _unless_rounding(spread(replicates[a] - replicates[b]), slack)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = difference / error
    normal = math.isnan(df)
    tail = ndtr(-np.abs(z)) if normal else stdtr(df, -np.abs(z))
    p = np.where((error == 0) & (difference == 0), 1.0, 2.0 * tail)
    half = error * (ndtri(1.0 - alpha / 2.0) if normal else stdtrit(df, 1.0 - alpha / 2.0))
    none = np.full(a.size, np.nan)
    return {
        "a": a,
        "b": b,
        "n": none,
        "mean_a": points[a],
        "mean_b": points[b],
        "difference": difference,
        "ci_low": difference - half,
        "ci_high": difference + half,
        "statistic": z,
        "df": np.full(a.size, df),
        "p": p,
        "effect_size": none,
    }


def _unless_rounding(values: FloatArray, slack: FloatArray) -> FloatArray:
    """Return values, and 0 for what is smaller than the slack of its place."""
    return np.where(np.abs(values) < slack, 0.0, values)
