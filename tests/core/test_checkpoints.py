from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from recbias.core import checkpoints
from recbias.core.arrays import AnyArray
from recbias.core.checkpoints import Checkpoints, keeping


class Memory:
    """Keeps the last one in memory."""

    def __init__(self) -> None:
        self.arrays: Mapping[str, AnyArray] | None = None
        self.saved = 0

    def load(self) -> Mapping[str, AnyArray] | None:
        return self.arrays

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        self.arrays, self.saved = arrays, self.saved + 1


def refused() -> Mapping[str, AnyArray]:
    raise AssertionError


def test_nothing_is_kept_where_nobody_keeps() -> None:
    found = Checkpoints.here()
    found.due = 0
    found.offer(refused)
    assert found.last() is None


def test_one_that_is_not_due_is_not_made() -> None:
    with keeping(Memory()):
        found = Checkpoints.here()
    found.offer(refused)


def test_one_that_is_due_is_kept_and_the_next_is_not_due_at_once() -> None:
    memory = Memory()
    with keeping(memory):
        found = Checkpoints.here()
    found.due = 0
    for epoch in (1, 2):
        found.offer(lambda epoch=epoch: {"epoch": np.array(epoch)})  # type: ignore[misc]
    last = found.last()
    assert memory.saved == 1
    assert last is not None
    assert last["epoch"] == 1
    assert found.due > checkpoints.SHORTEST


def test_work_outside_the_block_has_no_keeper() -> None:
    with keeping(Memory()):
        pass
    assert Checkpoints.here().keeper is None
