from __future__ import annotations

import errno
import math
import multiprocessing
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import Stored, collect_warnings
from recbias.core.dataset import Attributes, Dataset, Reviews, Vocabulary
from recbias.core.errors import Unwritable
from recbias.core.files import digest_file
from recbias.core.measures import Contrast, Measurement, UnitScores
from recbias.runner.codecs import load_value, save_value
from recbias.runner.store import (
    RECORD,
    VALUES,
    Store,
    TextValues,
    find_values,
    remove_unused,
    report_unwritable,
    seal_record,
    unseal_record,
)
from support.worlds.small_worlds import make_interactions

DIGEST = "ab" + "0" * 62
STATE = {"weights": np.arange(1000, dtype=np.float32)}


def make_record() -> Stored:
    return Stored("fit EASE", "fit", {}, 1.5, 20.0, ("a warning",))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_a_saved_result_is_loaded(store: Store) -> None:
    assert not store.has(DIGEST)
    store.save(DIGEST, STATE, make_record())
    assert store.has(DIGEST)
    assert np.array_equal(store.load(DIGEST)["weights"], STATE["weights"])
    stored = store.record(DIGEST)
    assert stored is not None
    assert (stored.seconds, stored.warnings) == (1.5, ("a warning",))


def test_a_result_with_changed_bytes_is_removed_with_a_warning(store: Store) -> None:
    store.save(DIGEST, STATE, make_record())
    path = store.path(DIGEST) / "arrays.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))
    with collect_warnings() as warnings:
        assert store.load(DIGEST) is None
    assert warnings == ["the stored result of 'fit EASE' was damaged and is computed again"]
    assert not store.has(DIGEST)


def test_a_record_with_any_changed_bit_is_none(store: Store) -> None:
    store.save(DIGEST, STATE, make_record())
    path = store.path(DIGEST) / RECORD
    content, stored = path.read_bytes(), store.record(DIGEST)
    for index in range(len(content)):
        changed = bytearray(content)
        changed[index] ^= 1 << index % 8
        path.write_bytes(bytes(changed))
        assert store.record(DIGEST) in (None, stored), changed[: index + 1]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "7", "null", "{}", '{"stage": "fit EASE", "kind": "fit"}', "\udcff"],
)
def test_a_record_that_cannot_be_read_is_none(store: Store, text: str) -> None:
    store.save(DIGEST, STATE, make_record())
    (store.path(DIGEST) / RECORD).write_bytes(text.encode("utf-8", "surrogatepass"))
    assert store.record(DIGEST) is None
    assert store.is_damaged(DIGEST)
    assert store.load(DIGEST) is None
    assert list(store) == []


def test_a_record_that_names_files_elsewhere_is_none(store: Store) -> None:
    store.save(DIGEST, STATE, make_record())
    path = store.path(DIGEST) / RECORD
    files = {"files": {"../x": [1, "0" * 64]}}
    path.write_text(seal_record({**unseal_record(path.read_text()), **files}))
    assert store.record(DIGEST) is None


def test_the_result_of_the_first_of_two_writers_stays(store: Store) -> None:
    store.save(DIGEST, STATE, make_record())
    store.save(DIGEST, {"weights": np.zeros(1)}, make_record())
    assert store.load(DIGEST)["weights"].size == 1000


def test_sweep_removes_what_was_left_a_day_ago(store: Store) -> None:
    old, new = (store.folder / "tmp" / name for name in ("old", "new"))
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    store.sweep()
    assert (old.exists(), new.exists()) == (False, True)


def test_a_stored_pickle_is_refused(store: Store) -> None:
    store.save(DIGEST, STATE, make_record())
    path = store.path(DIGEST) / "arrays.npz"
    np.savez(path, weights=np.array([{"a": 1}], dtype=object))
    record = unseal_record((store.path(DIGEST) / RECORD).read_text())
    record["files"]["arrays.npz"] = [path.stat().st_size, digest_file(path)]
    (store.path(DIGEST) / RECORD).write_text(seal_record(record))
    with collect_warnings() as warnings:
        assert store.load(DIGEST) is None
    assert len(warnings) == 1
    assert not store.has(DIGEST)


@pytest.mark.parametrize(
    ("number", "message", "remedy"),
    [
        (errno.ENOSPC, "the disk is full", "free some space"),
        (errno.EROFS, "it cannot be written", "that you may write"),
        (errno.EACCES, "it cannot be written", "that you may write"),
        (errno.EIO, "it cannot be written: Input/output error", "another --out"),
    ],
)
def test_errors_of_the_file_system_have_a_remedy(
    number: int, message: str, remedy: str, tmp_path: Path
) -> None:
    with pytest.raises(Unwritable) as caught, report_unwritable(tmp_path):
        raise OSError(number, os.strerror(number), str(tmp_path / "x"))
    assert caught.value.message == message
    assert remedy in caught.value.remedy


def test_a_full_disk_leaves_no_files() -> None:
    """On a real full disk: a file system of 64 KiB."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", name], capture_output=True
        )
        if mounted.returncode != 0:
            pytest.skip("a small file system cannot be mounted here")
        try:
            store = Store(Path(name) / "store")
            with pytest.raises(Unwritable, match="the disk is full"):
                store.save(DIGEST, {"weights": np.zeros(10**6)}, make_record())
            assert not store.has(DIGEST)
            assert list((store.folder / "tmp").iterdir()) == []
        finally:
            subprocess.run(["umount", name], check=True)


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
    store, old, _ = save_two_results(tmp_path)
    (store.path(old) / RECORD).write_bytes(b"{")
    _, amounts = remove_unused(tmp_path, 0.0, dry_run=True)
    assert (amounts["damaged"][0], amounts["fit"][0]) == (1, 1)
    assert remove_unused(tmp_path, 0.0, dry_run=False)[1] == amounts
    assert remove_unused(tmp_path, 0.0, dry_run=False) == ({}, {})


ODD = ["a,b", 'quote"d', "new\nline", "emoji 🎬", "", "שלום", "007", " spaced "]


def save_and_load(value: Any, folder: Path) -> Any:
    save_value(value, folder)
    return load_value(folder)


def test_a_dataset_is_restored_with_odd_identifiers_and_missing_cells(tmp_path: Path) -> None:
    ids = Vocabulary(np.array(ODD, dtype=object))
    interactions = make_interactions([(0, 0), (0, 1)], n_users=1, n_items=len(ODD), times=[5, 6])
    interactions = type(interactions)(
        interactions.users,
        interactions.items,
        interactions.values,
        interactions.times,
        interactions.user_ids,
        ids,
    )
    table = pd.DataFrame({"price": [1.0, *[math.nan] * 7], "genres": ["A|B", *[None] * 7]})
    texts = np.array(["", "fine 🎬"], dtype=object)
    zero = np.zeros(2, dtype=np.int32)
    dataset = Dataset(
        interactions,
        items=Attributes(ids, table),
        reviews=Reviews(zero, zero, texts),
        counts={"bad": 2},
    )
    restored = save_and_load(dataset, tmp_path)
    assert restored.item_ids.ids.tolist() == ODD
    assert restored.interactions.times.tolist() == [5, 6]
    assert restored.items.frame["genres"].tolist() == ["A|B", *[None] * 7]
    assert restored.items.numbers("price")[0] == 1.0
    assert np.isnan(restored.items.numbers("price")[1:]).all()
    assert restored.reviews.texts.tolist() == ["", "fine 🎬"]
    assert restored.counts == {"bad": 2}
    assert restored.users is None


def test_measurements_are_restored_and_share_their_units(tmp_path: Path) -> None:
    units = UnitScores("user", np.array(["a", "b"], dtype=object), np.array([0.5, np.nan]))
    contrast = Contrast("groups", "x=1", "x=2", "welch_t", 3, 1.0, 2.0, -1.0, 0.1, 0.2)
    axes = {"gender/1": np.array([0.6, 0.8])}
    values = (
        Measurement(0.5, 1, 1, group="x=1", units=units, contrasts=(contrast,), axes=axes),
        Measurement(math.nan, 0, 2, units=units, log_scale=True),
    )
    first, second = save_and_load(values, tmp_path)
    assert (first.value, first.group) == (0.5, "x=1")
    assert repr(first.contrasts) == repr((contrast,))
    assert math.isnan(second.value)
    assert second.log_scale
    assert first.units.ids is second.units.ids
    np.testing.assert_array_equal(first.units.values, units.values)
    np.testing.assert_array_equal(first.axes["gender/1"], [0.6, 0.8])


def test_objects_of_other_classes_are_not_stored(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a PosixPath cannot be stored"):
        save_value({"path": tmp_path}, tmp_path)


ROWS = np.array([[0.1, np.nan, 1 / 3], [-1.0, 2e-17, np.inf]])


def open_values(folder: Path, detector: str = "d", run_id: str = "") -> TextValues:
    return find_values(Store(folder), run_id)(detector)


@pytest.mark.parametrize("damage", ["truncated", "changed", "garbage", "empty"])
def test_damaged_lines_are_skipped_and_said(tmp_path: Path, damage: str) -> None:
    open_values(tmp_path).append(["a", "b"], ROWS)
    (path,) = (tmp_path / VALUES).iterdir()
    content = path.read_bytes()
    changes = {
        "truncated": content[:-20],
        "changed": content[:-12] + bytes([content[-12] ^ 1]) + content[-11:],
        "garbage": content.splitlines(keepends=True)[0] + b"\xff\x00 [[[\n",
        "empty": content.splitlines(keepends=True)[0] + b"\n",
    }
    path.write_bytes(changes[damage])
    stored = open_values(tmp_path)
    with collect_warnings() as messages:
        np.testing.assert_array_equal(stored.find("a"), ROWS[0])
        assert stored.find("b") is None
    assert messages == ["1 damaged line(s) of the stored labels are computed again"]
    stored.append(["b"], ROWS[1:])
    with collect_warnings():
        np.testing.assert_array_equal(open_values(tmp_path).find("b"), ROWS[1])


def _append_many(folder: Path, name: str, n: int) -> None:
    stored = open_values(folder)
    for at in range(n):
        stored.append([f"{name}{at}"], np.full((1, 3), float(at)))


def test_what_a_killed_process_stored_is_kept(tmp_path: Path) -> None:
    worker = multiprocessing.get_context("fork").Process(
        target=_append_many, args=(tmp_path, "x", 10**6)
    )
    worker.start()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and open_values(tmp_path).find("x3") is None:
        time.sleep(0.01)
    os.kill(worker.pid or 0, signal.SIGKILL)
    worker.join()
    stored = open_values(tmp_path)
    with collect_warnings():
        for at in range(4):
            np.testing.assert_array_equal(stored.find(f"x{at}"), np.full(3, float(at)))
