from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from recbias.core.context import Stored
from recbias.runner.store import RECORD, Store, remove_unused
from support.commands import invoke_recbias


def save_two_results(folder: Path) -> tuple[Store, str, str]:
    store = Store(folder)
    old, new = "aa" + "0" * 62, "bb" + "0" * 62
    for digest in (old, new):
        store.save(digest, {"w": np.zeros(3)}, Stored("fit", "fit", {}))
    week_ago = time.time() - 7 * 86400
    os.utime(store.path(old) / RECORD, (week_ago, week_ago))
    return store, old, new


@pytest.mark.parametrize(
    ("age", "dry", "expected"),
    [(86400.0, False, [False, True]), (0.0, False, [False, False]), (0.0, True, [True, True])],
)
def test_unused_results_are_removed(
    tmp_path: Path, age: float, dry: bool, expected: list[bool]
) -> None:
    store, old, new = save_two_results(tmp_path)
    remove_unused(tmp_path, age, dry_run=dry)
    assert [store.has(old), store.has(new)] == expected


@pytest.mark.parametrize(("age", "dry", "expected"), [(0.0, True, 2), (86400.0, False, 1)])
def test_checkpoints_are_removed_by_the_time_they_were_written(
    tmp_path: Path, age: float, dry: bool, expected: int
) -> None:
    folder = tmp_path / "partial"
    folder.mkdir()
    for name in ("old", "new"):
        (folder / name).write_bytes(bytes(100))
    os.utime(folder / "old", (0, 0))
    remaining, removed = remove_unused(tmp_path, age, dry_run=dry)
    assert removed["unfinished"] == ((2, 200) if dry else (1, 100))
    assert remaining.get("unfinished", (0, 0))[0] == (0 if dry else 1)
    assert len(list(folder.iterdir())) == expected


def test_what_is_no_result_is_removed_as_damaged(tmp_path: Path) -> None:
    store, old, new = save_two_results(tmp_path)
    (store.path(old) / RECORD).write_bytes(b"{")
    store.path("cc" + "0" * 62).parent.mkdir()
    store.path("cc" + "0" * 62).symlink_to(store.path(new))
    store.path("cc" + "1" * 62).write_bytes(b"x")
    for name in ("partial", "scratch", "values"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "absent").symlink_to("nowhere")
        os.mkfifo(tmp_path / name / "pipe")
        (tmp_path / name / "folder").mkdir()
    _, amounts = remove_unused(tmp_path, 0.0, dry_run=True)
    assert amounts["damaged"][0] == 3
    assert amounts["unfinished"][0] == 3
    _, removed = remove_unused(tmp_path, 0.0, dry_run=False)
    assert removed == amounts
    assert remove_unused(tmp_path, 0.0, dry_run=False) == ({}, {})


@pytest.mark.parametrize("obstacle", ["store", "store/partial", "store/aa", "replies/a.jsonl"])
def test_clean_names_what_it_cannot_read(tmp_path: Path, obstacle: str) -> None:
    path = tmp_path / "results" / obstacle
    path.parent.mkdir(parents=True)
    if obstacle.startswith("replies"):
        path.mkdir()
    else:
        path.write_bytes(b"")
    result = invoke_recbias("clean", "--yes", folder=tmp_path)
    assert "Traceback" not in result.err
    assert result.code == (2 if obstacle.startswith("replies") else 0)
    assert ("a.jsonl" in result.err) == obstacle.startswith("replies")
