"""A store of one checkpoint, and what takes the place of a kill."""

from __future__ import annotations

from collections.abc import Mapping

from recbias.core.dataset import AnyArray


class Interrupted(Exception):
    """Simulates the end of the process."""


class MemoryStore:
    """Holds the last checkpoint; the ``interrupt_at``-th that is saved interrupts the run."""

    def __init__(self, interrupt_at: int = 0) -> None:
        self.arrays: Mapping[str, AnyArray] | None = None
        self.n_saved, self.interrupt_at = 0, interrupt_at

    def load(self) -> Mapping[str, AnyArray] | None:
        return self.arrays

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        self.arrays = {name: array.copy() for name, array in arrays.items()}
        self.n_saved += 1
        if self.n_saved == self.interrupt_at:
            raise Interrupted
