from __future__ import annotations

import numpy as np
import pytest

from recbias.core.dataset import Split, TrainingData
from recbias.models import linear
from recbias.models.linear import PureSVD
from support.models.recommending import compute_mean_ndcg, make_random_data, query_all_users
from support.worlds.small_worlds import make_interactions

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


def test_largest_entry_of_each_factor_is_positive(rng: np.random.Generator) -> None:
    factors = PureSVD(factors=6).fit(make_random_data(rng), rng).item_factors
    largest = np.abs(factors).argmax(axis=0)
    assert (factors[largest, np.arange(6)] > 0).all()


@pytest.mark.real_data
def test_ndcg_on_movielens_is_close_to_the_published_value(movielens: Split) -> None:
    model = PureSVD(factors=22)
    data = movielens.training_data()
    lists = model.fit(data, np.random.default_rng(1)).recommend(query_all_users(data), 10, data)
    assert compute_mean_ndcg(lists, movielens) == pytest.approx(0.3078, abs=0.01)
