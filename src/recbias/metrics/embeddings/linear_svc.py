"""A linear support vector classifier of who belongs to which of two groups, by the vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.stage_context import warn
from recbias.numerics.directions import centroid_difference, oriented, unit_rows
from recbias.numerics.squared_hinge import minimise_squared_hinge

TEST_SHARE = 0.2
"""The share of each group that the classifier is tested on."""

COST = 1.0
"""The weight C of a misclassified member."""

ITERATIONS = 200
"""Steps of the solver at most; ten are usual."""


@dataclass(frozen=True, eq=False)
class Halves:
    """The members of two groups, divided into those to learn from and those to test on.

    Args:
        train: Places of the training members of A and of B.
        test: Places of the test members of A and of B.
    """

    train: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]
    test: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]


@dataclass(frozen=True, eq=False)
class Separator:
    """A hyperplane: a vector is said to be of A where it lies on the positive side.

    Args:
        weights: Its normal, ``float64[d]``.
        intercept: What is added to the product of a vector with it.
    """

    weights: FloatArray
    intercept: float

    def says_a(self, vectors: AnyArray) -> BoolArray:
        """Return which vectors are said to be of A, ``bool[n]``."""
        return np.asarray(vectors @ self.weights + self.intercept > 0)


@dataclass(frozen=True, eq=False)
class Learned:
    """A classifier of two groups, and who it learned from.

    Args:
        separator: The classifier.
        halves: Whom it was trained and tested on.
    """

    separator: Separator
    halves: Halves


def learn(
    a: AnyArray,
    b: AnyArray,
    *,
    rng: np.random.Generator,
    sample: int | None = None,
    top_n: int | None = None,
) -> Learned:
    """Return the classifier of two groups, trained on four fifths of each.

    Args:
        a: Vectors of A, ``(n_a, d)``, two or more.
        b: Vectors of B, ``(n_b, d)``, two or more.
        rng: Where chance comes from; the same gives the same test members.
        sample: How many of each group take part at most.
        top_n: Train only on so many of each group's training members, those most aligned with
            their centroid difference.
    """
    halves = divided((len(a), len(b)), sample, rng)
    first, second = halves.train
    if top_n is not None:
        one, other = most_aligned(a[first], b[second], top_n)
        first, second = first[one], second[other]
    return Learned(separator(a[first], b[second]), Halves((first, second), halves.test))


def divided(sizes: tuple[int, int], sample: int | None, rng: np.random.Generator) -> Halves:
    """Return a random fifth of each of two groups to test on, the others to train on.

    The same generator gives the same test members, whatever is trained.

    Args:
        sizes: The sizes of the groups, two or more.
        sample: How many of each group take part at most.
        rng: Where chance comes from.

    >>> found = divided((5, 10), None, np.random.default_rng(0))
    >>> [each.size for each in (*found.train, *found.test)]
    [4, 8, 1, 2]
    """
    drawn = [rng.permutation(size)[:sample] for size in sizes]
    n_test = [min(max(round(TEST_SHARE * each.size), 1), each.size - 1) for each in drawn]
    (a, b), (test_a, test_b) = drawn, n_test
    return Halves(train=(a[test_a:], b[test_b:]), test=(a[:test_a], b[:test_b]))


def separator(a: AnyArray, b: AnyArray, *, cost: float = COST) -> Separator:
    """Return the linear support vector classifier of two groups of vectors.

        minimise  |w|²/2 + w_0²/2 + C Σ_i max(0, 1 - y_i (w · x_i + w_0))²,    C = 1

    y is 1 for A and -1 for B; vectors are taken as they are, not standardised. Of the classifiers
    of LIBLINEAR (the ``LinearSVC`` of scikit-learn) it is the one in primal form, solved to its
    minimum; a warning says so where that is not reached.

    Args:
        a: Vectors of A, ``(n_a, d)``.
        b: Vectors of B, ``(n_b, d)``.
        cost: C.

    Source:
        Fan, Chang, Hsieh, Wang and Lin, "LIBLINEAR: a library for large linear classification",
        JMLR 2008, section 2.
    """
    vectors = np.concatenate([a, b])
    rows = np.column_stack([vectors, np.ones(len(vectors))])
    signs = np.repeat([1.0, -1.0], [len(a), len(b)])
    weights, is_minimum = minimise_squared_hinge(rows, signs, cost, max_steps=ITERATIONS)
    if not is_minimum:
        warn(f"the support vector classifier was stopped after {ITERATIONS:,} steps")
    return Separator(weights[:-1], float(weights[-1]))


def most_aligned(a: AnyArray, b: AnyArray, n: int) -> tuple[AnyArray, AnyArray]:
    """Return the places of the ``n`` of A and of B that lie farthest towards their own side.

    They are those of A with the largest, and those of B with the smallest cosine with the centroid
    difference of the two; of equal ones the first. A smaller group comes whole.

    Args:
        a: Vectors of A, ``(n_a, d)``.
        b: Vectors of B, ``(n_b, d)``.
        n: How many of each.
    """
    directions = unit_rows(a), unit_rows(b)
    axis = np.nan_to_num(oriented(centroid_difference(a, b), *directions))
    first = np.argsort(-(directions[0] @ axis), kind="stable")[:n]
    return first, np.argsort(directions[1] @ axis, kind="stable")[:n]
