"""Permutation of labels that the words of several slots carry together: of two persons, say.

Pairs of words share words, so that pairs are not independent of each other. The words of one slot
are: if the label does not matter, every way to deal the classes of a slot's words (their genders)
out again among these words is as likely as the observed one, and so for each slot by itself. The
label of a pair then follows from the classes of its words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import factorial, prod

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.stage_context import report_progress
from recbias.statistics.permutation.label_permutation import (
    BLOCK_ROWS,
    BLOCK_VALUES,
    ROUNDING,
    Statistic,
)


@dataclass(frozen=True, eq=False)
class SlotExchange:
    """The labellings that are as likely as the observed one, if the words' classes do not matter.

    Args:
        classes: The class of each word of each slot, ``int[n]`` from 0, a slot each.
        table: The label of each combination of classes, ``int[c1, c2, ...]``.

    >>> genders = (np.array([0, 0, 1, 1]), np.array([0, 1]))
    >>> SlotExchange(genders, np.array([[0, 1], [1, 0]])).ways  # 6 * 2
    12
    """

    classes: tuple[AnyArray, ...]
    table: AnyArray

    @classmethod
    def of(cls, labels: AnyArray) -> SlotExchange:
        """Return the exchange of labels of every combination of words, ``int[n1, n2, ...]``.

        Words of a slot are of one class where they have the same label with all other words.
        """
        classes, firsts = [], []
        for slot, n_words in enumerate(labels.shape):
            profiles = np.moveaxis(labels, slot, 0).reshape(n_words, -1)
            _, first, code = np.unique(profiles, axis=0, return_index=True, return_inverse=True)
            classes.append(code.ravel())
            firsts.append(first)
        return cls(tuple(classes), labels[np.ix_(*firsts)])

    @property
    def ways(self) -> int:
        """How many ways there are to deal the classes out; 1 where nothing can be exchanged."""
        return prod(
            factorial(each.size) // prod(factorial(n) for n in np.bincount(each).tolist())
            for each in self.classes
        )

    def every(self, rows: int) -> Iterator[AnyArray]:
        """Yield each way once, the labels ``int[block, n1 n2 ...]``, ``rows`` at a time."""
        dealt = [_arrangements(each) for each in self.classes]
        for start in range(0, self.ways, rows):
            rest = np.arange(start, min(start + rows, self.ways))
            chosen = []
            for table in dealt:
                chosen.append(table[rest % len(table)])
                rest //= len(table)
            yield self._labels(chosen)

    def drawn(self, n: int, rows: int, rng: np.random.Generator) -> Iterator[AnyArray]:
        """Yield ``n`` ways drawn at random, ``rows`` at a time."""
        for start in range(0, n, rows):
            shape = min(rows, n - start)
            yield self._labels(
                [rng.permuted(np.tile(each, (shape, 1)), axis=1) for each in self.classes]
            )

    def _labels(self, chosen: list[AnyArray]) -> AnyArray:
        """Return the labels of all combinations from the classes dealt, ``int[r, n]`` a slot."""
        n_slots = len(chosen)
        places = [
            each.reshape(len(each), *(each.shape[1] if at == slot else 1 for at in range(n_slots)))
            for slot, each in enumerate(chosen)
        ]
        return self.table[tuple(places)].reshape(len(chosen[0]), -1)


@dataclass(frozen=True, eq=False)
class Compared:
    """What is compared.

    Args:
        first: Which labels are of the first side of each comparison, ``bool[s, g]``.
        second: Which are of the second.
        statistic: Of the means of both sides, ``(..., s, c)``, to ``(..., s, m)``.
    """

    first: AnyArray
    second: AnyArray
    statistic: Statistic

    def of(self, values: FloatArray, labels: AnyArray) -> FloatArray:
        """Return the statistics of labellings, ``float64[r, s, m]``.

        Args:
            values: ``float64[u, c]``, none NaN.
            labels: ``int[r, u]``.
        """
        n_groups = self.first.shape[1]
        marked = (labels[:, None, :] == np.arange(n_groups)[:, None]).astype(np.float64)
        sums, sizes = marked @ values, marked.sum(axis=2)[..., None]
        means = [
            (side.astype(np.float64) @ sums) / (side.astype(np.float64) @ sizes)
            for side in (self.first, self.second)
        ]
        return self.statistic(*means)


def slot_relabelled_p(
    values: FloatArray,
    labels: AnyArray,
    compared: Compared,
    *,
    draws: int = 10_000,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return the statistics and their two-sided p-values: is a relabelled one as far from 0?

        p = #{ |t'| ≥ |t| } / #{ways}              with at most ``draws`` ways: exact
        p = (#{ |t'| ≥ |t| } + 1) / (draws + 1)    otherwise, over drawn ones: never 0

    A relabelled statistic that is not defined counts as one that is as far from 0.

    Args:
        values: Of each combination of words, in the order of ``labels``, ``float64[u, c]``.
        labels: Their labels, ``int[n1, n2, ...]``, from 0.
        compared: What is tested.
        draws: How many ways are drawn; also the most that are counted out.
        rng: Where chance comes from.

    Returns:
        ``float64[s, m]`` each; p is NaN where the statistic is, or nothing can be exchanged.

    >>> values = np.array([[4.0], [0.0], [0.0], [4.0]])  # two words by two, alike on the diagonal
    >>> sides = Compared(np.array([[True, False]]), np.array([[False, True]]), np.subtract)
    >>> rng = np.random.default_rng(0)
    >>> [each.item() for each in slot_relabelled_p(values, np.eye(2, dtype=int), sides, rng=rng)]
    [-4.0, 1.0]

    Source:
        Krackhardt, "Predicting with networks: nonparametric multiple regression analysis of
        dyadic data", Social Networks 1988, of rows and columns exchanged whole.
    """
    exchange = SlotExchange.of(labels)
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = compared.of(values, labels.reshape(1, -1))[0]
    ways = exchange.ways
    if ways == 1:
        return observed, np.full(observed.shape, np.nan)
    exact = ways <= draws
    width = compared.first.shape[1] * max(*values.shape)
    rows = min(max(BLOCK_VALUES // width, 1), BLOCK_ROWS)
    blocks = exchange.every(rows) if exact else exchange.drawn(draws, rows, rng)
    hits, done, total = np.zeros(observed.shape), 0, ways if exact else draws
    for dealt in blocks:
        with np.errstate(invalid="ignore", divide="ignore"):
            found = np.abs(compared.of(values, dealt))
        slack = ROUNDING * np.nanmax(found, axis=0, initial=0.0)
        hits += np.count_nonzero(~(found < np.abs(observed) - slack), axis=0)
        done += len(dealt)
        report_progress("relabellings", done, total)
    p = hits / ways if exact else (hits + 1.0) / (draws + 1.0)
    return observed, np.where(np.isnan(observed), np.nan, p)


def _arrangements(classes: AnyArray) -> AnyArray:
    """Return every way to deal classes out among as many words, ``int[ways, n]``."""
    size = classes.size
    found = [np.full(size, -1)]
    for code, n in enumerate(np.bincount(classes).tolist()):
        grown = []
        for each in found:
            for places in combinations(np.flatnonzero(each < 0).tolist(), n):
                row = each.copy()
                row[list(places)] = code
                grown.append(row)
        found = grown
    return np.array(found)
