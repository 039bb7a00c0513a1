from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.context import Checkpoints, StageRecord
from recbias.core.errors import NothingLeft, StageError, Unwritable
from recbias.core.files import compute_digest
from recbias.runner.execute import Executor, Silent, to_error
from recbias.runner.stage import Keys, Stage
from recbias.runner.store import Store, list_checkpoints


class RecordingObserver(Silent):
    def __init__(self) -> None:
        self.events: list[str] = []

    def started(self, stage: Stage) -> None:
        self.events.append(f"started {stage.title}")

    def progressed(self, what: str, done: int, total: int) -> None:
        self.events.append(f"{what} {done}/{total}")

    def finished(self, record: StageRecord) -> None:
        state = "failed" if record.failure else "stored" if record.reused else "done"
        self.events.append(f"{state} {record.stage}")


def make_stage(name: str, work: Callable[..., Any], *inputs: Stage) -> Stage:
    return Stage("fit", name, compute_digest(name), work, inputs, Keys("d", 1, 1, "m"))


def make_one() -> dict[str, Any]:
    return {"x": np.array([1.0])}


def double(value: dict[str, Any]) -> dict[str, Any]:
    return {"x": value["x"] * 2}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_a_stage_is_computed_once_and_then_reused(store: Store) -> None:
    first = make_stage("first", make_one)
    second = make_stage("second", double, first)
    observer = RecordingObserver()
    assert Executor(store, observer).value(second)["x"].tolist() == [2.0]
    assert observer.events == ["started first", "done first", "started second", "done second"]
    again = RecordingObserver()
    assert Executor(store, again).value(second)["x"].tolist() == [2.0]
    assert again.events == ["stored second"]


def test_fresh_computes_every_stage_again_once(store: Store) -> None:
    calls: list[int] = []

    def count() -> dict[str, Any]:
        calls.append(1)
        return make_one()

    first = make_stage("first", count)
    Executor(store, Silent()).ensure(first)
    executor = Executor(store, Silent(), fresh=True)
    executor.value(make_stage("second", double, first))
    executor.value(make_stage("third", double, first))
    assert len(calls) == 2


def test_a_stage_whose_input_failed_is_skipped_and_names_it(store: Store) -> None:
    def fail() -> None:
        raise ValueError("bad weights")

    first = make_stage("fit EASE", fail)
    executor = Executor(store, Silent())
    record = executor.ensure(make_stage("ask EASE", double, first))
    assert record.failure is not None
    assert "'fit EASE' failed: " in record.failure.message
    assert "ValueError: bad weights" in record.failure.message
    assert not store.has(first.digest)
    with pytest.raises(StageError, match="bad weights"):
        executor.value(first)


def test_an_error_of_the_user_names_the_spec_and_a_bug_does_not(store: Store) -> None:
    def fail_on_input() -> None:
        raise NothingLeft("no rows", where="by", remedy="filter less")

    def divide_by_zero() -> None:
        raise ZeroDivisionError

    faulty = replace(make_stage("faulty", fail_on_input), spec_location="a.yaml:3:5: metrics[0]")
    record = Executor(store, Silent()).ensure(faulty)
    assert record.failure is not None
    assert record.failure.message == "a.yaml:3:5: metrics[0]: by: no rows"
    assert to_error(record).lines()[0] == "error: a.yaml:3:5: metrics[0]: by: no rows"
    broken = Executor(store, Silent()).ensure(
        replace(make_stage("bug", divide_by_zero), spec_location="a.yaml:3:5: x")
    )
    assert broken.failure is not None
    assert broken.failure.message == "ZeroDivisionError"


def test_a_damaged_result_is_computed_again(store: Store) -> None:
    first = make_stage("first", make_one)
    Executor(store, Silent()).ensure(first)
    path = store.path(first.digest) / "arrays.npz"
    content = bytearray(path.read_bytes())
    content[-20] ^= 0xFF
    path.write_bytes(bytes(content))
    executor = Executor(store, Silent())
    assert executor.value(make_stage("second", double, first))["x"].tolist() == [2.0]
    assert not executor.records[first.digest].reused


def make_counter(error: BaseException | None) -> Callable[[], dict[str, Any]]:
    """Return work that counts to three, with a checkpoint per step, and may fail at the second."""

    def count() -> dict[str, Any]:
        checkpoints = Checkpoints.current()
        last = checkpoints.load()
        begins = 0 if last is None else int(last["step"])
        for step in range(begins + 1, 4):
            checkpoints.due = 0
            checkpoints.save_if_due(lambda step=step: {"step": np.array(step)})  # type: ignore[misc]
            if step == 2 and error is not None:
                raise error
        return {"began": np.array(begins)}

    return count


@pytest.mark.parametrize(
    ("error", "begins"),
    [(MemoryError(), 2), (KeyboardInterrupt(), 2), (Unwritable("full"), 2), (ValueError(), 0)],
)
def test_interrupted_work_resumes_and_failed_work_restarts(
    store: Store, error: BaseException, begins: int
) -> None:
    with suppress(KeyboardInterrupt, Unwritable):
        Executor(store, Silent()).ensure(make_stage("fit", make_counter(error)))
    assert bool(list_checkpoints(store)) == (begins > 0)
    executor = Executor(store, Silent())
    again = make_stage("fit", make_counter(None))
    assert executor.value(again)["began"] == begins
    assert (executor.records[again.digest].resumed_seconds > 0) == (begins > 0)
    assert list_checkpoints(store) == []
