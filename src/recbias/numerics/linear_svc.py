"""A linear support vector classifier of two groups of vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.stage_context import warn
from recbias.numerics.directions import centroid_difference, normalize_rows, orient_direction
from recbias.numerics.squared_hinge import minimize_squared_hinge

TEST_SHARE = 0.2
"""The share of each group in the test set."""

COST = 1.0
"""The weight C of a misclassified member."""

MAX_STEPS = 200
"""Maximum number of solver steps; ten are usual."""


Members: TypeAlias = tuple[AnyArray, AnyArray]
"""The positions of some members of A and of B."""


@dataclass(frozen=True, eq=False)
class Hyperplane:
    """A hyperplane: a vector on its positive side is classified as A.

    Args:
        weights: Its normal vector, ``float64[d]``.
        intercept: Added to the product of a vector with the normal.
    """

    weights: FloatArray
    intercept: float

    def predict_a(self, vectors: AnyArray) -> BoolArray:
        """Return which vectors are classified as A, ``bool[n]``."""
        return np.asarray(vectors @ self.weights + self.intercept > 0)


@dataclass(frozen=True, eq=False)
class TrainedClassifier:
    """A classifier of two groups, and its training and test members.

    Args:
        separator: The classifier.
        train: The members that it was trained on.
        test: The members that it is tested on.
    """

    separator: Hyperplane
    train: Members
    test: Members


def train_classifier(
    a: AnyArray,
    b: AnyArray,
    *,
    rng: np.random.Generator,
    sample: int | None = None,
    top_n: int | None = None,
    choosing: tuple[AnyArray, AnyArray] | None = None,
) -> TrainedClassifier:
    """Train a classifier of two groups on four fifths of each.

    Args:
        a: Vectors of A, ``(n_a, d)``, two or more.
        b: Vectors of B, ``(n_b, d)``, two or more.
        rng: The random generator; the same generator gives the same test members.
        sample: Maximum number of members per group.
        top_n: Train on this number of training members per group, those most aligned with the
            centroid difference.
        choosing: The vectors by which these are chosen, ``(n_a, d')`` and ``(n_b, d')``, if not by
            their own.
    """
    (train_a, train_b), test = split_members((len(a), len(b)), sample, rng)
    if top_n is not None:
        choosing_a, choosing_b = choosing or (a, b)
        aligned_a, aligned_b = select_most_aligned(choosing_a[train_a], choosing_b[train_b], top_n)
        train_a, train_b = train_a[aligned_a], train_b[aligned_b]
    return TrainedClassifier(fit_svc(a[train_a], b[train_b]), (train_a, train_b), test)


def split_members(
    sizes: tuple[int, int], sample: int | None, rng: np.random.Generator
) -> tuple[Members, Members]:
    """Split each of two groups at random: four fifths for training, a fifth for testing.

    At most ``sample`` members per group are used. The same generator gives the same test members
    for every classifier.

    >>> train, test = split_members((5, 10), None, np.random.default_rng(0))
    >>> [codes.size for codes in (*train, *test)]
    [4, 8, 1, 2]
    """
    samples = [rng.permutation(size)[:sample] for size in sizes]
    n_test = [min(max(round(TEST_SHARE * codes.size), 1), codes.size - 1) for codes in samples]
    (a, b), (test_a, test_b) = samples, n_test
    return (a[test_a:], b[test_b:]), (a[:test_a], b[:test_b])


def fit_svc(a: AnyArray, b: AnyArray, *, cost: float = COST) -> Hyperplane:
    """Fit a linear support vector classifier to the vectors of A and of B, ``(n, d)`` each.

        minimise  |w|²/2 + w_0²/2 + C Σ_i max(0, 1 - y_i (w · x_i + w_0))²,    C = 1

    y is 1 for A and -1 for B; the vectors are not standardised. This is the primal form of
    LIBLINEAR's L2-loss classifier (scikit-learn's ``LinearSVC``); a warning reports that the
    minimum was not reached.

    Source:
        Fan, Chang, Hsieh, Wang and Lin, "LIBLINEAR: a library for large linear classification",
        JMLR 2008, section 2.
    """
    vectors = np.concatenate([a, b])
    rows = np.column_stack([vectors, np.ones(len(vectors))])
    signs = np.repeat([1.0, -1.0], [len(a), len(b)])
    weights, is_minimum = minimize_squared_hinge(rows, signs, cost, max_steps=MAX_STEPS)
    if not is_minimum:
        warn(f"the support vector classifier has not converged after {MAX_STEPS:,} steps")
    return Hyperplane(weights[:-1], float(weights[-1]))


def select_most_aligned(a: AnyArray, b: AnyArray, n: int) -> tuple[AnyArray, AnyArray]:
    """Return the positions of the ``n`` members of A and of B most aligned with their group.

    These are the members of A with the largest and of B with the smallest cosine with the centroid
    difference; ties are resolved by position. All members of a smaller group are returned.
    """
    directions = normalize_rows(a), normalize_rows(b)
    axis = np.nan_to_num(orient_direction(centroid_difference(a, b), *directions))
    aligned_a = np.argsort(-(directions[0] @ axis), kind="stable")[:n]
    return aligned_a, np.argsort(directions[1] @ axis, kind="stable")[:n]
