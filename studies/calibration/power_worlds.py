"""Worlds of sentence pairs, and of groups known as probabilities, for the studies of power."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from uncertain_studies import EFFECT, UncertainStudy

from recbias.core.dataset import AnyArray, FloatArray
from recbias.core.grouping import UncertainGroups
from recbias.statistics.groups import compute_moments, welch_contrasts
from recbias.statistics.intervals import ErrorBySize
from recbias.statistics.uncertain import compare_contributions, measure_contributions

SENTENCE, COPY = 0.5, 0.2
"""The standard deviations of ln PPL between sentences, and of the copies of a sentence."""

KEPT = 0.8
"""The correlation of a copy before and after debiasing."""

PILOT = 200_000
"""The number of users from which the true standard error is estimated."""

SCALE = np.exp(SENTENCE**2 / 2.0)
SQUARE_SCALE = np.exp(2.0 * SENTENCE**2)
COPY_MEAN = np.exp(COPY**2 / 2.0)
COPY_VARIANCE = np.exp(COPY**2) * np.expm1(COPY**2)
COPY_COVARIANCE = np.exp(COPY**2) * np.expm1(KEPT * COPY**2)


def sample_perplexities(
    rng: np.random.Generator, worlds: int, difference: float, n: int
) -> AnyArray:
    """Return the perplexities of n pairs: PPL = exp(s + e_a) and exp(s + e_b), ``[2, ...]``.

    The perplexity of the first copies has the mean difference added.
    """
    sentences = rng.normal(0.0, SENTENCE, (worlds, n))
    values = np.exp(sentences + rng.normal(0.0, COPY, (2, worlds, n)))
    return np.stack([values[0] + difference, values[1]])


def sample_pairs(rng: np.random.Generator, worlds: int, difference: float, n: int) -> AnyArray:
    """Return the difference in perplexity of each of n pairs."""
    first, second = sample_perplexities(rng, worlds, difference, n)
    gaps: AnyArray = first - second
    return gaps


def measure_pairs(_: float) -> ErrorBySize:
    """Return the error of the mean of n pairs: sd(d)² = E[exp(2s)] · 2 Var(exp(e))."""
    std = float(np.sqrt(SQUARE_SCALE * 2.0 * COPY_VARIANCE))
    return lambda n: (np.asarray(std / np.sqrt(n)), np.asarray(n - 1.0))


def sample_debiasing(rng: np.random.Generator, worlds: int, difference: float, n: int) -> AnyArray:
    """Return how much lower the gap of each pair is after debiasing.

    Before, the first copy is less likely by a factor, so that the gap of a sentence grows with its
    perplexity; debiasing removes the factor and changes each copy a little.
    """
    sentences = np.exp(rng.normal(0.0, SENTENCE, (worlds, n)))
    before = rng.normal(0.0, COPY, (2, worlds, n))
    change = rng.normal(0.0, COPY * np.sqrt(1.0 - KEPT**2), (2, worlds, n))
    after = np.exp(KEPT * before + change)
    first, second = np.exp(before)
    gap_before = (1.0 + difference / (SCALE * COPY_MEAN)) * first - second
    removed: AnyArray = sentences * (gap_before - after[0] + after[1])
    return removed


def measure_debiasing(difference: float) -> ErrorBySize:
    """Return the error of the mean of n pairs: Var(d) = E[exp(2s)] E[u²] - D².

    With c the factor less 1: E[u²] = ((1 + c)² + 3) v - 2 (2 + c) κ + (c m)², m and v the mean and
    the variance of exp(e), and κ its covariance before and after.
    """
    c = difference / (SCALE * COPY_MEAN)
    of_copies = ((1.0 + c) ** 2 + 3.0) * COPY_VARIANCE - 2.0 * (2.0 + c) * COPY_COVARIANCE
    square = SQUARE_SCALE * (of_copies + (c * COPY_MEAN) ** 2)
    std = float(np.sqrt(square - difference**2))
    return lambda n: (np.asarray(std / np.sqrt(n)), np.asarray(n - 1.0))


def measure_sets(_: float) -> ErrorBySize:
    """Return the error of Welch's test of n sentences, half of each group, as if independent."""
    variance = SQUARE_SCALE * (COPY_VARIANCE + COPY_MEAN**2) - (SCALE * COPY_MEAN) ** 2
    return lambda n: (np.asarray(np.sqrt(4.0 * variance / n)), np.asarray(n - 2.0))


def sample_sets(rng: np.random.Generator, worlds: int, difference: float, n: int) -> AnyArray:
    """Return the perplexities of n sentences, ``[worlds, n]``: the first copies, the second."""
    return np.concatenate([*sample_perplexities(rng, worlds, difference, (n + 1) // 2)], axis=1)


def sample_other_sets(
    rng: np.random.Generator, worlds: int, difference: float, n: int
) -> AnyArray:
    """Return the perplexities of n sentences of two groups that are no copies of each other."""
    first = sample_perplexities(rng, worlds, difference, (n + 1) // 2)[0]
    second = sample_perplexities(rng, worlds, 0.0, (n + 1) // 2)[1]
    return np.concatenate([first, second], axis=1)


def test_sets(values: AnyArray) -> FloatArray:
    codes = np.repeat([0, 1], values.shape[1] // 2)
    tests = (
        welch_contrasts(("a", "b"), compute_moments(row, codes, 2), between="groups")
        for row in values
    )
    return np.array([test.p for (test,) in tests])


def sample_uncertain(study: UncertainStudy) -> Callable[..., AnyArray]:
    """Return a function that samples users with a probability and a value each."""
    scale = EFFECT / study.true_difference

    def sample(rng: np.random.Generator, worlds: int, difference: float, n: int) -> AnyArray:
        p, values = study.draw_users(rng, difference * scale, worlds * n)
        return np.stack([p[:, 0], values], axis=-1).reshape(worlds, n, 2)

    return sample


def measure_uncertain(study: UncertainStudy) -> Callable[[float], ErrorBySize]:
    """Return the error of n users, in proportion to that of many."""
    sample = sample_uncertain(study)

    @lru_cache(maxsize=256)
    def measure_many(difference: float) -> tuple[float, float]:
        users = sample(np.random.default_rng(0), 1, difference, PILOT)[0]
        _, error, df = _estimate(users, study)
        return error, df

    def measure(difference: float) -> ErrorBySize:
        error, df = measure_many(difference)
        return lambda n: (np.asarray(error * np.sqrt(PILOT / n)), np.asarray(df * n / PILOT))

    return measure


def test_uncertain(study: UncertainStudy) -> Callable[[AnyArray], FloatArray]:
    """Return the test ``uncertain_t`` of each world."""
    return lambda values: np.array([_estimate(users, study)[0] for users in values])


def _estimate(users: AnyArray, study: UncertainStudy) -> tuple[float, float, float]:
    """The p-value, the standard error and the degrees of freedom of one world."""
    p = np.stack([users[:, 0], 1.0 - users[:, 0]], axis=1)
    groups = UncertainGroups("", ("a", "b"), p, study.independent)
    test = compare_contributions(("a", "b"), measure_contributions(users[:, 1], groups), (0, 1))
    return test.p, test.difference / test.statistic, test.df
