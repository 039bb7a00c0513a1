"""Attributes of users, items or queries: columns aligned to a vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import UnknownColumn, WrongType
from recbias.core.suggestions import suggest

SEPARATOR = "|"
"""Separates the values of a multi-valued cell: ``Action|Comedy``."""

TO_CATEGORIES = "make labels of it: {name: mine, detector: column, from: ..., threshold: ...}"
"""What to do with a column of numbers where categories are needed."""


@dataclass(frozen=True, eq=False)
class Membership:
    """The sorted values of a multi-valued column, and CSR indicators ``bool (rows, values)``."""

    values: tuple[str, ...]
    matrix: Matrix


@dataclass(frozen=True, eq=False)
class Attributes:
    """A table with one row for each identifier of a vocabulary, in its order.

    Args:
        ids: The users, items or queries that the rows describe.
        frame: The columns. Text is ``str`` or None, a number is ``float64`` with NaN for missing;
            a text cell ``a|b|c`` holds several values.
        kind: What the rows are, for messages: ``user``, ``item`` or ``query``.
    """

    ids: Vocabulary
    frame: pd.DataFrame
    kind: str = "item"

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [str(name) for name in self.frame.columns]

    @property
    def _plural(self) -> str:
        return "queries" if self.kind == "query" else f"{self.kind}s"

    def column(self, name: str) -> pd.Series[Any]:
        """Return one column; UnknownColumn if the table does not have it."""
        if name not in self.frame.columns:
            message = f"the {self._plural} have no column {name!r}"
            raise UnknownColumn(message, remedy=suggest(name, self.names))
        return self.frame[name]

    def numbers(self, name: str) -> FloatArray:
        """Return a column as numbers, NaN where missing; UnknownColumn if a cell is no number."""
        column = self.column(name)
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
        invalid = np.isnan(numbers) & column.notna().to_numpy()
        if invalid.any():
            cell = column.iloc[int(np.flatnonzero(invalid)[0])]
            raise UnknownColumn(f"column {name!r} of the {self._plural} is not numeric: {cell!r}")
        return numbers

    def membership(self, name: str) -> Membership:
        """Return the values of a column and the rows that have them; ``a|b`` has both.

        >>> ids = Vocabulary.of(["1", "2", "3"])
        >>> table = Attributes(ids, pd.DataFrame({"genres": ["A|B", "B", None]}))
        >>> table.membership("genres").matrix.toarray().astype(int).tolist()
        [[1, 1], [0, 1], [0, 0]]
        """
        from scipy.sparse import coo_array

        column = self.column(name).reset_index(drop=True)
        if column.dtype.kind == "f":
            column = column.map(lambda cell: np.format_float_positional(cell, trim="-"), "ignore")
        rows, texts = pd.factorize(column.where(column.isna(), column.astype(str)))
        cells = pd.Series([*texts, ""]).str.split(SEPARATOR, regex=False).explode()
        cells = cells[cells != ""]
        codes, values = pd.factorize(cells, sort=True)
        cell_codes = (cells.index.to_numpy(dtype=np.int32), codes.astype(np.int32))
        ones, shape = np.ones(codes.size, dtype=np.int32), (len(texts) + 1, len(values))
        matrix = coo_array((ones, cell_codes), shape=shape).tocsr() > 0
        return Membership(tuple(str(value) for value in values), matrix[rows])

    def categories(self, name: str) -> Membership:
        """Return ``membership`` of a column whose values are categories.

        Raises:
            UnknownColumn: There is no such column.
            WrongType: It holds numbers with fractions, of which each would be a category.

        >>> table = Attributes(Vocabulary.of(["1", "2"]), pd.DataFrame({"level": [1.0, 2.0]}))
        >>> table.categories("level").values
        ('1', '2')
        """
        column = self.column(name)
        if column.dtype.kind == "f" and (column.dropna() % 1 != 0).any():
            message = f"{name!r} holds numbers that are no categories"
            raise WrongType(message, remedy=TO_CATEGORIES)
        return self.membership(name)

    def take(self, codes: AnyArray, ids: Vocabulary) -> Attributes:
        """Return the rows of ``codes`` as the table of ``ids``; code -1 gives a missing row."""
        frame = self.frame.reset_index(drop=True)
        present = np.asarray(codes) >= 0
        if present.all():
            frame = frame.iloc[np.asarray(codes)].reset_index(drop=True)
        else:
            frame = frame.reindex(np.where(present, codes, len(frame))).reset_index(drop=True)
            texts = frame.select_dtypes(object).columns
            frame[texts] = frame[texts].where(frame[texts].notna(), None)
        return Attributes(ids, frame, self.kind)

    def align(self, ids: Vocabulary) -> Attributes:
        """Return the table of other identifiers; those without a row here get missing cells."""
        return self.take(self.ids.find(ids.ids), ids)
