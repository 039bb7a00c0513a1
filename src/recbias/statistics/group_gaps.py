"""A figure of each query by what the queries are: every group's mean, and how far they differ."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.scores import Contrast, Measurement, UnitScores
from recbias.core.queries.groups import Groups
from recbias.statistics.intervals import normal_interval
from recbias.statistics.tests.unpaired import Moments, moments, welch_anova, welch_contrasts

BLOCK_VALUES = 2**21
"""How many resampled values are held at once."""

MOST_PAIRS = 500
"""Above so many pairs of groups none is tested: a label with so many values is no group."""


def by_group(figure: Measurement, groups: Groups) -> list[Measurement]:
    """Return the figure of each group, with every two groups compared by Welch's t-test.

    ``n`` is the queries of the group in which the figure is defined, ``undefined`` the others; the
    interval is the t interval of the group's mean. The tests stand with the first group.

    Args:
        figure: A figure with one value a query.
        groups: The group of each query.
    """
    units = _units(figure)
    made = []
    for place, name in enumerate(groups.names):
        inside = np.flatnonzero(groups.codes == place)
        own = replace(units, ids=units.ids[inside], values=units.values[inside])
        made.append(Measurement.from_units(own, group=name, target=figure.target))
    n_groups = len(groups.names)
    if n_groups > 1 and n_groups * (n_groups - 1) // 2 <= MOST_PAIRS:
        found = moments(units.values, groups.codes, n_groups)
        tests = welch_contrasts(groups.names, found, between="groups")
        made[0] = replace(made[0], contrasts=tuple(tests))
    return made


def gap(
    figure: Measurement,
    groups: Groups,
    kind: Literal["difference", "ratio", "std"],
    *,
    rng: np.random.Generator,
    n_samples: int = 1000,
) -> Measurement:
    """Return how far the means of the groups differ, as one number.

        difference = max_g m_g - min_g m_g,    ratio = min_g m_g / max_g m_g,
        std = sqrt((1 / (G - 1)) Σ_g (m_g - mean of m)²)

    Of two groups the interval is the normal interval of a bootstrap of the queries within each
    group. Of more it has none, and models are not compared by it: the largest of several
    differences lies above 0 by chance, more so for a model whose figures vary more. Whether the
    groups differ at all is what the test says that stands with ``difference``: Welch's analysis of
    variance, whose sides are the group of the largest mean and that of the smallest. Undefined
    where a group has no defined value, or there is one group; a ratio also where a mean is
    negative, or the largest is 0. There is no interval where a group has one query, or where no
    sample differs.

    Args:
        figure: A figure with one value a query.
        groups: The group of each query.
        kind: Which number.
        rng: The generator of the samples: the same for models that are compared.
        n_samples: How many samples are drawn.
    """
    units = _units(figure)
    found = moments(units.values, groups.codes, len(groups.names))
    value = float(_gap(found.mean[None, :], kind)[0])
    defined = 0 if math.isnan(value) else int(found.n.sum())
    tests = _together(groups, found) if kind == "difference" and found.n.size > 2 else ()
    made = Measurement(
        value=value,
        n=defined,
        undefined=int(units.values.size) - defined,
        target=figure.target,
        contrasts=tests,
    )
    if found.n.size != 2 or math.isnan(value) or (found.n < 2).any():
        return made
    replicates = _gap(_resampled(units.values, groups, n_samples, rng), kind)
    low, high = (float(each) for each in normal_interval(value, replicates))
    known = high > low
    return replace(
        made,
        replicates=replicates,
        ci_low=low if known else math.nan,
        ci_high=high if known else math.nan,
    )


def _together(groups: Groups, found: Moments) -> tuple[Contrast, ...]:
    """Return the test that all groups have one mean."""
    if np.isnan(found.mean).any():
        return ()
    top, bottom = int(found.mean.argmax()), int(found.mean.argmin())
    statistic, df, p = welch_anova(found)
    return (
        Contrast(
            between="groups",
            a=groups.names[top],
            b=groups.names[bottom],
            test="welch_anova",
            n=int(found.n.sum()),
            mean_a=float(found.mean[top]),
            mean_b=float(found.mean[bottom]),
            difference=float(found.mean[top] - found.mean[bottom]),
            statistic=statistic,
            p=p,
            df=df,
        ),
    )


def _units(figure: Measurement) -> UnitScores:
    if figure.units is None:
        message = "a figure without a value for each query has no groups"
        raise ValueError(message)
    return figure.units


def _gap(means: FloatArray, kind: str) -> FloatArray:
    """Return the gap of each row of group means, ``float64[b]``; NaN where a mean is NaN."""
    if means.shape[1] < 2:
        return np.full(len(means), np.nan)
    low, high = means.min(axis=1), means.max(axis=1)
    if kind == "difference":
        return np.asarray(high - low)
    if kind == "std":
        return np.asarray(means.std(axis=1, ddof=1))
    undefined = np.full(low.shape, np.nan)
    return np.asarray(np.divide(low, high, out=undefined, where=(low >= 0) & (high > 0)))


def _resampled(
    values: FloatArray, groups: Groups, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """Return the mean of each group in each sample of its queries, ``float64[b, g]``."""
    means = np.full((n_samples, len(groups.names)), np.nan)
    for place in range(len(groups.names)):
        own = values[groups.codes == place]
        size = max(1, BLOCK_VALUES // max(own.size, 1))
        for first in range(0, n_samples, size):
            rows = min(size, n_samples - first)
            drawn = own[rng.integers(0, own.size, (rows, own.size))]
            means[first : first + rows, place] = _defined_means(drawn)
    return means


def _defined_means(drawn: AnyArray) -> FloatArray:
    known = ~np.isnan(drawn)
    counts = np.count_nonzero(known, axis=1)
    totals = np.where(known, drawn, 0.0).sum(axis=1)
    undefined = np.full(counts.shape, np.nan)
    return np.asarray(np.divide(totals, counts, out=undefined, where=counts > 0))
