from __future__ import annotations

import numpy as np
import pytest

from recbias.core.dataset import Split, TrainingData
from recbias.core.errors import OutOfRange
from recbias.models.linear import EASE
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
