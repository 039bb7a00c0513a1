from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from recbias.core.context import (
    MIN_CHECKPOINT_INTERVAL,
    Checkpoints,
    Pruned,
    collect_facts,
    collect_warnings,
    create_once,
    has_validation_listener,
    record_fact,
    report_progress,
    report_validation,
    stage_context,
    track_progress,
    warn,
)
from recbias.core.dataset import AnyArray


def test_a_warning_belongs_to_the_innermost_block() -> None:
    with collect_warnings() as outer:
        warn("outer")
        with collect_warnings() as inner:
            warn("inner")
    assert (outer, inner) == (["outer"], ["inner"])


def test_a_warning_outside_a_stage_is_a_python_warning() -> None:
    with pytest.warns(UserWarning, match="3 queries have no list") as caught:
        warn("3 queries have no list")
    assert caught[0].filename == __file__
    with collect_warnings() as warnings:
        pass
    assert warnings == []


def test_a_fact_belongs_to_the_innermost_block() -> None:
    record_fact("outside", 1)
    with collect_facts() as outer:
        record_fact("a", 1)
        with collect_facts() as inner:
            record_fact("b", "x")
        record_fact("a", 2)
    assert outer == {"a": 2}
    assert inner == {"b": "x"}


def test_progress_is_reported_to_the_listener() -> None:
    reports: list[tuple[str, int, int]] = []
    with stage_context(on_progress=lambda *report: reports.append(report)):
        assert list(track_progress(["a", "b"], "epochs")) == ["a", "b"]
    assert reports == [("epochs", 0, 2), ("epochs", 1, 2), ("epochs", 2, 2)]


def test_progress_without_a_listener_is_dropped() -> None:
    report_progress("epochs", 1, 2)
    assert list(track_progress([1], "epochs")) == [1]


def test_a_validation_score_without_a_listener_is_dropped() -> None:
    assert not has_validation_listener()
    report_validation(1, 0.5)


def test_validation_scores_are_reported_inside_the_block_only() -> None:
    reports: list[tuple[int, float]] = []
    with stage_context(on_validation=lambda *report: reports.append(report)):
        assert has_validation_listener()
        report_validation(1, 0.25)
    report_validation(2, 0.5)
    assert reports == [(1, 0.25)]
    assert not has_validation_listener()


def test_a_validation_listener_may_end_the_training() -> None:
    def prune(epoch: int, score: float) -> None:
        if score < 0.1:
            raise Pruned

    with stage_context(on_validation=prune), pytest.raises(Pruned):
        report_validation(3, 0.05)


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


def test_an_incomplete_scratch_file_is_removed(tmp_path: Path) -> None:
    def write_half(path: Path) -> None:
        path.write_text("on")
        raise OSError("full")

    with (
        stage_context(scratch_folder=tmp_path),
        pytest.raises(OSError, match="full"),
        create_once("a", write_half),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_a_scratch_file_outside_a_stage_is_temporary() -> None:
    with create_once("a", write_text) as path:
        assert path.read_text() == "once"
    assert not path.parent.exists()


class MemoryStore:
    """Keeps the last checkpoint in memory and counts the writes."""

    def __init__(self) -> None:
        self.arrays: Mapping[str, AnyArray] | None = None
        self.n_saved = 0

    def load(self) -> Mapping[str, AnyArray] | None:
        return self.arrays

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        self.arrays, self.n_saved = arrays, self.n_saved + 1


def fail_to_make_checkpoint() -> Mapping[str, AnyArray]:
    raise AssertionError


def test_no_checkpoint_is_made_without_a_store() -> None:
    checkpoints = Checkpoints.current()
    checkpoints.due = 0
    checkpoints.save_if_due(fail_to_make_checkpoint)
    assert checkpoints.load() is None


def test_no_checkpoint_is_made_before_it_is_due() -> None:
    with stage_context(checkpoint_store=MemoryStore()):
        checkpoints = Checkpoints.current()
    checkpoints.save_if_due(fail_to_make_checkpoint)


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


def test_the_checkpoint_store_is_used_inside_the_block_only() -> None:
    with stage_context(checkpoint_store=MemoryStore()):
        pass
    assert Checkpoints.current().store is None
