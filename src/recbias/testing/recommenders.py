"""The contract of a recommender."""

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
    HasResponses,
    HasSentenceScores,
    NamesItems,
    Output,
    Recommender,
    Restores,
    Storable,
)
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import collect_warnings
from recbias.testing.declared import check_dataclass, refuse
from recbias.testing.small_world import (
    N_ITEMS,
    N_SEEN,
    N_USERS,
    K,
    make_checkerboard,
    query_all_users,
)

TOLERANCE = 1e-4
"""Items whose scores differ by less than this proportion may be ranked either way."""

PROTOCOLS: dict[Output, type] = {
    "embeddings": HasEmbeddings,
    "sentence_scores": HasSentenceScores,
    "responses": HasResponses,
    "predictions": NamesItems,
}
"""The protocol of a fitted recommender that provides each output besides lists."""

PARTS = frozenset({"train", "times", "users", "items", "reviews", "validation"})
"""The parts of training data; ``times`` are those of the training interactions."""


@collect_warnings()
def check_recommender(
    plugin: Recommender, *, data: TrainingData | None = None, learns: bool = True
) -> None:
    """Check that a recommender meets the contract of its kind.

    It is a documented frozen dataclass with ``provides``, ``needs`` and ``libraries``. With the
    same seed it recommends the same lists. A list holds only candidates, no item twice and none of
    the user's training items, is sorted by score, ties by code, and padded at the end; it depends
    neither on the other queries nor on the length of the lists. A stored model gives the same
    lists. Embeddings have one row for each user and item.

    Args:
        plugin: The recommender with its settings.
        data: What it is fitted on, by default ``make_checkerboard()``.
        learns: Whether it must learn the checkerboard: that users prefer items of their colour.

    Raises:
        BrokenContract: It violates a rule.

    Example:
        check_recommender(MyModel(neighbors=5))
    """
    name = type(plugin).__name__
    check_dataclass(plugin, ("provides", "needs", "libraries"), name)
    refuse(set(plugin.provides) - set(get_args(Output)), name, "provides an unknown output")
    refuse(set(plugin.needs) - PARTS, name, "needs a part that training data does not have")
    train = make_checkerboard() if data is None else data
    fitted = plugin.fit(train, np.random.default_rng(0))
    for output, protocol in PROTOCOLS.items():
        missing = output in plugin.provides and not isinstance(fitted, protocol)
        refuse(missing, name, f"provides {output} but its fitted recommender does not")
    if "embeddings" in plugin.provides and isinstance(fitted, HasEmbeddings):
        _check_embeddings(fitted, train, name)
    if "lists" not in plugin.provides:
        return
    queries = query_all_users(train)
    lists = fitted.recommend(queries, K, train)
    _check_rules(lists, queries, train, name)
    refitted = plugin.fit(train, np.random.default_rng(0)).recommend(queries, K, train)
    refuse(not _are_equal(lists, refitted), name, "recommends other lists with the same seed")
    _check_lengths(fitted, lists, train, name)
    _check_single_queries(fitted, lists, train, name)
    _check_restored(plugin, fitted, lists, train)
    if learns and data is None:
        _check_learned(lists, name)


def _check_rules(lists: RankedLists, queries: Queries, data: TrainingData, name: str) -> None:
    from scipy.sparse import csr_array, vstack

    n_items = data.train.n_items
    no_row = csr_array((1, n_items), dtype=np.float32)  # of the query that is no user, code -1
    seen = vstack([data.train.binary, no_row]).tocsr()[queries.users]
    check_lists(lists, n_queries=len(queries), seen=seen, n_items=n_items, model=name)
    inside = lists.items[lists.filled & (lists.items < n_items)]
    refuse((~data.candidates[inside]).any(), name, "lists an item that is not a candidate")
    ties = (lists.scores[:, 1:] == lists.scores[:, :-1]) & lists.filled[:, 1:]
    falls = lists.items[:, 1:] < lists.items[:, :-1]
    refuse((ties & falls).any(), name, "does not sort items of equal score by code")


def _check_lengths(
    fitted: FittedRecommender, lists: RankedLists, data: TrainingData, name: str
) -> None:
    k = data.train.n_items + 3
    queries = query_all_users(data)
    long_lists = fitted.recommend(queries, k, data)
    refuse(long_lists.k != k, name, f"returns {long_lists.k} positions for k = {k}")
    _check_rules(long_lists, queries, data, name)
    same = _are_close(lists, long_lists.truncate(K))
    refuse(not same, name, "recommends other items in longer lists")
    no_lists = fitted.recommend(queries.take(np.arange(0)), K, data)
    refuse(len(no_lists), name, "returns lists without queries")


def _check_single_queries(
    fitted: FittedRecommender, lists: RankedLists, data: TrainingData, name: str
) -> None:
    queries = query_all_users(data)
    for row in (0, 1, len(queries) - 2, len(queries) - 1):
        alone = fitted.recommend(queries.take(np.array([row])), K, data)
        together = RankedLists(lists.items[row : row + 1], lists.scores[row : row + 1])
        refuse(not _are_close(together, alone), name, f"recommends query {row} other items alone")


def _check_restored(
    plugin: Recommender, fitted: FittedRecommender, lists: RankedLists, data: TrainingData
) -> None:
    if not isinstance(plugin, Restores):
        return
    name = type(plugin).__name__
    if not isinstance(fitted, Storable):
        raise BrokenContract(f"{name} has restore() but its fitted recommender has no state()")
    state = {key: np.array(array) for key, array in fitted.state().items()}
    objects = [key for key, array in state.items() if array.dtype.hasobject]
    refuse(objects, name, f"has objects in the state {objects}: return plain arrays")
    restored = plugin.restore(state).recommend(query_all_users(data), K, data)
    refuse(not _are_equal(lists, restored), name, "recommends other lists after it is restored")


def _check_embeddings(fitted: HasEmbeddings, data: TrainingData, name: str) -> None:
    embeddings = fitted.embeddings()
    for kind, vectors, n in (
        ("users", embeddings.users, data.train.n_users),
        ("items", embeddings.items, data.train.n_items),
    ):
        wrong = vectors is not None and (vectors.ndim != 2 or vectors.shape[0] != n)
        refuse(wrong, name, f"does not return one embedding for each of the {n} {kind}")


def _check_learned(lists: RankedLists, name: str) -> None:
    n_unseen = N_ITEMS // 2 - N_SEEN
    items = lists.items[:N_USERS, :n_unseen]
    hits = (items >= 0) & (items % 2 == np.arange(len(items))[:, None] % 2)
    violation = (
        f"does not learn the checkerboard: {hits.mean():.0%} of the first {n_unseen} items "
        "have the user's colour (at random 25%)"
    )
    refuse(hits.mean() < 0.9, name, violation)


def _are_equal(lists: RankedLists, expected: RankedLists) -> bool:
    return np.array_equal(lists.items, expected.items) and np.array_equal(
        lists.scores, expected.scores, equal_nan=True
    )


def _are_close(lists: RankedLists, expected: RankedLists) -> bool:
    """Return whether lists are equal up to rounding, which may exchange items of close scores."""
    tolerance = TOLERANCE * np.nan_to_num(np.abs(lists.scores)).max(initial=0.0)
    if not np.allclose(lists.scores, expected.scores, rtol=0, atol=tolerance, equal_nan=True):
        return False
    tied = np.abs(np.diff(lists.scores, axis=1)) <= tolerance
    column = np.ones((len(lists), 1), dtype=bool)
    exchangeable = np.hstack([~column, tied]) | np.hstack([tied, column])
    return bool(((lists.items == expected.items) | exchangeable).all())
