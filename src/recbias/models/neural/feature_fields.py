"""The fields of users or items for factorization machines: the code and the attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from annotated_types import MinLen

from recbias.core.arrays import AnyArray, Matrix
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import MissingEvidence, UnknownColumn

Columns: TypeAlias = Literal["auto", "none"] | Annotated[tuple[str, ...], MinLen(1)]
"""Columns by name, none, or automatic (see ``select_columns``)."""

MIN_ROWS_PER_VALUE = 10
"""``auto`` selects columns whose values have at least so many rows on average."""


@dataclass(frozen=True, eq=False)
class Fields:
    """The values of each row, as indices into one table of the values of all fields.

    The first field is the row itself, with values 0 to n - 1. A field has as many slots as the
    largest number of values that a row has in it.

    Args:
        values: Index of the value of each slot, ``int32 (n, n_slots)``; 0 for an empty slot.
        shares: Weight of the value of each slot, ``float32 (n, n_slots)``: 1 / number of values of
            the row in the field; 0 for an empty slot.
        widths: Number of slots of each field.
        n_values: Number of values of all fields, including the rows.
    """

    values: npt.NDArray[np.int32]
    shares: npt.NDArray[np.float32]
    widths: tuple[int, ...]
    n_values: int

    @classmethod
    def from_attributes(
        cls, n: int, attributes: Attributes | None, columns: Sequence[str]
    ) -> Fields:
        """Return the fields of ``n`` rows: the row itself and the columns."""
        values = [np.arange(n, dtype=np.int32)[:, None]]
        shares, n_values = [np.ones((n, 1), dtype=np.float32)], n
        for name in columns if attributes is not None else ():
            matrix = attributes.membership(name).matrix  # type: ignore[union-attr]
            indices, weights = _fill_slots(matrix)
            values.append(np.where(weights > 0, indices + np.int32(n_values), np.int32(0)))
            shares.append(weights)
            n_values += matrix.shape[1]
        widths = tuple(array.shape[1] for array in values)
        return cls(np.hstack(values), np.hstack(shares), widths, n_values)

    def __len__(self) -> int:
        return len(self.values)


def _fill_slots(matrix: Matrix) -> tuple[AnyArray, AnyArray]:
    """Return the column indices of each row, padded with 0, and 1 / their number."""
    counts = np.diff(matrix.indptr)
    shape = (len(counts), max(int(counts.max(initial=0)), 1))
    rows = np.repeat(np.arange(len(counts)), counts)
    slots = np.arange(rows.size) - matrix.indptr[rows]
    indices, shares = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.float32)
    indices[rows, slots] = matrix.indices
    shares[rows, slots] = 1 / counts[rows]
    return indices, shares


def select_columns(
    attributes: Attributes | None, columns: Columns, setting: str
) -> tuple[str, ...]:
    """Return the names of the selected columns.

    ``auto`` selects the columns whose values have at least ten rows on average, which excludes
    titles, zip codes and prices. ``setting`` is the name of the setting, for messages.

    Raises:
        MissingEvidence: Columns are named, but there is no table.
        UnknownColumn: There is no such column.
    """
    if columns == "none" or (columns == "auto" and attributes is None):
        return ()
    if attributes is None:
        message = f"the dataset has no {setting.removesuffix('_features')}s table"
        remedy = f"set {setting}: auto, or add the table to the dataset"
        raise MissingEvidence(message, where=setting, remedy=remedy)
    if columns == "auto":
        matrices = {name: attributes.membership(name).matrix for name in attributes.names}
        return tuple(
            name
            for name, matrix in matrices.items()
            if 0 < MIN_ROWS_PER_VALUE * matrix.shape[1] <= matrix.nnz
        )
    for name in columns:
        try:
            attributes.column(name)
        except UnknownColumn as error:
            raise UnknownColumn(error.message, where=setting, remedy=error.remedy) from error
    return tuple(columns)
