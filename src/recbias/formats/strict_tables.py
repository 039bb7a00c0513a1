"""Tables of which no line may be skipped: the files of a split, and queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from recbias.core.errors import MalformedLine
from recbias.formats.delimited.layout import SKIP_HINT


@contextmanager
def require_every_line() -> Iterator[None]:
    """Remove the advice to skip malformed lines from the errors raised in this block."""
    try:
        yield
    except MalformedLine as error:
        remedy = "correct the line" if error.remedy == SKIP_HINT else error.remedy
        raise MalformedLine(error.message, where=error.where, remedy=remedy) from error
