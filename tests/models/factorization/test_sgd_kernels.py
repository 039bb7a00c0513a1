from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from recbias.core.arrays import AnyArray
from recbias.models.factorization import sgd_kernels as single_steps
from recbias.models.training.compiled import compiled

SHAPES = ((3, 4), (5, 4), (3, 1), (5, 1), (1,))
"""Vectors of users and items, their biases, the offset."""

CODES = tuple(np.array(each, dtype=np.int32) for each in ([0, 0, 2], [1, 3, 1]))
TRIPLES = (*CODES, np.array([2, 1, 4], dtype=np.int32))
"""User 0 and item 1 occur twice, item 1 as a positive and as a negative."""

CHOICES = (*CODES, np.array([1, 0, 1], dtype=np.float32))
RATINGS = (*CODES, np.array([4, 1, 3], dtype=np.float32))

Tables = Sequence[AnyArray]


def drawn(rng: np.random.Generator) -> list[AnyArray]:
    return [rng.normal(size=shape).astype(np.float32) for shape in SHAPES]


def numbers(*values: float) -> tuple[Any, ...]:
    return tuple(np.array(values, dtype=np.float32))


def pair_loss(tables: Tables, u: int, i: int, j: int) -> tuple[float, float]:
    """The loss of a triple, and what its weights 0.1, 0.2, 0.3 and 0.4 add."""
    p, q, _, bias, _ = tables
    margin = p[u] @ (q[i] - q[j]) + bias[i, 0] - bias[j, 0]
    squares = 0.1 * p[u] @ p[u] + 0.2 * q[i] @ q[i] + 0.3 * q[j] @ q[j]
    return math.log1p(math.exp(-margin)), (squares + 0.4 * (bias[[i, j]] ** 2).sum()) / 2


def choice_loss(tables: Tables, u: int, i: int, label: float) -> tuple[float, float]:
    p, q, of_user, of_item, offset = tables
    score = p[u] @ q[i] + of_user[u, 0] + of_item[i, 0] + offset[0]
    every = [p[u], q[i], of_user[u], of_item[i], offset]
    loss = math.log1p(math.exp(score)) - label * score
    return loss, 0.3 * sum(each @ each for each in every) / 2


def rating_loss(
    tables: Tables, u: int, i: int, rating: float, *, biased: bool
) -> tuple[float, float]:
    p, q, of_user, of_item, _ = tables
    every = [p[u], q[i], *([of_user[u], of_item[i]] if biased else [])]
    score = 2 + p[u] @ q[i] + (of_user[u, 0] + of_item[i, 0] if biased else 0)
    return (rating - score) ** 2 / 2, 0.3 * sum(each @ each for each in every) / 2


def gradients(loss: Callable[..., Any], tables: Tables, *sample: Any) -> list[AnyArray]:
    """Central differences of the loss and what the weights add, by every entry."""
    found = [np.zeros_like(each) for each in tables]
    for each, slopes in zip(tables, found, strict=True):
        for place in np.ndindex(each.shape):
            before = each[place]
            sides = []
            for side in (1e-5, -1e-5):
                each[place] = before + side
                sides.append(sum(loss(tables, *sample)))
            each[place] = before
            slopes[place] = (sides[0] - sides[1]) / 2e-5
    return found


CASES: dict[str, tuple[Any, Any, Any, Any]] = {
    "pairwise": (single_steps.pairwise, pair_loss, TRIPLES, numbers(0.5, 0.1, 0.2, 0.3, 0.4)),
    "logistic": (single_steps.logistic, choice_loss, CHOICES, numbers(0.5, 0.3)),
    "squared": (
        single_steps.squared,
        partial(rating_loss, biased=True),
        RATINGS,
        numbers(0.05, 0.3, 2),
    ),
}
every = pytest.mark.parametrize("name", CASES)


@every
def test_each_step_goes_down_the_gradient_where_the_last_one_led(
    name: str, rng: np.random.Generator
) -> None:
    steps, loss, samples, settings = CASES[name]
    tables = drawn(rng)
    exact, total = [each.astype(np.float64) for each in tables], 0.0
    for sample in zip(*samples, strict=True):
        total += loss(exact, *sample)[0]
        slopes = gradients(loss, exact, *sample)
        for each, slope in zip(exact, slopes, strict=True):
            np.subtract(each, float(settings[0]) * slope, out=each)
    assert compiled(steps)(samples, tuple(tables), settings) == pytest.approx(total, rel=1e-5)
    for found, expected in zip(tables, exact, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@every
def test_compiled_is_as_written(name: str, rng: np.random.Generator) -> None:
    steps, _, samples, settings = CASES[name]
    first = drawn(rng)
    second = [each.copy() for each in first]
    losses = [
        each(samples, tuple(tables), settings)
        for each, tables in ((steps, first), (compiled(steps), second))
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@every
def test_no_samples_move_nothing(name: str, rng: np.random.Generator) -> None:
    steps, _, samples, settings = CASES[name]
    tables = drawn(rng)
    before = [each.copy() for each in tables]
    assert compiled(steps)(tuple(each[:0] for each in samples), tuple(tables), settings) == 0
    for one, other in zip(before, tables, strict=True):
        np.testing.assert_array_equal(one, other)


def test_without_biases_there_are_none(rng: np.random.Generator) -> None:
    p, q, *_ = tables = drawn(rng)
    none = np.empty((0, 1), dtype=np.float32)
    exact = [each.astype(np.float64) for each in tables]
    sample = (0, 1, 4.0)
    slopes = gradients(partial(rating_loss, biased=False), exact, *sample)
    samples = tuple(each[:1] for each in RATINGS)
    compiled(single_steps.squared)(
        samples, (p, q, none, none, np.empty(0, np.float32)), numbers(0.05, 0.3, 2)
    )
    np.testing.assert_allclose(p, exact[0] - 0.05 * slopes[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(q, exact[1] - 0.05 * slopes[1], rtol=1e-4, atol=1e-5)


def test_a_triple_by_hand() -> None:
    # x = 1 · (2 - 1) + 0.5 = 1.5: -ln σ(1.5) = 0.201413, σ(-1.5) = 0.182426. Rate 0.1:
    # p = 1 + 0.0182426 · 1 = 1.0182426, b_i = 0.5182426, b_j = -0.0182426,
    # q_i = 2 + 0.0182426 = 2.0182426, q_j = 1 - 0.0182426 = 0.9817574
    p, q = np.array([[1]], dtype=np.float32), np.array([[2], [1]], dtype=np.float32)
    none, bias = np.empty((0, 1), np.float32), np.array([[0.5], [0]], dtype=np.float32)
    triple = tuple(np.array([each], dtype=np.int32) for each in (0, 0, 1))
    tables = (p, q, none, bias, np.empty(0, np.float32))
    found = compiled(single_steps.pairwise)(triple, tables, numbers(0.1, 0, 0, 0, 0))
    assert found == pytest.approx(0.201413, abs=1e-6)
    assert p[0, 0] == pytest.approx(1.0182426, abs=1e-6)
    np.testing.assert_allclose(q.ravel(), [2.0182426, 0.9817574], atol=1e-6)
    np.testing.assert_allclose(bias.ravel(), [0.5182426, -0.0182426], atol=1e-6)


@pytest.mark.parametrize(("far", "expected"), [(200, 200), (-200, 0)])
def test_far_off_scores_overflow_nothing(far: float, expected: float) -> None:
    # -ln σ(-x) is x for large x
    ones, none = np.ones((1, 1), dtype=np.float32), np.zeros((1, 1), dtype=np.float32)
    zero = np.zeros(1, dtype=np.int32)
    drawn_pair = (zero, zero, np.zeros(1, dtype=np.float32))
    tables = (ones.copy(), ones * far, none, none.copy(), np.zeros(1, dtype=np.float32))
    found = compiled(single_steps.logistic)(drawn_pair, tables, numbers(0.1, 0))
    assert found == pytest.approx(expected, abs=1e-6)
    worse = np.array([[0], [far]], dtype=np.float32)
    triple = (zero, zero, zero + 1)
    tables = (ones.copy(), worse, none, np.zeros((2, 1), dtype=np.float32), none[0])
    found = compiled(single_steps.pairwise)(triple, tables, numbers(0.1, 0, 0, 0, 0))
    assert found == pytest.approx(expected, abs=1e-6)
