from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recbias.core.dataset.split import TrainingData
from recbias.core.stage_context import collect_warnings
from recbias.models.libraries.lenskit_neighbours import (
    LensKitEASE,
    LensKitItemKNN,
    LensKitSLIM,
    LensKitUserKNN,
)
from recbias.testing import check_recommender, make_checkerboard
from support.asked import make_queries
from support.worlds import make_interactions


@pytest.mark.parametrize(
    "model",
    [
        LensKitItemKNN(),
        LensKitItemKNN(neighbors=3, saved_neighbors=8),
        LensKitUserKNN(),
        LensKitEASE(),
        LensKitSLIM(),
        LensKitSLIM(neighbors=8),
    ],
)
def test_it_keeps_the_contract(model: Any) -> None:
    check_recommender(model)


@pytest.mark.parametrize(
    "model", [LensKitItemKNN(feedback="explicit"), LensKitUserKNN(feedback="explicit")], ids=type
)
def test_models_of_ratings_keep_the_contract(model: Any) -> None:
    check_recommender(model, learns=False)


def world() -> TrainingData:
    #      i0 i1 i2
    # u0   x  x
    # u1   x  x  x
    # u2      x
    # u3         x
    pairs = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (3, 2)]
    return TrainingData(make_interactions(pairs))


def scores_of(model: Any, user: int) -> dict[int, float]:
    fitted = model.fit(world(), np.random.default_rng(0))
    lists = fitted.recommend(make_queries(["q"], [user]), 3, world())
    kept = lists.items[0] >= 0
    return dict(zip(lists.items[0][kept].tolist(), lists.scores[0][kept].tolist(), strict=True))


def test_item_neighbours_by_hand() -> None:
    # u2 has i1 (3 users); i0 (2 users) shares 2, i2 (2 users) shares 1
    scores = scores_of(LensKitItemKNN(), 2)
    assert scores == pytest.approx({0: 2 / np.sqrt(6), 2: 1 / np.sqrt(6)})


def test_the_best_neighbours_only() -> None:
    # u0 has i0 and i1; i2 shares 1 with each: 1/2 with i0 (2 users), 1/√6 with i1 (3 users)
    assert scores_of(LensKitItemKNN(), 0) == pytest.approx({2: 0.5 + 1 / np.sqrt(6)})
    assert scores_of(LensKitItemKNN(neighbors=1), 0) == pytest.approx({2: 0.5})
    assert scores_of(LensKitItemKNN(min_neighbors=3), 0) == {}
    assert scores_of(LensKitItemKNN(min_similarity=0.45), 0) == pytest.approx({2: 0.5})


def test_user_neighbours_by_hand() -> None:
    # LensKit takes the user's items as they are and the others' at length 1:
    # u2 has i1; u0 (2 items) is like it by 1/√2, u1 (3 items) by 1/√3, u3 by 0
    scores = scores_of(LensKitUserKNN(), 2)
    assert scores == pytest.approx({0: 1 / np.sqrt(2) + 1 / np.sqrt(3), 2: 1 / np.sqrt(3)})


def test_ease_by_hand() -> None:
    # one user with both items: G = [[1 + r, 1], [1, 1 + r]], P ~ [[1 + r, -1], [-1, 1 + r]],
    # W_01 = 1 / (1 + r)
    data = TrainingData(make_interactions([(0, 0), (0, 1)]))
    weights = LensKitEASE(reg=3.0).fit(data, np.random.default_rng(0)).state()["weights"]
    np.testing.assert_allclose(weights, [[0, 0.25], [0.25, 0]], atol=1e-6)


def test_ease_and_ours_agree(rng: np.random.Generator) -> None:
    from recbias.models.linear.ease import EASE

    data = make_checkerboard()
    theirs, ours = (model.fit(data, rng) for model in (LensKitEASE(reg=5.0), EASE(reg=5.0)))
    queries = make_queries(["a", "b"], [3, 8])
    first, second = (each.recommend(queries, 5, data) for each in (theirs, ours))
    np.testing.assert_allclose(first.scores, second.scores, atol=1e-5)


@pytest.mark.parametrize(("l1_reg", "empty"), [(0.1, False), (1000.0, True)])
def test_slim_is_sparse_where_it_is_asked_to_be(l1_reg: float, empty: bool) -> None:
    fitted = LensKitSLIM(l1_reg=l1_reg).fit(make_checkerboard(), np.random.default_rng(0))
    data = fitted.state()["data"]
    assert (data > 0).all()
    assert (data.size == 0) == empty


@pytest.mark.parametrize(
    "model", [LensKitItemKNN(feedback="explicit"), LensKitUserKNN(feedback="explicit")], ids=type
)
def test_equal_ratings_are_noted(model: Any) -> None:
    with collect_warnings() as notes:
        model.fit(world(), np.random.default_rng(0))
    assert any("all training ratings are 1" in each for each in notes)
