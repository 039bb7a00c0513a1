"""Permutation of labels over units.

A unit (a name, say) has one of two labels. If the label does not matter, every permutation of the
labels is equally likely. Labels are permuted within strata only, so that differences between
strata (such as their templates) are not attributed to labels. A stratum of two units, one of each
label, is a pair whose sides are swapped: the sign-flip test.
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
statistics, ``(..., m)``; it is distributed around 0 if the label does not matter."""

Permutations: TypeAlias = Annotated[int, Gt(0), Le(10_000_000)]
"""A number of sampled relabellings."""

BLOCK_VALUES, BLOCK_ROWS = 2**23, 512
"""Labels or statistics, and labellings, held in memory at once."""

LARGE_STRATUM = 512
"""From this stratum size on, labels are sampled independently and then corrected."""

ROUNDING = 1e-10
"""Statistics that differ by less than this share of the largest are ties."""


@dataclass(frozen=True, eq=False)
class LabelExchange:
    """The labellings that are equally likely if the label does not matter.

    Units are in the order of their strata.

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
        for start in range(0, self.n_labellings, rows):
            remainder = np.arange(start, min(start + rows, self.n_labellings))
            columns = []
            for table in tables:
                columns.append(table[remainder % len(table)])
                remainder //= len(table)
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

    Args:
        values: One table or several with the same strata, ``float64[p, u, c]``, none NaN.
        observed: The statistics of one labelling of each table, or of several with the same number
            of first labels in each stratum, ``float64[p, o, m]``.
        exchange: The labellings.
        statistic: What is tested.
        n_permutations: The number of sampled labellings, and the largest number enumerated.
        rng: The random generator.

    Returns:
        ``float64[p, o, m]``; NaN if the observed statistic is, or if no labels can be exchanged.

    >>> values = np.array([[[5.0], [4.0], [3.0], [2.0], [1.0]]])  # {5, 4} against {3, 2, 1}
    >>> gap = np.array([[[4.5 - 2.0]]])
    >>> exchange = LabelExchange(np.array([5]), np.array([2]))  # {1, 2} is as far from 0
    >>> permute_labels(values, gap, exchange, np.subtract, rng=np.random.default_rng(0)).tolist()
    [[[0.2]]]

    Source:
        Fisher, "The Design of Experiments", 1935; Phipson and Smyth, "Permutation p-values should
        never be zero", 2010.
    """
    n_labellings = exchange.n_labellings
    if n_labellings == 1:
        return np.full(observed.shape, np.nan)
    exact = n_labellings <= n_permutations
    n_tables, n_units, _ = values.shape
    width = max(n_units, n_tables * max(observed.shape[2], 1))
    rows = min(max(BLOCK_VALUES // width, 1), BLOCK_ROWS)
    blocks = (
        exchange.enumerate_labellings(rows)
        if exact
        else exchange.sample_labellings(n_permutations, rows, rng)
    )
    hits, completed, total = np.zeros(observed.shape), 0, n_labellings if exact else n_permutations
    for labels in blocks:
        relabelled = np.abs(statistic(*_compute_means(values, labels, int(exchange.firsts.sum()))))
        slack = ROUNDING * np.nanmax(relabelled, axis=0, initial=0.0)
        for position in range(observed.shape[1]):
            threshold = np.abs(observed[:, position]) - slack
            hits[:, position] += np.count_nonzero(~(relabelled < threshold), axis=0)
        completed += len(labels)
        report_progress("relabellings", completed, total)
    p = hits / n_labellings if exact else (hits + 1.0) / (n_permutations + 1.0)
    return np.where(np.isnan(observed), np.nan, p)


def _mark(stratum: BoolArray, first: int, rng: np.random.Generator) -> None:
    """Mark ``first`` units of each row at random, ``bool[r, size]``, none of them marked yet."""
    n_rows, size = stratum.shape
    if first == 1:  # much faster, and common: label values of one word each
        stratum[np.arange(n_rows), rng.integers(size, size=n_rows)] = True
        return
    if size >= LARGE_STRATUM:
        _mark_large(stratum, first, rng)
        return
    stratum[:, :first] = True
    if first < size:
        rng.permuted(stratum, axis=1, out=stratum)


def _mark_large(stratum: BoolArray, first: int, rng: np.random.Generator) -> None:
    """Mark about ``first`` units of each row, then correct random units until the number is right.

    Marking and correcting treat all units alike, so that every choice of ``first`` units is
    equally likely. This is several times faster than shuffling.
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
