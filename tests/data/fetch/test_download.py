from __future__ import annotations

import errno
import hashlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from recbias.core.errors import DigestMismatch, DownloadFailed, Unwritable
from recbias.data import fetch as download
from recbias.data.fetch import RetryPolicy, fetch, find_source
from support.files.publisher import Publisher

POLICY = RetryPolicy(attempts=2, pause_s=0.0, timeout_s=20.0)
HOLDS = ["ratings.dat", "movies.dat"]


def pack_zip(names: list[str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in names:
            packed.writestr(name, f"{name}\n" * 2_000)
    return stream.getvalue()


ARCHIVE = pack_zip(["ml-1m/ratings.dat", "ml-1m/movies.dat"])


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    with Publisher(files={"ml-1m.zip": ARCHIVE}).serve() as serving:
        serving.files["ml-1m.zip.md5"] = f"MD5 (ml-1m.zip) = {compute_md5(ARCHIVE)}\n".encode()
        yield serving


def compute_md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def fetch_from(publisher: Publisher, data: Path, *, name: str = "ml-1m", **entry: object) -> Path:
    """Fetch a dataset from the server with a file of sources that has one entry."""
    defaults = {"terms": "ours", "base": publisher.base, "files": ["ml-1m.zip"], "holds": HOLDS}
    terms = {"ours": {"licence": "Research only.", "citation": "Somebody, 2026."}}
    sources = data.parent / "sources.yaml"
    sources.write_text(yaml.safe_dump({"terms": terms, "datasets": {name: defaults | entry}}))
    return fetch(name, data, sources=sources, policy=POLICY)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_an_archive_is_downloaded_verified_and_unpacked(publisher: Publisher, data: Path) -> None:
    folder = fetch_from(publisher, data, digest="md5")
    assert folder == data / "ml-1m"
    assert sorted(path.name for path in folder.iterdir()) == sorted(HOLDS)
    assert [path.name for path in data.iterdir()] == ["ml-1m"]
    assert [name for name, _ in publisher.requests] == ["ml-1m.zip.md5", "ml-1m.zip"]


def test_an_interrupted_fetch_is_resumed(publisher: Publisher, data: Path) -> None:
    publisher.cuts = [1_000, 100, 0]  # the checksum is not cut
    with pytest.raises(DownloadFailed, match="little or no progress"):
        fetch_from(publisher, data, digest="md5")
    assert not (data / "ml-1m").exists()
    publisher.requests.clear()
    fetch_from(publisher, data, digest="md5")
    assert publisher.requests == [("ml-1m.zip.md5", ""), ("ml-1m.zip", "bytes=100-")]


@pytest.mark.parametrize("digest", ["md5", {"ml-1m.zip": "0" * 64}])
def test_a_file_with_a_wrong_checksum_is_removed(
    publisher: Publisher, data: Path, digest: str | dict[str, str]
) -> None:
    publisher.files["ml-1m.zip.md5"] = b"c4d9eecfca2ab87c1945afe126590906  ml-1m.zip\n"
    with pytest.raises(DigestMismatch, match="the published one") as caught:
        fetch_from(publisher, data, digest=digest)
    assert caught.value.where == f"{publisher.base}ml-1m.zip"
    assert not (data / "ml-1m").exists()
    assert not list(data.rglob("*.zip*"))


def test_a_file_larger_than_its_source_declares_is_refused(
    publisher: Publisher, data: Path
) -> None:
    publisher.files["ml-1m.zip"] = b"x" * 3_000_000
    publisher.sized = False
    with pytest.raises(DownloadFailed, match="more than 2,000,000 bytes"):
        fetch_from(publisher, data, most_mb=2)
    assert not (data / "ml-1m").exists()
    assert find_source("ml-100k").max_bytes == 20 * 10**6
    assert find_source("goodreads").max_bytes == 1500 * 10**6


def test_a_full_disk_while_unpacking_keeps_only_the_archive(
    publisher: Publisher, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(archive: Path, into: Path) -> None:
        (into / "ratings.dat").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(download, "unpack", fill)
    with pytest.raises(Unwritable, match="No space left"):
        fetch_from(publisher, data)
    assert {path.name for path in data.rglob("*") if path.is_file()} == {"lock", "ml-1m.zip"}
    monkeypatch.undo()
    publisher.requests.clear()
    assert fetch_from(publisher, data).is_dir()
    assert publisher.requests == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (ARCHIVE[:-30], "damaged or truncated"),
        (pack_zip(["ml-1m/ratings.dat"]), "the archive lacks movies.dat"),
    ],
    ids=["truncated", "incomplete"],
)
def test_an_invalid_archive_is_removed(
    publisher: Publisher, data: Path, content: bytes, problem: str
) -> None:
    publisher.files["a.zip"] = content
    with pytest.raises(DownloadFailed, match=problem):
        fetch_from(publisher, data, files=["a.zip"])
    names = {path.name for path in data.parent.rglob("*") if path.is_file()}
    assert names <= {"sources.yaml", "lock"}
    publisher.files["a.zip"] = ARCHIVE  # the publisher corrects it
    assert fetch_from(publisher, data, files=["a.zip"]).is_dir()


def test_only_missing_files_are_downloaded(publisher: Publisher, data: Path) -> None:
    publisher.files |= {"books.json.gz": b"one", "reviews.json.gz": b"two"}
    (data / "goodreads").mkdir(parents=True)
    (data / "goodreads" / "books.json.gz").write_bytes(b"original")
    names = ["books.json.gz", "reviews.json.gz"]
    folder = fetch_from(publisher, data, name="gr-x", files=names, holds=names, folder="goodreads")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "books.json.gz": b"original",
        "reviews.json.gz": b"two",
    }
    assert [name for name, _ in publisher.requests] == ["reviews.json.gz"]


def test_an_incomplete_folder_is_refused_and_unchanged(publisher: Publisher, data: Path) -> None:
    (data / "ml-1m").mkdir(parents=True)
    (data / "ml-1m" / "movies.dat").write_text("original")
    with pytest.raises(Unwritable, match="lacks ratings") as caught:
        fetch_from(publisher, data)
    assert caught.value.remedy == "move it away, then fetch again"
    assert (data / "ml-1m" / "movies.dat").read_text() == "original"
    assert publisher.requests == []


def test_a_second_process_is_refused(publisher: Publisher, data: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    work = data / ".fetching" / "ml-1m"
    work.mkdir(parents=True)
    with (work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(DownloadFailed, match="downloaded by another process"):
            fetch_from(publisher, data)
    assert fetch_from(publisher, data).is_dir()


def test_a_dataset_that_requires_consent_has_instructions(data: Path) -> None:
    with pytest.raises(DownloadFailed, match="agree") as caught:
        fetch("yelp", data)
    assert str(data / "yelp") in caught.value.remedy
    (data / "yelp").mkdir(parents=True)
    for name in ("business", "review"):
        (data / "yelp" / f"yelp_academic_dataset_{name}.json.gz").touch()
    assert fetch("Yelp", data) == data / "yelp"
