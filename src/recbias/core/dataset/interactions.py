"""Interactions of users with items: parallel arrays over two vocabularies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, Codes, Matrix, freeze
from recbias.core.dataset.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Interactions:
    """Interactions as rows of (user, item, value, time).

    Args:
        values: Rating, or 1 if the data has none, ``float32[n]``.
        times: Seconds since 1970, ``int64[n]``, or None if the data has no times.
        user_ids: The users; it may hold users without a row.
        item_ids: The items; it may hold items without a row.
    """

    users: Codes
    items: Codes
    values: npt.NDArray[np.float32]
    times: npt.NDArray[np.int64] | None
    user_ids: Vocabulary
    item_ids: Vocabulary

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for array in (self.users, self.items, self.values, self.times):
            if array is not None:
                freeze(array)

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.users.size)

    @property
    def n_users(self) -> int:
        """The number of users in the vocabulary."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """The number of items in the vocabulary."""
        return len(self.item_ids)

    def take(self, rows: AnyArray) -> Interactions:
        """Return some of the rows (a mask or positions) over the same vocabularies."""
        if rows.dtype == np.bool_:  # a mask takes five times as long, for each array
            rows = np.flatnonzero(rows)
        users, items, values = self.users[rows], self.items[rows], self.values[rows]
        times = None if self.times is None else self.times[rows]
        return Interactions(users, items, values, times, self.user_ids, self.item_ids)

    def drop_unused_ids(self) -> Interactions:
        """Return the same rows over vocabularies without the users and items that do not occur."""
        users, new_users = _renumber(self.users, self.n_users)
        items, new_items = _renumber(self.items, self.n_items)
        user_ids, item_ids = self.user_ids.take(users), self.item_ids.take(items)
        return Interactions(new_users, new_items, self.values, self.times, user_ids, item_ids)

    def user_counts(self) -> npt.NDArray[np.int64]:
        """Return the number of rows of each user, ``int64[n_users]``."""
        return np.bincount(self.users, minlength=self.n_users)

    def item_counts(self) -> npt.NDArray[np.int64]:
        """Return the number of rows of each item, ``int64[n_items]``."""
        return np.bincount(self.items, minlength=self.n_items)

    @cached_property
    def binary(self) -> Matrix:
        """The CSR matrix (n_users, n_items) of ones, ``float32``; a repeated pair counts once."""
        matrix = self._matrix(np.ones(len(self), dtype=np.float32))
        matrix.data[:] = 1.0
        return matrix

    @cached_property
    def weighted(self) -> Matrix:
        """The CSR matrix (n_users, n_items) of the values, ``float32``; repeated pairs add up."""
        return self._matrix(self.values)

    def _matrix(self, data: npt.NDArray[np.float32]) -> Matrix:
        from scipy.sparse import coo_array

        shape = (self.n_users, self.n_items)
        matrix = coo_array((data, (self.users, self.items)), shape=shape).tocsr()
        matrix.sort_indices()
        return matrix


def _renumber(codes: Codes, n: int) -> tuple[AnyArray, Codes]:
    """Return the codes that occur, ascending, and each row's code counted among them only."""
    occurs = np.zeros(n, dtype=bool)
    occurs[codes] = True
    new_codes = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(occurs), new_codes[codes]
