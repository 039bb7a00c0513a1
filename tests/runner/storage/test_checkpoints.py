from __future__ import annotations

import json
import multiprocessing
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
from recbias.core.arrays import AnyArray
from recbias.core.digests import compute_digest
from recbias.core.records import StageRecord
from recbias.core.stage_context import collect_warnings
from recbias.runner.execution.executor import Silent
from recbias.runner.planning.preview import preview
from recbias.runner.stage import Keys, Stage
from recbias.runner.storage.checkpoints import StageKeeper, checkpoints, read, write
from recbias.runner.storage.store import Store
from support.specs import make_small_spec

STAGE = Stage("fit", "fit MF", compute_digest("fit MF"), dict, (), Keys("d", 1, 1, "MF"))
STATE = {"epoch": np.array(12), "rng": np.array('{"state": "é"}'), "p.0": np.ones((3, 2), "f4")}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def loaded(store: Store) -> Mapping[str, AnyArray] | None:
    return StageKeeper(store, STAGE).load()


def saved(store: Store, arrays: Mapping[str, AnyArray] = STATE) -> StageKeeper:
    keeper = StageKeeper(store, STAGE)
    keeper.load()
    keeper.save(arrays)
    return keeper


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write(STATE, tmp_path / "file")
    found = read(tmp_path / "file")
    assert found is not None
    assert {*found} == {*STATE}
    assert all(np.array_equal(found[name], each) for name, each in STATE.items())
    assert all(found[name].dtype == each.dtype for name, each in STATE.items())


def test_torn_files_and_changed_bytes_are_found(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write({"a": np.arange(3)}, path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        for broken in (
            whole[:place],
            whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :],
        ):
            path.write_bytes(broken)
            assert read(path) is None


def test_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        write({"a": np.array([{}])}, tmp_path / "file")


def test_the_next_run_finds_the_last_checkpoint(store: Store) -> None:
    assert loaded(store) is None
    keeper = saved(store)
    keeper.save({**STATE, "epoch": np.array(13)})
    found = loaded(store)
    assert found is not None
    assert {*found} == {*STATE}
    assert found["epoch"] == 13
    assert len(checkpoints(store)) == 1
    assert list((store.folder / "tmp").iterdir()) == []


def test_several_trainings_of_a_stage_have_a_checkpoint_each(store: Store) -> None:
    keeper = StageKeeper(store, STAGE)
    for epoch in (5, 7):
        keeper.load()
        keeper.save({"epoch": np.array(epoch)})
    again = StageKeeper(store, STAGE)
    found = [again.load() for _ in range(3)]
    assert [None if each is None else int(each["epoch"]) for each in found] == [5, 7, None]


def test_what_earlier_runs_spent_is_counted_once(store: Store) -> None:
    first = StageKeeper(store, STAGE, earlier=100.0, peak=1e6)
    for _ in range(2):
        first.load()
        first.save(STATE)
    ended = first.seconds
    second = StageKeeper(store, STAGE)
    second.load()
    second.load()
    # 100 seconds and the moment until the second of two trainings was kept, not their sum
    assert 100 < second.earlier < ended
    assert second.seconds >= second.earlier
    assert second.peak_memory_mb == 1e6


def test_a_damaged_one_counts_as_none_and_is_noted(store: Store) -> None:
    saved(store)
    (path,) = checkpoints(store)
    path.write_bytes(path.read_bytes()[:-7])
    with collect_warnings() as notes:
        assert loaded(store) is None
    assert notes == ["the checkpoint of 'fit MF' was damaged, so it starts anew"]


def test_those_of_other_stages_stay(store: Store) -> None:
    saved(store)
    other = Stage("fit", "fit EASE", compute_digest("fit EASE"), dict, (), Keys())
    StageKeeper(store, other).save(STATE)
    StageKeeper(store, STAGE).discard()
    assert loaded(store) is None
    assert [path.name[:64] for path in checkpoints(store)] == [other.digest]


def test_a_folder_that_cannot_be_written_is_noted_once(store: Store) -> None:
    store.folder.mkdir()
    (store.folder / "partial").touch()
    keeper = StageKeeper(store, STAGE)
    with collect_warnings() as notes:
        keeper.save(STATE)
        keeper.save(STATE)
    (note,) = notes
    assert note.startswith("'fit MF' is kept no further while it is trained: ")
    assert note.endswith("it is not a folder")


@pytest.fixture
def narrow() -> Iterator[Path]:
    """A real file system of 64 KiB."""
    with tempfile.TemporaryDirectory() as name:
        command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", name]
        if subprocess.run(command, capture_output=True).returncode != 0:
            pytest.skip("a small file system cannot be mounted here")
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", name], check=True)


def test_on_a_full_disk_the_last_whole_one_stays(narrow: Path) -> None:
    store = Store(narrow / "store")
    keeper = saved(store)
    with collect_warnings() as notes:
        keeper.save({"epoch": np.zeros(10**6)})
    assert ["the disk is full" in each for each in notes] == [True]
    found = loaded(store)
    assert found is not None
    assert found["epoch"] == 12


def write_many(folder: Path, value: int) -> None:
    keeper = saved(Store(folder), {"values": np.zeros(1)})
    for _ in range(100):
        keeper.save({"values": np.full(20_000, value)})


def test_two_processes_on_one_stage_do_not_harm_each_other(store: Store) -> None:
    context = multiprocessing.get_context("fork")
    saved(store, {"values": np.zeros(1)})
    writers = [context.Process(target=write_many, args=(store.folder, n)) for n in (1, 2)]
    for each in writers:
        each.start()
    with collect_warnings() as notes:
        while any(each.is_alive() for each in writers):
            found = loaded(store)
            assert found is not None
            assert np.unique(found["values"]).size == 1
    assert [each.exitcode for each in writers] == [0, 0]
    assert notes == []


class Steps(Silent):
    """Hears how far each stage was when it started."""

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
from recbias.core import stage_context as context_module
from recbias.runner.execution.executor import Silent

context_module.MIN_CHECKPOINT_INTERVAL = 0.0

class Deadly(Silent):
    def progressed(self, what, done, total):
        if [*Path("killed/store/partial").glob(f"{sys.argv[1]}*")]:
            os.kill(os.getpid(), 9)

recbias.run("spec.json", out="killed", observer=Deadly())
"""
"""A run that is killed in the epoch after the first checkpoint of a stage."""

TUNE = {"metric": "nDCG", "trials": 2, "space": {"embedding_size": {"int": [4, 16]}}}


@pytest.mark.parametrize(
    ("tune", "title"), [(None, "fit BPR-MF"), (TUNE, "trial 2 of BPR-MF")], ids=["fit", "trial"]
)
def test_what_is_killed_goes_on_and_ends_in_the_same_figures(
    tmp_path: Path, tune: dict[str, Any] | None, title: str
) -> None:
    model = {"name": "BPR-MF", "epochs": 40, "patience": 0, "device": "cpu"}
    split = {"name": "random", "test": 0.2, "validation": 0.2}
    made = make_small_spec(models=[model | ({"tune": tune} if tune else {})], split=split)
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(made))
    plan, store = api.plan(spec, out=tmp_path / "killed")
    stage = next(each for each in plan.stages if each.title == title)
    command = [sys.executable, "-c", KILLED, stage.digest]
    assert subprocess.run(command, cwd=tmp_path, timeout=120).returncode == -9
    seen = {step.stage.title: step for step in preview(plan, store).steps}
    assert (seen[title].stored, seen[title].partial) == (False, True)
    heard = Steps()
    resumed = recbias.run(spec, out=tmp_path / "killed", observer=heard)
    assert 0 < heard.first[title] < 40
    record = heard.records[title]
    assert 0 < record.resumed_seconds < record.seconds
    assert checkpoints(store) == []
    whole = recbias.run(spec, out=tmp_path / "whole")
    for name in ("metrics.csv", "lists.parquet"):
        assert (resumed.folder / name).read_bytes() == (whole.folder / name).read_bytes()
    told = {each["stage"]: each["resumed_seconds"] for each in resumed.manifest["stages"]}
    assert [name for name, seconds in told.items() if seconds] == [title]
