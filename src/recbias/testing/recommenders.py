"""What a recommender must keep."""

from __future__ import annotations

from typing import get_args

import numpy as np

from recbias.core.dataset.split import TrainingData
from recbias.core.errors import BrokenContract
from recbias.core.outputs.list_checks import check_lists
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import (
    FittedRecommender,
    HasEmbeddings,
    Output,
    Recommender,
    Restores,
    Storable,
)
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import collect_warnings
from recbias.testing.declared import check_dataclass, refuse
from recbias.testing.small_world import N_ITEMS, N_SEEN, N_USERS, K, checkerboard, everybody

CLOSE = 1e-4
"""Scores that differ by less than this share may be ranked either way."""

PARTS = frozenset({"train", "users", "items", "reviews", "validation"})
"""What training data may have."""


@collect_warnings()
def check_recommender(
    plugin: Recommender, *, data: TrainingData | None = None, learns: bool = True
) -> None:
    """Check that a recommender keeps what its kind promises.

    It declares itself; with one seed it gives the same lists twice; its lists hold no item twice,
    none of the user's own and no other than candidates, are ordered by score, ties by code, and
    padded at the end; a list is the same whoever else is asked and however long the lists are;
    what it learned can be stored; its vectors have the shape of the data; it learns the
    checkerboard.

    Args:
        plugin: The recommender.
        data: What to train it on; the checkerboard where it is None.
        learns: Whether it is one that learns whose items are whose, so that the checkerboard is
            a fair test. It is not made on other data.

    Raises:
        BrokenContract: It does not.
    """
    who = type(plugin).__name__
    _check_declared(plugin, who)
    world = checkerboard() if data is None else data
    fitted = plugin.fit(world, np.random.default_rng(0))
    if "embeddings" in plugin.provides:
        _check_embeddings(fitted, world, who)
    if "lists" not in plugin.provides:
        return
    queries = everybody(world)
    lists = fitted.recommend(queries, K, world)
    _check_promises(lists, queries, world, who)
    again = plugin.fit(world, np.random.default_rng(0)).recommend(queries, K, world)
    refuse(not _equal(lists, again), who, "gives other lists with the same seed")
    _check_lengths(fitted, lists, world, who)
    _check_company(fitted, lists, world, who)
    _check_stored(plugin, fitted, lists, world)
    if learns and data is None:
        _check_learned(lists, who)


def _check_declared(plugin: Recommender, who: str) -> None:
    check_dataclass(plugin, ("provides", "needs", "libraries"), who)
    refuse(set(plugin.provides) - set(get_args(Output)), who, "provides what is no output")
    refuse(set(plugin.needs) - PARTS, who, "needs what training data does not have")


def _check_promises(lists: RankedLists, queries: Queries, data: TrainingData, who: str) -> None:
    from scipy.sparse import csr_array, vstack

    n_items = data.train.n_items
    history = vstack([data.train.binary, csr_array((1, n_items), dtype=np.float32)]).tocsr()
    check_lists(
        lists, n_queries=len(queries), seen=history[queries.users], n_items=n_items, who=who
    )
    inside = lists.items[lists.filled & (lists.items < n_items)]
    refuse((~data.candidates[inside]).any(), who, "lists an item that is no candidate")
    ties = (lists.scores[:, 1:] == lists.scores[:, :-1]) & lists.filled[:, 1:]
    falls = lists.items[:, 1:] < lists.items[:, :-1]
    refuse((ties & falls).any(), who, "does not order items of one score by their codes")


def _check_lengths(
    fitted: FittedRecommender, lists: RankedLists, data: TrainingData, who: str
) -> None:
    longest = data.train.n_items + 3
    queries = everybody(data)
    long = fitted.recommend(queries, longest, data)
    refuse(long.k != longest, who, f"gives {long.k} places where {longest} were asked for")
    _check_promises(long, queries, data, who)
    refuse(not _alike(lists, long.cut(K)), who, "gives other items where longer lists are asked")
    refuse(
        len(fitted.recommend(queries.take(np.arange(0)), K, data)), who, "gives lists to no query"
    )


def _check_company(
    fitted: FittedRecommender, lists: RankedLists, data: TrainingData, who: str
) -> None:
    queries = everybody(data)
    for place in (0, 1, len(queries) - 2, len(queries) - 1):
        alone = fitted.recommend(queries.take(np.array([place])), K, data)
        own = RankedLists(lists.items[place : place + 1], lists.scores[place : place + 1])
        refuse(not _alike(own, alone), who, f"gives query {place} another list when alone")


def _check_stored(
    plugin: Recommender, fitted: FittedRecommender, lists: RankedLists, data: TrainingData
) -> None:
    who = type(plugin).__name__
    if not isinstance(plugin, Restores):
        return
    if not isinstance(fitted, Storable):
        raise BrokenContract(f"{who} has restore() but what it fits has no state()")
    state = {name: np.array(each) for name, each in fitted.state().items()}
    objects = [name for name, each in state.items() if each.dtype.hasobject]
    refuse(objects, who, f"has objects in the state {objects}: give plain arrays")
    restored = plugin.restore(state).recommend(everybody(data), K, data)
    refuse(not _equal(lists, restored), who, "gives other lists once it is restored")


def _check_embeddings(fitted: FittedRecommender, data: TrainingData, who: str) -> None:
    if not isinstance(fitted, HasEmbeddings):
        raise BrokenContract(f"{who} provides embeddings but what it fits has none")
    vectors = fitted.embeddings()
    for what, found, n in (
        ("users", vectors.users, data.train.n_users),
        ("items", vectors.items, data.train.n_items),
    ):
        wrong = found is not None and (found.ndim != 2 or found.shape[0] != n)
        refuse(wrong, who, f"does not give one vector for each of the {n} {what}")


def _check_learned(lists: RankedLists, who: str) -> None:
    unseen = N_ITEMS // 2 - N_SEEN
    first = lists.items[:N_USERS, :unseen]
    own = (first >= 0) & (first % 2 == np.arange(N_USERS)[:, None] % 2)
    found = f"does not learn the checkerboard: {own.mean():.0%} of the first {unseen} places"
    refuse(own.mean() < 0.9, who, f"{found} are of the user's colour (by chance 25%)")


def _equal(first: RankedLists, second: RankedLists) -> bool:
    return np.array_equal(first.items, second.items) and np.array_equal(
        first.scores, second.scores, equal_nan=True
    )


def _alike(first: RankedLists, second: RankedLists) -> bool:
    """Return whether lists are the same but for rounding, which may turn near ties round."""
    near = CLOSE * np.nan_to_num(np.abs(first.scores)).max(initial=0.0)
    if not np.allclose(first.scores, second.scores, rtol=0, atol=near, equal_nan=True):
        return False
    tied = np.abs(np.diff(first.scores, axis=1)) <= near
    column = np.ones((len(first), 1), dtype=bool)
    loose = np.hstack([~column, tied]) | np.hstack([tied, column])
    return bool(((first.items == second.items) | loose).all())
