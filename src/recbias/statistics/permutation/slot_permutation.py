"""Permutation of labels that depend on the words of several slots, such as two persons.

Pairs of words share words and are not independent of each other, so the classes (genders) of the
words are permuted for each slot; the label of a pair follows from the classes of its words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import factorial, prod

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.statistics.permutation.label_permutation import (
    Statistic,
    iterate_combinations,
    permute_statistics,
)


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
        tables = [list_arrangements(classes) for classes in self.classes]
        for slot_classes in iterate_combinations(tables, rows):
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
        p = permute_statistics(
            lambda labellings: comparison.compute(values, labellings),
            observed[:, None],
            exchange,
            width=comparison.first.shape[1] * max(*values.shape),
            n_permutations=n_permutations,
            rng=rng,
        )
    return observed, p[:, 0]


def list_arrangements(classes: AnyArray) -> AnyArray:
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
