"""``--json``: one JSON document on standard output, and nothing else there."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import Annotated, Any, TypeAlias, cast

import typer
from typer.core import TyperCommand

from recbias.cli.printing import STOPPED, allow_closed_output
from recbias.core.errors import (
    BadYaml,
    DataError,
    Faults,
    MissingRun,
    RecbiasError,
    UserError,
)
from recbias.core.printable import shorten

SCHEMA_VERSION = 1
"""Incremented when a key of a document is removed or changes its meaning."""

AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead of tables.")
]

_COUNTS = ("k", "n", "undefined", "family_size", "needed", "needed_a", "needed_b")
"""The keys of a row that hold whole numbers, or null."""

_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?::(?P<column>\d+))?(?:: (?P<where>.+))?")
"""The location of an error: FILE:LINE, FILE:LINE:COLUMN or FILE:LINE:COLUMN: KEY."""

_BEYOND_ASCII = re.compile(r"[^\n -~]")


_UsageError = cast("type[Exception]", typer.BadParameter.__mro__[1])
"""The error of a command line that cannot be parsed; typer has no public name for it."""


class DocumentCommand(TyperCommand):
    """A command with ``--json``; faults of its options are a document too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the remaining arguments, as typer does."""
        is_wanted = "--json" in args
        try:
            return super().parse_args(ctx, args)
        except _UsageError as error:
            if is_wanted:
                message = cast("Any", error).format_message()
                remedy = f"{ctx.command_path} --help lists the options"
                print_document({"errors": describe_errors(UserError(message, remedy=remedy))})
            raise


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
        print_document({"errors": describe_errors(error)})
        raise
    except typer.Exit as end:
        if end.exit_code not in STOPPED:
            print_document(document)
        raise
    print_document(document)


def print_document(document: Mapping[str, Any]) -> None:
    """Print a document with its ``schema_version``."""
    with allow_closed_output():
        sys.stdout.write(render_document({"schema_version": SCHEMA_VERSION, **document}))


def render_document(document: Mapping[str, Any]) -> str:
    r"""Return a document as JSON in ASCII: one line for each key, and one for each row of a table.

    >>> print(render_document({"runs": [{"name": "é"}, {"name": None}], "models": ["A", "B"]}))
    {
    "runs": [
    {"name": "\u00e9"},
    {"name": null}
    ],
    "models": ["A", "B"]
    }
    <BLANKLINE>
    """
    return _BEYOND_ASCII.sub(_escape, f"{_render_lines(document)}\n")


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


def _render_lines(mapping: Mapping[str, Any]) -> str:
    """Return a mapping with one line for each key, and one for each row of a table."""
    items = (f"{json.dumps(name)}: {_render(value)}" for name, value in mapping.items())
    return "{\n" + ",\n".join(items) + "\n}"


def _render(value: object) -> str:
    from recbias.reports.writers.json_report import render_value

    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(render_value(_convert_counts(row)) for row in value) + "\n]"
    if isinstance(value, dict) and any(isinstance(item, list) for item in value.values()):
        return _render_lines(value)
    return render_value(value)


def _convert_counts(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose cutoff and counts are whole numbers; tables have them as floats or text.

    >>> _convert_counts({"k": "5", "n": 60.0, "undefined": "", "value": 1.0})
    {'k': 5, 'n': 60, 'undefined': None, 'value': 1.0}
    """
    return {name: _to_whole(value) if name in _COUNTS else value for name, value in row.items()}


def _to_whole(value: float | str | None) -> float | None:
    number = math.nan if value in {"", None} else float(value or 0)
    if math.isnan(number):
        return None
    return int(number) if number.is_integer() else number


def _escape(character: re.Match[str]) -> str:
    """Return a character as an escape sequence of JSON; DEL too, which terminals interpret."""
    text = json.dumps(character[0])[1:-1]
    return text if text.startswith("\\") else f"\\u{ord(text):04x}"


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
