"""Tables in a terminal: at their own width where there is room, else folded, else in parts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NoReturn

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from recbias.core.printable import LONGEST_VALUE, make_printable
from recbias.reports.views.grid import Cell, Column
from recbias.reports.views.grid import Table as Grid

LEAST = 11
"""Titles and words are folded down to this many characters before a table is cut in two."""

IN_PARTS = 15
"""To so many they are folded in a table that is cut, which has room."""

_GAP = 2
_BREAKS = re.compile(r"(?<=[ _/,-])|(?=[@(])")


class Output(Console):
    """Standard output; a reader that went away is an exception, not the end of the process."""

    def __init__(self) -> None:
        super().__init__(highlight=False)

    def on_broken_pipe(self) -> NoReturn:
        """Raise what Python raises, so that it is handled in one place.

        Raises:
            BrokenPipeError: Always.
        """
        raise BrokenPipeError


def print_rows(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    numeric: Collection[str] = (),
    notes: Sequence[str] = (),
) -> None:
    """Print a table of text; a column that is blank throughout is left out."""
    used = [at for at in range(len(columns)) if any(row[at] for row in rows)]
    print_grid(
        Grid(
            title,
            tuple(Column(columns[at], numeric=columns[at] in numeric) for at in used),
            tuple(tuple(Cell(row[at]) for at in used) for row in rows),
            tuple(notes),
        )
    )


def print_grid(grid: Grid, console: Console | None = None) -> None:
    """Print a table, its title above and its notes below it; nothing in it is taken for markup.

    What is not a terminal gets every row on one line.
    """
    console = console or Output()
    grid = _printable(grid)
    if grid.title:
        console.print(Text(grid.title, style="italic"), soft_wrap=not console.is_terminal)
    if console.is_terminal:
        for number, part in enumerate(fitted(grid, console.width)):
            console.print(*[""] * (number > 0), _drawn(part), sep="\n")
    else:
        _print_unwrapped(_drawn(grid), console, width_of(grid))
    for note in grid.notes:
        console.print(Text(note, style="dim"), soft_wrap=not console.is_terminal)


def fitted(grid: Grid, width: int) -> list[Grid]:
    """Return a table that is at most so wide: with folded titles and words, else in parts.

    A part has the columns of words again and some of the columns of figures.
    """
    longest = max((len(text) for text in _foldable(grid)), default=0)
    for limit in range(max(longest, LEAST), LEAST - 1, -1):
        narrow = _folded(grid, limit)
        if width_of(narrow) <= width:
            return [narrow]
    return list(_parts(_folded(grid, IN_PARTS), width))


def folded(text: str, limit: int) -> str:
    """Return a text in lines of at most ``limit`` characters where it can be broken.

    >>> folded("log_popularity_difference@10", 15).split()
    ['log_popularity_', 'difference@10']
    """
    lines = [""]
    for piece in _BREAKS.split(text):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > limit:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def width_of(grid: Grid) -> int:
    """Return how many characters wide a table is drawn."""
    widths = [_width(grid, at) for at in range(len(grid.columns))]
    return sum(widths) + _GAP * (len(widths) - 1)


def _width(grid: Grid, at: int) -> int:
    cells = [row[at] for row in grid.rows]
    marks = max((len(cell.mark) for cell in cells), default=0)
    body = max((_widest(cell.text) for cell in cells), default=0) + (marks + 1 if marks else 0)
    return max(body, _widest(grid.columns[at].title))


def _widest(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _foldable(grid: Grid) -> Iterator[str]:
    for at, column in enumerate(grid.columns):
        yield column.title
        if not column.numeric:
            yield from (row[at].text for row in grid.rows)


def _folded(grid: Grid, limit: int) -> Grid:
    columns = tuple(replace(each, title=folded(each.title, limit)) for each in grid.columns)
    rows = tuple(
        tuple(
            cell if column.numeric else replace(cell, text=folded(cell.text, limit))
            for column, cell in zip(grid.columns, row, strict=True)
        )
        for row in grid.rows
    )
    return replace(grid, columns=columns, rows=rows)


def _parts(grid: Grid, width: int) -> Iterator[Grid]:
    heads = [at for at, column in enumerate(grid.columns) if not column.numeric]
    figures = [at for at, column in enumerate(grid.columns) if column.numeric]
    part = _chosen(grid, [*heads, *figures[:1]])
    for at in figures[1:]:
        wider = _with(part, grid, at)
        if width_of(wider) > width:
            yield part
            wider = _chosen(grid, [*heads, at])
        part = wider
    yield part


def _chosen(grid: Grid, places: Sequence[int]) -> Grid:
    return replace(
        grid,
        columns=tuple(grid.columns[at] for at in places),
        rows=tuple(tuple(row[at] for at in places) for row in grid.rows),
    )


def _with(part: Grid, grid: Grid, at: int) -> Grid:
    rows = zip(part.rows, grid.rows, strict=True)
    return replace(
        part,
        columns=(*part.columns, grid.columns[at]),
        rows=tuple((*ours, row[at]) for ours, row in rows),
    )


def _drawn(grid: Grid) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    height = max((each.title.count("\n") for each in grid.columns), default=0)
    for at, column in enumerate(grid.columns):
        lines = [""] * (height - column.title.count("\n")) + column.title.split("\n")
        if column.numeric:
            lines = [_padding(line, _width(grid, at)) + line for line in lines]
        table.add_column(Text("\n".join(lines)), overflow="fold")
    columns = [_texts(grid, at) for at in range(len(grid.columns))]
    for row in zip(*columns, strict=True):
        table.add_row(*row)
    return table


def _print_unwrapped(table: Table, console: Console, width: int) -> None:
    """Print a table as wide as it is, without the blanks at the end of its lines."""
    console.width = max(console.width, width)
    with console.capture() as captured:
        console.print(table)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    console.print(Text("\n".join(lines)), soft_wrap=True)


def _texts(grid: Grid, at: int) -> list[Text]:
    """Return the cells of a column, figures under each other and so are their marks.

    rich's own justification takes the blanks at the end of a cell away, and so the line.
    """
    cells = [row[at] for row in grid.rows]
    numeric = grid.columns[at].numeric
    marks = max((len(cell.mark) + 1 for cell in cells if cell.mark), default=0)
    room = max((_widest(cell.text) for cell in cells), default=0)
    room = _width(grid, at) - marks if numeric else room
    shown = []
    for cell in cells:
        text = Text(cell.text, style="bold" if cell.best else "")
        pad = _padding(cell.text.rpartition("\n")[2], room)
        mark = Text(f" {cell.mark}" if cell.mark else "", style="dim")
        parts = (pad, text, mark) if numeric else (text, pad, mark)
        shown.append(Text.assemble(*parts))
    return shown


def _padding(text: str, room: int) -> str:
    return " " * (room - cell_len(text))


def _printable(grid: Grid) -> Grid:
    """Return a table in which nothing moves the cursor."""
    return replace(
        grid,
        title=_visible(grid.title),
        columns=tuple(replace(each, title=_visible(each.title)) for each in grid.columns),
        rows=tuple(
            tuple(replace(cell, text=_visible(cell.text)) for cell in row) for row in grid.rows
        ),
        notes=tuple(map(make_printable, grid.notes)),
    )


def _visible(text: str) -> str:
    return make_printable(text, LONGEST_VALUE)
