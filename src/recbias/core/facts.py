"""What work finds out and a reader of the run wants to know: a revision, a share, a speed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Fact: TypeAlias = str | int | float | bool | None

_facts: ContextVar[dict[str, Fact] | None] = ContextVar("facts", default=None)


@contextmanager
def stating() -> Iterator[dict[str, Fact]]:
    """Collect the facts of this block; nested blocks keep their own.

    >>> with stating() as facts:
    ...     state("masked_share", 0.1)
    >>> facts
    {'masked_share': 0.1}
    """
    facts: dict[str, Fact] = {}
    token = _facts.set(facts)
    try:
        yield facts
    finally:
        _facts.reset(token)


def state(name: str, value: Fact) -> None:
    """Add a fact to the record of the stage that runs; outside a stage it is dropped."""
    facts = _facts.get()
    if facts is not None:
        facts[name] = value
