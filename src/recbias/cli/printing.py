"""Printing of lines: whatever stands in them, none starts another line or reaches the terminal."""

from __future__ import annotations

import sys

from recbias.core.printable import LONGEST_LINE, make_printable


def print_line(
    text: object, *, to_stderr: bool = False, longest: int | None = LONGEST_LINE
) -> None:
    """Print a text on one line.

    Args:
        text: What is printed; line ends and control characters in it are shown as escapes.
        to_stderr: Whether it goes to standard error.
        longest: So many characters at most; None for all of them, as of a path.
    """
    stream = sys.stderr if to_stderr else sys.stdout
    print(make_printable(text, longest), file=stream, flush=to_stderr)


def print_text(text: str, *, to_stderr: bool = False) -> None:
    """Print a text of several lines, every line whole."""
    for line in text.split("\n"):
        print_line(line, to_stderr=to_stderr, longest=None)


def print_table(text: str) -> None:
    """Print a table for other programs: byte for byte, but for a terminal with escapes."""
    if sys.stdout.isatty():
        print_text(text.removesuffix("\n"))
    else:
        sys.stdout.write(text)
