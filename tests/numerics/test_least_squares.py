from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.linear_model import ElasticNet

from recbias.core.dataset import AnyArray, FloatArray
from recbias.kernels import linear as module
from recbias.kernels.linear import Penalty, elastic_net, solve_nonnegative
from recbias.metrics.embeddings.directions import (
    fit_svc,
    minimize_squared_hinge,
    select_most_aligned,
    split_members,
    train_classifier,
)


def sample_binary(rng: np.random.Generator, shape: tuple[int, int] = (150, 90)) -> AnyArray:
    """A matrix of ones in which some columns go together."""
    tastes = rng.random((shape[0], 4)) @ rng.random((4, shape[1]))
    return (rng.random(shape) < tastes / 6).astype(np.float64)


def test_two_columns_match_hand_computation() -> None:
    # columns x = (1, 1, 0), y = (1, 0, 0): x·x = 2, x·y = 1, y·y = 1
    # y on x: w = max(0, 1 - 0.5) / (2 + 1) = 1/6;  x on y: max(0, 1 - 0.5) / (1 + 1) = 1/4
    gram = np.array([[2.0, 1.0], [1.0, 1.0]])
    weights, missed = elastic_net(gram, Penalty(0.5, 1.0), keep=9, max_iter=9, tolerance=1e-9)
    np.testing.assert_allclose(weights.toarray(), [[0, 1 / 4], [1 / 6, 0]])
    assert missed == 0


def test_allowed_self_weight_matches_hand_computation() -> None:
    # columns x = (1, 1, 0), y = (1, 0, 0), l1 = 0.5, l2 = 1; for y, with weights a on x, b on y:
    #   (2 + 1) a + b = 1 - 0.5,  a + (1 + 1) b = 1 - 0.5   =>   a = 0.1, b = 0.2
    # for x:  3 a + b = 2 - 0.5,  a + 2 b = 1 - 0.5   =>   a = 0.5, b = 0
    gram = np.array([[2.0, 1.0], [1.0, 1.0]])
    settings = {"keep": 9, "max_iter": 99, "tolerance": 1e-9}
    weights, _ = elastic_net(gram, Penalty(0.5, 1.0), **settings, allow_self=True)  # type: ignore[arg-type]
    np.testing.assert_allclose(weights.toarray(), [[0.5, 0], [0.1, 0.2]], atol=1e-7)


@pytest.mark.parametrize(("alpha", "l1_ratio"), [(0.02, 0.1), (0.1, 0.5), (0.005, 1.0), (1, 0.01)])
def test_solution_agrees_with_scikit_learn(
    rng: np.random.Generator, alpha: float, l1_ratio: float
) -> None:
    matrix = sample_binary(rng)
    n_rows, n = matrix.shape
    penalty = Penalty(n_rows * alpha * l1_ratio, n_rows * alpha * (1 - l1_ratio))
    weights, n_unconverged = elastic_net(
        matrix.T @ matrix, penalty, keep=n, max_iter=3_000, tolerance=1e-10
    )
    theirs = ElasticNet(
        alpha=alpha,
        l1_ratio=l1_ratio,
        positive=True,
        fit_intercept=False,
        max_iter=20_000,
        tol=1e-11,
    )
    for column in range(0, n, 7):
        predictors = matrix.copy()
        predictors[:, column] = 0
        theirs.fit(predictors, matrix[:, column])
        np.testing.assert_allclose(weights[[column]].toarray()[0], theirs.coef_, atol=2e-6)
    assert n_unconverged == 0


@pytest.mark.parametrize("most", [0, 30, 4096])
def test_columns_with_many_candidates_are_left_to_the_passes(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    matrix = sample_binary(rng)
    gram, n = matrix.T @ matrix, matrix.shape[1]
    settings: Any = {"keep": n, "max_iter": 2_000, "tolerance": 1e-9}
    expected, _ = elastic_net(gram, Penalty(0.3, 1), **settings)
    sizes: list[int] = []
    solve = module._solve_column

    def record(problem: Any, candidates: AnyArray, *arrays: AnyArray) -> AnyArray | None:
        sizes.append(candidates.size)
        return solve(problem, candidates, *arrays)

    monkeypatch.setattr(module, "_solve_column", record)
    monkeypatch.setattr(module, "_MAX_CANDIDATES", most)
    weights, n_unconverged = elastic_net(gram, Penalty(0.3, 1), **settings)
    assert max(sizes, default=0) <= most
    assert bool(sizes) == (most > 0)
    np.testing.assert_allclose(weights.toarray(), expected.toarray(), atol=1e-6)
    assert n_unconverged == 0


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


def test_a_singular_matrix_has_a_minimum(rng: np.random.Generator) -> None:
    # two equal columns: any split of their weight is a minimum
    factors = rng.random((20, 3))[:, [0, 0, 1, 2]]
    target = factors @ np.array([1.0, 1, 2, 3])
    matrix, products = factors.T @ factors, factors.T @ target
    weights = solve_nonnegative(matrix, products, np.zeros(4), 1e-9)
    assert (weights >= 0).all()
    np.testing.assert_allclose(matrix @ weights, products, rtol=1e-6)


def draw_groups(rng: np.random.Generator, *, shift: float, n: int = 100) -> list[np.ndarray]:
    vectors = rng.standard_normal((2, n, 4))
    vectors[0, :, 0] += shift
    vectors[1, :, 0] -= shift
    return list(vectors)


def test_the_margin_by_hand() -> None:
    # points 1 and -1: w_0 = 0 and w minimises w²/2 + 2 (1 - w)², so w - 4 (1 - w) = 0, w = 0.8
    plane = fit_svc(np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0]]))
    np.testing.assert_allclose([*plane.weights, plane.intercept], [0.8, 0.0, 0.0], atol=1e-12)


def test_four_points_have_the_widest_margin() -> None:
    # at a high cost: the least (w, w_0) that is 1 or more at (1, 1) is (1/3, 1/3, 1/3), which is
    # -1 at (0, -4) and farther out at the other two
    plane = fit_svc(
        np.array([[1.0, 1.0], [5.0, 3.0]]), np.array([[0.0, -4.0], [-5.0, -2.0]]), cost=1e6
    )
    np.testing.assert_allclose([*plane.weights, plane.intercept], [1 / 3] * 3, atol=1e-6)
    axis = plane.weights / np.linalg.norm(plane.weights)
    np.testing.assert_allclose(axis, [np.sqrt(0.5)] * 2, atol=1e-6)


@pytest.mark.parametrize("length", [1.0, 10.0, 100.0])
def test_real_vectors_of_any_length_reach_the_minimum(real_data: Path, length: float) -> None:
    a, b = (length * vectors for vectors in load_women_and_men(real_data))
    chosen = select_most_aligned(a, b, 200)
    for first, second in ((a, b), (a[chosen[0]], b[chosen[1]])):
        plane = fit_svc(first, second)
        rows = np.column_stack(
            [np.concatenate([first, second]), np.ones(len(first) + len(second))]
        )
        signs = np.repeat([1.0, -1.0], [len(first), len(second)])
        weights = np.append(plane.weights, plane.intercept)
        slack = np.maximum(0.0, 1.0 - signs * (rows @ weights))
        slope = weights - 2.0 * rows.T @ (signs * slack)
        assert np.linalg.norm(slope) <= 1e-6 * np.linalg.norm(weights)


@cache
def load_women_and_men(real_data: Path) -> tuple[FloatArray, FloatArray]:
    """Return the vectors of PureSVD of the women and men of MovieLens-1M."""
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import svds

    text = (real_data / "ml-1m" / "ratings.dat").read_text(encoding="ascii")
    rows = np.array(text.replace("::", " ").split(), dtype=np.int64).reshape(-1, 4)
    liked = rows[rows[:, 2] >= 4]
    matrix = csr_array((np.ones(len(liked)), (liked[:, 0], liked[:, 1])))
    vectors = np.asarray(matrix @ svds(matrix, 22, rng=np.random.default_rng(1))[2].T)
    lines = (real_data / "ml-1m" / "users.dat").read_text(encoding="latin-1").splitlines()
    women = np.array([int(line.split("::")[0]) for line in lines if "::F::" in line])
    men = np.array([int(line.split("::")[0]) for line in lines if "::M::" in line])
    usable = np.asarray(vectors.any(axis=1))
    of_women, of_men = (users[users < len(vectors)] for users in (women, men))
    return vectors[of_women[usable[of_women]]], vectors[of_men[usable[of_men]]]


def test_the_accuracy_of_a_planted_shift(rng: np.random.Generator) -> None:
    # the best plane errs where a standard normal is beyond the shift: Φ(0.6745) = 0.75
    a, b = draw_groups(rng, shift=0.6745, n=4000)
    classifier = train_classifier(a, b, rng=rng)
    first, second = classifier.test
    right = (
        classifier.separator.predict_a(a[first]).mean()
        + 1
        - classifier.separator.predict_a(b[second]).mean()
    )
    assert right / 2 == pytest.approx(0.75, abs=0.03)
    axis = classifier.separator.weights / np.linalg.norm(classifier.separator.weights)
    assert axis[0] > 0.99


@pytest.mark.parametrize(
    ("sizes", "sample", "train", "test"),
    [
        ((10, 20), None, (8, 16), (2, 4)),
        ((10, 20), 5, (4, 4), (1, 1)),
        ((2, 3), None, (1, 2), (1, 1)),  # at least one to learn from and one to test on
    ],
)
def test_a_fifth_of_each_group_is_tested_on(
    sizes: tuple[int, int],
    sample: int | None,
    train: tuple[int, int],
    test: tuple[int, int],
    rng: np.random.Generator,
) -> None:
    fitted, tested = split_members(sizes, sample, rng)
    assert tuple(rows.size for rows in fitted) == train
    assert tuple(rows.size for rows in tested) == test
    for train_rows, test_rows in zip(fitted, tested, strict=True):
        assert not set(train_rows) & set(test_rows)


def test_the_most_aligned_by_hand() -> None:
    # centroids (2, 0) and (-1, 0): the axis is x
    # cosines of A with it: 1, 0, 0.8; of B: -1, 0, -0.8
    a = np.array([[2.0, 0.0], [0.0, 3.0], [4.0, -3.0]])
    b = np.array([[-1.0, 0.0], [0.0, -3.0], [-4.0, 3.0]])
    first, second = select_most_aligned(a, b, 2)
    assert (first.tolist(), second.tolist()) == ([0, 2], [0, 2])
    whole, _ = select_most_aligned(a, b, 9)
    assert whole.tolist() == [0, 2, 1]


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
