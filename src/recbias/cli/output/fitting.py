"""Fit a table into the width of a terminal: fold, leave out columns, or split by columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from rich.cells import cell_len

from recbias.reports.views.grid import Table as Grid

NARROWEST = 11
"""The fold limit in characters below which a table is split instead."""

SPLIT_WIDTH = 15
"""The fold limit in characters in a table that is split."""

MOST_NAMES = 6
"""The maximum number of columns that a note names."""

_GAP = 2
_BREAKS = re.compile(r"(?<=[ _/,-])|(?=[@(])")


def leave_out_columns(grid: Grid, width: int, optional: Sequence[str], *, elsewhere: str) -> Grid:
    """Return a table without the optional columns that do not fit a width, with a note.

    It has all of them if it is too wide even without them.

    Args:
        grid: The table.
        width: The width of the terminal in characters.
        optional: The titles of the columns that may be left out, the first one first.
        elsewhere: Where the columns are.
    """
    if not optional:
        return grid
    titles = [column.title for column in grid.columns]
    for n in [*range(len(optional) + 1), 0]:
        omitted = [title for title in titles if title in optional[:n]]
        retained = grid.select(*(title for title in titles if title not in omitted))
        if len(fit_to_width(retained, width)) == 1:
            break
    names = "; ".join(omitted[:MOST_NAMES])
    more = f" and {len(omitted) - MOST_NAMES} more" if len(omitted) > MOST_NAMES else ""
    note = f"Too wide to show: {names}{more} ({elsewhere})."
    return replace(retained, notes=(*retained.notes, *[note] * bool(omitted)))


def fit_to_width(grid: Grid, width: int) -> list[Grid]:
    """Fold the titles and texts of a table to fit a width, or split the table by columns.

    Each part repeats the text columns and has some of the numeric columns.
    """
    foldable = [column.title for column in grid.columns]
    for index, column in enumerate(grid.columns):
        foldable += [] if column.numeric else [row[index].text for row in grid.rows]
    longest = max(map(len, foldable), default=0)
    for limit in range(max(longest, NARROWEST), NARROWEST - 1, -1):
        narrow = _fold(grid, limit)
        if compute_width(narrow) <= width:
            return [narrow]
    return list(_split(_fold(grid, SPLIT_WIDTH), width))


@lru_cache(maxsize=4096)
def fold_text(text: str, limit: int) -> str:
    """Break a text into lines of at most ``limit`` characters, where it has break points.

    >>> fold_text("log_popularity_difference@10", 15).split()
    ['log_popularity_', 'difference@10']
    """
    lines = [""]
    for piece in _BREAKS.split(text):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > limit:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def compute_width(grid: Grid) -> int:
    """Return the width of a table in characters."""
    widths = [compute_column_width(grid, index) for index in range(len(grid.columns))]
    return sum(widths) + _GAP * (len(widths) - 1)


def compute_column_width(grid: Grid, index: int) -> int:
    """Return the width of a column, with the marks behind its values."""
    cells = [row[index] for row in grid.rows]
    mark_width = max((len(cell.mark) for cell in cells), default=0)
    text_width = max((compute_text_width(cell.text) for cell in cells), default=0)
    body_width = text_width + (mark_width + 1 if mark_width else 0)
    return max(body_width, compute_text_width(grid.columns[index].title))


def compute_text_width(text: str) -> int:
    """Return the width of the longest line of a text."""
    return max(map(cell_len, text.split("\n")))


def _fold(grid: Grid, limit: int) -> Grid:
    columns = [replace(column, title=fold_text(column.title, limit)) for column in grid.columns]
    rows = tuple(
        tuple(
            cell if column.numeric else replace(cell, text=fold_text(cell.text, limit))
            for column, cell in zip(grid.columns, row, strict=True)
        )
        for row in grid.rows
    )
    return replace(grid, columns=tuple(columns), rows=rows)


def _split(grid: Grid, width: int) -> Iterator[Grid]:
    text_columns = [index for index, column in enumerate(grid.columns) if not column.numeric]
    numeric_columns = [index for index, column in enumerate(grid.columns) if column.numeric]
    indexes = [*text_columns, *numeric_columns[:1]]
    for index in numeric_columns[1:]:
        if compute_width(grid.select_columns([*indexes, index])) > width:
            yield grid.select_columns(indexes)
            indexes = list(text_columns)
        indexes.append(index)
    yield grid.select_columns(indexes)
