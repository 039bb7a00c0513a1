"""Tables for display: columns, cells with the values behind their text, and footnotes."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from recbias.core.measurements.scores import Direction


@dataclass(frozen=True)
class Cell:
    """A cell of a table: the text that is displayed, and the number that its column is sorted by.

    The value is NaN for text and for undefined numbers. A mark is a superscript behind the text:
    letters or a star. The note has the standard deviation, the 95% interval and counts.
    """

    text: str
    value: float = math.nan
    best: bool = False
    mark: str = ""
    interval: str = ""
    note: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table; its note is a sentence that explains it."""

    title: str
    numeric: bool = False
    direction: Direction = "none"
    note: str = ""


def make_columns(titles: Iterable[str], numeric: Container[str] = ()) -> tuple[Column, ...]:
    """Return columns, of which some hold numbers."""
    return tuple(Column(title, numeric=title in numeric) for title in titles)


@dataclass(frozen=True)
class Table:
    """A table for display: rows with one cell per column, and footnotes."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def row_headers(self) -> int:
        """The number of columns that head a row: those before the first numeric column."""
        numeric = (at for at, column in enumerate(self.columns) if column.numeric)
        return next(numeric, 1)

    @property
    def mark_width(self) -> int:
        """The length of the longest mark behind a value."""
        cells = (cell for row in self.rows for cell in row[self.row_headers :])
        return max((len(cell.mark) for cell in cells), default=0)

    def select(self, *titles: str) -> Table:
        """Return the table with the columns of these titles only."""
        return self.select_columns(
            [at for at, column in enumerate(self.columns) if column.title in titles]
        )

    def select_columns(self, positions: Sequence[int]) -> Table:
        """Return the table with the columns at these positions only."""
        columns = tuple(self.columns[at] for at in positions)
        rows = tuple(tuple(row[at] for at in positions) for row in self.rows)
        return replace(self, columns=columns, rows=rows)
