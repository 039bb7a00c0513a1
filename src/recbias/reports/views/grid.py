"""Tables for display: columns, cells with the values behind their text, and footnotes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from recbias.core.measurements.scores import Direction


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Args:
        text: The text that is displayed.
        value: The number that the column is sorted by; NaN for text and for undefined values.
        best: Whether it is the best value of its column.
        mark: Superscript behind the text: letters or a star.
        interval: The 95% interval as text, or blank.
        note: Standard deviation, interval and counts as text.
    """

    text: str
    value: float = math.nan
    best: bool = False
    mark: str = ""
    interval: str = ""
    note: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        title: The column header.
        numeric: Whether the column holds numbers.
        direction: Which values are better.
        note: A sentence that explains the column.
    """

    title: str
    numeric: bool = False
    direction: Direction = "none"
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table for display.

    Args:
        title: What the table shows.
        columns: The columns.
        rows: The rows, with one cell per column.
        notes: Footnotes.
    """

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
        positions = [at for at, column in enumerate(self.columns) if column.title in titles]
        rows = tuple(tuple(row[at] for at in positions) for row in self.rows)
        return Table(self.title, tuple(self.columns[at] for at in positions), rows, self.notes)
