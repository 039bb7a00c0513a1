"""Tests between groups that share units, such as the users who read each of two languages."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.scores import Contrast
from recbias.statistics.tests.unpaired import (
    Moments,
    Pairs,
    compare_means,
    compute_moments,
    make_contrasts,
)


def overlap_contrasts(
    names: tuple[str, ...], values: FloatArray, members: AnyArray, *, between: str, pairs: Pairs
) -> list[Contrast]:
    """Compare pairs of groups that may share units by a t-test of the difference of their means.

        t = (m_a - m_b) / sqrt(Σ_u w_u²),    two-sided,
        w_u = [u in a] (x_u - m_a) / sqrt(n_a (n_a - 1))
              - [u in b] (x_u - m_b) / sqrt(n_b (n_b - 1))

    A unit of both groups adds to both means, so its two terms are subtracted before they are
    squared; without shared units the test is Welch's. The degrees of freedom are Satterthwaite's
    for the sums of w² over the units of a alone, of b alone, and of both. ``values[u]``, or
    ``values[g, u]`` if x_u depends on the group, may be NaN (undefined); ``members[g, u]`` says
    which units are in which group. ``n`` counts a shared
    unit once. p is NaN if a group has fewer than two values, if all values are equal, or if the
    groups have the same units.

    Source:
        Särndal, Swensson and Wretman, "Model Assisted Survey Sampling", 1992, chapter 5
        (the linearised variance of a difference of domain means).
    """
    inside = (members & ~np.isnan(values)).astype(np.float64)
    moments = _compute_group_moments(values, inside)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = 1.0 / np.sqrt(moments.n * (moments.n - 1.0))
        weights = np.where(inside > 0, (values - moments.mean[:, None]) * scale[:, None], 0.0)
    a, b = pairs
    shared, squares, products = (inside @ inside.T), (weights**2) @ inside.T, weights @ weights.T
    sums = (
        squares[a, a] - squares[a, b],
        squares[b, b] - squares[b, a],
        squares[a, b] + squares[b, a] - 2.0 * products[a, b],
    )
    sizes = (shared[a, a] - shared[a, b], shared[b, b] - shared[a, b], shared[a, b])
    parts = [np.where(size > 0, part, 0.0) for part, size in zip(sums, sizes, strict=True)]
    columns = compare_means(moments, pairs, parts, sizes)
    columns["n"] = columns["n"] - shared[a, b].astype(np.int64)
    undefined = (moments.n[a] < 2) | (moments.n[b] < 2) | (sizes[0] + sizes[1] == 0)
    for name in ("statistic", "p", "df", "ci_low", "ci_high", "effect_size"):
        columns[name] = np.where(undefined, np.nan, columns[name])
    return make_contrasts(names, pairs, columns, between=between, test="overlap_t")


def _compute_group_moments(values: FloatArray, inside: FloatArray) -> Moments:
    groups, units = np.nonzero(inside)
    return compute_moments(
        np.broadcast_to(values, inside.shape)[groups, units], groups, len(inside)
    )
