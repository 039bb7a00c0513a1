"""The order of the items of lists made elsewhere, and what no list may hold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from recbias.core.arrays import BoolArray
from recbias.core.dataset.vocabulary import natural_order
from recbias.core.errors import BrokenContract
from recbias.core.stage_context import warn
from recbias.formats.lists.rows import ListRows

Places = npt.NDArray[np.int64]


def ordered(rows: ListRows, dataset: str = "") -> tuple[ListRows, Places]:
    """Return the rows that count for a dataset, and their order: list by list, the best first.

    Raises:
        UnknownIdentifier: No row is of the dataset.
        BrokenContract: A list holds an item or a rank twice, a rank that is no whole number, a
            score of NaN, or scores that rise along the ranks.
    """
    own = _unmasked(rows.of_dataset(dataset))
    order = _order(own)
    _check(own, order)
    return own, order


def _unmasked(rows: ListRows) -> ListRows:
    """Return the rows without those whose score is minus infinity."""
    if rows.scores is None or not np.isneginf(rows.scores).any():
        return rows
    kept = np.flatnonzero(~np.isneginf(rows.scores))
    left_out = rows.scores.size - kept.size
    warn(f"{rows.path.name}: {left_out:,} rows with a score of minus infinity: left out")
    return rows.take(kept)


def _order(rows: ListRows) -> Places:
    if rows.ranks is not None:
        return np.lexsort((rows.ranks, rows.queries))
    scores = rows.scores if rows.scores is not None else np.zeros(rows.queries.size)
    if rows.in_order:
        return np.lexsort((-scores, rows.queries))
    natural = np.empty(len(rows.item_ids), dtype=np.int64)
    natural[natural_order(rows.item_ids.ids)] = np.arange(natural.size)
    return np.lexsort((natural[rows.items], -scores, rows.queries))


def _check(rows: ListRows, order: Places) -> None:
    keys = rows.queries.astype(np.int64) * len(rows.item_ids) + rows.items
    _refuse(rows, pd.Series(keys).duplicated().to_numpy(), "stands twice in the list")
    queries = rows.queries[order]
    same_list = queries[1:] == queries[:-1]
    if rows.ranks is not None:
        _refuse(
            rows,
            ~np.isfinite(rows.ranks) | (np.floor(rows.ranks) != rows.ranks),
            "has a rank that is not a whole number",
        )
        ranks = rows.ranks[order]
        twice = same_list & (ranks[1:] == ranks[:-1])
        _refuse(rows, _later(order, twice), "has a rank that the list has before")
    if rows.scores is not None:
        _refuse(rows, np.isnan(rows.scores), "has a score of NaN")
        scores = rows.scores[order]
        rises = same_list & (scores[1:] > scores[:-1])
        _refuse(rows, _later(order, rises), "has a higher score than the item ranked before it")


def _later(order: Places, wrong: BoolArray) -> BoolArray:
    """Return a mask over the rows of the file: the later one of each wrong pair in ``order``."""
    mask = np.zeros(order.size, dtype=bool)
    mask[order[1:][wrong]] = True
    return mask


def _refuse(rows: ListRows, wrong: BoolArray, what: str) -> None:
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        item = rows.item_ids.ids[rows.items[row]]
        query = rows.query_ids.ids[rows.queries[row]]
        more = int(wrong.sum()) - 1
        found = f"item {item!r} {what} of query {query!r}"
        raise BrokenContract(
            found + (f", and {more:,} more such rows" if more else ""), where=rows.place(row)
        )
