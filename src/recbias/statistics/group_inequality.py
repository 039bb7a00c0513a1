"""How unequal groups of queries are: indices of inequality between and within them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.queries.groups import Groups
from recbias.statistics.bootstrap.group_bootstrap import resample_group_sums
from recbias.statistics.bootstrap.sample_interval import compute_sample_interval

InequalityKind: TypeAlias = Literal[
    "atkinson",
    "atkinson_within",
    "atkinson_total",
    "cross_entropy",
    "mad",
    "worst",
    "worst_quarter",
]
"""The indices of ``measure_group_inequality``."""

_SMOOTH = {"atkinson", "atkinson_within", "atkinson_total", "cross_entropy"}
"""The indices that have an interval: small changes of the values change them little."""

_SKEWED = {"atkinson_within", "atkinson_total"}
"""The indices with a longer tail above, which are not near 0 where the groups do not differ."""


@dataclass(frozen=True, kw_only=True)
class GroupInequality:
    """An index of the inequality of groups of queries, as one number.

        atkinson        = 1 - ( Σ_g w_g √e_g )² / Σ_g w_g e_g            between the groups
        atkinson_within = Σ_g s_g ( 1 - e_g / m_g )
        atkinson_total  = 1 - e / m
        cross_entropy   = ( Σ_g f_g² / p_g - 1 ) / 2
        mad             = mean of |m_g - m_h| over the pairs of groups
        worst           = the mean of the worst group
        worst_quarter   = mean of the m_g that are at most their lower quartile

    m_g is the mean of the values x of group g, e_g = (mean of √x)² its equally distributed
    equivalent (Atkinson's index with ε = 0.5), w_g its share of the queries and s_g that of the
    sum of x; m and e are those of all groups together. p_g = m_g / Σ_h m_h, and f_g = 1/G. The
    Atkinson indices relate by 1 - total = (1 - within)(1 - between).

    Undefined if a group has no value or there is only one group; the Atkinson indices and the
    cross entropy also if a value is negative, or the mean that they divide by is 0.

    The Atkinson indices and the cross entropy have the normal interval of a stratified bootstrap
    of the queries, ``atkinson_within`` and ``atkinson_total`` on the scale of the logarithm. These
    two depend on the sizes of the groups, which are those of a sample as well and are resampled
    too. The others are positive by chance for groups that do not differ; the interval then
    includes 0. ``mad``, ``worst`` and ``worst_quarter`` have none: the groups have intervals of
    their own, and the extreme one of several is extreme by chance. There is none either if a query
    is in several groups; it counts in each of them.

    Args:
        kind: The index.
        direction: Which values of the metric are better. If lower ones are, the worst group is
            that with the largest mean, and if 0 is, that with the mean farthest from it.
        min_group: Groups of fewer defined values are excluded.
        n_samples: The number of bootstrap samples.

    >>> from recbias.core.measurements.scores import UnitScores
    >>> units = UnitScores("user", np.arange(4).astype(object), np.array([1.0, 1.0, 4.0, 4.0]))
    >>> codes = np.array([0, 0, 1, 1], dtype=np.int32)
    >>> groups = Groups("g", ("g=a", "g=b"), codes, (("a",), ("b",)))
    >>> between = GroupInequality(kind="atkinson", direction="higher")
    >>> index = between.measure(Measurement.from_units(units), groups, np.random.default_rng(0))
    >>> round(index.value, 6)  # 1 - ((1 + 2) / 2)² / ((1 + 4) / 2)
    0.1

    Source:
        Atkinson, "On the measurement of inequality", Journal of Economic Theory 1970; between and
        within groups: Rampisela et al., "Stairway to fairness", RecSys 2025. Cross entropy and
        mad: Deldjoo et al., "A flexible framework for evaluating user and item fairness in
        recommender systems", UMUAI 2021, with β = 2 and a uniform distribution, and without the
        smoothing in the code of the RecSys 2025 paper.
    """

    kind: InequalityKind
    direction: Direction
    min_group: int = 0
    n_samples: int = 1000

    def measure(
        self, measurement: Measurement, groups: Groups, rng: np.random.Generator
    ) -> Measurement:
        """Return the index of the values of a metric; ``rng`` is the same for all models."""
        if measurement.units is None:
            message = "a metric without a value for each query cannot be grouped"
            raise ValueError(message)
        values, is_large = measurement.units.values, groups.counts >= self.min_group
        columns = _build_columns(values)
        sizes = np.array([columns[groups.find_rows(g), 0].sum() for g in range(is_large.size)])
        is_same = bool(((sizes >= self.min_group) == is_large).all())
        groups = groups.select(np.flatnonzero(sizes >= self.min_group))
        members = [groups.find_rows(code) for code in range(len(groups.names))]
        sums = np.array([columns[rows].sum(axis=0) for rows in members]).reshape(-1, 3)
        in_group = np.isin(np.arange(values.size), np.concatenate([*members, []]))
        is_defined = in_group & ~np.isnan(values)
        is_negative = self.kind in _SMOOTH and bool((values[is_defined] < 0).any())
        has_value = len(members) > 1 and not is_negative
        value = float(self._compute(sums[None])[0]) if has_value else math.nan
        n = 0 if math.isnan(value) else int(np.count_nonzero(is_defined))
        index = Measurement(value, n, int(values.size) - n, target=measurement.target)
        if self.kind not in _SMOOTH or n == 0 or groups.overlap or (sums[:, 0] < 2).any():
            return index
        samples = resample_group_sums(columns, groups, self.n_samples, rng)
        if self.kind in _SKEWED:
            samples *= _resample_shares(groups.counts, self.n_samples, rng)[..., None]
        replicates = self._compute(samples)
        low, high = compute_sample_interval(value, replicates, log_scale=self.kind in _SKEWED)
        index = replace(
            index,
            replicates=replicates if is_same else None,
            log_scale=self.kind in _SKEWED,
        )
        if high <= low:
            return index
        highest = math.inf if self.kind == "cross_entropy" else 1.0
        return replace(index, ci_low=max(low, 0.0), ci_high=min(high, highest))

    def _compute(self, sums: FloatArray) -> FloatArray:
        """Return the index of each row of group sums ``float64[b, g, 3]``: n, Σ x and Σ √x."""
        n, total, root = np.moveaxis(sums, -1, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = total / n
            if self.kind == "mad":
                value = _average_pairs(mean)
            elif self.kind in {"worst", "worst_quarter"}:
                value = _average_worst(mean, 0.25 * (self.kind != "worst"), self.direction)
            elif self.kind == "cross_entropy":
                value = _compute_cross_entropy(mean)
            else:
                value = _compute_atkinson(n, total, root)[self.kind]
        is_defined = (n > 0).all(axis=1) & np.isfinite(value)
        return np.where(
            is_defined, np.maximum(value, 0.0) if self.kind in _SMOOTH else value, np.nan
        )


def _resample_shares(counts: AnyArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Return the size of each group in samples of all queries, by its own, ``float64[b, g]``."""
    n = int(counts.sum())
    return np.asarray(rng.multinomial(n, counts / n, size=n_samples) / counts)


def _build_columns(values: FloatArray) -> FloatArray:
    """Return 1, the value and its root for each query, ``float64[q, 3]``; 0 if undefined."""
    filled = np.nan_to_num(values)
    is_defined = (~np.isnan(values)).astype(np.float64)
    return np.stack([is_defined, filled, np.sqrt(np.maximum(filled, 0.0))], axis=1)


def _compute_atkinson(n: FloatArray, total: FloatArray, root: FloatArray) -> dict[str, FloatArray]:
    """Return the Atkinson indices of each row of group sums, ``float64[b, g]``."""
    sizes = n.sum(axis=1)
    of_all = (root.sum(axis=1) / sizes) ** 2
    of_groups = np.sum(root**2 / n, axis=1) / sizes
    mean = total.sum(axis=1) / sizes
    return {
        "atkinson": 1.0 - of_all / of_groups,
        "atkinson_within": 1.0 - of_groups / mean,
        "atkinson_total": 1.0 - of_all / mean,
    }


def _compute_cross_entropy(mean: FloatArray) -> FloatArray:
    uniform, share = 1.0 / mean.shape[1], mean / mean.sum(axis=1, keepdims=True)
    return np.asarray((np.sum(uniform**2 / share, axis=1) - 1.0) / 2.0)


def _average_pairs(mean: FloatArray) -> FloatArray:
    """Return the mean absolute difference of the pairs of each row of means."""
    n = mean.shape[1]
    weights = 2.0 * np.arange(1, n + 1) - n - 1
    return np.asarray(np.sort(mean, axis=1) @ weights / (n * (n - 1) / 2.0))


def _average_worst(mean: FloatArray, share: float, direction: Direction) -> FloatArray:
    """Return the mean of the worst means of each row: those up to a quantile of their quality."""
    quality = {"lower": -mean, "zero": -np.abs(mean)}.get(direction, mean)
    is_worst = quality <= np.quantile(quality, share, axis=1, keepdims=True)
    return np.asarray(np.where(is_worst, mean, 0.0).sum(axis=1) / is_worst.sum(axis=1))
