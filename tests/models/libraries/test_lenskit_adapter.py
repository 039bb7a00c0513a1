from __future__ import annotations

import numpy as np
import pytest

from recbias.core.context import collect_warnings, stage_context
from recbias.core.dataset import Interactions, TrainingData
from recbias.models.lenskit import (
    FittedScorer,
    forward_warnings,
    isolate_threads,
    to_lenskit_dataset,
    train_scorer,
    warn_about_equal_ratings,
)
from recbias.testing import make_checkerboard, query_all_users
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions


def make_ratings() -> Interactions:
    pairs = [(2, 1), (0, 3), (2, 0)]
    return make_interactions(pairs, n_users=4, n_items=5, values=[3.0, 4.0, 5.0])


def test_lenskit_numbers_equal_codes() -> None:
    dataset = to_lenskit_dataset(make_ratings())
    assert dataset.user_count == 4
    assert dataset.item_count == 5
    assert dataset.users.ids().tolist() == [0, 1, 2, 3]
    assert dataset.items.ids().tolist() == [0, 1, 2, 3, 4]
    row = dataset.user_row(2)
    assert sorted(zip(row.numbers().tolist(), row.field("rating").tolist(), strict=True)) == [
        (0, 5.0),
        (1, 3.0),
    ]


def test_last_of_repeated_rows_counts() -> None:
    dataset = to_lenskit_dataset(
        make_interactions([(0, 0), (0, 1), (0, 0)], values=[1.0, 2.0, 5.0])
    )
    row = dataset.user_row(0)
    assert dict(zip(row.numbers().tolist(), row.field("rating").tolist(), strict=True)) == {
        0: 5.0,
        1: 2.0,
    }


@pytest.mark.usefixtures("stage_warnings")
def test_fitted_scorer_returns_scores_of_library() -> None:
    from lenskit.data import ItemList, RecQuery
    from lenskit.knn import ItemKNNScorer

    data = make_checkerboard()
    scorer = train_scorer(
        ItemKNNScorer(max_nbrs=3, feedback="implicit"), data, np.random.default_rng(0)
    )
    fitted = FittedScorer.from_training(scorer, data)
    lists = fitted.recommend(query_all_users(data), 4, data)
    items = ItemList(item_nums=np.arange(data.train.n_items), vocabulary=fitted.dataset.items)
    for user in (0, 7, 39):
        query = RecQuery(user_id=user, history_items=fitted.dataset.user_row(user))
        scores = scorer(query, items).scores()
        assert scores[lists.items[user]].tolist() == lists.scores[user].tolist()


def test_progress_is_reported_per_block_of_queries() -> None:
    from lenskit.basic import PopScorer

    class QueryScorer:
        """A LensKit scorer that takes a query, like most of them."""

        def __init__(self, scorer: PopScorer) -> None:
            self.scorer = scorer

        def __call__(self, query: object, items: object) -> object:
            return self.scorer(items)

    pairs = [(user, user % 3) for user in range(600)]
    data = TrainingData(make_interactions(pairs))
    fitted = FittedScorer.from_training(
        QueryScorer(train_scorer(PopScorer(), data, np.random.default_rng(0))), data
    )
    reports: list[tuple[str, int, int]] = []
    queries = make_queries([f"u{user}" for user in range(600)])
    with stage_context(on_progress=lambda *report: reports.append(report)):
        lists = fitted.recommend(queries, 2, data)
    assert len(lists) == 600
    assert reports == [("lists of QueryScorer", done, 3) for done in range(4)]
    assert (lists.items >= 0).all()


def test_users_without_history_are_counted_in_a_warning() -> None:
    from lenskit.knn import ItemKNNScorer

    data = make_checkerboard()
    scorer = train_scorer(ItemKNNScorer(feedback="implicit"), data, np.random.default_rng(0))
    with collect_warnings() as messages:
        lists = FittedScorer.from_training(scorer, data).recommend(query_all_users(data), 4, data)
    assert (lists.items[-2:] == -1).all()
    assert messages == ["2 of 42 queries have no item with a score: empty lists"]


def test_number_of_threads_is_restored() -> None:
    import torch
    from threadpoolctl import threadpool_info

    def count_blas_threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before, blas = torch.get_num_threads(), count_blas_threads()
    with isolate_threads():
        assert torch.get_num_threads() == 1
        assert set(count_blas_threads()) == {1}
    assert torch.get_num_threads() == before
    assert count_blas_threads() == blas


def test_number_of_threads_is_restored_after_an_error() -> None:
    import torch

    before = torch.get_num_threads()
    with pytest.raises(KeyError), isolate_threads():
        raise KeyError
    assert torch.get_num_threads() == before


def test_warnings_of_the_library_are_reported() -> None:
    import warnings

    with collect_warnings() as messages, forward_warnings():
        warnings.warn("it did not converge", UserWarning, stacklevel=1)
    assert messages == ["it did not converge"]


@pytest.mark.parametrize(("value", "warns"), [(5.0, True), (4.0, False)])
def test_equal_ratings_are_reported(value: float, warns: bool) -> None:
    train = make_interactions([(0, 0), (0, 1)], values=[5.0, value])
    with collect_warnings() as messages:
        warn_about_equal_ratings(TrainingData(train), "mine")
    assert bool(messages) == warns


def test_no_ratings_are_not_equal_ratings() -> None:
    with collect_warnings() as messages:
        warn_about_equal_ratings(TrainingData(make_interactions([], n_users=1, n_items=1)), "mine")
    assert messages == []


def test_progress_is_reported_per_epoch() -> None:
    from lenskit.als import ImplicitMFScorer

    reports: list[int] = []
    with stage_context(on_progress=lambda _, done, __: reports.append(done)):
        train_scorer(ImplicitMFScorer(epochs=3), make_checkerboard(), np.random.default_rng(0))
    assert reports == [0, 1, 2, 3]


@pytest.mark.usefixtures("stage_warnings")
def test_query_without_user_has_an_empty_list() -> None:
    from lenskit.knn import ItemKNNScorer

    data = make_checkerboard()
    scorer = train_scorer(ItemKNNScorer(feedback="implicit"), data, np.random.default_rng(0))
    lists = FittedScorer.from_training(scorer, data).recommend(
        make_queries(["prompt"], [-1]), 2, data
    )
    assert lists.items.tolist() == [[-1, -1]]
