from __future__ import annotations

import numpy as np

from recbias.core.outputs.list_checks import check_lists
from recbias.testing.small_world import (
    N_ITEMS,
    N_SEEN,
    N_USERS,
    checkerboard,
    everybody,
    random_evidence,
)


def test_everybody_has_eight_items_of_the_own_colour() -> None:
    train = checkerboard().train
    assert train.user_counts().tolist() == [N_SEEN] * N_USERS + [0]
    assert (train.users % 2 == train.items % 2).all()
    assert train.binary.nnz == N_USERS * N_SEEN


def test_every_item_but_the_last_is_a_candidate() -> None:
    assert checkerboard().candidates.tolist() == [True] * N_ITEMS + [False]


def test_it_is_the_same_each_time() -> None:
    first, second = checkerboard().train, checkerboard().train
    assert first.items.tolist() == second.items.tolist()
    assert first.values.tolist() == second.values.tolist()


def test_ratings_differ() -> None:
    assert set(checkerboard().train.values.tolist()) == {3.0, 4.0, 5.0}


def test_everybody_is_asked_and_one_who_is_nobody() -> None:
    queries = everybody(checkerboard())
    assert queries.users.tolist() == [*range(N_USERS + 1), -1]
    assert queries.ids.ids[-1] == "nobody"


def test_the_evidence_keeps_what_lists_promise() -> None:
    evidence = random_evidence()
    assert evidence.train is not None
    history = evidence.train.binary
    lists = evidence.ranked
    check_lists(
        lists, n_queries=len(evidence.queries), seen=None, n_items=N_ITEMS + 1, who="random"
    )
    for query, row in enumerate(lists.items[:N_USERS]):
        assert not history[[query], :][:, row[row >= 0]].nnz
    assert lists.filled.sum(axis=1)[:3].tolist() == [0, 2, 6]


def test_every_review_is_told_all_candidates_once() -> None:
    evidence = random_evidence()
    assert evidence.predictions is not None
    assert (np.sort(evidence.predictions.ranked, axis=1) == np.arange(N_ITEMS)).all()
    assert evidence.predictions.items[0] == N_ITEMS
    assert (evidence.predictions.items[1:] < N_ITEMS).all()


def test_test_items_are_no_training_items() -> None:
    evidence = random_evidence()
    assert evidence.train is not None
    assert evidence.relevant is not None
    both = evidence.relevant.toarray()[:-1] * evidence.train.binary.toarray()
    assert not both.any()
    assert evidence.n_relevant[-1] == 0
    assert np.median(evidence.n_relevant) >= 1
