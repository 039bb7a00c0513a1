from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import TrainingData
from recbias.core.stage_context import collect_warnings, stage_context
from recbias.models.libraries.lenskit_adapter import (
    FittedScorer,
    as_dataset,
    note_equal_ratings,
    noted_warnings,
    trained,
    undisturbed,
)
from recbias.testing import make_checkerboard, query_all_users
from support.asked import make_queries
from support.worlds import make_interactions


def one_of_each() -> Interactions:
    pairs = [(2, 1), (0, 3), (2, 0)]
    return make_interactions(pairs, n_users=4, n_items=5, values=[3.0, 4.0, 5.0])


def test_the_numbers_of_the_dataset_are_our_codes() -> None:
    dataset = as_dataset(one_of_each())
    assert dataset.user_count == 4
    assert dataset.item_count == 5
    assert dataset.users.ids().tolist() == [0, 1, 2, 3]
    assert dataset.items.ids().tolist() == [0, 1, 2, 3, 4]
    row = dataset.user_row(2)
    assert sorted(zip(row.numbers().tolist(), row.field("rating").tolist(), strict=True)) == [
        (0, 5.0),
        (1, 3.0),
    ]


def test_the_last_of_repeated_rows_counts() -> None:
    dataset = as_dataset(make_interactions([(0, 0), (0, 1), (0, 0)], values=[1.0, 2.0, 5.0]))
    row = dataset.user_row(0)
    assert dict(zip(row.numbers().tolist(), row.field("rating").tolist(), strict=True)) == {
        0: 5.0,
        1: 2.0,
    }


def test_a_fitted_scorer_gives_the_library_s_scores() -> None:
    from lenskit.data import ItemList, RecQuery
    from lenskit.knn import ItemKNNScorer

    data = make_checkerboard()
    scorer = trained(
        ItemKNNScorer(max_nbrs=3, feedback="implicit"), data, np.random.default_rng(0)
    )
    fitted = FittedScorer.of(scorer, data)
    lists = fitted.recommend(query_all_users(data), 4, data)
    items = ItemList(item_nums=np.arange(data.train.n_items), vocabulary=fitted.dataset.items)
    for user in (0, 7, 39):
        query = RecQuery(user_id=user, history_items=fitted.dataset.user_row(user))
        scores = scorer(query, items).scores()
        assert scores[lists.items[user]].tolist() == lists.scores[user].tolist()


def test_many_users_are_scored_in_steps_that_are_reported() -> None:
    from lenskit.basic import PopScorer

    class Asked:
        """A scorer of the library that takes a query, as most do."""

        def __init__(self, scorer: PopScorer) -> None:
            self.scorer = scorer

        def __call__(self, query: object, items: object) -> object:
            return self.scorer(items)

    pairs = [(user, user % 3) for user in range(600)]
    data = TrainingData(make_interactions(pairs))
    fitted = FittedScorer.of(Asked(trained(PopScorer(), data, np.random.default_rng(0))), data)
    heard: list[tuple[str, int, int]] = []
    queries = make_queries([f"u{each}" for each in range(600)])
    with stage_context(on_progress=lambda *each: heard.append(each)):
        lists = fitted.recommend(queries, 2, data)
    assert len(lists) == 600
    assert heard == [("lists of Asked", done, 3) for done in range(4)]
    assert (lists.items >= 0).all()


def test_users_without_history_are_counted() -> None:
    from lenskit.knn import ItemKNNScorer

    data = make_checkerboard()
    scorer = trained(ItemKNNScorer(feedback="implicit"), data, np.random.default_rng(0))
    with collect_warnings() as notes:
        lists = FittedScorer.of(scorer, data).recommend(query_all_users(data), 4, data)
    assert (lists.items[-2:] == -1).all()
    assert notes == ["2 of 42 queries have an empty list: nothing to score"]


def test_threads_are_as_before_afterwards() -> None:
    import torch
    from threadpoolctl import threadpool_info

    def threads() -> list[int]:
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    before, blas = torch.get_num_threads(), threads()
    with undisturbed():
        assert torch.get_num_threads() == 1
        assert set(threads()) == {1}
    assert torch.get_num_threads() == before
    assert threads() == blas


def test_threads_are_as_before_after_an_error_too() -> None:
    import torch

    before = torch.get_num_threads()
    with pytest.raises(KeyError), undisturbed():
        raise KeyError
    assert torch.get_num_threads() == before


def test_what_the_library_warns_of_is_noted() -> None:
    import warnings

    with collect_warnings() as notes, noted_warnings():
        warnings.warn("it did not converge", UserWarning, stacklevel=1)
    assert notes == ["it did not converge"]


@pytest.mark.parametrize(("value", "noted"), [(5.0, True), (4.0, False)])
def test_equal_ratings_are_noted(value: float, noted: bool) -> None:
    train = make_interactions([(0, 0), (0, 1)], values=[5.0, value])
    with collect_warnings() as notes:
        note_equal_ratings(TrainingData(train), "mine")
    assert bool(notes) == noted


def test_no_rows_are_no_equal_ratings() -> None:
    with collect_warnings() as notes:
        note_equal_ratings(TrainingData(make_interactions([], n_users=1, n_items=1)), "mine")
    assert notes == []


def test_each_epoch_is_reported() -> None:
    from lenskit.als import ImplicitMFScorer

    heard: list[int] = []
    with stage_context(on_progress=lambda _, done, __: heard.append(done)):
        trained(ImplicitMFScorer(epochs=3), make_checkerboard(), np.random.default_rng(0))
    assert heard == [0, 1, 2, 3]


def test_a_query_that_is_no_user_has_an_empty_list() -> None:
    from lenskit.knn import ItemKNNScorer

    data = replace(make_checkerboard())
    scorer = trained(ItemKNNScorer(feedback="implicit"), data, np.random.default_rng(0))
    lists = FittedScorer.of(scorer, data).recommend(make_queries(["prompt"], [-1]), 2, data)
    assert lists.items.tolist() == [[-1, -1]]
