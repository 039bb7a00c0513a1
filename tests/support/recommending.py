"""Small worlds of users and items on which it is known what to recommend."""

from __future__ import annotations

from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import Split, TrainingData
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.outputs.ranked_lists import RankedLists
from support.asked import asked
from support.worlds import rows


def checkerboard(side: int = 50) -> tuple[TrainingData, list[int]]:
    """Users like the items of their own colour; and the one such item that each does not have.

    User u has every item i with (u + i) even but i = u, so that u is the only sensible item.
    """
    pairs = [
        (user, item)
        for user in range(side)
        for item in range(side)
        if (user + item) % 2 == 0 and user != item
    ]
    return TrainingData(rows(pairs)), list(range(side))


def random_world(rng: np.random.Generator, n_users: int = 60, n_items: int = 45) -> TrainingData:
    """Four tastes, ratings of 1 to 5, users of one item and items of one user among them."""
    tastes = rng.random((n_users, 4)) @ rng.random((4, n_items))
    users, items = np.nonzero(rng.random((n_users, n_items)) < tastes / 6)
    pairs = sorted({*zip(users.tolist(), items.tolist(), strict=True), (0, 0), (1, n_items - 1)})
    values = rng.integers(1, 6, len(pairs)).astype(float).tolist()
    return TrainingData(rows(pairs, n_users=n_users, n_items=n_items, values=values))


def permuted(
    data: TrainingData, rng: np.random.Generator
) -> tuple[TrainingData, AnyArray, AnyArray]:
    """The same rows under other codes; and the new code of each user and of each item."""
    train = data.train
    users, items = rng.permutation(train.n_users), rng.permutation(train.n_items)
    user_ids, item_ids = np.empty_like(train.user_ids.ids), np.empty_like(train.item_ids.ids)
    user_ids[users], item_ids[items] = train.user_ids.ids, train.item_ids.ids
    shuffled = rng.permutation(len(train))
    moved = Interactions(
        users[train.users][shuffled].astype(np.int32),
        items[train.items][shuffled].astype(np.int32),
        train.values[shuffled],
        None,
        Vocabulary(user_ids),
        Vocabulary(item_ids),
    )
    return TrainingData(moved), users, items


def everybody(data: TrainingData, users: list[int] | None = None) -> Any:
    """A query for each user, or for some of them."""
    codes = list(range(data.train.n_users)) if users is None else users
    return asked([str(data.train.user_ids.ids[code]) for code in codes], codes)


def mean_ndcg(lists: RankedLists, split: Split) -> float:
    """Mean binary nDCG over the users with a test item, the ideal over min(n_test, k)."""
    assert split.test is not None
    relevant = split.test.binary.toarray() > 0
    n_relevant = relevant.sum(axis=1)
    found = np.take_along_axis(relevant, np.maximum(lists.items, 0), 1) & lists.filled
    discounts = 1 / np.log2(np.arange(lists.k) + 2)
    ideal = np.append(0, np.cumsum(discounts))[np.minimum(n_relevant, lists.k)]
    tested = n_relevant > 0
    return float(((found * discounts).sum(axis=1)[tested] / ideal[tested]).mean())
