"""Print lines in which line ends and control characters are escaped."""

from __future__ import annotations

import sys

from recbias.core.printable import MAX_LINE_LENGTH, make_printable


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
