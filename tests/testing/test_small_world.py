from __future__ import annotations

import numpy as np

from recbias.core.evidence import check_lists
from recbias.testing import (
    N_ITEMS,
    N_SEEN,
    N_USERS,
    make_checkerboard,
    make_random_evidence,
    query_all_users,
)


def test_users_have_eight_items_of_their_own_colour() -> None:
    train = make_checkerboard().train
    assert train.user_counts().tolist() == [N_SEEN] * N_USERS + [0]
    assert (train.users % 2 == train.items % 2).all()
    assert train.binary.nnz == N_USERS * N_SEEN


def test_every_item_but_the_last_is_a_candidate() -> None:
    assert make_checkerboard().candidates.tolist() == [True] * N_ITEMS + [False]


def test_the_checkerboard_is_always_the_same() -> None:
    train, again = make_checkerboard().train, make_checkerboard().train
    assert train.items.tolist() == again.items.tolist()
    assert train.values.tolist() == again.values.tolist()


def test_ratings_differ() -> None:
    assert set(make_checkerboard().train.values.tolist()) == {3.0, 4.0, 5.0}


def test_there_is_a_query_for_each_user_and_one_for_no_user() -> None:
    queries = query_all_users(make_checkerboard())
    assert queries.users.tolist() == [*range(N_USERS + 1), -1]
    assert queries.ids.ids[-1] == "nobody"


def test_the_random_lists_are_valid() -> None:
    evidence = make_random_evidence()
    assert evidence.train is not None
    history = evidence.train.binary
    lists = evidence.ranked
    check_lists(
        lists, n_queries=len(evidence.queries), seen=None, n_items=N_ITEMS + 1, model="random"
    )
    for query, row in enumerate(lists.items[:N_USERS]):
        assert not history[[query], :][:, row[row >= 0]].nnz
    assert lists.filled.sum(axis=1)[:3].tolist() == [0, 2, 6]


def test_predictions_rank_all_candidates_once() -> None:
    evidence = make_random_evidence()
    assert evidence.predictions is not None
    assert (np.sort(evidence.predictions.ranked, axis=1) == np.arange(N_ITEMS)).all()
    assert evidence.predictions.items[0] == N_ITEMS
    assert (evidence.predictions.items[1:] < N_ITEMS).all()


def test_test_items_are_not_training_items() -> None:
    evidence = make_random_evidence()
    assert evidence.train is not None
    assert evidence.relevant is not None
    both = evidence.relevant.toarray()[:-1] * evidence.train.binary.toarray()
    assert not both.any()
    assert evidence.n_relevant[-1] == 0
    assert np.median(evidence.n_relevant) >= 1
