"""Permutation of two labels over units such as names, within strata.

Differences between strata (such as their templates) are therefore not attributed to labels. A
stratum of two units, one of each label, is a pair whose sides are swapped: the sign-flip test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod
from typing import Annotated, Protocol, TypeAlias

import numpy as np
from annotated_types import Gt, Le

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.stage_context import report_progress

Statistic: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""From the means over the units of the first and of the second label, ``(..., c)``, to the
statistics, ``(..., m)``; it is distributed around 0 if the label does not matter."""

Permutations: TypeAlias = Annotated[int, Gt(0), Le(10_000_000)]
"""A number of sampled relabellings."""

BLOCK_VALUES, BLOCK_ROWS = 2**23, 512
"""Labels or statistics, and labellings, held in memory at once."""

LARGE_STRATUM = 512
"""From this stratum size on, labels are sampled independently and then corrected."""

ROUNDING = 1e-10
"""Statistics that differ by less than this share of the largest are ties."""


class Exchange(Protocol):
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
        for columns in iterate_combinations(tables, rows):
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
    return permute_statistics(
        lambda labels: statistic(*_compute_means(values, labels, n_first)),
        observed,
        exchange,
        width=max(n_units, n_tables * max(observed.shape[2], 1)),
        n_permutations=n_permutations,
        rng=rng,
    )


def permute_statistics(
    relabel: Callable[[AnyArray], FloatArray],
    observed: FloatArray,
    exchange: Exchange,
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
    rows = min(max(BLOCK_VALUES // width, 1), BLOCK_ROWS)
    if exact:
        blocks, total = exchange.enumerate_labellings(rows), n_labellings
    else:
        blocks, total = exchange.sample_labellings(n_permutations, rows, rng), n_permutations
    hits, completed = np.zeros(observed.shape), 0
    for labels in blocks:
        relabelled = np.abs(relabel(labels))
        slack = ROUNDING * np.nanmax(relabelled, axis=0, initial=0.0)
        for position in range(observed.shape[1]):
            threshold = np.abs(observed[:, position]) - slack
            hits[:, position] += np.count_nonzero(~(relabelled < threshold), axis=0)
        completed += len(labels)
        report_progress("relabellings", completed, total)
    p = hits / total if exact else (hits + 1.0) / (total + 1.0)
    return np.where(np.isnan(observed), np.nan, p)


def iterate_combinations(tables: Sequence[AnyArray], rows: int) -> Iterator[list[AnyArray]]:
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
    if size >= LARGE_STRATUM:
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
