"""Tables, lines, errors and JSON documents on standard output and standard error."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from recbias.core.errors import BadYaml, DataError, Faults, MissingRun, RecbiasError, UserError
from recbias.core.machine import describe_shortage, is_shortage
from recbias.core.signals import claim_line, get_exit_code
from recbias.core.text import (
    MAX_LINE_LENGTH,
    guard_messages,
    make_printable,
    shorten,
)
from recbias.reports.wording import Cell, Column, format_count
from recbias.reports.wording import Table as Grid

if TYPE_CHECKING:
    from rich.table import Table

    from recbias.reports.verdict import Verdict
    from recbias.runner.options import Observer

_GAP, _LONGEST_WORD = 2, 15  # a longer one is folded in a narrow terminal

MOST_NAMES = 6
"""The maximum number of columns that a note names."""


def _leave_out_columns(
    grid: Grid, console: Console, optional: Sequence[str], *, elsewhere: str
) -> Grid:
    """Return a table without the optional columns that do not fit a width, with a note."""
    retained, omitted = grid, list[str]()
    for n in range(len(optional) + 1):
        titles = [column.title for column in grid.columns]
        omitted = [title for title in titles if title in optional[:n]]
        retained = grid.select(*(title for title in titles if title not in omitted))
        if _add_gaps(_measure_columns(retained)) <= console.width:
            break
    names = "; ".join(omitted[:MOST_NAMES])
    more = f" and {len(omitted) - MOST_NAMES} more" if len(omitted) > MOST_NAMES else ""
    note = f"Too wide to show: {names}{more} ({elsewhere})."
    return replace(retained, notes=(*retained.notes, *[note] * bool(omitted)))


_WIDE = Console(width=1_000_000, color_system=None)
"""A console in which every table has room."""


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


def make_grid(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    numeric: Collection[str] = (),
    notes: Sequence[str] = (),
) -> Grid:
    """Return a table of text without its blank columns."""
    heads = tuple(Column(name, numeric=name in numeric) for name in columns)
    cells = tuple(tuple(map(Cell, row)) for row in rows)
    return Grid(title, heads, cells, tuple(notes)).without_blanks()


def print_rows(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    optional: Sequence[str] = (),
    **options: Any,
) -> None:
    """Print a table of text; see ``make_grid`` for its options and ``print_grid``."""
    print_grid(make_grid(columns, rows, **options), optional=optional)


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
        grid = _leave_out_columns(grid, console, optional, elsewhere=elsewhere)
    if grid.title:
        console.print(Text(grid.title, style="italic"), soft_wrap=not console.is_terminal)
    table = _render(grid, console.width)
    if console.is_terminal:
        console.print(table)
    else:  # at its full width without trailing blanks
        wide = Console(width=_WIDE.measure(table).maximum, color_system=None)
        with wide.capture() as capture:
            wide.print(table)
        lines = capture.get().splitlines()
        console.out("\n".join(line.rstrip() for line in lines), highlight=False)
    for note in filter(None, (*grid.notes, grid.keys)):
        console.print(Text(note, style="dim"), soft_wrap=not console.is_terminal)


_COLOURS = {"pass": "bold green", "fail": "bold red", "undecided": "bold yellow", "none": "bold"}


def print_verdict(verdict: Verdict, n_more: int, console: Console) -> None:
    """Print the verdict of a run, in small print its tests, and how many conclusions are left."""
    more = f"{format_count(n_more, 'more conclusion')} in the report." if n_more else ""
    small = " ".join(filter(None, (*verdict.small, more)))
    lines = [(verdict.line, _COLOURS[verdict.state])]
    lines += [(f"- {text}", "") for text in verdict.sentences]
    lines += [(small, "dim")] * bool(small)
    for line, style in lines:
        text = Text(make_printable(line, None), style=style)
        console.print(text, soft_wrap=not console.is_terminal)


def _render(grid: Grid, width: int) -> Table:
    """Return a table whose numbers and words stay whole if they fit a width."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    least = _measure_columns(grid)
    fits = _add_gaps(least) <= width
    for column, least_width in zip(grid.columns, least, strict=True):
        table.add_column(
            Text(column.title),
            justify="right" if column.numeric else "left",
            vertical="bottom",
            overflow="fold",
            min_width=least_width if fits else None,
        )
    marks = [max((len(row[at].mark) for row in grid.rows), default=0) for at in range(len(least))]
    for row in grid.rows:
        table.add_row(*map(_render_cell, row, marks))
    return table


def _measure_columns(grid: Grid) -> list[int]:
    """Return the least width of each column: of its numbers, and of the words of its texts."""
    widths = []
    for at, column in enumerate(grid.columns):
        cells = [row[at] for row in grid.rows]
        texts = [column.title, *(cell.text for cell in cells if not column.numeric)]
        words = max((cell_len(word) for text in texts for word in text.split()), default=0)
        words = min(words, _LONGEST_WORD)
        values = [cell_len(cell.text) for cell in cells] if column.numeric else [words]
        mark = max((len(cell.mark) + 1 for cell in cells if cell.mark), default=0)
        widths.append(max(words, max(values, default=0) + mark))
    return widths


def _add_gaps(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _render_cell(cell: Cell, mark_width: int) -> Text:
    """Return the text of a cell and its mark, in a column with marks of a width."""
    style = "bold" if cell.best else "underline" if cell.second else ""
    mark = f" {cell.mark:{mark_width}}" if mark_width else ""
    return Text.assemble((make_printable(cell.text), style), (mark, "dim"))


def print_line(
    text: object, *, to_stderr: bool = False, longest: int | None = MAX_LINE_LENGTH
) -> None:
    """Print a text on one line, with line ends and control characters escaped.

    Args:
        text: The text.
        to_stderr: Whether to print to standard error.
        longest: The maximum number of characters; None for no maximum, as for a path.
    """
    stream = sys.stderr if to_stderr else sys.stdout
    print(make_printable(text, longest), file=stream, flush=to_stderr)


def print_text(text: str, *, to_stderr: bool = False) -> None:
    """Print a text of several lines without shortening them."""
    for line in text.split("\n"):
        print_line(line, to_stderr=to_stderr, longest=None)


def print_table(text: str) -> None:
    """Print a table for other programs: unchanged, except that a terminal gets escapes."""
    if sys.stdout.isatty():
        print_text(text.removesuffix("\n"))
    else:
        sys.stdout.write(text)


DONE, FAILED, USER, OUT_OF_TOLERANCE = 0, 1, 2, 3
STOPPED = (129, 130, 143)
"""The exit codes; the last are those of a closed terminal, an interrupt and SIGTERM."""

MEANINGS = {
    DONE: "done",
    FAILED: "a stage failed",
    USER: "the input is at fault",
    OUT_OF_TOLERANCE: "a check failed",
}
"""The exit codes of a finished run in words."""


@contextmanager
def report_errors() -> Iterator[None]:
    """Print an error of this block as ``error:`` and ``help:`` lines and exit with its code."""
    sys.excepthook = _report_bug
    guard_messages()
    try:
        yield
        sys.stdout.flush()
    except RecbiasError as error:
        for line in error.lines():
            print_line(line, to_stderr=True)
        raise typer.Exit(USER if isinstance(error, UserError) else FAILED) from None
    except KeyboardInterrupt as error:
        with suppress(OSError):  # the terminal may be closed
            if line := claim_line(error):
                print_line(line, to_stderr=True)
        raise typer.Exit(get_exit_code(error)) from None
    except BrokenPipeError:
        _discard_output()
        raise typer.Exit(DONE) from None
    except (MemoryError, OSError) as error:
        message, remedy, code = _describe_system_error(error)
        if not message:
            raise
        print_line(f"error: {message}", to_stderr=True)
        print_line(f"help: {remedy}", to_stderr=True)
        raise typer.Exit(code) from None


def _describe_system_error(error: BaseException) -> tuple[str, str, int]:
    """Return what is said of an error of the system, the remedy and the exit code."""
    if is_shortage(error):
        return (*describe_shortage(error), FAILED)
    if isinstance(error, OSError) and error.filename is not None:
        path = os.fsdecode(error.filename) if error.filename != "" else "."
        remedy = "check that it exists and that you may read and write it, then run again"
        return f"{path}: {error.strerror or error}", remedy, USER
    return "", "", FAILED


@contextmanager
def allow_closed_output() -> Iterator[None]:
    """Discard the output of this block that nobody reads, as in ``recbias run | head``.

    The command goes on, so that it ends with the exit code of its result.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()


@contextmanager
def show_progress(options: Any) -> Iterator[Observer]:
    """Yield the observer of a run; what plug-ins print meanwhile goes to standard error."""
    from recbias.progress import open_observer

    with (
        open_observer(quiet=options.quiet, verbose=options.verbose) as observer,
        redirect_stdout(sys.stderr),
    ):
        yield observer


def _discard_output() -> None:
    """Discard buffered output, which Python would try to write again at the exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_bug(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print a traceback, indented so that none of its lines looks like an error of recbias."""
    for line in "".join(traceback.format_exception(kind, error, trace)).splitlines():
        print_line(f"  {line}", to_stderr=True)
    message = "error: this is a bug in recbias; please report it with the lines above"
    print_line(message, to_stderr=True)


SCHEMA_VERSION = 1
"""Incremented when a key of a document is removed or changes its meaning."""

AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead of tables.")
]

RunName: TypeAlias = Annotated[
    str, typer.Argument(metavar="RUN", help="A run folder, or the name of an experiment.")
]

Out: TypeAlias = Annotated[Path, typer.Option(help="Folder of results.")]

_NEEDED = {"needed", "needed_a", "needed_b"}
"""The counts of a row of `recbias power`."""

_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?::(?P<column>\d+))?(?:: (?P<where>.+))?")
"""The location of an error: FILE:LINE, FILE:LINE:COLUMN or FILE:LINE:COLUMN: KEY."""


@contextmanager
def open_document(*, is_wanted: bool) -> Iterator[dict[str, Any]]:
    """Yield the document of a command, and print it when the block ends; else do nothing.

    Whatever the block prints on standard output goes to standard error. An error of the block is
    printed as a document with ``errors``, and raised. An interrupted command prints no document.
    """
    document: dict[str, Any] = {}
    if not is_wanted:
        yield document
        return
    try:
        with _send_output_to_stderr():
            yield document
    except RecbiasError as error:
        _print_document({"errors": describe_errors(error)})
        raise
    except typer.Exit as end:
        if end.exit_code not in STOPPED:
            _print_document(document)
        raise
    _print_document(document)


def _print_document(document: Mapping[str, Any]) -> None:
    """Print a document with its ``schema_version``."""
    with allow_closed_output():
        sys.stdout.write(render_document({"schema_version": SCHEMA_VERSION, **document}))


def render_document(document: Mapping[str, Any]) -> str:
    r"""Return a document as JSON in ASCII; undefined numbers are null.

    >>> print(render_document({"runs": [{"name": "é", "n": 60.0, "value": math.nan}]}))
    {
     "runs": [
      {
       "name": "\u00e9",
       "n": 60,
       "value": null
      }
     ]
    }
    <BLANKLINE>
    """
    from recbias.reports.render import replace_undefined

    return json.dumps(replace_undefined(_convert_counts(document)), indent=1) + "\n"


def describe_errors(error: RecbiasError) -> list[dict[str, Any]]:
    """Return the message, the place and the help of an error, or of each of several.

    >>> (row,) = describe_errors(RecbiasError("no file", where="a.yaml:3:8: dataset.path"))
    >>> row["where"], row["file"], row["line"], row["column"]
    ('dataset.path', 'a.yaml', 3, 8)
    """
    if isinstance(error, Faults):
        return [row for fault in error.faults for row in describe_errors(fault)]
    place = None if error.where.startswith("--") else _PLACE.fullmatch(error.where)
    key_path, file, line, column = error.where or None, None, None, None
    if place:
        key_path, file = place["where"], place["file"]
        line, column = (place[name] and int(place[name]) for name in ("line", "column"))
    elif _is_of_file(error):
        key_path, file = None, error.where
    keys = {
        "where": key_path and shorten(key_path),
        "file": file,
        "line": line,
        "column": column,
    }
    return [{"message": shorten(error.message), **keys, "help": shorten(error.remedy) or None}]


def _is_of_file(error: RecbiasError) -> bool:
    """Return whether an error without a line is one of a file, not of a setting or an option."""
    if error.where.startswith("--") or "://" in error.where:
        return False
    has_name = isinstance(error, (BadYaml, DataError, MissingRun)) and "." in error.where
    return has_name or any(separator in error.where for separator in ("/", os.sep))


def _convert_counts(value: Any) -> Any:
    """Return a value whose cutoffs and counts are whole numbers; tables have floats or text.

    >>> _convert_counts({"k": "5", "n": 60.0, "undefined": "", "value": 1.0})
    {'k': 5, 'n': 60, 'undefined': None, 'value': 1.0}
    """
    from recbias.core.measures import METRICS, SIGNIFICANCE

    if isinstance(value, (list, tuple)):
        return [*map(_convert_counts, value)]
    if not isinstance(value, Mapping):
        return value
    counts = METRICS.whole_numbers | SIGNIFICANCE.whole_numbers | _NEEDED
    return {
        name: _to_whole(item)
        if name in counts and not isinstance(item, (list, tuple, Mapping))
        else _convert_counts(item)
        for name, item in value.items()
    }


def _to_whole(value: float | str | None) -> float | None:
    number = math.nan if value in {"", None} else float(value or 0)
    if math.isnan(number):
        return None
    return int(number) if number.is_integer() else number


@contextmanager
def _send_output_to_stderr() -> Iterator[None]:
    """Send what plug-ins, libraries and worker processes print to standard error."""
    try:
        out, err = sys.stdout.fileno(), sys.stderr.fileno()
    except OSError:  # streams in memory
        with redirect_stdout(sys.stderr):
            yield
        return
    sys.stdout.flush()
    saved = os.dup(out)
    os.dup2(err, out)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, out)
        os.close(saved)
