"""How popular the items of a list or a history are: what the popularity metrics share.

The popularity of an item is its number of training interactions, or a column of the items table.
Lists and histories are both rows of a CSR matrix ``(rows, n_items)`` of ones; a *level* turns them
and the worth of each item into one value a row. Items of unknown popularity (outside the
catalogue, or with a missing or negative cell in the column) are left out, and counted in a
warning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Matrix
from recbias.core.errors import OutOfRange, UnknownColumn
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn

Cutoff: TypeAlias = Annotated[int, Gt(0)] | None
"""How much of each list is measured; None is all of it."""

Level: TypeAlias = Callable[[Matrix, FloatArray], FloatArray]
"""Rows of items ``(n, n_items)`` and the worth of each item to one value a row; NaN undefined."""

NEEDS = frozenset({"lists", "train"})
"""What is read where the popularity is the number of training interactions."""

COLUMN_NEEDS = frozenset({"lists", "items"})
"""What is read of a list where the popularity is a column of the items."""

BLOCK_PAIRS = 2**22
"""How many (row, item) pairs are sorted at once."""

MOST_NAMED = 5
"""How many items an error names."""


def popularity_of(evidence: Evidence, column: str | None) -> FloatArray:
    """Return the popularity of each item, ``float64[n_items]``; NaN where it is unknown.

    Args:
        evidence: The facts.
        column: The column of the items that says it; None takes the training interactions.

    Raises:
        MissingEvidence: A column is named, and there is no items table.
        UnknownColumn: The column is not there, or is not numeric.
    """
    if column is None:
        return evidence.popularity
    evidence.need("items")
    try:
        numbers = evidence.items.numbers(column)  # type: ignore[union-attr]  # need() raises
    except UnknownColumn as error:
        error.where = "popularity"
        raise
    return np.where(numbers >= 0, numbers, np.nan)


def compared(
    evidence: Evidence, worth: FloatArray, level: Level, k: int | None
) -> tuple[FloatArray, FloatArray]:
    """Return the level of each list and of each history, both ``float64[q]``."""
    return of_lists(evidence, worth, level, k), of_histories(evidence, worth, level)


def of_lists(evidence: Evidence, worth: FloatArray, level: Level, k: int | None) -> FloatArray:
    """Return the level of the first ``k`` items of each list, ``float64[q]``."""
    rows = list_rows(evidence, k)
    filled = int(np.count_nonzero(evidence.ranked.items[:, :k] >= 0))
    strangers = filled - int(np.count_nonzero(~np.isnan(worth)[rows.indices]))
    if strangers:
        what = "hold an item without a popularity that counts, and are left out"
        warn(f"{evidence.metric}: {strangers:,} places of the lists {what}")
    return level(rows, worth)


def of_histories(evidence: Evidence, worth: FloatArray, level: Level) -> FloatArray:
    """Return the level of the training items of each query, ``float64[q]``.

    A query that is no user has no history: NaN.
    """
    evidence.need("train")
    histories = evidence.train.binary  # type: ignore[union-attr]  # need() raises on None
    users = evidence.queries.users
    unknown = np.isnan(worth)
    if unknown.any():
        strangers = np.append(histories @ unknown.astype(np.float64), 0.0)[users].sum()
        what = "have no popularity that counts, and are left out"
        if strangers:
            warn(f"{evidence.metric}: {int(strangers):,} items of the histories {what}")
    return np.append(level(histories, worth), np.nan)[users]


def of_sets(values: FloatArray, level: Level) -> FloatArray:
    """Return the level of sets that are given by the worth of their items.

    Args:
        values: ``float64[..., n]``: a set in each row.
        level: What is worked out of a set.

    Returns:
        ``float64[...]``.
    """
    from scipy.sparse import csr_array

    sets = np.asarray(values, dtype=np.float64)
    n, flat = sets.shape[-1], sets.ravel()
    starts = np.arange(0, flat.size + 1, n)
    places = np.arange(flat.size)
    rows = csr_array((np.ones(flat.size), places, starts), shape=(starts.size - 1, flat.size))
    return level(rows, flat).reshape(sets.shape[:-1])


def means(rows: Matrix, worth: FloatArray) -> FloatArray:
    """Return the mean worth of each row; NaN where none of its items has one."""
    known = ~np.isnan(worth)
    return _ratio(rows @ np.where(known, worth, 0.0), rows @ known.astype(np.float64))


def sums(rows: Matrix, worth: FloatArray) -> FloatArray:
    """Return the total worth of each row; NaN where none of its items has one."""
    known = ~np.isnan(worth)
    total: FloatArray = rows @ np.where(known, worth, 0.0)
    return np.where(rows @ known.astype(np.float64) > 0, total, np.nan)


def herfindahl(rows: Matrix, worth: FloatArray) -> FloatArray:
    """Return the sum of the squared shares of each row; NaN where it has no worth at all."""
    known = np.where(np.isnan(worth), 0.0, worth)
    return _ratio(rows @ known**2, (rows @ known) ** 2)


def gini(rows: Matrix, worth: FloatArray) -> FloatArray:
    """Return the Gini index of the worth in each row; NaN where it has no worth at all."""
    n_rows = rows.shape[0]
    size = max(1, BLOCK_PAIRS * n_rows // max(rows.nnz, 1))
    order = np.argsort(worth, kind="stable")  # NaN goes behind all numbers
    parts = [_gini(rows[at : at + size], worth, order) for at in range(0, n_rows, size)]
    return np.concatenate([np.empty(0), *parts])


def _gini(rows: Matrix, worth: FloatArray, order: AnyArray) -> FloatArray:
    """Return the Gini index of rows, by the ranks that their items have among each other."""
    from scipy.sparse import csr_array

    place = np.empty(order.size, dtype=np.int32)
    place[order] = np.arange(order.size)
    ranked = csr_array((np.ones(rows.nnz), place[rows.indices], rows.indptr), shape=rows.shape)
    ranked.sort_indices()
    known = ~np.isnan(worth[order])
    ascending = np.where(known, worth[order], 0.0)
    n, total = ranked @ known.astype(np.float64), ranked @ ascending
    starts = np.repeat(rows.indptr[:-1], np.diff(rows.indptr))
    ranked.data = np.arange(1, rows.nnz + 1) - starts.astype(np.float64)
    return _ratio(2.0 * (ranked @ ascending) - (n + 1.0) * total, n * total)


def list_rows(evidence: Evidence, k: int | None) -> Matrix:
    """Return which items of the catalogue each list holds: CSR ``(q, n_items)`` of ones."""
    from scipy.sparse import csr_array

    items, held = evidence.ranked.items[:, :k], evidence.in_catalogue[:, :k]
    starts = np.concatenate([[0], np.cumsum(np.count_nonzero(held, axis=1))])
    shape = (len(items), len(evidence.item_ids))
    return csr_array((np.ones(starts[-1]), items[held], starts), shape=shape)


def histories_of(evidence: Evidence) -> Matrix:
    """Return the training items of each query, CSR ``(q, n_items)``; none where it is no user."""
    from scipy.sparse import csr_array, vstack

    evidence.need("train")
    histories = evidence.train.binary  # type: ignore[union-attr]  # need() raises on None
    nobody = csr_array((1, histories.shape[1]), dtype=histories.dtype)
    return vstack([histories, nobody], format="csr")[evidence.queries.users]


def refuse_zeros(evidence: Evidence, popularity: FloatArray, used: BoolArray) -> None:
    """Raise OutOfRange, naming the items, where an item that is used has popularity 0.

    Args:
        evidence: The facts.
        popularity: ``float64[n_items]``.
        used: Which items stand in a list or a history, ``bool[n_items]``.
    """
    zeros = np.flatnonzero(used & (popularity == 0))
    if not zeros.size:
        return
    named = ", ".join(evidence.item_ids.ids[zeros[:MOST_NAMED]])
    more = ", ..." if zeros.size > MOST_NAMED else ""
    found = f"{zeros.size:,} item(s) have popularity 0, which has no logarithm: {named}{more}"
    remedy = "give smoothing: 1 to add 1 to every popularity, or leave these items out"
    raise OutOfRange(found, where="smoothing", remedy=remedy)


def in_lists(evidence: Evidence, k: int | None) -> BoolArray:
    """Return which items stand in a list, ``bool[n_items]``."""
    held = evidence.ranked.items[:, :k][evidence.in_catalogue[:, :k]]
    return np.bincount(held, minlength=len(evidence.item_ids)) > 0


def in_histories(evidence: Evidence) -> BoolArray:
    """Return which items stand in the history of a query, ``bool[n_items]``."""
    evidence.need("train")
    histories = evidence.train.binary  # type: ignore[union-attr]  # need() raises on None
    users = evidence.queries.users
    asked = np.bincount(users[users >= 0], minlength=histories.shape[0]) > 0
    held: BoolArray = (histories.T @ asked.astype(np.float64)) > 0
    return held


def measured(evidence: Evidence, values: FloatArray) -> Sequence[Measurement]:
    """Return the one measurement of a value a query."""
    queries = evidence.queries
    return [Measurement.from_units(UnitScores(queries.unit, queries.ids.ids, values))]


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    undefined = np.full(above.shape, np.nan)
    found: FloatArray = np.divide(above, below, out=undefined, where=below > 0)
    return found
