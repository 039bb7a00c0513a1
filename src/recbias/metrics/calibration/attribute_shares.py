"""The shares of the values of an item attribute in lists and histories."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from recbias.core.arrays import FloatArray, Matrix
from recbias.core.errors import NothingLeft, OutOfRange, UnknownColumn, WrongType
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.numerics.sparse.rows import build_rows

Discount: TypeAlias = Literal["none", "reciprocal", "log"]
"""The weight of rank r of a list: 1, 1 / r, or 1 / log2(r + 1)."""

Weight: TypeAlias = Literal["equal", "rating"]
"""The weight of an item of a history."""

DENSE_VALUES = 64
"""The largest number of values whose shares are arrays."""


def read_attribute_shares(evidence: Evidence, attribute: str) -> Matrix:
    """Return the share of each value in each item, CSR ``float64 (n_items, values)``.

    An item with m values has each with 1 / m; the row of an item without the attribute is empty. A
    numeric column within 0 and 1, such as the label of a detector, has two values: x and 1 - x.

    Raises:
        UnknownColumn: The items have no such column.
        WrongType: The column holds numbers that are neither within 0 and 1 nor whole.
        NothingLeft: No item has the attribute.
    """
    from scipy.sparse import csr_array, diags_array

    evidence.need("items")
    try:
        column = evidence.items.column(attribute)  # type: ignore[union-attr]  # need() raises
    except UnknownColumn as error:
        raise UnknownColumn(error.message, where="attribute", remedy=error.remedy) from error
    if column.isna().all():
        remedy = "choose a column that the items have"
        raise NothingLeft(f"no item has {attribute!r}", where="attribute", remedy=remedy)
    if column.dtype.kind == "f":
        numbers = column.to_numpy(dtype=np.float64)
        if np.nanmin(numbers) >= 0 and np.nanmax(numbers) <= 1:
            shares = csr_array(np.nan_to_num(np.column_stack([numbers, 1.0 - numbers])))
            shares.eliminate_zeros()
            return shares
    try:
        matrix = evidence.items.categories(attribute).matrix  # type: ignore[union-attr]
    except WrongType as error:
        raise WrongType(error.message, where="attribute", remedy=error.remedy) from error
    n_values = np.diff(matrix.indptr)
    return (diags_array(1.0 / np.maximum(n_values, 1)) @ matrix.astype(np.float64)).tocsr()


def share_lists(
    evidence: Evidence, shares: Matrix, discount: Discount, k: int | None, attribute: str
) -> Matrix | FloatArray:
    """Return the weighted share of each value in the first ``k`` items of each list.

    The shares are an array if there are few values, else CSR.
    Positions whose item does not have the attribute are excluded and counted in a warning.
    """
    items, counted = evidence.ranked.items[:, :k], evidence.in_catalogue[:, :k]
    has_attribute = np.append(np.diff(shares.indptr) > 0, [False])
    counted = counted & has_attribute[np.where(counted, items, -1)]
    n_excluded = int(np.count_nonzero(items >= 0)) - int(np.count_nonzero(counted))
    if n_excluded:
        message = f"hold an item without the attribute {attribute!r} and are excluded"
        warn(f"{evidence.metric}: {n_excluded:,} positions of the lists {message}")
    weights = _weigh_ranks(items.shape[1], discount)
    lists = build_rows(items, counted, len(evidence.item_ids), weights)
    return _normalize(lists @ _convert_few(shares))


def share_histories(evidence: Evidence, shares: Matrix, weight: Weight) -> Matrix | FloatArray:
    """Return the weighted share of each value in the history of each query.

    The shares are an array if there are few values, else CSR.

    Raises:
        OutOfRange: A rating is negative, and histories are weighted by ratings.
    """
    from scipy.sparse import csr_array, vstack

    evidence.need("train")
    train = evidence.train
    histories = train.binary if weight == "equal" else train.weighted  # type: ignore[union-attr]
    if histories.nnz and histories.data.min() < 0:
        message = f"a rating is {histories.data.min():g}, and a weight cannot be negative"
        raise OutOfRange(message, where="weight", remedy="choose weight: equal")
    users = _normalize(histories.astype(np.float64) @ _convert_few(shares))
    if np.array_equal(evidence.queries.users, np.arange(users.shape[0])):
        return users
    if isinstance(users, np.ndarray):
        return np.pad(users, ((0, 1), (0, 0)))[evidence.queries.users]
    no_history = csr_array((1, shares.shape[1]), dtype=np.float64)
    return vstack([users, no_history], format="csr")[evidence.queries.users]


def _weigh_ranks(k: int, discount: Discount) -> FloatArray:
    ranks = np.arange(1, k + 1, dtype=np.float64)
    weights = {"none": np.ones(k), "reciprocal": 1.0 / ranks, "log": 1.0 / np.log2(ranks + 1.0)}
    return weights[discount]


def _convert_few(shares: Matrix) -> Matrix | FloatArray:
    """Return the shares of a few values as an array, with which products are faster."""
    return shares.toarray() if shares.shape[1] <= DENSE_VALUES else shares


def _normalize(totals: Matrix | FloatArray) -> Matrix | FloatArray:
    """Return the rows divided by their sums, without cells of 0."""
    if isinstance(totals, np.ndarray):
        sums = totals.sum(axis=1, keepdims=True)
        return np.divide(totals, sums, out=totals, where=sums > 0)
    totals = totals.tocsr()
    totals.eliminate_zeros()
    totals.sort_indices()
    totals.data /= np.repeat(totals.sum(axis=1), np.diff(totals.indptr))
    return totals
