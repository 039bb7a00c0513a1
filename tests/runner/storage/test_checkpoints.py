from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recbias
from recbias import api
from recbias.core.context import StageRecord, collect_warnings
from recbias.core.dataset import AnyArray
from recbias.core.files import compute_digest
from recbias.runner.estimate import preview
from recbias.runner.plan import Keys, Observer, Stage
from recbias.runner.store import (
    StageCheckpoints,
    Store,
    list_checkpoints,
    read_arrays,
    write_arrays,
)
from support.specs import make_small_spec

STAGE = Stage("fit", "fit MF", dict, (), Keys("d", 1, 1, "MF"), compute_digest("fit MF"))
STATE = {"epoch": np.array(12), "rng": np.array('{"state": "é"}'), "p.0": np.ones((3, 2), "f4")}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def load_checkpoint(store: Store) -> Mapping[str, AnyArray] | None:
    return StageCheckpoints(store, STAGE).load()


def save_checkpoint(store: Store, arrays: Mapping[str, AnyArray] = STATE) -> StageCheckpoints:
    checkpoints = StageCheckpoints(store, STAGE)
    checkpoints.load()
    checkpoints.save(arrays)
    return checkpoints


def test_truncated_files_and_changed_bytes_are_detected(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_arrays({"a": np.arange(3)}, path)
    content = path.read_bytes()
    for index in range(0, len(content), 7):
        for damaged in (
            content[:index],
            content[:index] + bytes([content[index] ^ 1]) + content[index + 1 :],
        ):
            path.write_bytes(damaged)
            found = read_arrays(path)  # a time in the archive is no content
            assert found is None or (*found, *found["a"]) == ("a", 0, 1, 2)


def test_arrays_of_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        write_arrays({"a": np.array([{}])}, tmp_path / "file")


def test_the_next_run_loads_the_last_checkpoint(store: Store) -> None:
    assert load_checkpoint(store) is None
    checkpoints = save_checkpoint(store)
    checkpoints.save({**STATE, "epoch": np.array(13)})
    state = load_checkpoint(store)
    assert state is not None
    assert {*state} == {*STATE}
    assert state["epoch"] == 13
    assert len(list_checkpoints(store)) == 1
    assert list((store.folder / "tmp").iterdir()) == []


def test_several_trainings_of_a_stage_have_a_checkpoint_each(store: Store) -> None:
    checkpoints = StageCheckpoints(store, STAGE)
    for epoch in (5, 7):
        checkpoints.load()
        checkpoints.save({"epoch": np.array(epoch)})
    again = StageCheckpoints(store, STAGE)
    states = [again.load() for _ in range(3)]
    epochs = [None if state is None else int(state["epoch"]) for state in states]
    assert epochs == [5, 7, None]


def test_a_damaged_checkpoint_is_ignored_with_a_warning(store: Store) -> None:
    save_checkpoint(store)
    (path,) = list_checkpoints(store)
    path.write_bytes(path.read_bytes()[:-7])
    with collect_warnings() as warnings:
        assert load_checkpoint(store) is None
    assert warnings == ["the checkpoint of 'fit MF' was damaged; the stage starts again"]


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A real file system of 64 KiB."""
    with tempfile.TemporaryDirectory() as name:
        command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", name]
        if subprocess.run(command, capture_output=True).returncode != 0:
            pytest.skip("a small file system cannot be mounted here")
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", name], check=True)


def test_on_a_full_disk_the_last_checkpoint_stays(small_disk: Path) -> None:
    store = Store(small_disk / "store")
    checkpoints = save_checkpoint(store)
    with collect_warnings() as warnings:
        checkpoints.save({"epoch": np.zeros(10**6)})
    assert ["the disk is full" in warning for warning in warnings] == [True]
    state = load_checkpoint(store)
    assert state is not None
    assert state["epoch"] == 12


class RecordingObserver(Observer):
    """Records the first epoch of each stage that is reported."""

    def __init__(self) -> None:
        self.first: dict[str, int] = {}
        self.records: dict[str, StageRecord] = {}
        self._stage = ""

    def started(self, stage: Stage) -> None:
        self._stage = stage.title

    def progressed(self, what: str, done: int, total: int) -> None:
        if what == "BPR-MF epochs":
            self.first.setdefault(self._stage, done)

    def finished(self, record: StageRecord) -> None:
        self.records[record.stage] = record


KILLED = """
import os, sys
from pathlib import Path
import recbias
from recbias.core import context as context_module
from recbias.runner.plan import Observer

context_module.MIN_CHECKPOINT_INTERVAL = 0.0

class KillingObserver(Observer):
    def progressed(self, what, done, total):
        if [*Path("killed/store/partial").glob(f"{sys.argv[1]}*")]:
            os.kill(os.getpid(), 9)

recbias.run("spec.json", out="killed", observer=KillingObserver())
"""
"""A run that is killed in the epoch after the first checkpoint of a stage."""

TUNE = {"metric": "nDCG", "trials": 2, "space": {"embedding_size": {"int": [4, 16]}}}


@pytest.mark.parametrize(
    ("tune", "title"),
    [(None, "fit BPR-MF"), pytest.param(TUNE, "trial 2 of BPR-MF", marks=pytest.mark.slow)],
    ids=["fit", "trial"],
)
def test_a_killed_run_resumes_and_gives_the_same_metrics(
    tmp_path: Path, tune: dict[str, Any] | None, title: str
) -> None:
    model = {"name": "BPR-MF", "epochs": 40, "patience": 0, "device": "cpu"}
    split = {"name": "random", "test": 0.2, "validation": 0.2}
    content = make_small_spec(models=[model | ({"tune": tune} if tune else {})], split=split)
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(content))
    plan, store = api.plan(spec, out=tmp_path / "killed")
    stage = next(stage for stage in plan.stages if stage.title == title)
    command = [sys.executable, "-c", KILLED, stage.digest]
    assert subprocess.run(command, cwd=tmp_path, timeout=120).returncode == -9
    steps = {step.stage.title: step for step in preview(plan, store).steps}
    assert (steps[title].stored, steps[title].partial) == (False, True)
    observer = RecordingObserver()
    resumed = recbias.run(spec, out=tmp_path / "killed", observer=observer)
    assert 0 < observer.first[title] < 40
    record = observer.records[title]
    assert 0 < record.resumed_seconds < record.seconds
    assert list_checkpoints(store) == []
    uninterrupted = recbias.run(spec, out=tmp_path / "uninterrupted")
    for name in ("metrics.csv", "lists.parquet"):
        assert (resumed.folder / name).read_bytes() == (uninterrupted.folder / name).read_bytes()
    resumed_seconds = {
        record["stage"]: record["resumed_seconds"] for record in resumed.manifest["stages"]
    }
    assert [name for name, seconds in resumed_seconds.items() if seconds] == [title]
