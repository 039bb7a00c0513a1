"""What every model promises of its lists, checked before anything is measured on them."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import BoolArray, Matrix
from recbias.core.errors import BrokenContract
from recbias.core.outputs.evidence import mark_contained
from recbias.core.outputs.ranked_lists import RankedLists


def check_lists(
    lists: RankedLists, *, n_queries: int, seen: Matrix | None, n_items: int, who: str
) -> None:
    """Refuse lists that are not what a model promises.

    A list holds no item twice and none of the query's own training items; places that hold none
    are at its end; scores fall or stay, and are numbers, or are NaN in the whole list.

    Args:
        lists: The lists, ``(n_queries, k)``.
        n_queries: How many queries were asked.
        seen: CSR ``(n_queries, n_items)`` with sorted indices: the training items of each query.
            None where they may be listed.
        n_items: The size of the catalogue.
        who: The model, for the message.

    Raises:
        BrokenContract: One of the promises is not kept.
    """
    _check_shape(lists, n_queries, who)
    items, filled = lists.items, lists.filled
    last = n_items + lists.outside.size
    codes = (items < -1) | (items >= last)
    _refuse(codes, who, f"codes outside -1 to {last - 1:,}", "give codes of data.train.item_ids")
    gap = ~filled[:, :-1] & filled[:, 1:]
    _refuse(gap, who, "an item after an empty place", "put -1 at the end of a list only")
    _refuse(_repeats(lists), who, "an item twice", "give each item once in a list")
    if seen is not None:
        remedy = "leave out the training items of the query"
        _refuse(
            mark_contained(seen, lists), who, "an item of the query's own training rows", remedy
        )
    _check_scores(lists, who)


def _check_shape(lists: RankedLists, n_queries: int, who: str) -> None:
    items, scores = lists.items, lists.scores
    if items.ndim != 2 or items.dtype.kind != "i" or items.shape != scores.shape:
        found = (
            f"{who} gave items {items.dtype}{list(items.shape)} "
            f"and scores {scores.dtype}{list(scores.shape)}"
        )
        raise BrokenContract(found, remedy="give int32 items and float32 scores of one shape")
    if len(lists) != n_queries:
        found = f"{who} gave {len(lists):,} lists for {n_queries:,} queries"
        raise BrokenContract(found, remedy="give one list a query, in the order of the queries")


def _check_scores(lists: RankedLists, who: str) -> None:
    filled, missing = lists.filled, np.isnan(lists.scores)
    unscored: BoolArray = np.all(missing | ~filled, axis=1, keepdims=True)
    nan = missing & filled & ~unscored
    _refuse(nan, who, "a score of NaN", "score every item of a list, or none of them")
    before, after = lists.scores[:, :-1], lists.scores[:, 1:]
    rising = (after > before) & filled[:, 1:]
    _refuse(rising, who, "scores that rise", "order each list from the best score down")


def _repeats(lists: RankedLists) -> BoolArray:
    ordered = np.sort(lists.items, axis=1)
    found: BoolArray = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    return found


def _refuse(wrong: BoolArray, who: str, what: str, remedy: str) -> None:
    if wrong.any():
        rows = np.flatnonzero(wrong.any(axis=1))
        found = f"{who} gave {what} in {rows.size:,} lists, the first for query {rows[0]} (from 0)"
        raise BrokenContract(found, remedy=remedy)
