from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import FloatArray
from recbias.metrics.embeddings.directions import minimize_squared_hinge


def sample_overlapping(rng: np.random.Generator, n: int, d: int) -> tuple[FloatArray, FloatArray]:
    signs = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    return np.column_stack([rng.standard_normal((n, d)) + 0.4 * signs[:, None], np.ones(n)]), signs


def compute_slope(
    rows: FloatArray, signs: FloatArray, cost: float, weights: FloatArray
) -> FloatArray:
    slack = np.maximum(0.0, 1.0 - signs * (rows @ weights))
    return np.asarray(weights - 2.0 * cost * rows.T @ (signs * slack))


@pytest.mark.parametrize(("n", "d"), [(40, 3), (200, 6), (12, 30), (1, 1)])
@pytest.mark.parametrize("cost", [1e-3, 1.0, 1e3])
def test_gradient_is_zero_at_the_minimum(
    n: int, d: int, cost: float, rng: np.random.Generator
) -> None:
    rows, signs = sample_overlapping(rng, n, d)
    weights, is_minimum = minimize_squared_hinge(rows, signs, cost)
    assert is_minimum
    # the duality gap is half the square of the slope's length, and the weights are off by no more
    # than that length
    off = np.linalg.norm(compute_slope(rows, signs, cost, weights))
    assert off <= 1e-7 * np.linalg.norm(weights)


def test_minimum_agrees_with_scipy(rng: np.random.Generator) -> None:
    from scipy.optimize import minimize

    rows, signs = sample_overlapping(rng, 30, 4)

    def objective(weights: FloatArray) -> tuple[float, FloatArray]:
        slack = np.maximum(0.0, 1.0 - signs * (rows @ weights))
        return float(weights @ weights / 2 + 2.0 * slack @ slack), compute_slope(
            rows, signs, 2.0, weights
        )

    expected = minimize(objective, np.zeros(5), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    weights, _ = minimize_squared_hinge(rows, signs, 2.0)
    np.testing.assert_allclose(weights, expected, rtol=1e-6, atol=1e-9)


@given(st.integers(0, 99), st.floats(-4.0, 4.0))
def test_scaling_rows_and_cost_keeps_the_direction(seed: int, exponent: float) -> None:
    rows, signs = sample_overlapping(np.random.default_rng(seed), 40, 3)
    scale = 10.0**exponent
    weights, _ = minimize_squared_hinge(rows, signs, 1.0)
    scaled, is_minimum = minimize_squared_hinge(scale * rows, signs, 1.0 / scale**2)
    assert is_minimum
    np.testing.assert_allclose(scale * scaled, weights, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("length", [1.0, 10.0, 1e3, 1e6, 1e9])
def test_long_rows_converge(length: float, rng: np.random.Generator) -> None:
    # of rows this long the weights are those of the least loss, in units of the length
    rows, signs = sample_overlapping(rng, 200, 6)
    rows[:, :-1] *= length
    weights, is_minimum = minimize_squared_hinge(rows, signs, 1.0)
    longer, _ = minimize_squared_hinge(rows * [*([10.0] * 6), 1.0], signs, 1.0)
    assert is_minimum
    rest = 1.0 / length**2  # what is left of |w|² beside the loss
    np.testing.assert_allclose(10.0 * longer[:-1], weights[:-1], rtol=1e-6 + rest)


def test_rows_with_zero_sum_have_zero_weights() -> None:
    rows = np.array([[0.1, 0.2, 1.0], [0.3, 0.7, 1.0]] * 2)
    weights, is_minimum = minimize_squared_hinge(rows, np.array([1, 1, -1, -1]), 1.0)
    assert weights.tolist() == [0.0, 0.0, 0.0]
    assert is_minimum


def test_missing_convergence_is_reported(rng: np.random.Generator) -> None:
    rows, signs = sample_overlapping(rng, 200, 6)
    assert not minimize_squared_hinge(rows, signs, 1.0, max_steps=1)[1]
