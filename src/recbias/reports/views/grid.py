"""A table for people: titles, cells with their figures, footnotes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from recbias.core.measurements.scores import Direction


@dataclass(frozen=True)
class Cell:
    """One cell.

    Args:
        text: What it shows.
        value: The figure behind it, NaN for text and for what is undefined.
        best: Whether it is the best of its column.
        mark: Letters or a star that stand raised behind the text.
        interval: The 95% interval as text, or blank.
        note: Spread, interval and counts in words.
    """

    text: str
    value: float = math.nan
    best: bool = False
    mark: str = ""
    interval: str = ""
    note: str = ""


@dataclass(frozen=True)
class Column:
    """One column.

    Args:
        title: What heads it.
        numeric: Whether it holds figures.
        direction: Which way is better.
        note: What it is, in a sentence.
    """

    title: str
    numeric: bool = False
    direction: Direction = "none"
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table for people.

    Args:
        title: What it shows.
        columns: The columns.
        rows: One cell a column in each row.
        notes: Footnotes.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
