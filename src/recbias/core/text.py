"""Escaping of untrusted text, so that it cannot control a terminal or forge a log line.

The nearest valid names for an invalid one. Nested settings by their paths.
"""

from __future__ import annotations

import difflib
import logging
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

MAX_VALUE_LENGTH, MAX_LINE_LENGTH = 500, 1000
"""The longest value and message in characters; the middle of a longer one is left out."""

_MAX_MESSAGE_LENGTH = 20_000
"""The longest message or traceback of a library that is stored with a run."""

_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"  # text direction and zero width
    "\u2028\u2029"  # line and paragraph separators
    "\ufff9-\ufffb\U000e0000-\U000e007f"  # annotations and tags
    "\ud800-\udfff]"  # lone surrogates
)


def make_printable(text: object, max_length: int | None = MAX_LINE_LENGTH) -> str:
    r"""Return a text on one line, with line ends and control characters as escape sequences.

    >>> make_printable("a\nerror: b\x1b]0;x\x07")
    'a\\nerror: b\\x1b]0;x\\x07'
    >>> make_printable("0123456789" * 10, max_length=40)
    '01234567890123 [...82 left out...] 6789'
    """
    line = shorten(str(text), max_length)
    if line.isascii() and line.isprintable():  # most are, and the search takes longer
        return line
    line = _CONTROL_CHARACTERS.sub(
        lambda character: character[0].encode("unicode_escape").decode("ascii"), line
    )
    return shorten(line, max_length)


def make_storable(text: str, max_length: int | None = _MAX_MESSAGE_LENGTH) -> str:
    r"""Return a message that UTF-8 can encode, without its middle if it is very long.

    >>> make_storable("a\nb \ud800")
    'a\nb \\ud800'
    """
    return shorten(text.encode("utf-8", "backslashreplace").decode("utf-8"), max_length)


def guard_messages() -> None:
    """Make the warnings and log messages of libraries printable, in the whole process."""
    warnings.formatwarning = _format_warning
    logging.setLogRecordFactory(_PrintableRecord)


def shorten(text: str, max_length: int | None = MAX_LINE_LENGTH) -> str:
    """Return a text without its middle: a message starts with the place, ends with the fault."""
    if max_length is None or len(text) <= max_length:
        return text
    longest_gap = f" [...{len(text):,} left out...] "
    length = max(0, max_length - len(longest_gap))  # the end gets a quarter of it
    gap = f" [...{len(text) - length:,} left out...] "
    return text[: length - length // 4] + gap + text[len(text) - length // 4 :]


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


_LEFT_OUT = {ord(mark): None for mark in "-_* "}


@lru_cache(maxsize=4096)  # the names of all plug-ins, for each unknown one
def normalize_name(name: str) -> str:
    """Return a name without case, hyphens, underscores, stars and spaces.

    >>> normalize_name("nDCG"), normalize_name("R-RIPA")
    ('ndcg', 'rripa')
    """
    return name.casefold().translate(_LEFT_OUT)


def find_nearest(
    name: str, names: Iterable[str], limit: int = 3, cutoff: float = 0.6
) -> list[str]:
    """Return the names that are most similar to ``name``, the most similar first.

    >>> find_nearest("neighbours", ["neighbors", "shrink"])
    ['neighbors']
    """
    if len(name) > _MAX_COMPARED_LENGTH:
        return []
    spellings = {normalize_name(spelling): spelling for spelling in names}
    nearest = difflib.get_close_matches(normalize_name(name), spellings, n=limit, cutoff=cutoff)
    return [spellings[normalized] for normalized in nearest]


_MAX_COMPARED_LENGTH = 1_000
"""The longest name that is compared with others."""

_MAX_NAME_LENGTH = 80
"""The longest name in a help line; a header that is no header may be one name of megabytes."""


def suggest(name: str, names: Iterable[str], *, limit: int = 12) -> str:
    """Return the help line for an unknown name: the nearest valid names, else the first of all.

    Of more names than ``limit``, those that are most like it come first.

    >>> suggest("neighbours", ["neighbors", "shrink"])
    'did you mean neighbors?'
    >>> suggest("zzz", ["neighbors", "shrink"])
    'the valid names are neighbors, shrink'
    """
    valid = sorted(map(_shorten, names), key=str.casefold)
    nearest = find_nearest(name, valid)
    if nearest:
        return f"did you mean {' or '.join(nearest)}?"
    if not valid:
        return "it takes none"
    more = ""
    if len(valid) > limit:
        more = f" and {len(valid) - limit} more"
        valid = find_nearest(name, valid, limit, cutoff=0.0) or valid
    return f"the valid names are {', '.join(valid[:limit])}{more}"


def _shorten(name: str) -> str:
    return name if len(name) <= _MAX_NAME_LENGTH else f"{name[: _MAX_NAME_LENGTH - 3]}..."


def flatten_settings(settings: Mapping[str, Any], start: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each setting, that of a setting by its path: ``llm.temperature``."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from flatten_settings(value, f"{start}{name}.")
        else:
            yield f"{start}{name}", value
