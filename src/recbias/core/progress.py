"""How long work says how far it is, without knowing who listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Listener: TypeAlias = Callable[[str, int, int], None]
"""Called with (what, done, total)."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send what is reported inside this block to ``listener``."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report(what: str, done: int, total: int) -> None:
    """Say that ``done`` of ``total`` steps of ``what`` are done."""
    listener = _listener.get()
    if listener is not None:
        listener(what, done, total)


def steps(values: Sequence[T], what: str) -> Iterator[T]:
    """Yield the values, reporting each as a step."""
    report(what, 0, len(values))
    for done, value in enumerate(values, start=1):
        yield value
        report(what, done, len(values))
