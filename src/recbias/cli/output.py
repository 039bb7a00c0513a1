"""What commands say: lines, tables and JSON documents, errors, and exit codes."""

from __future__ import annotations

import inspect
import json
import math
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import Parameter, Signature
from pathlib import Path
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NoReturn,
    TypeAlias,
    get_args,
    get_type_hints,
)

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text
from typer.models import ArgumentInfo, ParameterInfo

from recbias.core.docstrings import read_arguments, split_sections
from recbias.core.errors import BadYaml, DataError, Faults, MissingRun, RecbiasError, UserError
from recbias.core.machine import claim_line, describe_shortage, get_exit_code, is_shortage
from recbias.core.text import guard_messages, make_printable, shorten
from recbias.reports.wording import Cell, format_count
from recbias.reports.wording import Table as Grid

if TYPE_CHECKING:
    from recbias.reports.verdict import Verdict
    from recbias.runner.plan import Observer

DONE, FAILED, USER, OUT_OF_TOLERANCE = 0, 1, 2, 3
"""The exit codes of a command that was not stopped."""

SCHEMA_VERSION = 1
"""Incremented when a key of a document is removed or changes its meaning."""

Part: TypeAlias = str | Text | Grid
"""What is shown: a line, a line with a style, or a table."""

RunName: TypeAlias = Annotated[
    str, typer.Argument(metavar="RUN", help="A run folder, or the name of an experiment.")
]
Out: TypeAlias = Annotated[Path, typer.Option(help="Folder of results.")]
Data: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Folder of datasets.", envvar="RECBIAS_DATA", show_default="data"),
]


@dataclass(frozen=True, eq=False)
class Answer:
    """What a command says.

    Args:
        document: What ``--json`` prints.
        shown: What is printed without it.
        notes: Lines on standard error.
        code: The exit code.
    """

    document: Mapping[str, Any]
    shown: Iterable[Part] = ()
    notes: Sequence[str] = field(default_factory=tuple)
    code: int = DONE


def command(act: Callable[..., Answer | Iterable[Part] | None]) -> Callable[..., None]:
    """Return the command of a function: it prints the answer, and errors with their exit codes.

    A parameter without a default is an argument, another one an option; the section ``Args`` of
    the docstring has their help. A function with an ``Answer`` has the option ``--json``; others
    give lines and tables.
    """
    documented: Any = act
    docs, hints = read_arguments(documented), get_type_hints(act, include_extras=True)
    signature = inspect.signature(act)
    parameters = [
        _declare(parameter, hints[name], docs.get(name, ""))
        for name, parameter in signature.parameters.items()
    ]

    @wraps(act)
    def call(*, as_json: bool = False, **given: Any) -> None:
        with _report_errors():
            answer = _print_document(act, given) if as_json else act(**given)
            if not as_json:
                with _allow_closed_output():
                    print_parts(answer.shown if isinstance(answer, Answer) else answer or ())
            if isinstance(answer, Answer):
                for line in answer.notes:
                    print_line(line, to_stderr=True)
                if answer.code:
                    raise typer.Exit(answer.code)

    if hints.get("return", Answer) is Answer:
        kind = Annotated[
            bool, typer.Option("--json", help="Print one JSON document instead of tables.")
        ]
        parameters.append(Parameter("as_json", _OPTION, default=False, annotation=kind))
    vars(call)["__signature__"] = Signature(parameters)
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    call.__doc__ = split_sections(inspect.getdoc(act) or "").get("", "")
    return call


_OPTION = Parameter.KEYWORD_ONLY


def _declare(parameter: Parameter, hint: Any, doc: str) -> Parameter:
    """Return a parameter as typer takes it."""
    info = next((each for each in get_args(hint) if isinstance(each, ParameterInfo)), None)
    if info is None:
        is_needed = parameter.default is Parameter.empty
        flags = [f"--{parameter.name.replace('_', '-')}"] * (hint is bool)
        info = typer.Argument(show_default=False) if is_needed else typer.Option(*flags)
        hint = Annotated[hint, info]
    info.help = info.help or doc
    if isinstance(info, ArgumentInfo):
        info.metavar = info.metavar or parameter.name.upper()
    return Parameter(parameter.name, _OPTION, default=parameter.default, annotation=hint)


# ---- lines and tables ----


class _Output(Console):
    """Standard output that raises an exception when its reader has closed it."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise the exception that Python raises, so that it is handled in one place."""
        raise BrokenPipeError


def print_line(text: object, *, to_stderr: bool = False) -> None:
    """Print a text on one line, with line ends and control characters escaped.

    On standard error a long one is shortened.
    """
    line = make_printable(text) if to_stderr else make_printable(text, None)
    print(line, file=sys.stderr if to_stderr else sys.stdout, flush=to_stderr)


def print_parts(parts: Iterable[Part], console: Console | None = None) -> None:
    """Print lines and tables; markup in them is not interpreted."""
    console = console or _Output(highlight=False)
    for part in parts:
        if isinstance(part, Grid):
            _print_grid(part, console)
        elif isinstance(part, Text):
            console.print(part, soft_wrap=not console.is_terminal)
        else:
            for line in part.split("\n"):
                print_line(line)


def select_first(grid: Grid, most: int, elsewhere: str) -> Grid:
    """Return the first rows of a table, with a note on where the others are."""
    more = len(grid.rows) - most
    notes = (f"{format_count(more, 'more row')}: {elsewhere}.", *grid.notes)
    return replace(grid, rows=grid.rows[:most], notes=notes) if more > 0 else grid


_COLOURS = {"pass": "bold green", "fail": "bold red", "undecided": "bold yellow", "none": "bold"}


def show_verdict(verdict: Verdict, n_more: int) -> Iterator[Text]:
    """Yield the verdict of a run, in small print its tests, and how many conclusions are left."""
    more = f"{format_count(n_more, 'more conclusion')} in the report." if n_more else ""
    small = " ".join(filter(None, (*verdict.small, more)))
    lines = [(verdict.line, _COLOURS[verdict.state])]
    lines += [(f"- {text}", "") for text in verdict.sentences]
    lines += [(small, "dim")] * bool(small)
    for line, style in lines:
        yield Text(make_printable(line, None), style=style)


_LONGEST_WORD = 15  # a longer one is folded in a narrow terminal
_FIRST_LEFT_OUT = ("n", "p", "observed")
_MOST_NAMES = 6
_WIDE = Console(width=1_000_000, color_system=None)
"""A console in which every table has room."""


def _print_grid(grid: Grid, console: Console) -> None:
    """Print a table with its title above and its notes below.

    A narrow terminal leaves columns of numbers out, the last ones first. Outside of a terminal
    every row is one line, however long.
    """
    if grid.title:
        console.print(Text(grid.title, style="italic"), soft_wrap=not console.is_terminal)
    if console.is_terminal:
        numbers = [column.title for column in grid.columns if column.numeric][:0:-1]
        numbers.sort(key=lambda title: title not in _FIRST_LEFT_OUT)
        shown, omitted = grid, list[str]()
        while (fits := _WIDE.measure(_lay_out(shown, 0)).minimum <= console.width) < bool(numbers):
            omitted.append(numbers.pop(0))
            shown = shown.select(*({column.title for column in shown.columns} - {*omitted}))
        console.print(_lay_out(shown, console.width if fits else None))
        if omitted:
            names = [column.title for column in grid.columns if column.title in omitted]
            text = "; ".join(names[:_MOST_NAMES])
            text += f" and {len(names) - _MOST_NAMES} more" * (len(names) > _MOST_NAMES)
            note = f"Too wide to show: {text} (a wider terminal and --json have them)."
            grid = replace(grid, notes=(*grid.notes, note))
    else:  # at its full width without trailing blanks
        with _WIDE.capture() as capture:
            _WIDE.print(_lay_out(grid, _WIDE.width))
        lines = capture.get().splitlines()
        console.out("\n".join(line.rstrip() for line in lines), highlight=False)
        notes = tuple(note for note in grid.notes if not note.startswith("Bold:"))
        grid = replace(grid, notes=notes)  # there are no styles
    for note in filter(None, (*grid.notes, grid.keys)):
        console.print(Text(note, style="dim"), soft_wrap=not console.is_terminal)


def _lay_out(grid: Grid, width: int | None) -> Any:
    """Return a table of rich, whose numbers and words stay whole unless the width is None."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    columns, least, most = [], list[int](), list[int]()
    for at, column in enumerate(grid.columns):
        mark = max((len(row[at].mark) for row in grid.rows), default=0)
        columns.append([_render_cell(row[at], mark) for row in grid.rows])
        texts = [text.plain for text in columns[-1]]
        words = " ".join([column.title, *([] if column.numeric else texts)]).split()
        least.append(min(max(map(cell_len, words), default=0), _LONGEST_WORD))
        if column.numeric:
            least[-1] = max(least[-1], *map(cell_len, texts), 0)
        most.append(max(map(cell_len, [column.title, *texts])))
    room = 0 if width is None else width - 2 * (len(columns) - 1)
    widths = _narrow(most, least, room)
    for column, own in zip(grid.columns, widths, strict=True):
        table.add_column(
            Text(column.title),
            justify="right" if column.numeric else "left",
            vertical="bottom",
            overflow="fold",
            no_wrap=False,
            width=None if width is None else own,
        )
    for cells in zip(*columns, strict=True):
        table.add_row(*cells)
    return table


def _narrow(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return the widths of columns that fit into the room, the widest narrowed first.

    >>> _narrow([30, 20, 7], [4, 18, 7], 40)
    [15, 18, 7]
    """
    widths = [*widths]
    while sum(widths) > room and any(a > b for a, b in zip(widths, least, strict=True)):
        wider = [at for at, own in enumerate(widths) if own > least[at]]
        widths[max(wider, key=widths.__getitem__)] -= 1
    return widths


def _render_cell(cell: Cell, mark_width: int) -> Text:
    """Return the text of a cell and its mark, in a column with marks of a width."""
    style = "bold" if cell.best else "underline" if cell.second else ""
    mark = f" {cell.mark:{mark_width}}" if mark_width else ""
    return Text.assemble((make_printable(cell.text), style), (mark, "dim"))


@contextmanager
def show_progress(*, quiet: bool, verbose: bool = False) -> Iterator[Observer]:
    """Yield the observer of a run; what plug-ins print meanwhile goes to standard error."""
    from recbias.progress import open_observer

    with open_observer(quiet=quiet, verbose=verbose) as observer, redirect_stdout(sys.stderr):
        yield observer


# ---- errors ----


@contextmanager
def _report_errors() -> Iterator[None]:
    """Print an error of this block as ``error:`` and ``help:`` lines and exit with its code."""
    sys.excepthook = _report_bug
    guard_messages()
    try:
        yield
        sys.stdout.flush()
    except RecbiasError as error:
        raise _fail(error.lines(), USER if isinstance(error, UserError) else FAILED) from None
    except KeyboardInterrupt as error:
        with suppress(OSError):  # the terminal may be closed
            if line := claim_line(error):
                print_line(line, to_stderr=True)
        raise typer.Exit(get_exit_code(error)) from None
    except BrokenPipeError:
        _discard_output()
        raise typer.Exit(DONE) from None
    except (MemoryError, OSError) as error:
        if is_shortage(error):
            message, remedy = describe_shortage(error)
            raise _fail([f"error: {message}", f"help: {remedy}"], FAILED) from None
        if not isinstance(error, OSError) or error.filename is None:
            raise
        path = os.fsdecode(error.filename) if error.filename != "" else "."
        remedy = "help: check that it exists and that you may read and write it, then run again"
        raise _fail([f"error: {path}: {error.strerror or error}", remedy], USER) from None


def _fail(lines: Iterable[str], code: int) -> typer.Exit:
    """Print the lines of an error, and return the exit."""
    for line in lines:
        print_line(line, to_stderr=True)
    return typer.Exit(code)


@contextmanager
def _allow_closed_output() -> Iterator[None]:
    """Discard the output of this block that nobody reads, as in ``recbias run | head``.

    The command goes on, so that it ends with the exit code of its result.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()


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


# ---- documents ----

_NEEDED = {"needed", "needed_a", "needed_b"}
"""The counts of a row of `recbias power`."""

_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?::(?P<column>\d+))?(?:: (?P<where>.+))?")
"""The location of an error: FILE:LINE, FILE:LINE:COLUMN or FILE:LINE:COLUMN: KEY."""


def _print_document(act: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Print the document of a function, or one of its errors; return its answer.

    Whatever it prints on standard output goes to standard error.
    """
    document: Mapping[str, Any] = {}
    try:
        with _send_output_to_stderr():
            answer = act(**given)
        document = answer.document
    except RecbiasError as error:
        document = {"errors": describe_errors(error)}
        raise
    finally:
        if document:
            with _allow_closed_output():
                text = render_document({"schema_version": SCHEMA_VERSION, **document})
                sys.stdout.write(text)
    return answer


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
    where, is_option = error.where, error.where.startswith("--")
    place: dict[str, Any] = dict.fromkeys(("where", "file", "line", "column"))
    has_suffix = isinstance(error, (BadYaml, DataError, MissingRun)) and "." in where
    if not is_option and (found := _PLACE.fullmatch(where)):
        place |= {name: found[name] and int(found[name]) for name in ("line", "column")}
        place |= {"where": found["where"] and shorten(found["where"]), "file": found["file"]}
    elif not is_option and "://" not in where and (has_suffix or {"/", os.sep} & {*where}):
        place["file"] = where  # without a line
    else:
        place["where"] = shorten(where) or None
    return [{"message": shorten(error.message), **place, "help": shorten(error.remedy) or None}]


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
