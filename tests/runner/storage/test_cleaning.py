from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from recbias.core.records import Stored
from recbias.runner.storage.cleaning import sweep_out
from recbias.runner.storage.store import RECORD, Store


def two_results(folder: Path) -> tuple[Store, str, str]:
    store = Store(folder)
    old, new = "aa" + "0" * 62, "bb" + "0" * 62
    for digest in (old, new):
        store.save(digest, {"w": np.zeros(3)}, Stored("fit", "fit", {}))
    week_ago = time.time() - 7 * 86400
    os.utime(store.path(old) / RECORD, (week_ago, week_ago))
    return store, old, new


@pytest.mark.parametrize(
    ("age", "dry", "left"),
    [(86400.0, False, [False, True]), (0.0, False, [False, False]), (0.0, True, [True, True])],
)
def test_what_was_not_used_goes(tmp_path: Path, age: float, dry: bool, left: list[bool]) -> None:
    store, old, new = two_results(tmp_path)
    sweep_out(tmp_path, age, dry_run=dry)
    assert [store.has(old), store.has(new)] == left


@pytest.mark.parametrize(("age", "dry", "left"), [(0.0, True, 2), (86400.0, False, 1)])
def test_checkpoints_go_by_the_time_they_were_written(
    tmp_path: Path, age: float, dry: bool, left: int
) -> None:
    folder = tmp_path / "partial"
    folder.mkdir()
    for name in ("old", "new"):
        (folder / name).write_bytes(bytes(100))
    os.utime(folder / "old", (0, 0))
    kept, gone = sweep_out(tmp_path, age, dry_run=dry)
    assert gone["unfinished"] == ((2, 200) if dry else (1, 100))
    assert kept.get("unfinished", (0, 0))[0] == (0 if dry else 1)
    assert len(list(folder.iterdir())) == left


def test_it_says_what_went_and_what_stays(tmp_path: Path) -> None:
    two_results(tmp_path)
    kept, gone = sweep_out(tmp_path, 86400.0, dry_run=True)
    assert kept["fit"][0] == 1
    assert gone["fit"][0] == 1
    assert gone["fit"][1] > 0


def test_no_store_is_nothing_to_remove(tmp_path: Path) -> None:
    assert sweep_out(tmp_path / "none", 0.0, dry_run=False) == ({}, {})
