"""What every recommender of the house promises, on worlds small enough to look at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.list_checks import check_lists
from recbias.core.protocols import Restores, Storable
from recbias.core.stage_context import collect_warnings
from recbias.models.linear.linear import EASE, SLIM, PureSVD
from recbias.models.neighbours.knn import ItemKNN, UserKNN
from recbias.models.unpersonalised import MostPop, Random
from support.asked import asked
from support.recommending import checkerboard, everybody, permuted, random_world
from support.worlds import rows

PERSONAL = [
    ItemKNN(neighbors=10),
    ItemKNN(neighbors=7, similarity="asymmetric", alpha=0.3, shrink=2, weights="rating"),
    ItemKNN(similarity="jaccard"),
    UserKNN(neighbors=12),
    UserKNN(neighbors=60, similarity="dice", variant="elliot"),
    UserKNN(similarity="jaccard", weights="rating", shrink=1),
    PureSVD(factors=2),
    EASE(reg=5),
    SLIM(alpha=0.01, l1_ratio=0.1, neighbors=20),
]
ALL = [Random(), MostPop(), *PERSONAL]

every = pytest.mark.parametrize("model", ALL, ids=str)
personal = pytest.mark.parametrize("model", PERSONAL, ids=str)


def fitted(model: Any, data: TrainingData) -> Any:
    return model.fit(data, np.random.default_rng(7))


@every
@pytest.mark.parametrize("k", [1, 10, 100], ids="k={}".format)
def test_lists_are_sound_and_full(model: Any, k: int, rng: np.random.Generator) -> None:
    data = random_world(rng)
    lists = fitted(model, data).recommend(everybody(data), k, data)
    assert lists.k == k
    check_lists(lists, n_queries=60, seen=data.train.binary, n_items=45, who=str(model))
    shown = lists.items[lists.filled]
    assert data.candidates[shown].all()
    unseen = data.candidates.sum() - data.train.user_counts()
    known = data.train.user_counts() > 0
    assert np.array_equal(lists.filled.sum(axis=1)[known], np.minimum(unseen, k)[known])


@every
def test_many_at_once_is_one_at_a_time(model: Any, rng: np.random.Generator) -> None:
    data = random_world(rng)
    learned = fitted(model, data)
    together = learned.recommend(everybody(data), 10, data)
    for user in range(0, 60, 4):
        alone = learned.recommend(everybody(data, [user]), 10, data)
        assert alone.items[0].tolist() == together.items[user].tolist()
        np.testing.assert_allclose(alone.scores[0], together.scores[user], rtol=1e-5, atol=1e-6)


@every
def test_what_is_stored_gives_the_same_lists(model: Any, rng: np.random.Generator) -> None:
    data = random_world(rng)
    learned = fitted(model, data)
    state = {name: np.array(each) for name, each in learned.state().items()}
    first = learned.recommend(everybody(data), 10, data)
    second = model.restore(state).recommend(everybody(data), 10, data)
    assert np.array_equal(first.items, second.items)
    np.testing.assert_array_equal(first.scores, second.scores)
    assert isinstance(learned, Storable)
    assert isinstance(model, Restores)


@every
def test_the_same_seed_learns_the_same(model: Any, rng: np.random.Generator) -> None:
    data = random_world(rng)
    first, second = fitted(model, data).state(), fitted(model, data).state()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])


WITHOUT_TIES = [
    Random(),
    MostPop(),
    ItemKNN(),
    ItemKNN(similarity="asymmetric", alpha=0.3, shrink=2, weights="rating"),
    UserKNN(),
    UserKNN(similarity="jaccard", variant="elliot"),
    PureSVD(factors=2),
    EASE(reg=5),
    SLIM(alpha=0.01, l1_ratio=0.1, max_iter=500, tolerance=1e-7),
]
"""Models that keep all neighbours: which of equally near ones are kept hangs on their codes."""


@pytest.mark.parametrize("model", WITHOUT_TIES, ids=str)
def test_codes_are_names_only(model: Any, rng: np.random.Generator) -> None:
    """The items of a list are those of the same user in permuted data, where no score ties."""
    data = random_world(rng)
    other, users, items = permuted(data, rng)
    first = fitted(model, data).recommend(everybody(data), 10, data)
    second = fitted(model, other).recommend(everybody(other), 10, other)
    np.testing.assert_allclose(first.scores, second.scores[users], rtol=1e-4, atol=1e-5)
    gaps = np.diff(first.scores, axis=1, append=np.float32(np.nan))
    clear = (gaps < -1e-4) & (np.roll(gaps, 1, axis=1) < -1e-4)
    assert clear.sum() > 50 or isinstance(model, MostPop)
    assert np.array_equal(items[first.items][clear], second.items[users][clear])


@personal
def test_the_checkerboard_is_learned(model: Any) -> None:
    data, missing = checkerboard()
    lists = fitted(model, data).recommend(everybody(data), 1, data)
    assert lists.items[:, 0].tolist() == missing


@personal
def test_who_has_no_history_gets_an_empty_list(model: Any) -> None:
    data = TrainingData(rows([(0, 0), (0, 1), (1, 1), (1, 2)], n_users=3, n_items=4))
    learned = fitted(model, data)
    with collect_warnings() as notes:
        lists = learned.recommend(asked(["u0", "u2", "prompt"], [0, 2, -1]), 5, data)
    # item 3 has nobody: u0 can be given item 2 only
    assert lists.items.tolist() == [[2, -1, -1, -1, -1], [-1] * 5, [-1] * 5]
    assert notes == ["2 of 3 queries have no training history: empty lists"]


@pytest.mark.parametrize("model", [Random(), MostPop()], ids=str)
def test_models_that_do_not_look_have_a_list_for_everybody(model: Any) -> None:
    data = TrainingData(rows([(0, 0), (0, 1), (1, 1), (1, 2)], n_users=3, n_items=4))
    lists = fitted(model, data).recommend(asked(["u2", "prompt"], [2, -1]), 5, data)
    assert np.sort(lists.items, axis=1)[:, 2:].tolist() == [[0, 1, 2], [0, 1, 2]]


@every
def test_no_training_rows_at_all(model: Any) -> None:
    data = TrainingData(rows([], n_users=2, n_items=3))
    lists = fitted(model, data).recommend(everybody(data), 2, data)
    assert lists.items.tolist() == [[-1, -1], [-1, -1]]


@every
def test_parameters_are_plain_and_nothing_is_read(model: Any, tmp_path: Any) -> None:
    assert type(model)(**vars(model)) == model
    assert model.needs == {"train"}
    assert "lists" in model.provides
