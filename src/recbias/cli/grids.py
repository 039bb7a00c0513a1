"""Print tables in a terminal: at full width, with folded cells, or split by columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NoReturn

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from recbias.cli.output.fitting import (
    compute_column_width,
    compute_text_width,
    compute_width,
    fit_to_width,
    leave_out_columns,
)
from recbias.core.printable import MAX_VALUE_LENGTH, make_printable
from recbias.reports.views.conclusions.conclude import Conclusion
from recbias.reports.views.grid import Cell, Column
from recbias.reports.views.grid import Table as Grid
from recbias.reports.views.rounding import format_count


class Output(Console):
    """Standard output that raises an exception when its reader has closed it."""

    def __init__(self) -> None:
        super().__init__(highlight=False)

    def on_broken_pipe(self) -> NoReturn:
        """Raise the exception that Python raises, so that it is handled in one place.

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
    optional: Sequence[str] = (),
) -> None:
    """Print a table of text without its blank columns; see ``print_grid``."""
    used = [index for index in range(len(columns)) if any(row[index] for row in rows)]
    print_grid(
        Grid(
            title,
            tuple(Column(columns[index], numeric=columns[index] in numeric) for index in used),
            tuple(tuple(Cell(row[index]) for index in used) for row in rows),
            tuple(notes),
        ),
        optional=optional,
    )


def print_grid(
    grid: Grid,
    console: Console | None = None,
    *,
    optional: Sequence[str] = (),
    elsewhere: str = "a wider terminal and --json have them",
) -> None:
    """Print a table with its title above and its notes below; markup in it is not interpreted.

    Outside of a terminal every row is one line, however long.

    Args:
        grid: The table.
        console: Where it is printed.
        optional: The titles of columns that a narrow terminal leaves out, the first one first.
        elsewhere: Where the columns are that were left out, for a note.
    """
    console = console or Output()
    if console.is_terminal:
        grid = leave_out_columns(grid, console.width, optional, elsewhere=elsewhere)
    grid = _escape(grid)
    if grid.title:
        console.print(Text(grid.title, style="italic"), soft_wrap=not console.is_terminal)
    if console.is_terminal:
        for number, part in enumerate(fit_to_width(grid, console.width)):
            console.print(*[""] * (number > 0), _render(part), sep="\n")
    else:
        _print_unwrapped(grid, console)
    for note in grid.notes:
        console.print(Text(note, style="dim"), soft_wrap=not console.is_terminal)


def print_conclusions(
    first: Sequence[Conclusion], others: Sequence[Conclusion], console: Console
) -> None:
    """Print the first conclusions of a run in two lines each, and the number of the others."""
    lines: list[tuple[str, str]] = []
    for conclusion in first:
        lines.append((f"* {conclusion.sentence}", ""))
        lines += [(f"  {conclusion.detail}", "dim")] * bool(conclusion.detail)
    more = f"{format_count(len(others), 'more conclusion')} in the report."
    lines += [(more, "")] * bool(others)
    for line, style in lines:
        text = Text(make_printable(line, None), style=style)
        console.print(text, soft_wrap=not console.is_terminal)


def _render(grid: Grid) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    height = max((column.title.count("\n") for column in grid.columns), default=0)
    for index, column in enumerate(grid.columns):
        lines = [""] * (height - column.title.count("\n")) + column.title.split("\n")
        if column.numeric:
            width = compute_column_width(grid, index)
            lines = [_pad(line, width) + line for line in lines]
        table.add_column(Text("\n".join(lines)), overflow="fold")
    columns = [_render_column(grid, index) for index in range(len(grid.columns))]
    for row in zip(*columns, strict=True):
        table.add_row(*row)
    return table


def _print_unwrapped(grid: Grid, console: Console) -> None:
    """Print a table at its full width without trailing blanks, each row on one line.

    This is the form of ``_render``, which takes a millisecond for each row.
    """
    columns: list[list[str]] = []
    for index, column in enumerate(grid.columns):
        width = compute_column_width(grid, index)
        padding, cells = _pad(column.title, width), _align_column(grid, index)
        title = padding + column.title if column.numeric else column.title + padding
        columns.append([title, *("".join(parts) for parts in cells)])
    lines = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
    lines[1:1] = ["─" * compute_width(grid)] if lines else []
    console.out("\n".join(lines), highlight=False)


def _render_column(grid: Grid, index: int) -> list[Text]:
    """Return the cells of a column with numbers and marks aligned.

    Cells are padded here, because the justification of rich removes trailing blanks.
    """
    styles = ["bold" if row[index].best else "" for row in grid.rows]
    at = 1 if grid.columns[index].numeric else 0
    texts = []
    for parts, style in zip(_align_column(grid, index), styles, strict=True):
        styled: list[str | tuple[str, str]] = [*parts]
        styled[at], styled[2] = (parts[at], style), (parts[2], "dim")
        texts.append(Text.assemble(*styled))
    return texts


def _align_column(grid: Grid, index: int) -> list[tuple[str, str, str]]:
    """Return the blanks before a number, or behind a text, with it and the mark of each cell."""
    cells = [row[index] for row in grid.rows]
    numeric = grid.columns[index].numeric
    mark_width = max((len(cell.mark) + 1 for cell in cells if cell.mark), default=0)
    width = max((compute_text_width(cell.text) for cell in cells), default=0)
    width = compute_column_width(grid, index) - mark_width if numeric else width
    aligned = []
    for cell in cells:
        padding = _pad(cell.text.rpartition("\n")[2], width)
        mark = f" {cell.mark}" if cell.mark else " " * mark_width
        parts = (padding, cell.text) if numeric else (cell.text, padding)
        aligned.append((*parts, mark))
    return aligned


def _pad(text: str, width: int) -> str:
    return " " * (width - cell_len(text))


def _escape(grid: Grid) -> Grid:
    """Escape the control characters of a table."""

    def escape(text: str) -> str:
        return make_printable(text, MAX_VALUE_LENGTH)

    return Grid(
        escape(grid.title),
        tuple(replace(column, title=escape(column.title)) for column in grid.columns),
        tuple(tuple(replace(cell, text=escape(cell.text)) for cell in row) for row in grid.rows),
        tuple(map(make_printable, grid.notes)),
    )
