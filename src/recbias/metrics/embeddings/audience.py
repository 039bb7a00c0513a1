"""Who takes which items: the share of a group in an audience, and the favourites of each user."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.dataset.interactions import Interactions

DECILES = 10


def audience_deciles(train: Interactions, a: AnyArray, b: AnyArray) -> npt.NDArray[np.int64]:
    """Return the decile of each item by the share of group A among its users of A and B.

        decile = ⌊10 n_A / (n_A + n_B)⌋, and 9 for a share of 1

    Args:
        train: The training interactions; a user counts once for an item.
        a: Codes of the users of A.
        b: Codes of the users of B.

    Returns:
        ``int64[n_items]``: 0 to 9; -1 where no user of either has the item.
    """
    of_a, of_b = (_users_of(train, codes) for codes in (a, b))
    both = of_a + of_b
    found = np.minimum(DECILES * of_a // np.maximum(both, 1), DECILES - 1)
    return np.where(both > 0, found, -1)


def favourite_centroids(
    train: Interactions, vectors: AnyArray, users: AnyArray, n: int
) -> tuple[FloatArray, AnyArray]:
    """Return the mean vector of the favourite items of users, and whose it is.

    The favourites are the ``n`` training items of the largest value (rating, or number of
    interactions where there are no ratings) among those with a vector; of equal ones those of
    lower code.

    Args:
        train: The training interactions.
        vectors: Vectors of the items, ``(n_items, d)``; a row of NaN where there is none.
        users: Codes of the users.
        n: How many favourites at most.

    Returns:
        ``float64 (m, d)``, and the places in ``users`` of the m users that have any, ascending.
    """
    known = np.asarray(np.isfinite(vectors).all(axis=1))
    held = train.weighted[users].tocoo()
    kept = known[held.col]
    rows, items, values = held.row[kept], held.col[kept], held.data[kept]
    order = np.lexsort((items, -values, rows))
    rows, items = rows[order], items[order]
    starts = np.searchsorted(rows, rows)  # where each row's entries begin
    first = np.arange(rows.size) - starts < n
    rows, items = rows[first], items[first]
    places, dense, counts = np.unique(rows, return_inverse=True, return_counts=True)
    totals = np.zeros((places.size, vectors.shape[1]))
    np.add.at(totals, dense, vectors[items])
    return totals / counts[:, None], places


def _users_of(train: Interactions, codes: AnyArray) -> npt.NDArray[np.int64]:
    own = train.binary[codes]
    return np.bincount(own.indices, minlength=train.n_items).astype(np.int64)
