from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet

from recbias.core.context import stage_context
from recbias.core.dataset import AnyArray
from recbias.kernels import linear as module
from recbias.kernels.linear import Penalty, elastic_net


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


@pytest.mark.filterwarnings("ignore:Objective did not converge")
@pytest.mark.parametrize(("alpha", "l1_ratio"), [(0.0075, 1.0), (0.0075, 0.999), (0.001, 1.0)])
def test_dependent_columns_without_a_length_penalty_have_a_minimum(
    rng: np.random.Generator, alpha: float, l1_ratio: float
) -> None:
    """Of 300 columns of 20 rows many are sums of others, along which the objective is flat."""
    matrix = (rng.random((20, 300)) < 0.2).astype(np.float32)
    gram, total = matrix.T @ matrix, alpha * len(matrix)
    penalty = Penalty(total * l1_ratio, total * (1 - l1_ratio))
    weights, missed = elastic_net(gram, penalty, keep=300, max_iter=300, tolerance=1e-4)
    assert missed < 150
    reference = ElasticNet(
        alpha=alpha,
        l1_ratio=l1_ratio,
        fit_intercept=False,
        positive=True,
        tol=1e-8,
        max_iter=10**5,
    )
    for column in range(0, 300, 50):
        others = np.delete(np.arange(300), column)
        exact = np.insert(
            reference.fit(matrix[:, others], matrix[:, column]).coef_, column, 0.0
        ).astype(float)
        values = []
        for w in (weights[[column]].toarray().ravel().astype(float), exact):
            error = matrix[:, column] - matrix @ w
            lengths = penalty.l1 * w.sum() + penalty.l2 * w @ w / 2
            values.append(error @ error / 2 + lengths)
        scale = matrix[:, column].sum() / 2  # the objective without weights
        assert values[0] <= values[1] + 1e-3 * scale


def test_no_weight_calls_for_a_change_after_few_passes(rng: np.random.Generator) -> None:
    # as many passes as four of coordinate descent, three solutions and a check; float32
    matrix = sample_binary(rng, (400, 300)).astype(np.float32)
    gram, n = matrix.T @ matrix, matrix.shape[1]
    l1, l2 = 0.1, 4.0
    weights, n_unconverged = elastic_net(gram, Penalty(l1, l2), keep=n, max_iter=8, tolerance=1e-4)
    assert n_unconverged == 0
    exact, w = gram.astype(np.float64), weights.toarray().T.astype(np.float64)
    gradient = exact - l1 - exact @ w - l2 * w
    best = np.maximum(w + gradient / (exact.diagonal() + l2)[:, None], 0)
    np.fill_diagonal(best, 0)
    assert (np.abs(best - w).max(axis=0) <= 1.05e-4 * w.max(axis=0) + 1e-7).all()


def test_weights_are_non_negative_with_zero_diagonal(rng: np.random.Generator) -> None:
    matrix = sample_binary(rng)
    weights, _ = elastic_net(
        matrix.T @ matrix, Penalty(0.1, 1), keep=90, max_iter=50, tolerance=1e-4
    )
    assert (weights.diagonal() == 0).all()
    assert (weights.data > 0).all()


def test_only_the_largest_weights_are_returned(rng: np.random.Generator) -> None:
    matrix = sample_binary(rng)
    gram = matrix.T @ matrix
    every, _ = elastic_net(gram, Penalty(0.1, 1), keep=90, max_iter=200, tolerance=1e-6)
    few, _ = elastic_net(gram, Penalty(0.1, 1), keep=3, max_iter=200, tolerance=1e-6)
    expected = np.sort(every.toarray(), axis=1)[:, -3:]
    np.testing.assert_array_equal(np.sort(few.toarray(), axis=1)[:, -3:], expected)
    assert few.nnz <= 3 * 90


def test_block_size_does_not_change_results(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    matrix = sample_binary(rng)
    gram = matrix.T @ matrix
    settings = {"keep": 90, "max_iter": 500, "tolerance": 1e-9}
    whole, _ = elastic_net(gram, Penalty(0.5, 2), **settings)  # type: ignore[arg-type]
    monkeypatch.setattr(module, "n_workers", lambda: 4)
    parts, _ = elastic_net(gram, Penalty(0.5, 2), **settings)  # type: ignore[arg-type]
    np.testing.assert_allclose(whole.toarray(), parts.toarray(), atol=1e-7)


def test_unconverged_columns_are_counted(rng: np.random.Generator) -> None:
    matrix = sample_binary(rng)
    _, missed = elastic_net(
        matrix.T @ matrix, Penalty(0.1, 1), keep=90, max_iter=1, tolerance=1e-9
    )
    assert missed == 90


def test_empty_column_without_penalty_has_no_weights() -> None:
    gram = np.array([[2.0, 0.0], [0.0, 0.0]])
    weights, missed = elastic_net(gram, Penalty(0.0, 0.0), keep=2, max_iter=5, tolerance=1e-6)
    assert weights.nnz == 0
    assert missed == 0


def test_progress_reaches_all_blocks(rng: np.random.Generator) -> None:
    events = []
    matrix = sample_binary(rng)
    with stage_context(on_progress=lambda *event: events.append(event)):
        elastic_net(matrix.T @ matrix, Penalty(1, 1), keep=9, max_iter=99, tolerance=1e-4)
    assert {label for label, _, _ in events} == {"elastic net"}
    assert events[0][1] == 0
    assert events[-1][1] == events[-1][2]
