"""The fields of users or of items: who they are, and what is known of them."""

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
"""Columns by name, none, or those that say something of many (see ``chosen_columns``)."""

SHARED = 10
"""On the average so many rows must have a value of a column, for ``auto`` to take it."""


@dataclass(frozen=True, eq=False)
class Fields:
    """Which values each row has, of one table of values for all fields.

    The first field is the row itself: its values are 0 to n - 1. Slots are what a row can hold:
    one in a field of one value, as many as the most that a row has in the others.

    Args:
        values: Place of the value of each row's slots in the table, ``int32 (n, n_slots)``; 0
            where the slot is empty.
        shares: What the value of a slot counts in its field, ``float32 (n, n_slots)``: 1 over how
            many the row has there, 0 where the slot is empty.
        widths: How many slots each field has.
        n_values: How many values there are, the rows among them.
    """

    values: npt.NDArray[np.int32]
    shares: npt.NDArray[np.float32]
    widths: tuple[int, ...]
    n_values: int

    @classmethod
    def of(cls, n: int, known: Attributes | None, columns: Sequence[str]) -> Fields:
        """Return the fields of ``n`` rows: the row, and each of these columns of the table.

        Args:
            n: How many rows.
            known: What is known of them; needed where there are columns.
            columns: Names of columns; a cell ``a|b`` has two values.
        """
        own = np.arange(n, dtype=np.int32)[:, None]
        values, shares, n_values = [own], [np.ones((n, 1), dtype=np.float32)], n
        for name in columns if known is not None else ():
            matrix = known.membership(name).matrix  # type: ignore[union-attr]
            places, counts = _slots(matrix)
            values.append(np.where(counts > 0, places + np.int32(n_values), np.int32(0)))
            shares.append(counts)
            n_values += matrix.shape[1]
        widths = tuple(each.shape[1] for each in values)
        return cls(np.hstack(values), np.hstack(shares), widths, n_values)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.values)


def _slots(matrix: Matrix) -> tuple[AnyArray, AnyArray]:
    """Return the columns of each row's entries, and 1 over their number, side by side."""
    counts = np.diff(matrix.indptr)
    shape = (len(counts), max(int(counts.max(initial=0)), 1))
    rows = np.repeat(np.arange(len(counts)), counts)
    slots = np.arange(rows.size) - matrix.indptr[rows]
    places, shares = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.float32)
    places[rows, slots] = matrix.indices
    shares[rows, slots] = 1 / counts[rows]
    return places, shares


def chosen_columns(known: Attributes | None, columns: Columns, where: str) -> tuple[str, ...]:
    """Return the names of the columns that are meant.

    Args:
        known: The table, or None.
        columns: Their names; ``none``; or ``auto`` for the columns of which a value stands in at
            least ten rows on the average, which titles, zip codes and prices do not.
        where: The parameter, for messages.

    Raises:
        MissingEvidence: Columns are named and nothing is known.
        UnknownColumn: There is no such column.
    """
    if columns == "none" or (columns == "auto" and known is None):
        return ()
    if known is None:
        found = f"nothing is known of the {where.removesuffix('_features')}s"
        raise MissingEvidence(found, where=where, remedy=f"set {where}: auto, or give a table")
    if columns == "auto":
        return tuple(name for name in known.names if _is_shared(known.membership(name).matrix))
    for name in columns:
        try:
            known.column(name)
        except UnknownColumn as error:
            raise UnknownColumn(error.message, where=where, remedy=error.remedy) from error
    return tuple(columns)


def _is_shared(matrix: Matrix) -> bool:
    return bool(0 < SHARED * matrix.shape[1] <= matrix.nnz)
