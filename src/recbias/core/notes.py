"""Warnings that become part of the record: what was counted, left out or looks wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_notes: ContextVar[list[str] | None] = ContextVar("notes", default=None)


@contextmanager
def noting() -> Iterator[list[str]]:
    """Collect the warnings of this block; nested blocks keep their own.

    >>> with noting() as notes:
    ...     warn("3 queries have no list")
    >>> notes
    ['3 queries have no list']
    """
    notes: list[str] = []
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


def warn(message: str) -> None:
    """Add a warning to the record of the stage that runs; outside a stage it is dropped."""
    notes = _notes.get()
    if notes is not None:
        notes.append(message)
