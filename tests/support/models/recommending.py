"""Small data for which the best recommendation is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from recbias.core.dataset import Split, TrainingData
from recbias.core.evidence import RankedLists
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions


def make_checkerboard(side: int = 50) -> tuple[TrainingData, list[int]]:
    """Return users who like the items of their own colour, and the only unseen one of each.

    User u has every item i with (u + i) even except i = u, so that u is the best item.
    """
    pairs = [
        (user, item)
        for user in range(side)
        for item in range(side)
        if (user + item) % 2 == 0 and user != item
    ]
    return TrainingData(make_interactions(pairs)), list(range(side))


def make_random_data(
    rng: np.random.Generator, n_users: int = 60, n_items: int = 45
) -> TrainingData:
    """Return ratings of 1 to 5 from four latent tastes; some users and items have one rating."""
    tastes = rng.random((n_users, 4)) @ rng.random((4, n_items))
    users, items = np.nonzero(rng.random((n_users, n_items)) < tastes / 6)
    pairs = sorted({*zip(users.tolist(), items.tolist(), strict=True), (0, 0), (1, n_items - 1)})
    values = rng.integers(1, 6, len(pairs)).astype(float).tolist()
    return TrainingData(make_interactions(pairs, n_users=n_users, n_items=n_items, values=values))


def query_all_users(data: TrainingData, users: list[int] | None = None) -> Any:
    """Return a query for each of the users, all by default."""
    codes = list(range(data.train.n_users)) if users is None else users
    return make_queries([str(data.train.user_ids.ids[code]) for code in codes], codes)


def compute_mean_ndcg(lists: RankedLists, split: Split) -> float:
    """Return mean binary nDCG over users with test items; the ideal has min(n_test, k) hits."""
    relevant = split.test.binary.toarray() > 0
    n_relevant = relevant.sum(axis=1)
    hits = np.take_along_axis(relevant, np.maximum(lists.items, 0), 1) & lists.filled
    discounts = 1 / np.log2(np.arange(lists.k) + 2)
    ideal = np.append(0, np.cumsum(discounts))[np.minimum(n_relevant, lists.k)]
    tested = n_relevant > 0
    return float(((hits * discounts).sum(axis=1)[tested] / ideal[tested]).mean())
