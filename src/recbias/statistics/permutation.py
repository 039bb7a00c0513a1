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
from itertools import chain, combinations, islice
from math import comb, factorial, prod
from typing import Annotated, Protocol, TypeAlias

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


class _Exchange(Protocol):
    """The labellings that are equally likely if the label does not matter."""

    @property
    def n_labellings(self) -> int:
        """The number of labellings; 1 if no labels can be exchanged."""

    def enumerate_labellings(self, rows: int) -> Iterator[AnyArray]:
        """Yield each labelling once, in blocks of ``rows``."""

    def sample_labellings(self, n: int, rows: int, rng: np.random.Generator) -> Iterator[AnyArray]:
        """Yield ``n`` random labellings, in blocks of ``rows``."""


@dataclass(frozen=True, eq=False)
class LabelExchange:
    """The exchange of two labels within strata; units are in the order of their strata.

    Args:
        sizes: Number of units of each stratum, ``int[s]``.
        firsts: Number of units with the first label in each stratum, ``int[s]``.

    >>> LabelExchange(np.array([4, 2]), np.array([2, 1])).n_labellings  # 6 * 2
    12
    """

    sizes: AnyArray
    firsts: AnyArray

    @property
    def n_labellings(self) -> int:
        """The number of labellings; 1 if no labels can be exchanged."""
        pairs = zip(self.sizes.tolist(), self.firsts.tolist(), strict=True)
        return prod(comb(size, first) for size, first in pairs)

    def enumerate_labellings(self, rows: int) -> Iterator[BoolArray]:
        """Yield each labelling once, ``bool[block, u]``, in blocks of ``rows``."""
        pairs = zip(self.sizes.tolist(), self.firsts.tolist(), strict=True)
        tables = [_list_choices(size, first) for size, first in pairs]
        for columns in _iterate_combinations(tables, rows):
            yield np.concatenate(columns, axis=1)

    def sample_labellings(
        self, n: int, rows: int, rng: np.random.Generator
    ) -> Iterator[BoolArray]:
        """Yield ``n`` random labellings, ``bool[block, u]``, in blocks of ``rows``."""
        ends = np.cumsum(self.sizes)
        for start in range(0, n, rows):
            block = np.zeros((min(rows, n - start), int(self.sizes.sum())), dtype=bool)
            for end, size, first in zip(ends, self.sizes, self.firsts, strict=True):
                _mark(block[:, end - size : end], int(first), rng)
            yield block


def permute_labels(
    values: FloatArray,
    observed: FloatArray,
    exchange: LabelExchange,
    statistic: Statistic,
    *,
    n_permutations: int = 10_000,
    rng: np.random.Generator,
) -> FloatArray:
    """Return two-sided permutation p-values.

        p = #{ |t'| ≥ |t| } / #{labellings}                 exact, with few labellings
        p = (#{ |t'| ≥ |t| } + 1) / (n_permutations + 1)    otherwise, sampled: never 0

    All tables share their labellings. An undefined relabelled statistic counts as a hit.

    The ``values[p, u, c]`` are one table or several with the same strata, none NaN; ``observed``
    are the statistics ``float64[p, o, m]`` of one labelling of each table, or of several with the
    same number of first labels in each stratum. p is NaN if its statistic is, or if no labels can
    be exchanged. At most ``n_permutations`` labellings are enumerated.

    >>> values = np.array([[[5.0], [4.0], [3.0], [2.0], [1.0]]])  # {5, 4} against {3, 2, 1}
    >>> gap = np.array([[[4.5 - 2.0]]])
    >>> exchange = LabelExchange(np.array([5]), np.array([2]))  # {1, 2} is as far from 0
    >>> permute_labels(values, gap, exchange, np.subtract, rng=np.random.default_rng(0)).tolist()
    [[[0.2]]]

    Source:
        Fisher, "The Design of Experiments", 1935; Phipson and Smyth, "Permutation p-values should
        never be zero", 2010.
    """
    n_tables, n_units, _ = values.shape
    n_first = int(exchange.firsts.sum())
    return _permute_statistics(
        lambda labels: statistic(*_compute_means(values, labels, n_first)),
        observed,
        exchange,
        width=max(n_units, n_tables * max(observed.shape[2], 1)),
        n_permutations=n_permutations,
        rng=rng,
    )


def _permute_statistics(
    relabel: Callable[[AnyArray], FloatArray],
    observed: FloatArray,
    exchange: _Exchange,
    *,
    width: int,
    n_permutations: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the p-values of ``permute_labels`` for statistics of any kind, ``float64[p, o, m]``.

    ``relabel`` returns the statistics ``float64[r, p, m]`` of a block of labellings; ``width`` is
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
        for position in range(observed.shape[1]):
            threshold = np.abs(observed[:, position]) - slack
            hits[:, position] += np.count_nonzero(~(relabelled < threshold), axis=0)
        completed += len(labels)
        report_progress("relabellings", completed, total)
    p = hits / total if exact else (hits + 1.0) / (total + 1.0)
    return np.where(np.isnan(observed), np.nan, p)


def _iterate_combinations(tables: Sequence[AnyArray], rows: int) -> Iterator[list[AnyArray]]:
    """Yield each combination of one row of every table once, in blocks of ``rows``."""
    n_combinations = prod(len(table) for table in tables)
    for start in range(0, n_combinations, rows):
        remainder = np.arange(start, min(start + rows, n_combinations))
        columns = []
        for table in tables:
            columns.append(table[remainder % len(table)])
            remainder //= len(table)
        yield columns


def _mark(stratum: BoolArray, first: int, rng: np.random.Generator) -> None:
    """Mark ``first`` units of each row at random, ``bool[r, size]``, none of them marked yet."""
    n_rows, size = stratum.shape
    if first == 1:  # much faster, and common: label values of one word each
        stratum[np.arange(n_rows), rng.integers(size, size=n_rows)] = True
        return
    if size >= _LARGE_STRATUM:
        _mark_large(stratum, first, rng)
    else:
        stratum[:, :first] = True
        if first < size:
            rng.permuted(stratum, axis=1, out=stratum)


def _mark_large(stratum: BoolArray, first: int, rng: np.random.Generator) -> None:
    """Mark about ``first`` units of each row, then correct random units until the number is right.

    Both treat all units alike, so every choice is equally likely; shuffling is much slower.
    """
    size = stratum.shape[1]
    below = round(256 * first / size)
    stratum[:] = rng.integers(0, 256, size=stratum.shape, dtype=np.uint8) < below
    missing = first - np.count_nonzero(stratum, axis=1)
    while (rows := np.flatnonzero(missing)).size:
        units = rng.integers(size, size=rows.size)
        is_missing = missing[rows] > 0
        changed = stratum[rows, units] != is_missing
        stratum[rows[changed], units[changed]] = is_missing[changed]
        missing[rows[changed]] -= np.where(is_missing[changed], 1, -1)


def _compute_means(
    values: FloatArray, labels: BoolArray, n_first: int
) -> tuple[FloatArray, FloatArray]:
    """Return the means of both labels in each labelling and table, ``float64[r, p, c]``."""
    n_tables, n_units, n_columns = values.shape
    flat = values.transpose(1, 0, 2).reshape(n_units, -1)
    first = (labels.astype(np.float64) @ flat).reshape(len(labels), n_tables, n_columns)
    return first / n_first, (values.sum(axis=1) - first) / (n_units - n_first)


def _list_choices(size: int, first: int) -> BoolArray:
    """Return every choice of ``first`` of ``size`` units, ``bool[ways, size]``."""
    places = np.array(list(combinations(range(size), first)), dtype=np.intp)
    table = np.zeros((len(places), size), dtype=bool)
    np.put_along_axis(table, places.reshape(len(places), first), values=True, axis=1)
    return table


@dataclass(frozen=True, eq=False)
class SlotExchange:
    """The labellings that are equally likely if the classes of the words do not matter.

    Args:
        classes: For each slot, the class of each word, ``int[n]`` from 0.
        table: The label of each combination of classes, ``int[c1, c2, ...]``.

    >>> genders = (np.array([0, 0, 1, 1]), np.array([0, 1]))
    >>> SlotExchange(genders, np.array([[0, 1], [1, 0]])).n_labellings  # 6 * 2
    12
    """

    classes: tuple[AnyArray, ...]
    table: AnyArray

    @classmethod
    def from_labels(cls, labels: AnyArray) -> SlotExchange:
        """Return the exchange of labels of every combination of words, ``int[n1, n2, ...]``.

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
            factorial(classes.size) // prod(factorial(n) for n in np.bincount(classes).tolist())
            for classes in self.classes
        )

    def enumerate_labellings(self, rows: int) -> Iterator[AnyArray]:
        """Yield each labelling once, ``int[block, n1 n2 ...]``, in blocks of ``rows``."""
        tables = [_list_arrangements(classes) for classes in self.classes]
        for slot_classes in _iterate_combinations(tables, rows):
            yield self._labels(slot_classes)

    def sample_labellings(self, n: int, rows: int, rng: np.random.Generator) -> Iterator[AnyArray]:
        """Yield ``n`` random labellings, in blocks of ``rows``."""
        for start in range(0, n, rows):
            shape = min(rows, n - start)
            yield self._labels(
                [rng.permuted(np.tile(classes, (shape, 1)), axis=1) for classes in self.classes]
            )

    def _labels(self, slot_classes: list[AnyArray]) -> AnyArray:
        """Return the labels of all combinations from the classes of each slot, ``int[r, n]``."""
        n_slots = len(slot_classes)
        indices = [
            classes.reshape(
                len(classes), *(classes.shape[1] if axis == slot else 1 for axis in range(n_slots))
            )
            for slot, classes in enumerate(slot_classes)
        ]
        return self.table[tuple(indices)].reshape(len(slot_classes[0]), -1)


@dataclass(frozen=True, eq=False)
class SlotComparison:
    """The two sides of each comparison of labels, and the statistic of their means.

    Args:
        first: The labels of the first side of each comparison, ``bool[s, g]``; so ``second``.
        statistic: From the means of both sides, ``(..., s, c)``, to ``(..., s, m)``.
    """

    first: AnyArray
    second: AnyArray
    statistic: Statistic

    def compute(self, values: FloatArray, labels: AnyArray) -> FloatArray:
        """Return the statistics ``float64[r, s, m]`` of labellings ``int[r, u]``.

        The ``values`` are ``float64[u, c]``, none NaN.
        """
        n_groups = self.first.shape[1]
        indicators = (labels[:, None, :] == np.arange(n_groups)[:, None]).astype(np.float64)
        sums, sizes = indicators @ values, indicators.sum(axis=2)[..., None]
        means = [
            (side.astype(np.float64) @ sums) / (side.astype(np.float64) @ sizes)
            for side in (self.first, self.second)
        ]
        return self.statistic(*means)


def permute_slots(
    values: FloatArray,
    labels: AnyArray,
    comparison: SlotComparison,
    *,
    n_permutations: int = 10_000,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return statistics and their two-sided permutation p-values, as ``permute_labels`` does.

    The ``values[u, c]`` are those of each combination of words, in the order of their
    ``labels[n1, n2, ...]``, from 0. The arrays are ``float64[s, m]``; p is NaN if the statistic
    is, or if no labels can be exchanged.

    >>> values = np.array([[4.0], [0.0], [0.0], [4.0]])  # two by two words, equal on the diagonal
    >>> sides = SlotComparison(np.array([[True, False]]), np.array([[False, True]]), np.subtract)
    >>> rng = np.random.default_rng(0)
    >>> [array.item() for array in permute_slots(values, np.eye(2, dtype=int), sides, rng=rng)]
    [-4.0, 1.0]

    Source:
        Krackhardt, "Predicting with networks: nonparametric multiple regression analysis of
        dyadic data", Social Networks 1988, of rows and columns exchanged whole.
    """
    exchange = SlotExchange.from_labels(labels)
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = comparison.compute(values, labels.reshape(1, -1))[0]
        p = _permute_statistics(
            lambda labellings: comparison.compute(values, labellings),
            observed[:, None],
            exchange,
            width=comparison.first.shape[1] * max(*values.shape),
            n_permutations=n_permutations,
            rng=rng,
        )
    return observed, p[:, 0]


def _list_arrangements(classes: AnyArray) -> AnyArray:
    """Return every arrangement of the classes over the words, ``int[ways, n]``."""
    size = classes.size
    arrangements = [np.full(size, -1)]
    for code, n in enumerate(np.bincount(classes).tolist()):
        extended = []
        for arrangement in arrangements:
            for positions in combinations(np.flatnonzero(arrangement < 0).tolist(), n):
                row = arrangement.copy()
                row[list(positions)] = code
                extended.append(row)
        arrangements = extended
    return np.array(arrangements)


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
        tables = [_list_arrangements(groups) for groups in self.strata]
        for columns in _iterate_combinations(tables, rows):
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
    means = _average_permuted(ordered, groups[order][None], n_groups)
    observed = _measure_spread(means)
    p = _permute_statistics(
        lambda labels: _measure_spread(_average_permuted(ordered, labels, n_groups))[:, None],
        observed[None],
        exchange,
        width=n_groups * len(values),
        n_permutations=n_permutations,
        rng=rng,
    )
    tested = zip(observed[0].tolist(), p[0, 0].tolist(), strict=True)
    return GroupSpread(means[0], *(TestedSpread(value, share) for value, share in tested))


def _average_permuted(values: FloatArray, labels: AnyArray, n_groups: int) -> FloatArray:
    """Return the mean of each group in each labelling, ``float64[r, g]``."""
    members = (labels[:, None, :] == np.arange(n_groups)[:, None]).astype(np.float64)
    totals = members @ values
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(totals[..., 0] / totals[..., 1])


def _measure_spread(means: FloatArray) -> FloatArray:
    """Return the range and the standard deviation of each row of means, ``float64[r, 2]``."""
    return np.stack([np.ptp(means, axis=1), means.std(axis=1)], axis=-1)


_BLOCK_CELLS = 2**22
"""Members held in memory at once."""

_TIE = 1e-12
"""Sums that differ by less than this share of the absolute values are ties."""


def permute_membership(
    first: FloatArray, second: FloatArray, *, n_permutations: int, rng: np.random.Generator
) -> float:
    """Return the two-sided p-value of the difference between the means of two sets.

        p = #{ |m(E') - m(P')| ≥ |m(E) - m(P)| } / #{relabellings}

    over the ways to divide the values into sets E' and P' of the same sizes. If there are at most
    ``n_permutations`` of them, all are enumerated and p is exact; otherwise ``n_permutations`` are
    sampled and p = (hits + 1) / (n_permutations + 1), never 0. For given sizes, the sum of a set
    is equivalent to its mean. No value may be NaN; p is NaN if a set is empty.

    >>> first, second = np.array([4.0, 5.0]), np.array([1.0, 2.0, 3.0])
    >>> rng = np.random.default_rng(0)
    >>> permute_membership(first, second, n_permutations=10, rng=rng)  # 2 of 10
    0.2

    Source:
        Fisher, "The Design of Experiments", 1935; Phipson and Smyth, "Permutation p-values should
        never be zero", 2010.
    """
    if not first.size or not second.size:
        return float("nan")
    rounding = _TIE * float(np.abs(first).sum() + np.abs(second).sum())
    return permute_sums(
        first[:, None],
        second[:, None],
        lambda sums: np.abs(sums[:, 0]),
        n_permutations=n_permutations,
        rng=rng,
        rounding=rounding,
    )


def permute_sums(
    first: FloatArray,
    second: FloatArray,
    statistic: Callable[[FloatArray], FloatArray],
    *,
    n_permutations: int,
    rng: np.random.Generator,
    rounding: float = _TIE,
) -> float:
    """Return the permutation p-value of a statistic of the sum of a set, over the same divisions.

    The members are centred, so that the sum of one set is the negative of the sum of the other.

    Args:
        first: Members of the first set, ``float64 (n, d)``, at least one.
        second: Members of the second set, ``float64 (m, d)``, at least one.
        statistic: From sums ``float64 (b, d)`` to ``float64[b]``, equal for opposite sums.
        n_permutations: The number of sampled relabellings.
        rng: The random generator.
        rounding: Statistics that differ by less are ties.

    >>> first, second = np.array([[4.0], [5.0]]), np.array([[1.0], [2.0], [3.0]])
    >>> rng = np.random.default_rng(0)
    >>> permute_sums(first, second, lambda sums: sums[:, 0] ** 2, n_permutations=10, rng=rng)
    0.2

    Source:
        Phipson and Smyth, "Permutation p-values should never be zero", 2010.
    """
    pool = np.concatenate([first, second])
    centred = pool - pool.mean(axis=0)
    threshold = float(statistic(centred[: len(first)].sum(axis=0)[None, :])[0]) - rounding
    size = min(len(first), len(second))  # the sums of both sets are opposite
    total = math.comb(len(pool), size)
    if exact := total <= n_permutations:
        sums = _sum_all_subsets(centred, size)
    else:
        sums, total = _sum_sampled_subsets(centred, size, n_permutations, rng), n_permutations
    hits, completed = 0, 0
    for block in sums:
        hits += int(np.count_nonzero(statistic(block) >= threshold))
        completed += len(block)
        report_progress("permutations of membership", completed, total)
    return hits / total if exact else (hits + 1) / (total + 1)


def _sum_all_subsets(rows: FloatArray, size: int) -> Iterator[FloatArray]:
    """Yield the sum of every subset of ``size`` rows once, ``float64 (b, d)``, in blocks."""
    subsets = combinations(range(len(rows)), size)
    while block := list(islice(subsets, max(1, _BLOCK_CELLS // (size * rows.shape[1])))):
        codes = np.fromiter(chain.from_iterable(block), dtype=np.intp, count=len(block) * size)
        yield rows[codes].reshape(len(block), size, -1).sum(axis=1)


def _sum_sampled_subsets(
    rows: FloatArray, size: int, n_permutations: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    block_rows = max(1, _BLOCK_CELLS // len(rows))
    for start in range(0, n_permutations, block_rows):
        members = sample_sets(min(block_rows, n_permutations - start), len(rows), size, rng)
        yield members.astype(np.float64) @ rows


def sample_sets(rows: int, n: int, size: int, rng: np.random.Generator) -> BoolArray:
    """Return random subsets of ``size`` of ``n`` members, equally likely, ``bool (rows, n)``.

    Each member is included with probability a little below ``size / n``, using one random byte per
    member; then random members are added, or removed if there are too many, until the size is
    reached. Every step treats members alike, so that all subsets of a size stay equally likely.
    This is several times faster than shuffling.
    """
    initial_size = max(0.0, size - math.sqrt(size * (n - size) / n))
    octets = rng.integers(0, 256, size=(rows, n), dtype=np.uint8)
    members: BoolArray = octets < int(256 * initial_size / n)
    excess = np.count_nonzero(members, axis=1) - size
    unfinished = np.flatnonzero(excess)
    while unfinished.size:
        position = rng.integers(n, size=unfinished.size)
        too_many = excess[unfinished] > 0
        applicable = members[unfinished, position] == too_many
        row, position, removed = unfinished[applicable], position[applicable], too_many[applicable]
        members[row, position] = ~removed
        excess[row] += np.where(removed, -1, 1)
        unfinished = unfinished[excess[unfinished] != 0]
    return members
