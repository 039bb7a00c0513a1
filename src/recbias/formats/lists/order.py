"""The order of the items in lists from other tools, and the checks of these lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from recbias.core.arrays import BoolArray, Ids
from recbias.core.dataset.split import TrainingData
from recbias.core.dataset.vocabulary import Vocabulary, sort_naturally
from recbias.core.errors import BrokenContract, UnknownIdentifier
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.formats.lists.rows import ListRows

RowOrder = npt.NDArray[np.int64]

EXPLANATIONS: Mapping[str, Callable[[str], str]] = {
    "its ids have spaces around them: write them without": str.strip,
    "its ids are decimal numbers: write them as whole numbers": lambda key: key.removesuffix(".0"),
    "its ids begin with zeros that the dataset's lack": lambda text: text.lstrip("0"),
}
"""How another tool may have changed the ids, and the function that undoes it."""


def order_rows(rows: ListRows, dataset: str = "") -> tuple[ListRows, RowOrder]:
    """Return the rows of a dataset, and their order: list by list, the best item first.

    Rows with a score of minus infinity, which masks an item, are excluded with a warning.

    Raises:
        UnknownIdentifier: No row belongs to the dataset.
        BrokenContract: A list contains an item or a rank twice, a rank that is not a whole
            number, a score of NaN, or scores that increase with the rank.
    """
    rows = rows.of_dataset(dataset)
    if rows.scores is not None and (n_masked := np.isneginf(rows.scores).sum()):
        warn(f"{rows.path.name}: {n_masked:,} rows with a score of minus infinity are excluded")
        rows = rows.take(np.flatnonzero(~np.isneginf(rows.scores)))
    order = _sort(rows)
    _validate_lists(rows, order)
    return rows, order


def _sort(rows: ListRows) -> RowOrder:
    if rows.ranks is not None:
        return np.lexsort((rows.ranks, rows.queries))
    scores = rows.scores if rows.scores is not None else np.zeros(rows.queries.size)
    if rows.in_order:
        return np.lexsort((-scores, rows.queries))
    positions = np.empty(len(rows.item_ids), dtype=np.int64)
    positions[sort_naturally(rows.item_ids.ids)] = np.arange(positions.size)
    return np.lexsort((positions[rows.items], -scores, rows.queries))


def _validate_lists(rows: ListRows, order: RowOrder) -> None:
    keys = rows.queries.astype(np.int64) * len(rows.item_ids) + rows.items
    _refuse(rows, pd.Series(keys).duplicated().to_numpy(), "occurs twice in the list")
    queries = rows.queries[order]
    same_list = queries[1:] == queries[:-1]
    if rows.ranks is not None:
        not_whole = ~np.isfinite(rows.ranks) | (np.floor(rows.ranks) != rows.ranks)
        _refuse(rows, not_whole, "has a rank that is not a whole number")
        ranks = rows.ranks[order]
        repeated = same_list & (ranks[1:] == ranks[:-1])
        _refuse(rows, _mask_later(order, repeated), "repeats a rank in the list")
    if rows.scores is not None:
        _refuse(rows, np.isnan(rows.scores), "has a score of NaN")
        scores = rows.scores[order]
        rises = same_list & (scores[1:] > scores[:-1])
        message = "has a higher score than the item ranked before it"
        _refuse(rows, _mask_later(order, rises), message)


def _mask_later(order: RowOrder, wrong: BoolArray) -> BoolArray:
    """Return a mask over the rows of the file: the later row of each wrong pair in ``order``."""
    mask = np.zeros(order.size, dtype=bool)
    mask[order[1:][wrong]] = True
    return mask


def _refuse(rows: ListRows, wrong: BoolArray, problem: str) -> None:
    """Raise BrokenContract with the first wrong row and the number of the others."""
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        item = rows.item_ids.ids[rows.items[row]]
        query = rows.query_ids.ids[rows.queries[row]]
        n_more = int(wrong.sum()) - 1
        message = f"item {item!r} {problem} of query {query!r}"
        message += f", and {n_more:,} more such rows" if n_more else ""
        raise BrokenContract(message, where=rows.place(row))


def validate_queries(rows: ListRows, queries: Queries, data: TrainingData) -> None:
    """Raise UnknownIdentifier if no query of a file is a query or a user of the dataset.

    The remedy is the most likely explanation.
    """
    file_ids, users = rows.query_ids.ids, data.train.user_ids
    if not file_ids.size or _has_any(queries.ids, file_ids) or _has_any(users, file_ids):
        return
    message = (
        f"none of the {file_ids.size:,} queries of {rows.path.name} is evaluated: "
        f"it has {_list_some(file_ids)}, the queries are {_list_some(queries.ids.ids)}"
    )
    location = rows.place(0) if rows.queries.size else str(rows.path)
    raise UnknownIdentifier(message, where=location, remedy=_explain(rows, queries, data))


def _explain(rows: ListRows, queries: Queries, data: TrainingData) -> str:
    file_ids, query_ids = rows.query_ids.ids, queries.ids
    if _has_any(data.train.item_ids, file_ids) and _has_any(query_ids, rows.item_ids.ids):
        return "its columns of queries and items look swapped"
    for explanation, undo in EXPLANATIONS.items():
        if _has_any(query_ids, np.array([undo(text) for text in file_ids], dtype=object)):
            return explanation
    nearest = suggest(str(file_ids[0]), [str(query) for query in query_ids.ids])
    return f"use the ids of the dataset, not the internal numbers of a tool: {nearest}"


def _has_any(vocabulary: Vocabulary, ids: Ids) -> bool:
    return bool((vocabulary.find(ids) >= 0).any())


def _list_some(ids: Ids, n_listed: int = 3) -> str:
    return ", ".join(map(repr, ids[:n_listed])) + (", ..." if ids.size > n_listed else "")
