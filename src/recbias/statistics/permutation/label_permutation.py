"""Permutation of labels over units: which figures would chance alone give?

A unit (a name, say) carries one of two labels. If the label does not matter, every way to deal the
labels out again is as likely as the observed one. Units are dealt among within their stratum only,
so that what differs between strata (which sentences they stand in, say) is never taken for a
difference between labels. A stratum of two units, one of each label, is a pair whose sides are
swapped or not: the sign-flip test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod
from typing import Annotated, TypeAlias

import numpy as np
from annotated_types import Gt, Le

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.stage_context import report_progress

Statistic: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""From the means over the units of the first and of the second label, ``(..., c)``, to the
statistics, ``(..., m)``; it lies around 0 where the label does not matter."""

Draws: TypeAlias = Annotated[int, Gt(0), Le(10_000_000)]
"""How many relabellings are drawn; of more the p-value would have digits that nobody reads."""

BLOCK_VALUES, BLOCK_ROWS = 2**23, 512
"""How many labels or statistics, and how many labellings, are held at once."""

MANY = 512
"""In a stratum of at least so many units labels are dealt by chance and then evened out."""

ROUNDING = 1e-10
"""Statistics closer than this share of the largest one are ties."""


@dataclass(frozen=True, eq=False)
class Exchange:
    """The labellings that are as likely as the observed one, if the label does not matter.

    Units stand in the order of their strata.

    Args:
        sizes: Units of each stratum, ``int[s]``.
        firsts: How many of them carry the first label, ``int[s]``.

    >>> Exchange(np.array([4, 2]), np.array([2, 1])).ways  # 6 * 2
    12
    """

    sizes: AnyArray
    firsts: AnyArray

    @property
    def ways(self) -> int:
        """How many labellings there are; 1 where nothing can be exchanged."""
        pairs = zip(self.sizes.tolist(), self.firsts.tolist(), strict=True)
        return prod(comb(size, first) for size, first in pairs)

    def every(self, rows: int) -> Iterator[BoolArray]:
        """Yield each labelling once, ``bool[block, u]``, ``rows`` at a time."""
        pairs = zip(self.sizes.tolist(), self.firsts.tolist(), strict=True)
        tables = [_choices(size, first) for size, first in pairs]
        for start in range(0, self.ways, rows):
            rest = np.arange(start, min(start + rows, self.ways))
            columns = []
            for table in tables:
                columns.append(table[rest % len(table)])
                rest //= len(table)
            yield np.concatenate(columns, axis=1)

    def drawn(self, n: int, rows: int, rng: np.random.Generator) -> Iterator[BoolArray]:
        """Yield ``n`` labellings drawn at random, ``bool[block, u]``, ``rows`` at a time."""
        ends = np.cumsum(self.sizes)
        for start in range(0, n, rows):
            block = np.zeros((min(rows, n - start), int(self.sizes.sum())), dtype=bool)
            for end, size, first in zip(ends, self.sizes, self.firsts, strict=True):
                _deal(block[:, end - size : end], int(first), rng)
            yield block


def relabelled_p(
    values: FloatArray,
    observed: FloatArray,
    exchange: Exchange,
    statistic: Statistic,
    *,
    draws: int = 10_000,
    rng: np.random.Generator,
) -> FloatArray:
    """Return two-sided p-values: how often is a relabelled statistic as far from 0?

        p = #{ |t'| ≥ |t| } / #{labellings}            with at most ``draws`` labellings: exact
        p = (#{ |t'| ≥ |t| } + 1) / (draws + 1)        otherwise, over drawn ones: never 0

    All tables share their labellings. A relabelled statistic that is not defined counts as one
    that is as far from 0.

    Args:
        values: One table or several of the same strata, ``float64[p, u, c]``, none NaN.
        observed: The statistics of one labelling of each table, or of several that have the same
            number of firsts in each stratum, ``float64[p, o, m]``.
        exchange: Which labellings are exchanged.
        statistic: What is tested.
        draws: How many labellings are drawn; also the most that are counted out.
        rng: Where chance comes from.

    Returns:
        ``float64[p, o, m]``; NaN where the observed statistic is, or nothing can be exchanged.

    >>> values = np.array([[[5.0], [4.0], [3.0], [2.0], [1.0]]])  # {5, 4} against {3, 2, 1}
    >>> gap = np.array([[[4.5 - 2.0]]])
    >>> exchange = Exchange(np.array([5]), np.array([2]))  # {1, 2} is as far from 0
    >>> relabelled_p(values, gap, exchange, np.subtract, rng=np.random.default_rng(0)).tolist()
    [[[0.2]]]

    Source:
        Fisher, "The Design of Experiments", 1935; Phipson and Smyth, "Permutation p-values should
        never be zero", 2010.
    """
    ways = exchange.ways
    if ways == 1:
        return np.full(observed.shape, np.nan)
    exact = ways <= draws
    n_tables, n_units, _ = values.shape
    width = max(n_units, n_tables * max(observed.shape[2], 1))
    rows = min(max(BLOCK_VALUES // width, 1), BLOCK_ROWS)
    blocks = exchange.every(rows) if exact else exchange.drawn(draws, rows, rng)
    hits, done, total = np.zeros(observed.shape), 0, ways if exact else draws
    for labels in blocks:
        found = np.abs(statistic(*_means(values, labels, int(exchange.firsts.sum()))))
        slack = ROUNDING * np.nanmax(found, axis=0, initial=0.0)
        for place in range(observed.shape[1]):
            least = np.abs(observed[:, place]) - slack
            hits[:, place] += np.count_nonzero(~(found < least), axis=0)
        done += len(labels)
        report_progress("relabellings", done, total)
    p = hits / ways if exact else (hits + 1.0) / (draws + 1.0)
    return np.where(np.isnan(observed), np.nan, p)


def _deal(stratum: BoolArray, first: int, rng: np.random.Generator) -> None:
    """Mark ``first`` units of each row at random, ``bool[r, size]``, none of them marked yet."""
    n_rows, size = stratum.shape
    if first == 1:  # by far the quickest, and what many label values of one word each need
        stratum[np.arange(n_rows), rng.integers(size, size=n_rows)] = True
        return
    if size >= MANY:
        _deal_many(stratum, first, rng)
        return
    stratum[:, :first] = True
    if first < size:
        rng.permuted(stratum, axis=1, out=stratum)


def _deal_many(stratum: BoolArray, first: int, rng: np.random.Generator) -> None:
    """Mark about ``first`` units of each row by chance, then mend units at random until it is so.

    A unit is as likely as any other to be marked, and so is one to be mended, which makes every
    choice of ``first`` units equally likely; it is several times quicker than a shuffle.
    """
    size = stratum.shape[1]
    below = round(256 * first / size)
    stratum[:] = rng.integers(0, 256, size=stratum.shape, dtype=np.uint8) < below
    missing = first - np.count_nonzero(stratum, axis=1)
    while (rows := np.flatnonzero(missing)).size:
        units = rng.integers(size, size=rows.size)
        wanted = missing[rows] > 0
        mended = stratum[rows, units] != wanted
        stratum[rows[mended], units[mended]] = wanted[mended]
        missing[rows[mended]] -= np.where(wanted[mended], 1, -1)


def _means(values: FloatArray, labels: BoolArray, n_first: int) -> tuple[FloatArray, FloatArray]:
    """Return the means of both labels in each labelling and table, ``float64[r, p, c]``."""
    n_tables, n_units, n_columns = values.shape
    flat = values.transpose(1, 0, 2).reshape(n_units, -1)
    first = (labels.astype(np.float64) @ flat).reshape(len(labels), n_tables, n_columns)
    return first / n_first, (values.sum(axis=1) - first) / (n_units - n_first)


def _choices(size: int, first: int) -> BoolArray:
    """Return every way to choose ``first`` of ``size`` units, ``bool[ways, size]``."""
    places = np.array(list(combinations(range(size), first)), dtype=np.intp)
    table = np.zeros((len(places), size), dtype=bool)
    np.put_along_axis(table, places.reshape(len(places), first), values=True, axis=1)
    return table
