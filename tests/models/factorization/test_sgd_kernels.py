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
