from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from recbias.core.dataset import AnyArray
from recbias.kernels.linear import solve_nonnegative


def sample_problem(rng: np.random.Generator, n: int) -> tuple[AnyArray, AnyArray, AnyArray]:
    """A least-squares problem, ``(factors, target)``, and the product of the factors."""
    factors = rng.random((2 * n, n)) + 0.5
    return factors, rng.normal(size=2 * n) + factors[:, : n // 2].sum(axis=1), factors.T @ factors


def test_two_weights_match_a_hand_computation() -> None:
    # the unrestricted minimum is (5/3, -1/3); with w_2 = 0, w_1 = 3 / 2
    matrix, target = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([3.0, 1.0])
    for start in ([0.0, 0.0], [1.0, 1.0], [0.0, 7.0]):
        weights = solve_nonnegative(matrix, target, np.array(start), 1e-10)
        np.testing.assert_allclose(weights, [1.5, 0])


@pytest.mark.parametrize("n", [1, 5, 40, 120])
@pytest.mark.parametrize("starts_at_zero", [True, False])
def test_solution_agrees_with_scipy(
    rng: np.random.Generator, n: int, starts_at_zero: bool
) -> None:
    factors, target, product = sample_problem(rng, n)
    start = np.zeros(n) if starts_at_zero else rng.random(n)
    weights = solve_nonnegative(product, factors.T @ target, start, 1e-10)
    expected, _ = nnls(factors, target)
    np.testing.assert_allclose(weights, expected, atol=1e-7 * max(1, expected.max()))


def test_single_precision_is_kept(rng: np.random.Generator) -> None:
    factors, target, product = sample_problem(rng, 30)
    matrix, products, start = product + 5 * np.eye(30), factors.T @ target, np.zeros(30)
    exact = solve_nonnegative(matrix, products, start, 1e-10)
    single, of_target = matrix.astype(np.float32), products.astype(np.float32)
    weights = solve_nonnegative(single, of_target, start.astype(np.float32), 1e-5)
    assert weights.dtype == np.float32
    np.testing.assert_allclose(weights, exact, atol=2e-3 * exact.max())


def test_targets_below_zero_have_no_weights(rng: np.random.Generator) -> None:
    _, _, product = sample_problem(rng, 6)
    assert not solve_nonnegative(product, np.full(6, -1.0), np.zeros(6), 1e-9).any()
    assert not solve_nonnegative(product, np.full(6, -1.0), np.ones(6), 1e-9).any()


def test_a_singular_matrix_has_a_minimum(rng: np.random.Generator) -> None:
    # two equal columns: any split of their weight is a minimum
    factors = rng.random((20, 3))[:, [0, 0, 1, 2]]
    target = factors @ np.array([1.0, 1, 2, 3])
    matrix, products = factors.T @ factors, factors.T @ target
    weights = solve_nonnegative(matrix, products, np.zeros(4), 1e-9)
    assert (weights >= 0).all()
    np.testing.assert_allclose(matrix @ weights, products, rtol=1e-6)
