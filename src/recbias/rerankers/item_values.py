"""The values of an attribute of the items, as re-rankers read them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import Codes, FloatArray, Matrix
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import MissingEvidence, NothingLeft, UserError
from recbias.core.stage_context import warn


@dataclass(frozen=True, eq=False)
class ItemValues:
    """The values of an attribute by item; the last row is an item without a value.

    Args:
        names: The values, sorted.
        codes: The codes of the values of each item, ``int32[n_items + 1, m]``, padded with the
            number of values.
        counts: The number of values of each item, ``int64[n_items + 1]``.
    """

    names: tuple[str, ...]
    codes: Codes
    counts: npt.NDArray[np.int64]

    @classmethod
    def from_matrix(cls, names: tuple[str, ...], matrix: Matrix) -> ItemValues:
        """Return the values of a matrix of indicators, CSR ``(n_items, values)``."""
        counts = np.diff(matrix.indptr).astype(np.int64)
        codes = np.full((counts.size + 1, max(counts.max(initial=0), 1)), len(names), np.int32)
        rows = np.repeat(np.arange(counts.size), counts)
        columns = np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], counts)
        codes[rows, columns] = matrix.indices
        return cls(names, codes, np.append(counts, 0))

    @property
    def n_values(self) -> int:
        """The number of different values."""
        return len(self.names)

    def count(self, histories: Matrix) -> FloatArray:
        """Return the weight of each value in histories, ``float64[q, values + 1]``.

        An item with m values gives each of them 1/m. The last column is 0.
        """
        from scipy.sparse import csr_array

        n_items, width = self.counts.size - 1, self.codes.shape[1]
        shares = np.repeat(1 / np.maximum(self.counts[:n_items], 1), width)
        bounds = np.arange(n_items + 1) * width
        shape = (n_items, self.n_values + 1)
        weights = csr_array((shares, self.codes[:n_items].ravel(), bounds), shape=shape)
        totals: FloatArray = (histories.astype(np.float64) @ weights).toarray()
        totals[:, -1] = 0.0
        return totals


def read_values(data: TrainingData, attribute: str) -> ItemValues:
    """Return the values of a column of the items; ``a|b`` has both.

    Raises:
        MissingEvidence: The dataset has no items table.
        UnknownColumn: The items have no such column.
        WrongType: It holds numbers with fractions, which are no categories.
        NothingLeft: No item has a value in it.
    """
    if data.items is None:
        raise MissingEvidence("the dataset has no item attributes", remedy="add an items table")
    try:
        membership = data.items.categories(attribute)
    except UserError as error:
        raise type(error)(error.message, where="attribute", remedy=error.remedy) from error
    if not membership.matrix.nnz:
        message, remedy = f"no item has a value of {attribute!r}", "name another column"
        raise NothingLeft(message, where="attribute", remedy=remedy)
    if np.bincount(membership.matrix.indices).max() == 1:
        warn(f"no two items share a value of {attribute!r}, so it says nothing about a list")
    return ItemValues.from_matrix(membership.values, membership.matrix)
