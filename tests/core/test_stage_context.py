from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from recbias.core.context import (
    MIN_CHECKPOINT_INTERVAL,
    Checkpoints,
    create_once,
    stage_context,
    track_progress,
)
from recbias.core.dataset import AnyArray


def test_progress_is_reported_to_the_listener() -> None:
    reports: list[tuple[str, int, int]] = []
    with stage_context(on_progress=lambda *report: reports.append(report)):
        assert list(track_progress(["a", "b"], "epochs")) == ["a", "b"]
    assert reports == [("epochs", 0, 2), ("epochs", 1, 2), ("epochs", 2, 2)]


def write_text(path: Path) -> None:
    path.write_text("once")


def fail_to_write(path: Path) -> None:
    raise AssertionError


def test_a_scratch_file_is_written_once(tmp_path: Path) -> None:
    with stage_context(scratch_folder=tmp_path / "new"):
        with create_once("a", write_text) as path:
            assert path.read_text() == "once"
        with create_once("a", fail_to_write) as existing:
            assert existing == path
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a"]


class MemoryStore:
    """Keeps the last checkpoint in memory and counts the writes."""

    def __init__(self) -> None:
        self.arrays: Mapping[str, AnyArray] | None = None
        self.n_saved = 0

    def load(self) -> Mapping[str, AnyArray] | None:
        return self.arrays

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        self.arrays, self.n_saved = arrays, self.n_saved + 1


def test_a_due_checkpoint_is_saved_and_delays_the_next() -> None:
    store = MemoryStore()
    with stage_context(checkpoint_store=store):
        checkpoints = Checkpoints.current()
    checkpoints.due = 0
    for epoch in (1, 2):
        checkpoints.save_if_due(lambda epoch=epoch: {"epoch": np.array(epoch)})  # type: ignore[misc]
    checkpoint = checkpoints.load()
    assert store.n_saved == 1
    assert checkpoint is not None
    assert checkpoint["epoch"] == 1
    assert checkpoints.due > MIN_CHECKPOINT_INTERVAL
