"""Where long work keeps how far it is, so that it can go on after it was killed.

Work does not know where its checkpoints lie, and does not say how often one is due: it offers one
whenever it could go on from there, and takes up the last one when it starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from recbias.core.arrays import AnyArray

SHARE = 0.05
"""The share of the time that may go into checkpoints."""

SHORTEST = 1.0
"""Seconds between two checkpoints, at least."""


class Keeper(Protocol):
    """A place for the checkpoint of one piece of work."""

    def load(self) -> Mapping[str, AnyArray] | None:
        """Return the last checkpoint that was written whole, None where there is none.

        It is asked once, when a piece of work starts; what is asked later is of the next piece.
        """
        ...

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        """Write a checkpoint in place of the last one; whole or not at all."""
        ...


_keeper: ContextVar[Keeper | None] = ContextVar("keeper", default=None)


@contextmanager
def keeping(keeper: Keeper) -> Iterator[None]:
    """Keep the checkpoints of the work inside this block with ``keeper``."""
    token = _keeper.set(keeper)
    try:
        yield
    finally:
        _keeper.reset(token)


@dataclass
class Checkpoints:
    """The checkpoints of one piece of work, which may have none: then nothing is kept.

    Args:
        keeper: Where they lie, None for nowhere.
        due: When the next one may be written, by ``time.monotonic``.
    """

    keeper: Keeper | None
    due: float

    @classmethod
    def here(cls) -> Checkpoints:
        """Return those of the work that is being done."""
        return cls(_keeper.get(), time.monotonic() + SHORTEST)

    def last(self) -> Mapping[str, AnyArray] | None:
        """Return the last one, None where the work has to start anew."""
        return self.keeper.load() if self.keeper is not None else None

    def offer(self, make: Callable[[], Mapping[str, AnyArray]]) -> None:
        """Write a checkpoint if one is due.

        Args:
            make: Returns the arrays that the work could go on from, none of them of objects.
        """
        if self.keeper is None or time.monotonic() < self.due:
            return
        began = time.monotonic()
        self.keeper.save(make())
        ended = time.monotonic()
        self.due = ended + max(SHORTEST, (ended - began) / SHARE)
