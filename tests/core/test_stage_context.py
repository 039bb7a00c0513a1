from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from recbias.core import stage_context as context_module
from recbias.core.arrays import AnyArray
from recbias.core.stage_context import Checkpoints, stage_context


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
    found = Checkpoints.current()
    found.due = 0
    found.save_if_due(refused)
    assert found.load() is None


def test_one_that_is_not_due_is_not_made() -> None:
    with stage_context(checkpoint_store=Memory()):
        found = Checkpoints.current()
    found.save_if_due(refused)


def test_one_that_is_due_is_kept_and_the_next_is_not_due_at_once() -> None:
    memory = Memory()
    with stage_context(checkpoint_store=memory):
        found = Checkpoints.current()
    found.due = 0
    for epoch in (1, 2):
        found.save_if_due(lambda epoch=epoch: {"epoch": np.array(epoch)})  # type: ignore[misc]
    last = found.load()
    assert memory.saved == 1
    assert last is not None
    assert last["epoch"] == 1
    assert found.due > context_module.MIN_CHECKPOINT_INTERVAL


def test_work_outside_the_block_has_no_keeper() -> None:
    with stage_context(checkpoint_store=Memory()):
        pass
    assert Checkpoints.current().store is None
