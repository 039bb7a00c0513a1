"""Text of files, servers and models as one line that does nothing to a terminal or a log."""

from __future__ import annotations

import logging
import re
import warnings

LONGEST_VALUE = 500
"""Characters of a value, a label or a title; the middle of a longer one is left out."""

LONGEST_LINE = 1000
"""Characters of a message on one line; the middle of a longer one is left out."""

_SIGNS = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"  # direction and no width
    "\u2028\u2029"  # ends of lines and paragraphs
    "\ufff9-\ufffb\U000e0000-\U000e007f"  # annotations and tags
    "\ud800-\udfff]"  # halves of a character
)


def make_printable(text: object, longest: int | None = LONGEST_LINE) -> str:
    r"""Return a text on one line: what ends a line or controls a terminal is written as escapes.

    >>> make_printable("a\nerror: b\x1b]0;x\x07")
    'a\\nerror: b\\x1b]0;x\\x07'
    >>> make_printable("0123456789" * 10, longest=40)
    '01234567890123 [...82 left out...] 6789'

    Args:
        text: What is to be printed.
        longest: So many characters at most; None for all of them.
    """
    whole = str(text)
    if longest is not None and len(whole) > longest:
        whole = _shorten(whole, longest)
    line = _SIGNS.sub(_escape, whole)
    return line if longest is None or len(line) <= longest else _shorten(line, longest)


def guard_messages() -> None:
    """Make what libraries warn of or log printable, in the whole process."""
    warnings.formatwarning = _format_warning
    logging.setLogRecordFactory(_PrintableRecord)


def _escape(sign: re.Match[str]) -> str:
    return sign[0].encode("unicode_escape").decode("ascii")


def _shorten(text: str, longest: int) -> str:
    """Return the start and the end of a text: a message says first where, and last what."""
    gap = f" [...{len(text):,} left out...] "  # the longest that it may be
    kept = max(0, longest - len(gap))
    end = kept // 4
    gap = f" [...{len(text) - kept:,} left out...] "
    return text[: kept - end] + gap + text[len(text) - end :]


def _format_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    del line
    return make_printable(f"{filename}:{lineno}: {category.__name__}: {message}") + "\n"


class _PrintableRecord(logging.LogRecord):
    """A log record whose message is printable."""

    def getMessage(self) -> str:  # noqa: N802  the library's name
        return make_printable(super().getMessage())
