"""Permutation of several labels over units, within strata: do the groups differ at all?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import factorial, prod

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.statistics.permutation.label_permutation import (
    iterate_combinations,
    permute_statistics,
)
from recbias.statistics.permutation.slot_permutation import list_arrangements


@dataclass(frozen=True, eq=False)
class GroupExchange:
    """The exchange of the labels of several groups within strata.

    Args:
        strata: The groups of the units of each stratum, ``int[n]`` from 0.

    >>> GroupExchange((np.array([0, 1, 2]), np.array([0, 0, 1]))).n_labellings  # 6 * 3
    18
    """

    strata: tuple[AnyArray, ...]

    @property
    def n_labellings(self) -> int:
        """The number of labellings; 1 if no labels can be exchanged."""
        return prod(
            factorial(groups.size) // prod(factorial(n) for n in np.bincount(groups).tolist())
            for groups in self.strata
        )

    def enumerate_labellings(self, rows: int) -> Iterator[AnyArray]:
        """Yield each labelling once, ``int[block, u]``, in blocks of ``rows``."""
        tables = [list_arrangements(groups) for groups in self.strata]
        for columns in iterate_combinations(tables, rows):
            yield np.concatenate(columns, axis=1)

    def sample_labellings(self, n: int, rows: int, rng: np.random.Generator) -> Iterator[AnyArray]:
        """Yield ``n`` random labellings, in blocks of ``rows``."""
        for start in range(0, n, rows):
            size = min(rows, n - start)
            tiled = [np.tile(groups, (size, 1)) for groups in self.strata]
            yield np.concatenate([rng.permuted(groups, axis=1) for groups in tiled], axis=1)


@dataclass(frozen=True)
class TestedSpread:
    """How far the means of several groups are apart.

    Args:
        value: The measure of spread.
        p: Its p-value.
    """

    value: float
    p: float


@dataclass(frozen=True, eq=False)
class GroupSpread:
    """The means of several groups, and whether chance explains how far they are apart.

    Args:
        means: The mean of each group, ``float64[g]``.
        range: Their range.
        std: Their standard deviation.
    """

    means: FloatArray
    range: TestedSpread
    std: TestedSpread


def permute_groups(
    values: FloatArray,
    groups: AnyArray,
    strata: AnyArray,
    *,
    n_groups: int,
    n_permutations: int = 10_000,
    rng: np.random.Generator,
) -> GroupSpread:
    """Return the spread of group means, with the p-values of a permutation of the labels.

        range = max_g m_g - min_g m_g,    std = √((1 / G) Σ_g (m_g - mean of m)²)
        m_g = Σ_{u in g} values[u, 0] / Σ_{u in g} values[u, 1]

    p is the share of labellings whose spread is at least as large: all of them if there are
    few, otherwise sampled ones, as in ``permute_labels``. It is NaN if no labels can be exchanged.

    Args:
        values: The sum and the number of observations of each unit, ``float64[u, 2]``.
        groups: The group of each unit, from 0, ``int[u]``.
        strata: Labels are exchanged between units of one stratum only, ``int[u]``.
        n_groups: The number of groups; one without units makes the spread undefined.
        n_permutations: The number of sampled labellings; fewer possible ones are enumerated.
        rng: The generator of the labellings.

    >>> units = np.array([[0.0, 1.0], [1.0, 1.0], [5.0, 1.0]])  # groups 0, 0 and 1
    >>> groups, rng = np.array([0, 0, 1]), np.random.default_rng(0)
    >>> spread = permute_groups(units, groups, np.zeros(3), n_groups=2, rng=rng)
    >>> spread.range.value, round(spread.range.p, 3)  # the other two labellings: 3 and 1.5
    (4.5, 0.333)
    """
    order = np.argsort(strata, kind="stable")
    ends = np.flatnonzero(np.diff(strata[order])) + 1
    exchange = GroupExchange(tuple(np.split(groups[order], ends)))
    ordered = values[order]
    means = _compute_means(ordered, groups[order][None], n_groups)
    observed = _measure_spread(means)
    p = permute_statistics(
        lambda labels: _measure_spread(_compute_means(ordered, labels, n_groups))[:, None],
        observed[None],
        exchange,
        width=n_groups * len(values),
        n_permutations=n_permutations,
        rng=rng,
    )
    tested = zip(observed[0].tolist(), p[0, 0].tolist(), strict=True)
    return GroupSpread(means[0], *(TestedSpread(value, share) for value, share in tested))


def _compute_means(values: FloatArray, labels: AnyArray, n_groups: int) -> FloatArray:
    """Return the mean of each group in each labelling, ``float64[r, g]``."""
    members = (labels[:, None, :] == np.arange(n_groups)[:, None]).astype(np.float64)
    totals = members @ values
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(totals[..., 0] / totals[..., 1])


def _measure_spread(means: FloatArray) -> FloatArray:
    """Return the range and the standard deviation of each row of means, ``float64[r, 2]``."""
    return np.stack([np.ptp(means, axis=1), means.std(axis=1)], axis=-1)
