from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from recbias.core.context import Stored, collect_warnings
from recbias.core.errors import Unwritable
from recbias.core.files import digest_file
from recbias.runner.store import RECORD, Store, report_unwritable, seal_record, unseal_record

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


def test_save_removes_its_temporary_folder(store: Store) -> None:
    store.save(DIGEST, STATE, make_record())
    assert list((store.folder / "tmp").iterdir()) == []


@pytest.mark.parametrize("name", ["arrays.npz", RECORD])
def test_a_truncated_result_counts_as_missing(store: Store, name: str) -> None:
    store.save(DIGEST, STATE, make_record())
    path = store.path(DIGEST) / name
    path.write_bytes(path.read_bytes()[:-7])
    assert not store.has(DIGEST)
    store.save(DIGEST, STATE, make_record())
    assert store.has(DIGEST)
    assert store.load(DIGEST) is not None


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


@pytest.mark.parametrize("obstacle", ["link", "file", "parent", "loop", "pipe"])
def test_what_lies_in_the_place_of_a_result_is_replaced(store: Store, obstacle: str) -> None:
    path = store.path(DIGEST)
    path.parent.mkdir(parents=True)
    if obstacle == "link":
        path.symlink_to("absent")
    elif obstacle == "loop":
        path.symlink_to(path.name)
    elif obstacle == "file":
        path.write_bytes(b"")
    elif obstacle == "parent":
        path.parent.rmdir()
        path.parent.write_bytes(b"")
    else:
        path.mkdir()
        os.mkfifo(path / RECORD)
    assert not store.has(DIGEST)
    assert store.load(DIGEST) is None
    store.save(DIGEST, STATE, make_record())
    assert store.load(DIGEST) is not None
    assert list((store.folder / "tmp").iterdir()) == []


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
        (errno.ENOTDIR, "it is not a folder", "another --out"),
        (errno.EIO, "it cannot be written: Input/output error", "another --out"),
        (errno.EMFILE, "it cannot be written: Too many open files", "ulimit -n"),
        (errno.EFBIG, "it cannot be written: File too large", "ulimit -f"),
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
