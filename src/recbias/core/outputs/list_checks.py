"""Validation of recommended lists before they are measured."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import BoolArray, Matrix
from recbias.core.errors import BrokenContract
from recbias.core.outputs.evidence import mark_contained
from recbias.core.outputs.ranked_lists import RankedLists


def check_lists(
    lists: RankedLists, *, n_queries: int, seen: Matrix | None, n_items: int, model: str
) -> None:
    """Check that lists are what a model must return; BrokenContract if they violate a rule.

    A list holds no item twice and no training item of its query (``seen``, CSR with sorted
    indices; None if lists may hold them). Empty positions are at its end. Scores do not increase;
    they are numbers, or NaN in the whole list. ``model`` is its name, for the message.
    """
    _check_shape(lists, n_queries, model)
    items, filled = lists.items, lists.filled
    n_codes = n_items + lists.outside.size
    unknown = (items < -1) | (items >= n_codes)
    remedy = "use the codes of data.train.item_ids"
    _reject(unknown, model, f"codes outside -1 to {n_codes - 1:,}", remedy)
    gap = ~filled[:, :-1] & filled[:, 1:]
    _reject(gap, model, "an item after an empty position", "put -1 at the end of a list only")
    ordered = np.sort(items, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    _reject(repeated, model, "an item twice", "list each item once")
    if seen is not None:
        remedy = "exclude the training items of the query"
        _reject(mark_contained(seen, lists), model, "a training item of the query", remedy)
    missing = np.isnan(lists.scores)
    unscored: BoolArray = np.all(missing | ~filled, axis=1, keepdims=True)
    nan = missing & filled & ~unscored
    _reject(nan, model, "a score of NaN", "score every item of a list, or none of them")
    rises = (lists.scores[:, 1:] > lists.scores[:, :-1]) & filled[:, 1:]
    _reject(rises, model, "scores that increase", "sort each list by decreasing score")


def _check_shape(lists: RankedLists, n_queries: int, model: str) -> None:
    items, scores = lists.items, lists.scores
    if items.ndim != 2 or items.dtype.kind != "i" or items.shape != scores.shape:
        message = (
            f"{model} returned items {items.dtype}{list(items.shape)} "
            f"and scores {scores.dtype}{list(scores.shape)}"
        )
        raise BrokenContract(message, remedy="return int32 items and float32 scores of one shape")
    if len(lists) != n_queries:
        message = f"{model} returned {len(lists):,} lists for {n_queries:,} queries"
        remedy = "return one list for each query, in the order of the queries"
        raise BrokenContract(message, remedy=remedy)


def _reject(violations: BoolArray, model: str, violation: str, remedy: str) -> None:
    if violations.any():
        queries = np.flatnonzero(violations.any(axis=1))
        message = (
            f"{model} returned {violation} in {queries.size:,} lists, "
            f"the first for query {queries[0]} (from 0)"
        )
        raise BrokenContract(message, remedy=remedy)
