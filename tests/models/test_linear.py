from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet

from recbias.core.context import collect_warnings
from recbias.core.dataset import Split, TrainingData
from recbias.core.errors import OutOfRange
from recbias.models import linear
from recbias.models.fitted import restore_matrix
from recbias.models.linear import EASE, SLIM, PureSVD
from support.models.recommending import compute_mean_ndcg, make_random_data, query_all_users
from support.worlds.small_worlds import make_interactions


def test_weights_match_a_hand_computed_inverse() -> None:
    # two items, G = [[3, 2], [2, 2]], reg 1: (G + I)⁻¹ = [[3, -2], [-2, 4]] / 8
    # B_01 = -P_01 / P_11 = 2/4,  B_10 = 2/3
    data = TrainingData(make_interactions([(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]))
    weights = EASE(reg=1).fit(data, np.random.default_rng(1)).state()["weights"]
    np.testing.assert_allclose(weights, [[0, 2 / 4], [2 / 3, 0]], rtol=1e-6)
    lists = (
        EASE(reg=1).fit(data, np.random.default_rng(1)).recommend(query_all_users(data), 1, data)
    )
    np.testing.assert_allclose(lists.scores[2, 0], 2 / 4, rtol=1e-6)  # u2 has i0: i1 by B_01


@pytest.mark.parametrize("reg", [1e-6, 0.1, 20.0])
def test_weights_are_the_ridge_regression_of_each_item(
    rng: np.random.Generator, reg: float
) -> None:
    data = make_random_data(rng, 200, 20)
    weights = EASE(reg=reg).fit(data, rng).state()["weights"]
    matrix = data.train.binary.toarray().astype(np.float64)
    for item in range(20):
        predictors = np.delete(matrix, item, axis=1)
        normal = predictors.T @ predictors + reg * np.eye(19)
        ridge = np.linalg.solve(normal, predictors.T @ matrix[:, item])
        np.testing.assert_allclose(np.delete(weights[:, item], item), ridge, atol=1e-4)
    assert (weights.diagonal() == 0).all()


def test_too_small_reg_is_a_user_error() -> None:
    data = TrainingData(make_interactions([(0, item) for item in range(40)]))
    with pytest.raises(OutOfRange, match=r"cannot invert.*reg 1e-300"):
        EASE(reg=1e-300).fit(data, np.random.default_rng(1))


@pytest.mark.real_data
def test_ndcg_on_movielens_is_close_to_the_value_of_other_libraries(movielens: Split) -> None:
    # another split of the same data
    model = EASE(reg=500)
    data = movielens.training_data()
    lists = model.fit(data, np.random.default_rng(1)).recommend(query_all_users(data), 10, data)
    assert compute_mean_ndcg(lists, movielens) == pytest.approx(0.3406, abs=0.01)


# u0: i0 i1;  u1: i0 i1;  u2: i1 i2
PAIRS = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (2, 2)]


def test_first_factor_matches_a_hand_computed_eigenvector() -> None:
    # XᵀX = [[2, 2, 0], [2, 3, 1], [0, 1, 1]]: its first eigenvector (a, b, c) solves
    # 2a + 2b = λa and b + c = λc: a = 2b/(λ-2), c = b/(λ-1)
    largest = np.linalg.eigvalsh([[2, 2, 0], [2, 3, 1], [0, 1, 1]])[-1]
    v = np.array([2 / (largest - 2), 1, 1 / (largest - 1)])
    v /= np.linalg.norm(v)
    fitted = PureSVD(factors=1).fit(
        TrainingData(make_interactions(PAIRS)), np.random.default_rng(1)
    )
    np.testing.assert_allclose(fitted.item_factors[:, 0], v, rtol=1e-6)
    # u0 has i0 and i1: score of i2 is (v0 + v1) v2
    lists = fitted.recommend(
        query_all_users(TrainingData(make_interactions(PAIRS))),
        1,
        TrainingData(make_interactions(PAIRS)),
    )
    np.testing.assert_allclose(lists.scores[0, 0], (v[0] + v[1]) * v[2], rtol=1e-6)


@pytest.mark.parametrize("factors", [1, 5, 20])
def test_dense_and_truncated_decompositions_agree(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, factors: int
) -> None:
    data = make_random_data(rng)
    dense = PureSVD(factors=factors).fit(data, rng)
    monkeypatch.setattr(linear, "MAX_DENSE_SVD", 0)
    truncated = PureSVD(factors=factors).fit(data, rng)
    np.testing.assert_allclose(truncated.item_factors, dense.item_factors, atol=1e-4)
    np.testing.assert_allclose(truncated.user_factors, dense.user_factors, atol=1e-3)


@pytest.mark.real_data
def test_ndcg_on_movielens_is_close_to_the_published_value(movielens: Split) -> None:
    model = PureSVD(factors=22)
    data = movielens.training_data()
    lists = model.fit(data, np.random.default_rng(1)).recommend(query_all_users(data), 10, data)
    assert compute_mean_ndcg(lists, movielens) == pytest.approx(0.3078, abs=0.01)


@pytest.mark.usefixtures("stage_warnings")
def test_weights_match_scikit_learns_elastic_net(rng: np.random.Generator) -> None:
    data = make_random_data(rng, 120, 30)
    model = SLIM(alpha=0.01, l1_ratio=0.1, neighbors=30, max_iter=2_000, tolerance=1e-6)
    weights = restore_matrix(model.fit(data, rng).state()).toarray()
    matrix = data.train.binary.toarray().astype(np.float64)
    elastic_net = ElasticNet(
        alpha=0.01, l1_ratio=0.1, positive=True, fit_intercept=False, max_iter=9_999, tol=1e-10
    )
    for item in range(30):
        predictors = matrix.copy()
        predictors[:, item] = 0
        elastic_net.fit(predictors, matrix[:, item])
        np.testing.assert_allclose(weights[:, item], elastic_net.coef_, atol=1e-4)


@pytest.mark.usefixtures("stage_warnings")
def test_elliot_variant_keeps_the_diagonal_and_drops_the_smallest_weight(
    rng: np.random.Generator,
) -> None:
    data = make_random_data(rng, 120, 30)
    matrix = data.train.binary.toarray().astype(np.float64)
    elastic_net = ElasticNet(
        alpha=0.01, l1_ratio=0.1, positive=True, fit_intercept=False, max_iter=9_999, tol=1e-10
    )
    coefficients = [elastic_net.fit(matrix, matrix[:, item]).coef_.copy() for item in range(30)]
    settings = SLIM(alpha=0.01, l1_ratio=0.1, max_iter=2_000, tolerance=1e-6, variant="elliot")
    for neighbors in (30, 4):
        model = replace(settings, neighbors=neighbors)
        weights = restore_matrix(model.fit(data, rng).state()).toarray()
        for item, column in enumerate(coefficients):
            n_dropped = max(1, (column > 0).sum() - neighbors)
            dropped = np.argsort(np.where(column > 0, column, np.inf))[:n_dropped]
            expected = column.copy()
            expected[dropped] = 0
            np.testing.assert_allclose(weights[:, item], expected, atol=1e-4)
        assert weights.diagonal().max() > 0.1


def test_a_warning_reports_items_that_have_not_converged(rng: np.random.Generator) -> None:
    with collect_warnings() as warnings:
        SLIM(max_iter=1, tolerance=1e-9).fit(make_random_data(rng), rng)
    assert len(warnings) == 1
    assert "have not converged after 1 pass" in warnings[0]


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.real_data
@pytest.mark.slow
def test_ndcg_on_movielens_is_close_to_the_published_value_of_slim(movielens: Split) -> None:
    model = SLIM(alpha=0.2334318, l1_ratio=0.0017297, neighbors=542, variant="elliot")
    data = movielens.training_data()
    lists = model.fit(data, np.random.default_rng(1)).recommend(query_all_users(data), 10, data)
    assert compute_mean_ndcg(lists, movielens) == pytest.approx(0.3389, abs=0.01)
