from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from recbias.core.context import collect_warnings
from recbias.core.dataset import AnyArray, Split, TrainingData
from recbias.models.fitted import restore_matrix
from recbias.models.libraries import (
    FittedScorer,
    ImplicitALS,
    ImplicitItemKNN,
    LensKitItemKNN,
    LensKitUserKNN,
    warn_about_equal_ratings,
)
from recbias.testing import make_checkerboard, query_all_users
from support.models import recommending
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions


def fit_model(model: Any, seed: int = 0) -> Any:
    return model.fit(make_checkerboard(), np.random.default_rng(seed))


def score_by_library(model: Any, data: TrainingData) -> AnyArray:
    """The scores that the library gives each user for every item, in item order."""
    matrix = csr_matrix(data.train.binary)
    n_users, n_items = matrix.shape
    ids, scores = model.recommend(
        np.arange(n_users), matrix, N=n_items, filter_already_liked_items=False
    )
    table = np.zeros(matrix.shape)
    for user in range(n_users):
        listed = ids[user] >= 0
        table[user, ids[user][listed]] = scores[user][listed]
    return table


def test_als_factors_equal_those_of_the_library() -> None:
    from implicit.cpu.als import AlternatingLeastSquares
    from threadpoolctl import threadpool_limits

    factors = fit_model(ImplicitALS(embedding_size=5, reg=2.0, alpha=3.0, epochs=4), seed=11)
    seed = int(np.random.default_rng(11).integers(2**31))
    with threadpool_limits(1, "blas"):
        model = AlternatingLeastSquares(
            5, regularization=2.0, alpha=3.0, iterations=4, random_state=seed
        )
        model.fit(csr_matrix(make_checkerboard().train.binary), show_progress=False)
    np.testing.assert_array_equal(factors.user_factors, model.user_factors)
    np.testing.assert_array_equal(factors.item_factors, model.item_factors)


def test_als_of_one_pair_equals_the_closed_form() -> None:
    # one pair, one dimension: p and q converge to where both halves hold,
    # p = q c / (c q² + reg) with c = alpha = 1, so p q = 1 - reg and p = q
    data = TrainingData(make_interactions([(0, 0)]))
    model = ImplicitALS(embedding_size=1, reg=0.25, epochs=30)
    factors = model.fit(data, np.random.default_rng(0))
    assert factors.scores(np.array([0], dtype=np.int32))[0, 0] == pytest.approx(0.75, abs=1e-3)


def test_item_neighbourhood_scores_equal_those_of_the_library() -> None:
    from implicit.nearest_neighbours import CosineRecommender

    data = make_checkerboard()
    matrix = csr_matrix(data.train.binary)
    model = CosineRecommender(K=6)
    with pytest.warns(Warning, match="expects CSR input"):
        model.fit(matrix, show_progress=False)
    weights = fit_model(ImplicitItemKNN(neighbors=6)).weights
    ours = (data.train.binary @ weights).toarray()
    for user in range(3):
        ids, scores = model.recommend(user, matrix[user], filter_already_liked_items=False, N=25)
        np.testing.assert_allclose(ours[user, ids], scores, rtol=1e-5)


def test_cosine_weights_by_hand() -> None:
    # items 0 and 1 share user 0 of two users each: cosine 1/2; an item is its own neighbour
    data = TrainingData(make_interactions([(0, 0), (0, 1), (1, 0), (2, 1), (3, 2)]))
    state = ImplicitItemKNN(neighbors=2).fit(data, np.random.default_rng(0)).state()
    weights = restore_matrix(state).toarray()
    np.testing.assert_allclose(
        weights, [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]], atol=1e-6
    )


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize(
    ("model", "least"), [(ImplicitALS(), 0.28), (ImplicitItemKNN(neighbors=100), 0.245)], ids=type
)
def test_quality_on_movielens(movielens: Split, model: Any, least: float) -> None:
    # the library itself on another split: 0.285 and 0.252
    data = movielens.training_data()
    factors = model.fit(data, np.random.default_rng(0))
    lists = factors.recommend(recommending.query_all_users(data), 10, data)
    assert least < recommending.compute_mean_ndcg(lists, movielens) < least + 0.012


@pytest.mark.usefixtures("stage_warnings")
def test_fitted_scorer_returns_scores_of_library() -> None:
    from lenskit.data import ItemList, RecQuery
    from lenskit.knn import ItemKNNScorer

    data = make_checkerboard()
    scorer = ItemKNNScorer(max_nbrs=3, feedback="implicit")
    fitted = FittedScorer.train(scorer, data, np.random.default_rng(0))
    lists = fitted.recommend(query_all_users(data), 4, data)
    items = ItemList(item_nums=np.arange(data.train.n_items), vocabulary=fitted.dataset.items)
    for user in (0, 7, 39):
        query = RecQuery(user_id=user, history_items=fitted.dataset.user_row(user))
        scores = scorer(query, items).scores()
        assert scores[lists.items[user]].tolist() == lists.scores[user].tolist()


@pytest.mark.parametrize(("value", "warns"), [(5.0, True), (4.0, False)])
def test_equal_ratings_are_reported(value: float, warns: bool) -> None:
    train = make_interactions([(0, 0), (0, 1)], values=[5.0, value])
    with collect_warnings() as messages:
        warn_about_equal_ratings(TrainingData(train), "mine")
    assert bool(messages) == warns


def make_data() -> TrainingData:
    #      i0 i1 i2
    # u0   x  x
    # u1   x  x  x
    # u2      x
    # u3         x
    pairs = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (3, 2)]
    return TrainingData(make_interactions(pairs))


def recommend_to(model: Any, user: int) -> dict[int, float]:
    fitted = model.fit(make_data(), np.random.default_rng(0))
    lists = fitted.recommend(make_queries(["q"], [user]), 3, make_data())
    filled = lists.items[0] >= 0
    return dict(
        zip(lists.items[0][filled].tolist(), lists.scores[0][filled].tolist(), strict=True)
    )


def test_item_neighbour_scores_by_hand() -> None:
    # u2 has i1 (3 users); i0 (2 users) shares 2, i2 (2 users) shares 1
    scores = recommend_to(LensKitItemKNN(), 2)
    assert scores == pytest.approx({0: 2 / np.sqrt(6), 2: 1 / np.sqrt(6)})


def test_user_neighbour_scores_by_hand() -> None:
    # LensKit normalizes the rows of the neighbours, not that of the user:
    # u2 has i1; its similarity is 1/√2 to u0 (2 items), 1/√3 to u1 (3 items) and 0 to u3
    scores = recommend_to(LensKitUserKNN(), 2)
    assert scores == pytest.approx({0: 1 / np.sqrt(2) + 1 / np.sqrt(3), 2: 1 / np.sqrt(3)})


@pytest.mark.parametrize(
    "model", [LensKitItemKNN(feedback="explicit"), LensKitUserKNN(feedback="explicit")], ids=type
)
def test_equal_ratings_are_reported_of_lenskit_neighbours(model: Any) -> None:
    with collect_warnings() as messages:
        model.fit(make_data(), np.random.default_rng(0))
    assert any("all training ratings are 1" in message for message in messages)
