"""The share of a group in the audience of each item, and the favourite items of each user."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.dataset.interactions import Interactions

DECILES = 10


def compute_audience_deciles(
    train: Interactions, a: AnyArray, b: AnyArray
) -> npt.NDArray[np.int64]:
    """Return the decile of each item by the share of group A among its users of A and B.

        decile = ⌊10 n_A / (n_A + n_B)⌋, and 9 for a share of 1

    A user counts once for an item; ``a`` and ``b`` are the codes of the users of A and of B.

    Returns:
        ``int64[n_items]``: 0 to 9; -1 for an item without users of A or B.
    """
    n_a, n_b = (
        np.bincount(train.binary[codes].indices, minlength=train.n_items).astype(np.int64)
        for codes in (a, b)
    )
    n_users = n_a + n_b
    deciles = np.minimum(DECILES * n_a // np.maximum(n_users, 1), DECILES - 1)
    return np.where(n_users > 0, deciles, -1)


def average_favourites(
    train: Interactions, vectors: AnyArray, users: AnyArray, n: int
) -> tuple[FloatArray, AnyArray]:
    """Return the mean vector of the favourite items of each user.

    The favourites are the ``n`` training items with the largest value (rating, or number of
    interactions if there are no ratings) among those with a vector; ties are resolved by code.

    Args:
        train: The training interactions.
        vectors: Vectors of the items, ``(n_items, d)``; a row of NaN for a missing vector.
        users: Codes of the users.
        n: Maximum number of favourites.

    Returns:
        ``float64 (m, d)``, and the ascending positions in ``users`` of the m users with
        favourites.
    """
    has_vector = np.asarray(np.isfinite(vectors).all(axis=1))
    entries = train.weighted[users].tocoo()
    usable = has_vector[entries.col]
    rows, items, values = entries.row[usable], entries.col[usable], entries.data[usable]
    order = np.lexsort((items, -values, rows))
    rows, items = rows[order], items[order]
    starts = np.searchsorted(rows, rows)  # the first entry of the row
    is_favourite = np.arange(rows.size) - starts < n
    rows, items = rows[is_favourite], items[is_favourite]
    positions, dense, counts = np.unique(rows, return_inverse=True, return_counts=True)
    totals = np.zeros((positions.size, vectors.shape[1]))
    np.add.at(totals, dense, vectors[items])
    return totals / counts[:, None], positions
