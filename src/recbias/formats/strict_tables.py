"""Tables of which no line may be left out: the parts of a split, and queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from recbias.core.errors import MalformedLine
from recbias.formats.delimited.layout import SKIPPING


@contextmanager
def every_line() -> Iterator[None]:
    """Read tables in this block without the advice to leave malformed lines out."""
    try:
        yield
    except MalformedLine as error:
        remedy = "mend the line" if error.remedy == SKIPPING else error.remedy
        raise MalformedLine(error.message, where=error.where, remedy=remedy) from error
