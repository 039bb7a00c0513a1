"""Lines on standard output and standard error, and errors as lines and exit codes."""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import typer

from recbias.core.errors import RecbiasError, UserError
from recbias.core.machine.interrupts import claim_line, get_exit_code, raise_received
from recbias.core.machine.memory import describe_shortage, is_shortage
from recbias.core.printable import MAX_LINE_LENGTH, guard_messages, make_printable

if TYPE_CHECKING:
    from recbias.runner.execution.stage_records import Observer


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

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The error numbers of a full disk."""


@contextmanager
def guard_streams() -> Iterator[None]:
    """Exit with one line if standard output is full; discard the output of a closed stream."""
    devnull = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  open until the exit
    sys.stdout, sys.stderr = sys.stdout or devnull, sys.stderr or devnull
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # one of Latin-1, say, has no lines of tables
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        raise_received()
        if error.errno not in _DISK_FULL:
            raise
        with suppress(OSError):
            print(f"error: the output cannot be written: {error.strerror}", file=sys.stderr)
        _discard_output()
        raise SystemExit(FAILED) from None


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
    """Return what is said of an error of the system, the remedy and the exit code.

    That is memory that ran out, or a file: a folder that nobody may enter, one that was removed
    meanwhile. The message of any other error is blank.
    """
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
