from __future__ import annotations

import errno
import hashlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recbias.core.context import stage_context
from recbias.core.errors import DigestMismatch, DownloadFailed, Unwritable
from recbias.data import fetch as download
from recbias.data.fetch import Source, fetch, fetch_text, read_sources, transfer
from support.files.publisher import Publisher, serve_bytes

HOLDS = ("ratings.dat", "movies.dat")


def pack_zip(names: list[str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in names:
            packed.writestr(name, f"{name}\n" * 2_000)
    return stream.getvalue()


ARCHIVE = pack_zip(["ml-1m/ratings.dat", "ml-1m/movies.dat"])
CONTENT = bytes(range(256)) * 4_000  # about a megabyte


@pytest.fixture(autouse=True)
def three_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "ATTEMPTS", 3)
    monkeypatch.setattr(download, "PAUSE_S", 0.0)


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    with Publisher(files={"ml-1m.zip": ARCHIVE, "a.zip": CONTENT}).serve() as serving:
        serving.files["ml-1m.zip.md5"] = f"MD5 (ml-1m.zip) = {compute_md5(ARCHIVE)}\n".encode()
        yield serving


def compute_md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def fetch_from(publisher: Publisher, data: Path, *, name: str = "ml-1m", **entry: Any) -> Path:
    """Fetch a dataset from the server."""
    terms = {"name": name, "licence": "Research only.", "citation": "Somebody, 2026."}
    place = {"base": publisher.base, "folder": name, "files": ("ml-1m.zip",), "holds": HOLDS}
    return fetch(name, data, source=Source(**(terms | place | entry)))


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
    publisher.cuts = [1_000, 100, 0, 0]  # the checksum is not cut
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


def test_a_full_disk_while_unpacking_keeps_only_the_archive(
    publisher: Publisher, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(archive: zipfile.ZipFile, into: Path) -> None:
        into.mkdir()
        (into / "ratings.dat").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "extractall", fill)
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
        fetch_from(publisher, data, files=("a.zip",))
    names = {path.name for path in data.parent.rglob("*") if path.is_file()}
    assert names <= {"lock"}
    publisher.files["a.zip"] = ARCHIVE  # the publisher corrects it
    assert fetch_from(publisher, data, files=("a.zip",)).is_dir()


def test_only_missing_files_are_downloaded(publisher: Publisher, data: Path) -> None:
    publisher.files |= {"books.json.gz": b"one", "reviews.json.gz": b"two"}
    (data / "goodreads").mkdir(parents=True)
    (data / "goodreads" / "books.json.gz").write_bytes(b"original")
    names = ("books.json.gz", "reviews.json.gz")
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


def download_file(publisher: Publisher, target: Path) -> bytes:
    return transfer(f"{publisher.base}a.zip", target).read_bytes()


def test_a_file_is_downloaded_with_progress(publisher: Publisher, tmp_path: Path) -> None:
    reports: list[tuple[Any, ...]] = []
    target = tmp_path / "a.zip"
    with stage_context(on_progress=lambda *report: reports.append(report)):
        transfer(f"{publisher.base}a.zip", target)
    assert target.read_bytes() == CONTENT
    assert reports[-1] == ("fetch a.zip", len(CONTENT), len(CONTENT))
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_a_broken_connection_is_resumed(publisher: Publisher, tmp_path: Path) -> None:
    publisher.cuts = [400_000, 300_000]
    assert download_file(publisher, tmp_path / "a.zip") == CONTENT
    ranges = [byte_range for _, byte_range in publisher.requests]
    assert ranges == ["", "bytes=400000-", "bytes=700000-"]


def interrupt_download(publisher: Publisher, target: Path) -> None:
    """Download the first 400,000 bytes and fail."""
    publisher.cuts = [400_000]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(download, "ATTEMPTS", 1)
        with pytest.raises(DownloadFailed):
            transfer(f"{publisher.base}a.zip", target)
    assert target.with_name("a.zip.part").stat().st_size == 400_000
    assert not target.exists()
    publisher.requests.clear()


@pytest.mark.parametrize("header", ["etag", "modified"])
@pytest.mark.parametrize("content", [b"another file" * 90_000, b"short"])
def test_a_changed_file_is_downloaded_from_the_start(
    publisher: Publisher, tmp_path: Path, header: str, content: bytes
) -> None:
    publisher.named = header
    interrupt_download(publisher, tmp_path / "a.zip")
    publisher.files["a.zip"] = content
    assert download_file(publisher, tmp_path / "a.zip") == content


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_busy_server_is_retried(publisher: Publisher, tmp_path: Path, code: int) -> None:
    publisher.answers = [code, code]
    assert download_file(publisher, tmp_path / "a.zip") == CONTENT
    publisher.answers = [code] * 3
    with pytest.raises(DownloadFailed, match=f"3 attempts with little or no progress: .* {code}"):
        download_file(publisher, tmp_path / "b.zip")


def test_a_text_that_is_cut_off_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_TIMEOUT_S", 0.3)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
    with serve_bytes(lambda _: [head, b"x" * 10]) as base:
        assert fetch_text(f"{base}a.md5") == "x" * 10
    with serve_bytes(lambda _: [head, b"x"]) as base, pytest.raises(DownloadFailed):
        fetch_text(f"{base}a.md5")


@pytest.mark.parametrize("new_url", ["file:///etc/passwd", "data:,x", "http://[x/"])
def test_a_redirect_to_another_protocol_is_refused(tmp_path: Path, new_url: str) -> None:
    response = f"HTTP/1.1 302 Found\r\nLocation: {new_url}\r\nContent-Length: 0\r\n\r\n"
    with serve_bytes(lambda _: [response.encode()]) as base, pytest.raises(DownloadFailed):
        transfer(f"{base}a.zip", tmp_path / "a.zip")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.org/a", "a.zip"])
def test_an_address_that_is_not_http_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(DownloadFailed, match="is not a web address"):
        transfer(url, tmp_path / "a.zip")


@pytest.mark.parametrize("source", read_sources().values(), ids=lambda source: source.name)
def test_every_source_has_terms_and_an_address(source: Source) -> None:
    assert source.licence
    assert source.citation in source.terms()
    assert source.holds
    assert bool(source.files) != bool(source.manual)
    if source.files:
        assert source.base.startswith("https://")
        assert source.base.endswith("/")
