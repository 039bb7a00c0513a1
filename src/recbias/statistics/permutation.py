"""Permutation tests: of labels over units within strata, of words of slots, and of two sets.

Differences between strata (such as their templates) are not attributed to labels. A stratum of two
units, one of each label, is a pair whose sides are swapped: the sign-flip test. Pairs of words
share words and are not independent, so the classes (genders) of the words are permuted for each
slot; the label of a pair follows from the classes of its words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import factorial, prod
from typing import Annotated, TypeAlias

import numpy as np
from annotated_types import Gt, Le

from recbias.core.context import report_progress
from recbias.core.dataset import AnyArray, BoolArray, FloatArray

Statistic: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""From the means over the units of the first and of the second label, ``(..., c)``, to the
statistics, ``(..., m)``; it is distributed around 0 if the label does not matter."""

Permutations: TypeAlias = Annotated[int, Gt(0), Le(10_000_000)]
"""A number of sampled relabellings."""

_BLOCK_VALUES, _BLOCK_ROWS = 2**23, 512
"""Labels or statistics, and labellings, held in memory at once."""

_LARGE_STRATUM = 512
"""From this stratum size on, labels are sampled independently and then corrected."""

_ROUNDING = 1e-10
"""Statistics that differ by less than this share of the largest are ties."""


@dataclass(frozen=True, eq=False)
class Exchange:
    """The labellings that are equally likely if the label does not matter.

    Args:
        strata: The labels of the units of each stratum, from 0, or ``bool`` for two labels;
            labels are exchanged within strata.
        table: Where the strata are the words of slots and their labels classes: the label of each
            combination of classes, ``int[c1, c2, ...]``. By default the units have the labels.

    >>> Exchange((np.array([0, 1, 2]), np.array([0, 0, 1]))).n_labellings  # 6 * 3
    18
    """

    strata: tuple[AnyArray, ...]
    table: AnyArray | None = None

    @classmethod
    def of_two(cls, sizes: AnyArray, firsts: AnyArray) -> Exchange:
        """Return the exchange of two labels: the sizes of strata, and the units with the first.

        >>> Exchange.of_two(np.array([4, 2]), np.array([2, 1])).n_labellings  # 6 * 2
        12
        """
        pairs = zip(sizes.tolist(), firsts.tolist(), strict=True)
        return cls(tuple(np.arange(size) < first for size, first in pairs))

    @classmethod
    def of_slots(cls, labels: AnyArray) -> Exchange:
        """Return the exchange of words, of every combination of which there is a label.

        Words of a slot belong to one class if they have the same label with all other words.
        """
        classes, firsts = [], []
        for slot, n_words in enumerate(labels.shape):
            profiles = np.moveaxis(labels, slot, 0).reshape(n_words, -1)
            _, first, code = np.unique(profiles, axis=0, return_index=True, return_inverse=True)
            classes.append(code.ravel())
            firsts.append(first)
        return cls(tuple(classes), labels[np.ix_(*firsts)])

    @property
    def n_labellings(self) -> int:
        """The number of labellings; 1 if no labels can be exchanged."""
        return prod(
            factorial(labels.size) // prod(map(factorial, np.bincount(labels).tolist()))
            for labels in self.strata
        )

    def enumerate_labellings(self, rows: int) -> Iterator[AnyArray]:
        """Yield each labelling once, ``[block, u]``, in blocks of ``rows``."""
        tables = [_list_arrangements(labels) for labels in self.strata]
        n_labellings = self.n_labellings
        for start in range(0, n_labellings, rows):
            remainder = np.arange(start, min(start + rows, n_labellings))
            columns = []
            for table in tables:
                columns.append(table[remainder % len(table)])
                remainder //= len(table)
            yield self._combine(columns)

    def sample_labellings(self, n: int, rows: int, rng: np.random.Generator) -> Iterator[AnyArray]:
        """Yield ``n`` random labellings, ``[block, u]``, in blocks of ``rows``."""
        for start in range(0, n, rows):
            size = min(rows, n - start)
            yield self._combine([_shuffle(labels, size, rng) for labels in self.strata])

    def _combine(self, columns: list[AnyArray]) -> AnyArray:
        """Return the labels of all units from those of each stratum, ``[r, n]`` each."""
        if self.table is None:
            return np.concatenate(columns, axis=1)
        axes = range(len(columns))
        indices = [
            classes.reshape(len(classes), *(-1 if axis == slot else 1 for axis in axes))
            for slot, classes in enumerate(columns)
        ]
        return self.table[tuple(indices)].reshape(len(columns[0]), -1)


def _list_arrangements(labels: AnyArray) -> AnyArray:
    """Return every arrangement of the labels of a stratum over its units, ``[ways, n]``."""
    codes, counts = np.unique(labels, return_counts=True)
    arrangements = np.full((1, labels.size), codes[0])
    free = np.arange(labels.size)[None]  # the units that still have the first label
    for code, count in zip(codes[1:], counts[1:].tolist(), strict=True):
        places = np.array(list(combinations(range(free.shape[1]), count)), dtype=np.intp)
        is_free = np.ones((len(places), free.shape[1]), dtype=bool)
        np.put_along_axis(is_free, places, values=False, axis=1)
        others = np.nonzero(is_free)[1].reshape(len(places), -1)
        arrangements = np.repeat(arrangements, len(places), axis=0)
        np.put_along_axis(arrangements, free[:, places].reshape(-1, count), code, axis=1)
        free = free[:, others].reshape(len(arrangements), -1)
    return arrangements


def _shuffle(labels: AnyArray, rows: int, rng: np.random.Generator) -> AnyArray:
    """Return random arrangements of the labels of a stratum, ``[rows, n]``."""
    first = int(np.count_nonzero(labels)) if labels.dtype == bool else 0
    if first == 1:  # faster, and common
        shuffled = np.zeros((rows, labels.size), dtype=bool)
        shuffled[np.arange(rows), rng.integers(labels.size, size=rows)] = True
        return shuffled
    if first and labels.size >= _LARGE_STRATUM:
        return _sample_sets(rows, labels.size, first, rng)
    return rng.permuted(np.tile(labels, (rows, 1)), axis=1)


def _sample_sets(rows: int, n: int, size: int, rng: np.random.Generator) -> BoolArray:
    """Return random subsets of ``size`` of ``n`` members, equally likely, ``bool (rows, n)``.

    Each member is included with probability a little below ``size / n``, by one random byte; then
    random members are added or removed until the size is right. Every step treats members alike.
    This is several times faster than shuffling.
    """
    initial_size = max(0.0, size - math.sqrt(size * (n - size) / n))
    octets = rng.integers(0, 256, size=(rows, n), dtype=np.uint8)
    members: BoolArray = octets < int(256 * initial_size / n)
    excess = np.count_nonzero(members, axis=1) - size
    while (unfinished := np.flatnonzero(excess)).size:
        position = rng.integers(n, size=unfinished.size)
        too_many = excess[unfinished] > 0
        applicable = members[unfinished, position] == too_many
        row, position, removed = unfinished[applicable], position[applicable], too_many[applicable]
        members[row, position] = ~removed
        excess[row] += np.where(removed, -1, 1)
    return members


def _count_extreme(
    relabel: Callable[[AnyArray], FloatArray],
    observed: FloatArray,
    exchange: Exchange,
    *,
    width: int,
    n_permutations: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the p-values of ``permute_labels`` for observed statistics of any kind.

    ``relabel`` returns the statistics ``float64[r, ...]`` of a block of labellings; ``width`` is
    the number of values that each of them needs.
    """
    n_labellings = exchange.n_labellings
    if n_labellings == 1:
        return np.full(observed.shape, np.nan)
    exact = n_labellings <= n_permutations
    rows = min(max(_BLOCK_VALUES // width, 1), _BLOCK_ROWS)
    if exact:
        blocks, total = exchange.enumerate_labellings(rows), n_labellings
    else:
        blocks, total = exchange.sample_labellings(n_permutations, rows, rng), n_permutations
    hits, completed = np.zeros(observed.shape), 0
    for labels in blocks:
        relabelled = np.abs(relabel(labels))
        slack = _ROUNDING * np.nanmax(relabelled, axis=0, initial=0.0)
        hits += np.count_nonzero(~(relabelled < np.abs(observed) - slack), axis=0)
        completed += len(labels)
        report_progress("relabellings", completed, total)
    p = hits / total if exact else (hits + 1.0) / (total + 1.0)
    return np.where(np.isnan(observed), np.nan, p)


def permute_labels(
    values: FloatArray,
    observed: FloatArray,
    exchange: Exchange,
    statistic: Statistic,
    *,
    n_permutations: int = 10_000,
    rng: np.random.Generator,
) -> FloatArray:
    """Return two-sided permutation p-values of two labels, ``float64[p, m]``.

        p = #{ |t'| ≥ |t| } / #{labellings}                 exact, with few labellings
        p = (#{ |t'| ≥ |t| } + 1) / (n_permutations + 1)    otherwise, sampled: never 0

    All tables share their labellings. An undefined relabelled statistic counts as a hit.

    The ``values[p, u, c]`` are one table or several with the same strata, none NaN; ``observed``
    are the statistics ``float64[p, m]`` of each table. p is NaN if its statistic is, or if no
    labels can be exchanged. At most ``n_permutations`` labellings are enumerated.

    >>> values = np.array([[[5.0], [4.0], [3.0], [2.0], [1.0]]])  # {5, 4} against {3, 2, 1}
    >>> gap = np.array([[4.5 - 2.0]])
    >>> exchange = Exchange.of_two(np.array([5]), np.array([2]))  # {1, 2} is as far from 0
    >>> permute_labels(values, gap, exchange, np.subtract, rng=np.random.default_rng(0)).tolist()
    [[0.2]]

    Source:
        Fisher, "The Design of Experiments", 1935; Phipson and Smyth, "Permutation p-values should
        never be zero", 2010.
    """
    n_tables, n_units, n_columns = values.shape
    n_first = sum(map(np.count_nonzero, exchange.strata))
    flat = values.transpose(1, 0, 2).reshape(n_units, n_tables * n_columns)
    total = values.sum(axis=1)

    def relabel(labels: AnyArray) -> FloatArray:
        first = (labels.astype(np.float64) @ flat).reshape(len(labels), n_tables, n_columns)
        return statistic(first / n_first, (total - first) / (n_units - n_first))

    return _count_extreme(
        relabel,
        observed,
        exchange,
        width=max(n_units, n_tables * max(observed.shape[1], 1)),
        n_permutations=n_permutations,
        rng=rng,
    )


def permute_sets(
    first: FloatArray,
    second: FloatArray,
    statistic: Statistic,
    *,
    n_permutations: int,
    rng: np.random.Generator,
) -> float:
    """Return the two-sided p-value of a statistic of the means of two sets, ``float64 (n, d)``.

    The sets are divided at random into sets of the same sizes, as in ``permute_labels``. The
    statistic does not depend on what is added to all members. p is NaN if a set is empty, and 1
    if all members are equal.

    >>> first, second = np.array([[4.0], [5.0]]), np.array([[1.0], [2.0], [3.0]])
    >>> rng = np.random.default_rng(0)
    >>> permute_sets(first, second, np.subtract, n_permutations=10, rng=rng)  # 2 of 10
    0.2
    """
    if not first.size or not second.size:
        return math.nan
    pool = np.concatenate([first, second])
    centred = pool - pool.mean(axis=0)
    if np.abs(centred).max() <= _ROUNDING * np.abs(pool).max() / 10:
        return 1.0
    p = permute_labels(
        centred[None],
        statistic(centred[: len(first)].mean(axis=0), centred[len(first) :].mean(axis=0))[None],
        Exchange.of_two(np.array([len(pool)]), np.array([len(first)])),
        statistic,
        n_permutations=n_permutations,
        rng=rng,
    )
    return float(p.item())


def _sum_groups(values: FloatArray, labels: AnyArray, n_groups: int) -> tuple[FloatArray, ...]:
    """Return the sums ``[r, g, c]`` and sizes ``[r, g, 1]`` of groups in labellings ``[r, u]``."""
    members = (labels[:, None, :] == np.arange(n_groups)[:, None]).astype(np.float64)
    return members @ values, members.sum(axis=2)[..., None]


def permute_slots(
    values: FloatArray,
    labels: AnyArray,
    sides: Sequence[AnyArray],
    statistic: Statistic,
    *,
    n_permutations: int = 10_000,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return statistics and their two-sided permutation p-values, as ``permute_labels`` does.

    The ``values[u, c]``, none NaN, are those of each combination of words, in the order of their
    ``labels[n1, n2, ...]``, from 0. The ``sides`` are the labels of the first and of the second
    side of each comparison, ``bool[s, g]``. The arrays are ``float64[s, m]``; p is NaN if the
    statistic is, or if no labels can be exchanged.

    >>> values = np.array([[4.0], [0.0], [0.0], [4.0]])  # two by two words, equal on the diagonal
    >>> sides = np.array([[True, False]]), np.array([[False, True]])
    >>> labels, rng = np.eye(2, dtype=int), np.random.default_rng(0)
    >>> [array.item() for array in permute_slots(values, labels, sides, np.subtract, rng=rng)]
    [-4.0, 1.0]

    Source:
        Krackhardt, "Predicting with networks: nonparametric multiple regression analysis of
        dyadic data", Social Networks 1988, of rows and columns exchanged whole.
    """
    weights = [side.astype(np.float64) for side in sides]
    n_groups = weights[0].shape[1]

    def relabel(labellings: AnyArray) -> FloatArray:
        sums, sizes = _sum_groups(values, labellings, n_groups)
        return statistic(*((side @ sums) / (side @ sizes) for side in weights))

    with np.errstate(invalid="ignore", divide="ignore"):
        observed = relabel(labels.reshape(1, -1))[0]
        p = _count_extreme(
            relabel,
            observed,
            Exchange.of_slots(labels),
            width=n_groups * max(*values.shape),
            n_permutations=n_permutations,
            rng=rng,
        )
    return observed, p


def permute_groups(
    values: FloatArray,
    groups: AnyArray,
    strata: AnyArray,
    *,
    n_groups: int,
    n_permutations: int = 10_000,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the means of groups, how far they are apart, and whether chance explains that.

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

    Returns:
        The means, ``float64[g]``; the range and the standard deviation; and their p-values.

    >>> units = np.array([[0.0, 1.0], [1.0, 1.0], [5.0, 1.0]])  # groups 0, 0 and 1
    >>> groups, rng = np.array([0, 0, 1]), np.random.default_rng(0)
    >>> _, spread, p = permute_groups(units, groups, np.zeros(3), n_groups=2, rng=rng)
    >>> spread[0].item(), round(p[0].item(), 3)  # the other two labellings: 3 and 1.5
    (4.5, 0.333)
    """
    order = np.argsort(strata, kind="stable")
    ends = np.flatnonzero(np.diff(strata[order])) + 1
    values, groups = values[order], groups[order]

    def average(labels: AnyArray) -> FloatArray:
        sums, _ = _sum_groups(values, labels, n_groups)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums[..., 0] / sums[..., 1])

    def measure(means: FloatArray) -> FloatArray:
        return np.stack([np.ptp(means, axis=1), means.std(axis=1)], axis=-1)

    means = average(groups[None])
    spread = measure(means)[0]
    p = _count_extreme(
        lambda labels: measure(average(labels)),
        spread,
        Exchange(tuple(np.split(groups, ends))),
        width=n_groups * len(values),
        n_permutations=n_permutations,
        rng=rng,
    )
    return means[0], spread, p
