from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias.core.errors import ChangedFile, UserError
from recbias.runner.storage import fingerprints
from recbias.runner.storage.fingerprints import Fingerprints, WatchedFiles
from recbias.runner.storage.store import Store
from support.specs import make_small_spec


@pytest.mark.parametrize("large", [1, 10**9])
def test_a_digest_depends_on_the_bytes_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(fingerprints, "LARGE", large)
    path = tmp_path / "ratings.dat"
    path.write_bytes(b"1::2::3::4\n")
    digests = Fingerprints(Store(tmp_path / "store"))
    expected = hashlib.sha256(b"1::2::3::4\n").hexdigest()
    assert digests.of(path) == expected
    assert Fingerprints(digests.store).of(path) == expected
    path.write_bytes(b"1::2::3::5\n")
    os.utime(path, ns=(1, 1))
    assert Fingerprints(digests.store).of(path) == hashlib.sha256(b"1::2::3::5\n").hexdigest()


def test_a_plan_reads_each_file_once(tmp_path: Path) -> None:
    path = tmp_path / "lists.csv"
    path.write_text("first")
    digests = Fingerprints(Store(tmp_path / "store"))
    planned = digests.of_files([path])
    path.write_text("second")
    assert digests.of_files([path]) == planned


def test_the_digest_of_a_large_file_that_changes_while_it_is_read_is_not_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprints, "LARGE", 1)
    path = tmp_path / "lists.csv"
    path.write_text("first")
    status = path.stat()

    def read_late(path: Path) -> str:
        path.write_text("second, longer")
        return hashlib.sha256(path.read_bytes()).hexdigest()

    with monkeypatch.context() as late:
        late.setattr(fingerprints, "digest_file", read_late)
        Fingerprints(Store(tmp_path / "store")).of(path)
    path.write_text("first")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    expected = hashlib.sha256(b"first").hexdigest()
    assert Fingerprints(Store(tmp_path / "store")).of(path) == expected


@pytest.mark.parametrize("large", [1, 10**9])
@pytest.mark.parametrize("content", ["second", None])
def test_a_changed_or_removed_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int, content: str | None
) -> None:
    monkeypatch.setattr(fingerprints, "LARGE", large)
    path, store = tmp_path / "lists.csv", Store(tmp_path / "store")
    path.write_text("first")
    planned = Fingerprints(store).of_files([path])
    watched = WatchedFiles(planned, store)
    watched.require_unchanged()
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(ChangedFile, match=r"lists\.csv changed while the run was reading it"):
        watched.require_unchanged()


@pytest.mark.parametrize("large", [1, 10**9])
@pytest.mark.parametrize("way", ["rewritten", "renamed", "linked"])
def test_a_file_that_is_replaced_and_put_back_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int, way: str
) -> None:
    monkeypatch.setattr(fingerprints, "LARGE", large)
    path, store = tmp_path / "lists.csv", Store(tmp_path / "store")
    contents = {"first": tmp_path / "first.csv", "other": tmp_path / "other.csv"}
    for content, source in contents.items():
        source.write_text(content)
    put(path, contents["first"], way)
    watched = WatchedFiles(Fingerprints(store).of_files([path]), store)
    watched.require_unchanged()
    put(path, contents["other"], way)
    assert path.read_text() == "other"
    put(path, contents["first"], way)
    assert path.read_text() == "first"
    with pytest.raises(ChangedFile, match=r"lists\.csv changed while the run was reading it"):
        watched.require_unchanged()


@pytest.mark.parametrize("way", ["renamed", "a folder above renamed", "linked", "link renamed"])
def test_a_file_whose_folder_is_replaced_and_put_back_is_refused(tmp_path: Path, way: str) -> None:
    store, folder = Store(tmp_path / "store"), tmp_path / "data"
    for name in ("first", "other"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "lists.csv").write_text(name)
    replaced = folder / "inner" if way == "renamed" else folder
    if "link" in way:
        folder.symlink_to("first")
    else:
        (tmp_path / "first").rename(folder)
    path = folder / "inner" / "lists.csv"
    watched = WatchedFiles(Fingerprints(store).of_files([path]), store)
    watched.require_unchanged()
    away, other = tmp_path / "away", tmp_path / "other"
    if way == "linked":
        for target in ("other", "first"):
            folder.unlink()
            folder.symlink_to(target)
    else:
        replaced.rename(away)
        replaced.symlink_to(other / "inner" if way == "renamed" else other)
        assert path.read_text() == "other"
        replaced.unlink()
        away.rename(replaced)
    assert path.read_text() == "first"
    with pytest.raises(ChangedFile, match=r"lists\.csv changed while the run was reading it"):
        watched.require_unchanged()


def test_files_beside_an_input_may_change(tmp_path: Path) -> None:
    path, store = tmp_path / "data" / "lists.csv", Store(tmp_path / "store")
    path.parent.mkdir()
    path.write_text("first")
    path.parent.rename(tmp_path / "new")  # its time of change is not that of its content
    (tmp_path / "new").rename(path.parent)
    watched = WatchedFiles(Fingerprints(store).of_files([path]), store)
    (path.parent / "results").mkdir()
    (path.parent / "results" / "a.csv").write_text("a")
    watched.require_unchanged()
    (path.parent / "results" / "a.csv").unlink()
    watched.require_unchanged()


def test_the_rights_and_times_of_a_folder_of_an_input_may_change(tmp_path: Path) -> None:
    path, store = tmp_path / "data" / "lists.csv", Store(tmp_path / "store")
    path.parent.mkdir()
    path.write_text("first")
    watched = WatchedFiles(Fingerprints(store).of_files([path]), store)
    path.parent.chmod(0o700)
    watched.require_unchanged()
    (path.parent / "more.csv").write_text("a")  # as rsync and tar do
    os.utime(path.parent, (1, 1))
    watched.require_unchanged()


@pytest.mark.parametrize("large", [1, 10**9])
@pytest.mark.parametrize("is_linked", [False, True])
def test_the_rights_and_links_of_an_input_may_change_but_not_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int, is_linked: bool
) -> None:
    """A backup by hard links, say; the content is found by its checksum in any case."""
    monkeypatch.setattr(fingerprints, "LARGE", large)
    path, store = tmp_path / "data" / "lists.csv", Store(tmp_path / "store")
    path.parent.mkdir()
    (tmp_path / "backups").mkdir()
    path.write_text("first")
    watched = WatchedFiles(Fingerprints(store).of_files([path]), store)
    if is_linked:
        os.link(path, tmp_path / "backups" / "lists.csv")
    else:
        path.chmod(0o400)
    watched.require_unchanged()
    status = path.stat()
    path.chmod(0o600)
    path.write_text("other")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(ChangedFile, match=r"lists\.csv changed while the run was reading it"):
        watched.require_unchanged()


def test_a_file_that_is_replaced_and_linked_back_is_refused(tmp_path: Path) -> None:
    path, store = tmp_path / "lists.csv", Store(tmp_path / "store")
    path.write_text("first")
    watched = WatchedFiles(Fingerprints(store).of_files([path]), store)
    os.link(path, tmp_path / "backup.csv")
    path.unlink()
    path.write_text("other")
    path.unlink()
    os.link(tmp_path / "backup.csv", path)
    assert path.stat().st_nlink == 2
    with pytest.raises(ChangedFile, match=r"lists\.csv changed while the run was reading it"):
        watched.require_unchanged()


def put(path: Path, source: Path, way: str) -> None:
    """Give a file the content and the time of another one."""
    if way == "linked":
        path.unlink(missing_ok=True)
        path.symlink_to(source)
    elif way == "renamed":
        new = path.with_name("new.csv")
        shutil.copy2(source, new)
        new.replace(path)
    else:
        shutil.copy2(source, path)


def test_the_digest_of_a_large_file_is_not_cached_for_another_one_of_its_size_and_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprints, "LARGE", 1)
    monkeypatch.setattr(fingerprints, "RECENT_SECONDS", 0.0)
    path, store = tmp_path / "lists.csv", Store(tmp_path / "store")
    path.write_text("first")
    time = path.stat().st_mtime_ns
    Fingerprints(store).of(path)
    assert [*(store.folder / "files").iterdir()]
    with path.open("r+") as file:
        file.write("other")
    os.utime(path, ns=(time, time))
    assert Fingerprints(store).of(path) == hashlib.sha256(b"other").hexdigest()


def test_the_digest_of_a_file_that_has_just_changed_is_not_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprints, "LARGE", 1)
    store, path = Store(tmp_path / "store"), tmp_path / "lists.csv"
    path.write_text("first")
    Fingerprints(store).of(path)
    assert not (store.folder / "files").exists()


REWRITING = '''
from dataclasses import dataclass
from pathlib import Path

from recbias.models.neighbours.knn import ItemKNN


@dataclass(frozen=True, kw_only=True)
class Rewriting(ItemKNN):
    """ItemKNN; other input files replace the first ones while it is trained."""

    def fit(self, data, rng):
        for path in Path(__file__).parent.glob("*.new"):
            path.replace(path.with_suffix(""))
        return ItemKNN.fit(self, data, rng)
'''

LISTS = {
    "lists.csv": "user_id,item_id,rank\n1,c,1\n2,a,1\n3,b,1\n",
    "lists.csv.new": "user_id,item_id,rank\n1,d,1\n2,d,1\n3,c,1\n",
}

SPLIT = {
    "train.csv": "user_id,item_id\n1,a\n1,b\n2,b\n2,c\n3,a\n3,d\n",
    "test.csv": "user_id,item_id\n1,c\n2,a\n3,b\n",
}


def lists_spec(folder: Path) -> dict[str, Any]:
    """Return a spec whose second model's lists are exchanged while the first is trained."""
    for name, content in {**LISTS, **SPLIT}.items():
        (folder / name).write_text(content)
    (folder / "own.py").write_text(REWRITING)
    return make_small_spec(
        dataset={"name": "tables"},
        split={"name": "given", "train": f"{folder}/train.csv", "test": f"{folder}/test.csv"},
        models=[f"{folder}/own.py:Rewriting", {"name": "lists", "path": f"{folder}/lists.csv"}],
        metrics=["nDCG"],
        tests=[],
        k=1,
    )


def read_value(run: recbias.Run, model: str) -> float:
    metrics = run.metrics
    return float(metrics["value"][metrics["model"] == model].iloc[0])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_that_changes_during_a_run_leaves_nothing_wrong_in_the_store(
    tmp_path: Path, workers: int
) -> None:
    spec = lists_spec(tmp_path)
    run = recbias.run(spec, out=tmp_path / "out", workers=workers)
    if run.failures:  # with two workers the lists may be read before they change
        (failure,) = run.failures
        assert failure["message"].endswith("lists.csv changed while the run was reading it")
        assert "run again" in failure["help"]
    assert workers == 2 or run.failures
    (tmp_path / "lists.csv").write_text(LISTS["lists.csv"])
    again = recbias.run(spec, out=tmp_path / "out")
    assert not again.failures
    assert read_value(again, "lists") == 1.0


SWAPPING = '''
import shutil
from dataclasses import dataclass
from pathlib import Path

from recbias.core.protocols import InputFile
from recbias.models.neighbours.knn import ItemKNN


@dataclass(frozen=True, kw_only=True)
class Swapping(ItemKNN):
    """ItemKNN; its neighbours are in a file, which may be another one while it is read."""

    path: InputFile

    def fit(self, data, rng):
        other, saved = self.path.with_suffix(".new"), self.path.with_suffix(".saved")
        if other.exists():
            shutil.copy2(self.path, saved)
            shutil.copy2(other, self.path)
        neighbors = int(self.path.read_text())
        if other.exists():
            shutil.copy2(saved, self.path)
        return ItemKNN(neighbors=neighbors).fit(data, rng)
'''


def test_nothing_is_stored_of_a_file_that_was_another_one_while_it_was_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "own.py").write_text(SWAPPING)
    (tmp_path / "n.txt").write_text("40")
    (tmp_path / "n.new").write_text("01")
    model = {"name": f"{tmp_path}/own.py:Swapping", "path": f"{tmp_path}/n.txt"}
    spec = make_small_spec(models=[model], metrics=["nDCG"], tests=[])
    with pytest.raises(UserError, match=r"n\.txt changed while the run was reading it"):
        recbias.run(spec, out=tmp_path / "out")
    (tmp_path / "n.new").unlink()
    again = recbias.run(spec, out=tmp_path / "out")
    expected = recbias.run(
        make_small_spec(models=[{"name": "ItemKNN", "neighbors": 40}], metrics=["nDCG"], tests=[]),
        out=tmp_path / "expected",
    )
    assert read_value(again, "Swapping") == read_value(expected, "ItemKNN")
