from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.digests import compute_digest
from recbias.core.errors import NothingLeft, StageError, Unwritable, UserError
from recbias.core.records import StageRecord
from recbias.core.stage_context import Checkpoints, report_progress, warn
from recbias.runner.execution.executor import Executor, Silent, failed
from recbias.runner.stage import Keys, Stage
from recbias.runner.storage.checkpoints import checkpoints
from recbias.runner.storage.store import RECORD, Store


class Ears(Silent):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def started(self, stage: Stage) -> None:
        self.heard.append(f"started {stage.title}")

    def progressed(self, what: str, done: int, total: int) -> None:
        self.heard.append(f"{what} {done}/{total}")

    def finished(self, record: StageRecord) -> None:
        state = "failed" if record.failure else "stored" if record.reused else "done"
        self.heard.append(f"{state} {record.stage}")


def stage(name: str, work: Callable[..., Any], *inputs: Stage) -> Stage:
    return Stage("fit", name, compute_digest(name), work, inputs, Keys("d", 1, 1, "m"))


def one() -> dict[str, Any]:
    return {"x": np.array([1.0])}


def twice(value: dict[str, Any]) -> dict[str, Any]:
    return {"x": value["x"] * 2}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_a_stage_is_worked_out_once_and_then_taken_from_the_store(store: Store) -> None:
    first = stage("first", one)
    second = stage("second", twice, first)
    ears = Ears()
    assert Executor(store, ears).value(second)["x"].tolist() == [2.0]
    assert ears.heard == ["started first", "done first", "started second", "done second"]
    again = Ears()
    assert Executor(store, again).value(second)["x"].tolist() == [2.0]
    assert again.heard == ["stored second"]


def test_inputs_of_a_stored_stage_are_not_touched(store: Store) -> None:
    def never() -> None:
        raise AssertionError

    second = stage("second", twice, stage("first", one))
    Executor(store, Silent()).ensure(second)
    store.remove(compute_digest("first"))
    again = Executor(store, Silent())
    assert again.ensure(stage("second", twice, stage("first", never))).reused


def test_fresh_works_everything_out_again_but_only_once(store: Store) -> None:
    calls: list[int] = []

    def counted() -> dict[str, Any]:
        calls.append(1)
        return one()

    first = stage("first", counted)
    Executor(store, Silent()).ensure(first)
    walk = Executor(store, Silent(), fresh=True)
    walk.value(stage("second", twice, first))
    walk.value(stage("third", twice, first))
    assert len(calls) == 2


def test_a_failure_names_the_stage_that_failed_and_takes_what_needs_it(store: Store) -> None:
    def broken() -> None:
        raise ValueError("bad weights")

    first = stage("fit EASE", broken)
    walk = Executor(store, Silent())
    record = walk.ensure(stage("ask EASE", twice, first))
    assert record.failure is not None
    assert "'fit EASE' failed: " in record.failure.message
    assert "ValueError: bad weights" in record.failure.message
    assert not store.has(first.digest)
    with pytest.raises(StageError, match="bad weights"):
        walk.value(first)


def test_the_users_fault_stays_the_users_fault_on_the_way_up(store: Store) -> None:
    def empty() -> None:
        raise NothingLeft("k_core left nothing", remedy="the largest k is 3")

    record = Executor(store, Silent()).ensure(stage("ask", twice, stage("load", empty)))
    error = failed(record)
    assert isinstance(error, UserError)
    assert error.remedy == "the largest k is 3"


def test_the_users_fault_has_its_place_in_the_spec_and_a_bug_has_none(store: Store) -> None:
    def empty() -> None:
        raise NothingLeft("no rows", where="by", remedy="filter less")

    def bug() -> None:
        raise ZeroDivisionError

    faulty = replace(stage("faulty", empty), place="a.yaml:3:5: metrics[0]")
    record = Executor(store, Silent()).ensure(faulty)
    assert record.failure is not None
    assert record.failure.message == "a.yaml:3:5: metrics[0]: by: no rows"
    assert failed(record).lines()[0] == "error: a.yaml:3:5: metrics[0]: by: no rows"
    broken = Executor(store, Silent()).ensure(replace(stage("bug", bug), place="a.yaml:3:5: x"))
    assert broken.failure is not None
    assert broken.failure.message == "ZeroDivisionError"


def test_the_place_is_no_part_of_what_a_stage_is() -> None:
    plain = stage("first", one)
    assert replace(plain, place="a.yaml:3:5: models[0]") == plain


def test_warnings_and_progress_reach_the_record_and_the_observer(store: Store) -> None:
    def talkative() -> dict[str, Any]:
        warn("3 queries have no list")
        report_progress("epochs", 1, 2)
        return one()

    ears = Ears()
    record = Executor(store, ears).ensure(stage("fit", talkative))
    assert record.warnings == ("3 queries have no list",)
    assert "epochs 1/2" in ears.heard
    assert Executor(store, Silent()).ensure(stage("fit", talkative)).warnings == record.warnings


def test_a_damaged_result_is_made_again(store: Store) -> None:
    first = stage("first", one)
    Executor(store, Silent()).ensure(first)
    path = store.path(first.digest) / "arrays.npz"
    content = bytearray(path.read_bytes())
    content[-20] ^= 0xFF
    path.write_bytes(bytes(content))
    walk = Executor(store, Silent())
    assert walk.value(stage("second", twice, first))["x"].tolist() == [2.0]
    assert not walk.records[first.digest].reused


def test_a_result_with_a_damaged_record_is_made_again_with_one_warning(store: Store) -> None:
    first = stage("first", one)
    Executor(store, Silent()).ensure(first)
    path = store.path(first.digest) / RECORD
    path.write_text(path.read_text().replace('"fit"', '"fiu"'))
    again = Executor(store, Silent()).ensure(first)
    assert not again.reused
    assert again.warnings == ("the stored result of 'first' was damaged and is made again",)
    later = Executor(store, Silent()).ensure(first)
    assert later.reused
    assert later.warnings == ()


def counting(error: BaseException | None) -> Callable[[], dict[str, Any]]:
    """Return work that counts to three, keeps each step, and may fail at the second."""

    def count() -> dict[str, Any]:
        found = Checkpoints.current()
        last = found.load()
        begins = 0 if last is None else int(last["step"])
        for step in range(begins + 1, 4):
            found.due = 0
            found.save_if_due(lambda step=step: {"step": np.array(step)})  # type: ignore[misc]
            if step == 2 and error is not None:
                raise error
        return {"began": np.array(begins)}

    return count


@pytest.mark.parametrize(
    ("error", "begins"),
    [(MemoryError(), 2), (KeyboardInterrupt(), 2), (Unwritable("full"), 2), (ValueError(), 0)],
)
def test_what_was_cut_off_goes_on_and_what_would_fail_again_starts_anew(
    store: Store, error: BaseException, begins: int
) -> None:
    with suppress(KeyboardInterrupt, Unwritable):
        Executor(store, Silent()).ensure(stage("fit", counting(error)))
    assert bool(checkpoints(store)) == (begins > 0)
    walk = Executor(store, Silent())
    again = stage("fit", counting(None))
    assert walk.value(again)["began"] == begins
    assert (walk.records[again.digest].resumed_seconds > 0) == (begins > 0)
    assert checkpoints(store) == []


def test_fresh_does_not_go_on(store: Store) -> None:
    Executor(store, Silent()).ensure(stage("fit", counting(MemoryError())))
    walk = Executor(store, Silent(), fresh=True)
    assert walk.value(stage("fit", counting(None)))["began"] == 0


def test_what_is_forgotten_comes_from_the_store(store: Store) -> None:
    first = stage("first", one)
    walk = Executor(store, Silent())
    walk.value(first)
    walk.forget([first])
    assert walk.values == {}
    assert walk.value(first)["x"].tolist() == [1.0]
