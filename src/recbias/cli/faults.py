"""Errors to lines on stderr and exit codes."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

import typer

from recbias.cli.printing import print_line
from recbias.core.errors import RecbiasError, UserError
from recbias.core.printable import guard_messages

DONE, FAILED, USER, OUT_OF_TOLERANCE, INTERRUPTED = 0, 1, 2, 3, 130
"""The exit codes."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Numbers of the errors of a disk that takes no more."""


@contextmanager
def standard_streams() -> Iterator[None]:
    """Leave with one line where standard output is full; a closed stream is written nowhere."""
    nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  open to the very end
    sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in _FULL:
            raise
        with suppress(OSError):
            print(f"error: the output cannot be written: {error.strerror}", file=sys.stderr)
        _drop_output()
        raise SystemExit(FAILED) from None


@contextmanager
def reported() -> Iterator[None]:
    """Print an error of this block as the contract says, and leave with its exit code."""
    sys.excepthook = _bug
    guard_messages()
    try:
        yield
        sys.stdout.flush()
    except RecbiasError as error:
        for line in error.lines():
            print_line(line, to_stderr=True)
        raise typer.Exit(USER if isinstance(error, UserError) else FAILED) from None
    except KeyboardInterrupt:
        print_line("interrupted: run the same command again to resume", to_stderr=True)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        _drop_output()
        raise typer.Exit(DONE) from None


def _drop_output() -> None:
    """Let go of what was not written, which Python would try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback, indented: no line of a message looks like one of ours."""
    for line in "".join(traceback.format_exception(kind, error, trace)).splitlines():
        print_line(f"  {line}", to_stderr=True)
    said = "error: this is a bug in recbias; please report it with the lines above"
    print_line(said, to_stderr=True)
