from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from recbias.core.dataset import AnyArray
from recbias.kernels.sparse import compile_loop
from recbias.models import sgd

SHAPES = ((3, 4), (5, 4), (3, 1), (5, 1), (1,))
"""Vectors of users and items, their biases, the offset."""

CODES = tuple(np.array(codes, dtype=np.int32) for codes in ([0, 0, 2], [1, 3, 1]))
TRIPLES = (*CODES, np.array([2, 1, 4], dtype=np.int32))
"""User 0 and item 1 occur twice, item 1 as a positive and as a negative."""

CHOICES = (*CODES, np.array([1, 0, 1], dtype=np.float32))
RATINGS = (*CODES, np.array([4, 1, 3], dtype=np.float32))

Tables = Sequence[AnyArray]


def sample_tables(rng: np.random.Generator) -> list[AnyArray]:
    return [rng.normal(size=shape).astype(np.float32) for shape in SHAPES]


def as_floats(*values: float) -> tuple[Any, ...]:
    return tuple(np.array(values, dtype=np.float32))


def compute_triple_loss(tables: Tables, u: int, i: int, j: int) -> tuple[float, float]:
    """Return the loss of a triple, and its penalty with the weights 0.1, 0.2, 0.3 and 0.4."""
    p, q, _, bias, _ = tables
    margin = p[u] @ (q[i] - q[j]) + bias[i, 0] - bias[j, 0]
    squares = 0.1 * p[u] @ p[u] + 0.2 * q[i] @ q[i] + 0.3 * q[j] @ q[j]
    return math.log1p(math.exp(-margin)), (squares + 0.4 * (bias[[i, j]] ** 2).sum()) / 2


def compute_logistic_loss(tables: Tables, u: int, i: int, label: float) -> tuple[float, float]:
    p, q, user_bias, item_bias, offset = tables
    score = p[u] @ q[i] + user_bias[u, 0] + item_bias[i, 0] + offset[0]
    rows = [p[u], q[i], user_bias[u], item_bias[i], offset]
    loss = math.log1p(math.exp(score)) - label * score
    return loss, 0.3 * sum(row @ row for row in rows) / 2


def compute_squared_loss(
    tables: Tables, u: int, i: int, rating: float, *, biased: bool
) -> tuple[float, float]:
    p, q, user_bias, item_bias, _ = tables
    rows = [p[u], q[i], *([user_bias[u], item_bias[i]] if biased else [])]
    score = 2 + p[u] @ q[i] + (user_bias[u, 0] + item_bias[i, 0] if biased else 0)
    return (rating - score) ** 2 / 2, 0.3 * sum(row @ row for row in rows) / 2


def estimate_gradients(loss: Callable[..., Any], tables: Tables, *sample: Any) -> list[AnyArray]:
    """Return central differences of the loss with penalty, by every entry of the tables."""
    gradients = [np.zeros_like(table) for table in tables]
    for table, slopes in zip(tables, gradients, strict=True):
        for index in np.ndindex(table.shape):
            before = table[index]
            losses = []
            for change in (1e-5, -1e-5):
                table[index] = before + change
                losses.append(sum(loss(tables, *sample)))
            table[index] = before
            slopes[index] = (losses[0] - losses[1]) / 2e-5
    return gradients


CASES: dict[str, tuple[Any, Any, Any, Any]] = {
    "pairwise": (
        sgd.step_bpr,
        compute_triple_loss,
        TRIPLES,
        as_floats(0.5, 0.1, 0.2, 0.3, 0.4),
    ),
    "logistic": (sgd.step_logistic, compute_logistic_loss, CHOICES, as_floats(0.5, 0.3)),
    "squared": (
        sgd.step_squared,
        partial(compute_squared_loss, biased=True),
        RATINGS,
        as_floats(0.05, 0.3, 2),
    ),
}
all_kernels = pytest.mark.parametrize("name", CASES)


@all_kernels
def test_each_step_follows_the_gradient_after_the_previous_step(
    name: str, rng: np.random.Generator
) -> None:
    kernel, loss, samples, settings = CASES[name]
    tables = sample_tables(rng)
    exact, total = [table.astype(np.float64) for table in tables], 0.0
    for sample in zip(*samples, strict=True):
        total += loss(exact, *sample)[0]
        slopes = estimate_gradients(loss, exact, *sample)
        for table, slope in zip(exact, slopes, strict=True):
            np.subtract(table, float(settings[0]) * slope, out=table)
    assert compile_loop(kernel)(samples, tuple(tables), settings) == pytest.approx(total, rel=1e-5)
    for table, expected in zip(tables, exact, strict=True):
        np.testing.assert_allclose(table, expected, rtol=1e-4, atol=1e-5)


@all_kernels
def test_compiled_kernel_matches_the_python_function(name: str, rng: np.random.Generator) -> None:
    kernel, _, samples, settings = CASES[name]
    first = sample_tables(rng)
    second = [table.copy() for table in first]
    losses = [
        function(samples, tuple(tables), settings)
        for function, tables in ((kernel, first), (compile_loop(kernel), second))
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for table, compiled_table in zip(first, second, strict=True):
        np.testing.assert_allclose(table, compiled_table, rtol=1e-5, atol=1e-6)


@all_kernels
def test_no_samples_change_nothing(name: str, rng: np.random.Generator) -> None:
    kernel, _, samples, settings = CASES[name]
    tables = sample_tables(rng)
    before = [table.copy() for table in tables]
    assert (
        compile_loop(kernel)(tuple(array[:0] for array in samples), tuple(tables), settings) == 0
    )
    for expected, table in zip(before, tables, strict=True):
        np.testing.assert_array_equal(table, expected)


def test_squared_kernel_works_without_biases(rng: np.random.Generator) -> None:
    p, q, *_ = tables = sample_tables(rng)
    none = np.empty((0, 1), dtype=np.float32)
    exact = [table.astype(np.float64) for table in tables]
    sample = (0, 1, 4.0)
    slopes = estimate_gradients(partial(compute_squared_loss, biased=False), exact, *sample)
    samples = tuple(array[:1] for array in RATINGS)
    compile_loop(sgd.step_squared)(
        samples, (p, q, none, none, np.empty(0, np.float32)), as_floats(0.05, 0.3, 2)
    )
    np.testing.assert_allclose(p, exact[0] - 0.05 * slopes[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(q, exact[1] - 0.05 * slopes[1], rtol=1e-4, atol=1e-5)


def test_bpr_step_matches_a_hand_computation() -> None:
    # x = 1 · (2 - 1) + 0.5 = 1.5: -ln σ(1.5) = 0.201413, σ(-1.5) = 0.182426. Rate 0.1:
    # p = 1 + 0.0182426 · 1 = 1.0182426, b_i = 0.5182426, b_j = -0.0182426,
    # q_i = 2 + 0.0182426 = 2.0182426, q_j = 1 - 0.0182426 = 0.9817574
    p, q = np.array([[1]], dtype=np.float32), np.array([[2], [1]], dtype=np.float32)
    none, bias = np.empty((0, 1), np.float32), np.array([[0.5], [0]], dtype=np.float32)
    triple = tuple(np.array([code], dtype=np.int32) for code in (0, 0, 1))
    tables = (p, q, none, bias, np.empty(0, np.float32))
    loss = compile_loop(sgd.step_bpr)(triple, tables, as_floats(0.1, 0, 0, 0, 0))
    assert loss == pytest.approx(0.201413, abs=1e-6)
    assert p[0, 0] == pytest.approx(1.0182426, abs=1e-6)
    np.testing.assert_allclose(q.ravel(), [2.0182426, 0.9817574], atol=1e-6)
    np.testing.assert_allclose(bias.ravel(), [0.5182426, -0.0182426], atol=1e-6)


@pytest.mark.parametrize(("far", "expected"), [(200, 200), (-200, 0)])
def test_extreme_scores_do_not_overflow(far: float, expected: float) -> None:
    # -ln σ(-x) is x for large x
    ones, none = np.ones((1, 1), dtype=np.float32), np.zeros((1, 1), dtype=np.float32)
    zero = np.zeros(1, dtype=np.int32)
    pair = (zero, zero, np.zeros(1, dtype=np.float32))
    tables = (ones.copy(), ones * far, none, none.copy(), np.zeros(1, dtype=np.float32))
    loss = compile_loop(sgd.step_logistic)(pair, tables, as_floats(0.1, 0))
    assert loss == pytest.approx(expected, abs=1e-6)
    items = np.array([[0], [far]], dtype=np.float32)
    triple = (zero, zero, zero + 1)
    tables = (ones.copy(), items, none, np.zeros((2, 1), dtype=np.float32), none[0])
    loss = compile_loop(sgd.step_bpr)(triple, tables, as_floats(0.1, 0, 0, 0, 0))
    assert loss == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("n", [31, 32, 33, 200])
def test_losses_of_many_triples_add_up(n: int, rng: np.random.Generator) -> None:
    # with a learning rate of 0 the tables stay, so that every loss is that of the first ones
    tables = sample_tables(rng)
    users, positives, negatives = (rng.integers(m, size=n).astype(np.int32) for m in (3, 5, 5))
    p, q, _, bias, _ = (table.astype(np.float64) for table in tables)
    margins = (p[users] * (q[positives] - q[negatives])).sum(1)
    margins += (bias[positives] - bias[negatives])[:, 0]
    triples, settings = (users, positives, negatives), as_floats(0, 0.1, 0.2, 0.3, 0.4)
    loss = compile_loop(sgd.step_bpr)(triples, tuple(tables), settings)
    assert loss == pytest.approx(np.log1p(np.exp(-margins)).sum(), rel=1e-5)
