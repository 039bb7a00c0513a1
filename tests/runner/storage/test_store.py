from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from recbias.core.errors import Unwritable
from recbias.core.records import Stored
from recbias.core.stage_context import collect_warnings
from recbias.runner.storage.store import HOST, RECORD, Store, sealed, unsealed, writing

DIGEST = "ab" + "0" * 62
STATE = {"weights": np.arange(1000, dtype=np.float32)}


def record() -> Stored:
    return Stored("fit EASE", "fit", {}, 1.5, 20.0, ("a warning",))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_what_is_saved_is_loaded(store: Store) -> None:
    assert not store.has(DIGEST)
    store.save(DIGEST, STATE, record())
    assert store.has(DIGEST)
    assert np.array_equal(store.load(DIGEST)["weights"], STATE["weights"])
    stored = store.record(DIGEST)
    assert stored is not None
    assert (stored.seconds, stored.warnings) == (1.5, ("a warning",))


def test_nothing_temporary_is_left(store: Store) -> None:
    store.save(DIGEST, STATE, record())
    assert list((store.folder / "tmp").iterdir()) == []


@pytest.mark.parametrize("name", ["arrays.npz", RECORD])
def test_a_truncated_result_is_not_taken_for_whole(store: Store, name: str) -> None:
    store.save(DIGEST, STATE, record())
    path = store.path(DIGEST) / name
    path.write_bytes(path.read_bytes()[:-7])
    assert not store.has(DIGEST)
    store.save(DIGEST, STATE, record())
    assert store.has(DIGEST)
    assert store.load(DIGEST) is not None


def test_a_result_whose_bytes_changed_is_set_aside_with_a_warning(store: Store) -> None:
    store.save(DIGEST, STATE, record())
    path = store.path(DIGEST) / "arrays.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))
    with collect_warnings() as notes:
        assert store.load(DIGEST) is None
    assert notes == ["the stored result of 'fit EASE' was damaged and is made again"]
    assert not store.has(DIGEST)


def test_an_emptied_record_is_mended_by_the_next_save(store: Store) -> None:
    store.save(DIGEST, STATE, record())
    (store.path(DIGEST) / RECORD).write_text("")
    assert store.load(DIGEST) is None
    store.save(DIGEST, STATE, record())
    assert store.load(DIGEST) is not None


def test_a_record_in_which_any_bit_changed_is_none(store: Store) -> None:
    store.save(DIGEST, STATE, record())
    path = store.path(DIGEST) / RECORD
    content, whole = path.read_bytes(), store.record(DIGEST)
    for place in range(len(content)):
        for bit in (0, 4, 7):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            path.write_bytes(bytes(changed))
            assert store.record(DIGEST) in (None, whole), changed[: place + 1]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "7", "null", "{}", "[" * 100_000, '{"stage": "fit EASE", "kind": "fit"}', "\udcff"],
)
def test_a_record_that_cannot_be_read_is_none(store: Store, text: str) -> None:
    store.save(DIGEST, STATE, record())
    (store.path(DIGEST) / RECORD).write_bytes(text.encode("utf-8", "surrogatepass"))
    assert store.record(DIGEST) is None
    assert store.is_damaged(DIGEST)
    assert store.load(DIGEST) is None
    assert list(store) == []


def test_a_record_of_a_kind_that_nobody_knows_is_none(store: Store) -> None:
    store.save(DIGEST, STATE, record())
    path = store.path(DIGEST) / RECORD
    path.write_text(sealed({**unsealed(path.read_text()), "kind": "measqre"}))
    assert store.record(DIGEST) is None


def test_what_is_stored_beside_a_result_comes_back_as_it_was(store: Store) -> None:
    facts = {"revision": "ü", "path": Path("a"), "share": 0.1, "nothing": float("nan")}
    store.save(DIGEST, STATE, Stored("fit EASE", "fit", {}, 1 / 3, 0.0, ("a",), facts))
    stored = store.record(DIGEST)
    assert stored is not None
    assert stored.seconds == 1 / 3
    assert stored.facts["path"] == "a"


def test_the_first_of_two_writers_stands_and_neither_fails(store: Store) -> None:
    store.save(DIGEST, STATE, record())
    store.save(DIGEST, {"weights": np.zeros(1)}, record())
    assert store.load(DIGEST)["weights"].size == 1000


def test_fresh_replaces(store: Store) -> None:
    store.save(DIGEST, STATE, record())
    store.save(DIGEST, {"weights": np.zeros(1)}, record(), replace=True)
    assert store.load(DIGEST)["weights"].size == 1


def test_folders_of_dead_processes_are_swept_and_those_of_the_living_kept(store: Store) -> None:
    dead = store.folder / "tmp" / f"{HOST}-999999999-abc"
    mine = store.folder / "tmp" / f"{HOST}-{os.getpid()}-abc"
    elsewhere = store.folder / "tmp" / "another.machine-999999999-abc"
    for folder in (dead, mine, elsewhere):
        folder.mkdir(parents=True)
    store.sweep()
    assert not dead.exists()
    assert mine.exists()
    assert elsewhere.exists()


def test_a_stored_pickle_is_refused(store: Store) -> None:
    store.save(DIGEST, STATE, record())
    path = store.path(DIGEST) / "arrays.npz"
    np.savez(path, weights=np.array([{"a": 1}], dtype=object))
    told = unsealed((store.path(DIGEST) / RECORD).read_text())
    from recbias.core.digests import digest_file

    told["files"]["arrays.npz"] = [path.stat().st_size, digest_file(path)]
    (store.path(DIGEST) / RECORD).write_text(sealed(told))
    with pytest.raises(ValueError, match="pickle"):
        store.load(DIGEST)


def test_the_store_lists_what_it_holds(store: Store) -> None:
    store.save(DIGEST, STATE, record())
    assert [(digest, stored.kind) for digest, stored in store] == [(DIGEST, "fit")]


@pytest.mark.parametrize(
    ("number", "found"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "it cannot be written"),
        (errno.EACCES, "it cannot be written"),
        (errno.ENOTDIR, "it is not a folder"),
        (errno.EIO, "it cannot be written: Input/output error"),
    ],
)
def test_what_the_file_system_refuses_is_one_line(number: int, found: str, tmp_path: Path) -> None:
    with pytest.raises(Unwritable) as caught, writing(tmp_path):
        raise OSError(number, os.strerror(number), str(tmp_path / "x"))
    assert caught.value.message == found
    assert caught.value.remedy


def test_a_full_disk_leaves_nothing_behind() -> None:
    """A real full disk: a file system of 64 KiB."""
    import subprocess
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
                store.save(DIGEST, {"weights": np.zeros(10**6)}, record())
            assert not store.has(DIGEST)
            assert list((store.folder / "tmp").iterdir()) == []
        finally:
            subprocess.run(["umount", name], check=True)
