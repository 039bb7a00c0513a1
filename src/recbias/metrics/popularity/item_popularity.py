"""The popularity of items, aggregated over lists and histories.

The popularity of an item is its number of training interactions, its number of interactions in
all parts of the split, or a column of the items table.
Lists and histories are rows of a CSR matrix ``(rows, n_items)`` of ones; an *aggregate* computes
one value for each row from the values of its items. Items of unknown popularity (outside the
catalogue, or with a missing or negative cell in the column) are excluded and counted in a
warning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeAlias

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import BoolArray, FloatArray, Matrix
from recbias.core.errors import UnknownColumn
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.numerics.sparse.rows import build_rows

Cutoff: TypeAlias = Annotated[int, Gt(0)] | None
"""How many ranks of each list are evaluated; None evaluates all."""

Aggregate: TypeAlias = Callable[[Matrix, FloatArray], FloatArray]
"""From rows of items ``(n, n_items)`` and the value of each item to one value for each row; NaN is
undefined."""

COUNTS = (None, "train", "all")
"""The values of the setting ``popularity`` that count interactions."""

COLUMN = "items."
"""Before the name of a column that is called like one of them: ``items.all``."""

BLOCK_PAIRS = 2**22
"""The number of (row, item) pairs that are sorted at once."""


def is_counted(popularity: str | None) -> bool:
    """Return whether the setting ``popularity`` counts interactions; else it names a column."""
    return popularity in COUNTS


def read_popularity(evidence: Evidence, popularity: str | None) -> FloatArray:
    """Return the popularity of each item, ``float64[n_items]``; NaN if it is unknown.

    Args:
        evidence: The data.
        popularity: ``train`` or None for the number of training interactions, ``all`` for that of
            all interactions, else a column of the items.

    Raises:
        MissingEvidence: A column is given, and there is no items table.
        UnknownColumn: The items have no such column, or it is not numeric.
    """
    if popularity == "all":
        evidence.need("item_counts")
        return evidence.item_counts  # type: ignore[return-value]  # need() raises on None
    if popularity is None or is_counted(popularity):
        return evidence.popularity
    column = popularity.removeprefix(COLUMN)
    column = column if is_counted(column) else popularity
    evidence.need("items")
    try:
        numbers = evidence.items.numbers(column)  # type: ignore[union-attr]  # need() raises
    except UnknownColumn as error:
        error.where = "popularity"
        raise
    return np.where(numbers >= 0, numbers, np.nan)


def aggregate_lists(
    evidence: Evidence, values: FloatArray, aggregate: Aggregate, k: int | None
) -> FloatArray:
    """Return the aggregate of the first ``k`` items of each list, ``float64[q]``."""
    rows = build_list_matrix(evidence, k)
    warn_excluded_positions(evidence, k, int(np.count_nonzero(~np.isnan(values)[rows.indices])))
    return aggregate(rows, values)


def warn_excluded_positions(evidence: Evidence, k: int | None, n_known: int) -> None:
    """Warn of the positions of the lists that are excluded, all but ``n_known``."""
    n_listed = int(np.count_nonzero(evidence.ranked.items[:, :k] >= 0))
    n_inside = int(np.count_nonzero(evidence.in_catalogue[:, :k]))
    counts = {"no item of the catalogue": n_listed - n_inside}
    counts["an item of unknown popularity"] = n_inside - n_known
    for item, n in counts.items():
        if n:
            warn(f"{evidence.metric}: {n:,} positions of the lists hold {item} and are excluded")


def aggregate_histories(
    evidence: Evidence, values: FloatArray, aggregate: Aggregate
) -> FloatArray:
    """Return the aggregate of the training items of each query, ``float64[q]``.

    A query that is not a user has no history: NaN.
    """
    histories = build_history_matrix(evidence)
    if n_unknown := int(np.count_nonzero(np.isnan(values)[histories.indices])):
        message = "items of the histories have an unknown popularity and are excluded"
        warn(f"{evidence.metric}: {n_unknown:,} {message}")
    aggregates = aggregate(histories, values)
    return np.where(evidence.queries.users >= 0, aggregates, np.nan)


def aggregate_sets(sets: FloatArray, aggregate: Aggregate) -> FloatArray:
    """Return the aggregate of each row of values, ``float64[..., n]`` to ``float64[...]``."""
    from scipy.sparse import csr_array

    sets = np.asarray(sets, dtype=np.float64)
    n, values = sets.shape[-1], sets.ravel()
    starts = np.arange(0, values.size + 1, n)
    cells = (np.ones(values.size), np.arange(values.size), starts)
    rows = csr_array(cells, shape=(starts.size - 1, values.size))
    return aggregate(rows, values).reshape(sets.shape[:-1])


def average_rows(rows: Matrix, values: FloatArray) -> FloatArray:
    """Return the mean value of each row; NaN if none of its items has a value."""
    known = ~np.isnan(values)
    return _divide(rows @ np.where(known, values, 0.0), rows @ known.astype(np.float64))


def average_finite_rows(rows: Matrix, values: FloatArray) -> FloatArray:
    """Return the mean finite value of each row; NaN if none of its items has one."""
    return average_rows(rows, np.where(np.isfinite(values), values, np.nan))


def sum_rows(rows: Matrix, values: FloatArray) -> FloatArray:
    """Return the sum of the values of each row; NaN if none of its items has a value."""
    known = ~np.isnan(values)
    total: FloatArray = rows @ np.where(known, values, 0.0)
    return np.where(rows @ known.astype(np.float64) > 0, total, np.nan)


def herfindahl(rows: Matrix, values: FloatArray) -> FloatArray:
    """Return the sum of the squared shares of each row; NaN if its values sum to 0."""
    filled = np.where(np.isnan(values), 0.0, values)
    return _divide(rows @ filled**2, (rows @ filled) ** 2)


def gini(rows: Matrix, values: FloatArray) -> FloatArray:
    """Return the Gini index of the values of each row; NaN if they sum to 0."""
    from scipy.sparse import csr_array

    n_rows = rows.shape[0]
    size = max(1, BLOCK_PAIRS * n_rows // max(rows.nnz, 1))
    order = np.argsort(values)  # NaN comes last; the order of equal values does not matter
    rank = np.empty(order.size, dtype=np.int32)
    rank[order] = np.arange(order.size)
    known = ~np.isnan(values[order])
    ascending = np.where(known, values[order], 0.0)
    coefficients = [np.empty(0)]
    for start in range(0, n_rows, size):
        block = rows[start : start + size]
        cells = (np.ones(block.nnz), rank[block.indices], block.indptr)
        ranked = csr_array(cells, shape=block.shape)
        ranked.sort_indices()
        n, total = ranked @ known.astype(np.float64), ranked @ ascending
        starts = np.repeat(block.indptr[:-1], np.diff(block.indptr))
        ranked.data = np.arange(1, block.nnz + 1) - starts.astype(np.float64)
        coefficients.append(_divide(2.0 * (ranked @ ascending) - (n + 1.0) * total, n * total))
    return np.concatenate(coefficients)


def build_list_matrix(evidence: Evidence, k: int | None) -> Matrix:
    """Return which items of the catalogue each list holds: CSR ``(q, n_items)`` of ones."""
    items, known = evidence.ranked.items[:, :k], evidence.in_catalogue[:, :k]
    return build_rows(items, known, len(evidence.item_ids))


def build_history_matrix(evidence: Evidence) -> Matrix:
    """Return the training items of each query, CSR ``(q, n_items)``; none if it is not a user."""
    from scipy.sparse import csr_array, vstack

    evidence.need("train")
    histories = evidence.train.binary  # type: ignore[union-attr]  # need() raises on None
    users = evidence.queries.users
    if np.array_equal(users, np.arange(histories.shape[0])):
        return histories
    if (users >= 0).all():
        return histories[users]
    empty_row = csr_array((1, histories.shape[1]), dtype=histories.dtype)
    return vstack([histories, empty_row], format="csr")[users]


def mark_items(rows: Matrix) -> BoolArray:
    """Return which items are in a row, ``bool[n_items]``."""
    return np.bincount(rows.indices, minlength=rows.shape[1]) > 0


def _divide(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    undefined = np.full(numerator.shape, np.nan)
    ratio: FloatArray = np.divide(numerator, denominator, out=undefined, where=denominator > 0)
    return ratio
