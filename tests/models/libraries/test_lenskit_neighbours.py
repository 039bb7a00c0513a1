from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import TrainingData
from recbias.models.lenskit import LensKitEASE, LensKitItemKNN, LensKitSLIM, LensKitUserKNN
from recbias.testing import make_checkerboard
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions


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


def test_ease_equals_the_ease_of_this_package(rng: np.random.Generator) -> None:
    from recbias.models.linear import EASE

    data = make_checkerboard()
    library, own_model = (model.fit(data, rng) for model in (LensKitEASE(reg=5.0), EASE(reg=5.0)))
    queries = make_queries(["a", "b"], [3, 8])
    first, second = (model.recommend(queries, 5, data) for model in (library, own_model))
    np.testing.assert_allclose(first.scores, second.scores, atol=1e-5)


@pytest.mark.parametrize(("l1_reg", "empty"), [(0.1, False), (1000.0, True)])
def test_slim_weights_are_positive_and_vanish_under_a_large_l1_reg(
    l1_reg: float, empty: bool
) -> None:
    fitted = LensKitSLIM(l1_reg=l1_reg).fit(make_checkerboard(), np.random.default_rng(0))
    data = fitted.state()["data"]
    assert (data > 0).all()
    assert (data.size == 0) == empty


@pytest.mark.parametrize(
    "model", [LensKitItemKNN(feedback="explicit"), LensKitUserKNN(feedback="explicit")], ids=type
)
def test_equal_ratings_are_reported(model: Any) -> None:
    with collect_warnings() as messages:
        model.fit(make_data(), np.random.default_rng(0))
    assert any("all training ratings are 1" in message for message in messages)
