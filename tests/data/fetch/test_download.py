from __future__ import annotations

import errno
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from recbias.core.errors import DigestMismatch, DownloadFailed, UnknownName, Unwritable
from recbias.data.fetch import download
from recbias.data.fetch.download import Source, fetch, read_sources, source_of
from recbias.data.fetch.transfer import MOST_BYTES, Patience
from recbias.registry import REGISTRIES
from support.publisher import Publisher

QUICK = Patience(attempts=2, seconds=0.0, timeout_s=20.0)
HOLDS = ["ratings.dat", "movies.dat"]


def a_zip(names: list[str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in names:
            packed.writestr(name, f"{name}\n" * 2_000)
    return out.getvalue()


def a_tar(member: tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as packed:
        packed.addfile(member)
    return out.getvalue()


GOOD = a_zip(["ml-1m/ratings.dat", "ml-1m/movies.dat"])


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    with Publisher(files={"ml-1m.zip": GOOD}).serving() as serving:
        serving.files["ml-1m.zip.md5"] = f"MD5 (ml-1m.zip) = {md5(GOOD)}\n".encode()
        yield serving


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def get(publisher: Publisher, data: Path, *, name: str = "ml-1m", **entry: object) -> Path:
    """Fetch from the server, as a file of sources with one entry says."""
    given = {"terms": "ours", "base": publisher.base, "files": ["ml-1m.zip"], "holds": HOLDS}
    terms = {"ours": {"licence": "Research only.", "citation": "Somebody, 2026."}}
    sources = data.parent / "sources.yaml"
    sources.write_text(yaml.safe_dump({"terms": terms, "datasets": {name: given | entry}}))
    return fetch(name, data, sources=sources, patience=QUICK)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_an_archive_is_fetched_checked_and_moved_into_place(
    publisher: Publisher, data: Path
) -> None:
    folder = get(publisher, data, digest="md5")
    assert folder == data / "ml-1m"
    assert sorted(each.name for each in folder.iterdir()) == sorted(HOLDS)
    assert [each.name for each in data.iterdir()] == ["ml-1m"]
    assert [name for name, _ in publisher.requests] == ["ml-1m.zip.md5", "ml-1m.zip"]


def test_nothing_is_done_where_it_is_there(publisher: Publisher, data: Path) -> None:
    get(publisher, data)
    publisher.requests.clear()
    assert get(publisher, data) == data / "ml-1m"
    assert publisher.requests == []


def test_an_interrupted_fetch_is_continued(publisher: Publisher, data: Path) -> None:
    publisher.cuts = [1_000, 100, 0]  # the checksum is whole
    with pytest.raises(DownloadFailed, match="brought little or nothing more"):
        get(publisher, data, digest="md5")
    assert not (data / "ml-1m").exists()
    publisher.requests.clear()
    get(publisher, data, digest="md5")
    assert publisher.requests == [("ml-1m.zip.md5", ""), ("ml-1m.zip", "bytes=100-")]


@pytest.mark.parametrize("digest", ["md5", {"ml-1m.zip": "0" * 64}])
def test_a_wrong_checksum_leaves_nothing(
    publisher: Publisher, data: Path, digest: str | dict[str, str]
) -> None:
    publisher.files["ml-1m.zip.md5"] = b"c4d9eecfca2ab87c1945afe126590906  ml-1m.zip\n"
    with pytest.raises(DigestMismatch, match="the published one") as caught:
        get(publisher, data, digest=digest)
    assert caught.value.where == f"{publisher.base}ml-1m.zip"
    assert not (data / "ml-1m").exists()
    assert not list(data.rglob("*.zip*"))


def test_a_right_sha256(publisher: Publisher, data: Path) -> None:
    digest = hashlib.sha256(GOOD).hexdigest().upper()
    assert get(publisher, data, digest={"ml-1m.zip": digest}).is_dir()


@pytest.mark.parametrize(("text", "problem"), [(None, "404"), (b"<html>", "holds no md5")])
def test_a_checksum_that_is_not_there(
    publisher: Publisher, data: Path, text: bytes | None, problem: str
) -> None:
    del publisher.files["ml-1m.zip.md5"]
    if text:
        publisher.files["ml-1m.zip.md5"] = text
    with pytest.raises(DownloadFailed, match=problem):
        get(publisher, data, digest="md5")


def test_a_file_is_no_longer_than_its_source_says(publisher: Publisher, data: Path) -> None:
    publisher.files["ml-1m.zip"] = b"x" * 3_000_000
    publisher.sized = False
    with pytest.raises(DownloadFailed, match="more than 2,000,000 bytes"):
        get(publisher, data, most_mb=2)
    assert not (data / "ml-1m").exists()
    assert source_of("ml-100k").most_bytes == 20 * 10**6
    assert source_of("goodreads").most_bytes == MOST_BYTES


def test_an_unpacking_that_fills_the_disk_leaves_only_the_archive(
    publisher: Publisher, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(archive: Path, into: Path) -> None:
        (into / "ratings.dat").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(download, "unpack", fill)
    with pytest.raises(Unwritable, match="No space left"):
        get(publisher, data)
    assert {path.name for path in data.rglob("*") if path.is_file()} == {"lock", "ml-1m.zip"}
    monkeypatch.undo()
    publisher.requests.clear()
    assert get(publisher, data).is_dir()
    assert publisher.requests == []


def test_a_file_that_is_not_there(publisher: Publisher, data: Path) -> None:
    with pytest.raises(DownloadFailed, match="404"):
        get(publisher, data, files=["ml-2m.zip"])
    assert not (data / "ml-1m").exists()


def link() -> tarfile.TarInfo:
    made = tarfile.TarInfo("ml-1m/ratings.dat")
    made.type, made.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return made


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.zip", a_zip(["../evil", *HOLDS]), "outside its folder"),
        ("a.tar.gz", a_tar(tarfile.TarInfo("../../evil")), "outside its folder"),
        ("a.tar.gz", a_tar(link()), "a link or a device"),
        ("a.zip", GOOD[:-30], "damaged or was cut short"),
        ("a.zip", a_zip(["ml-1m/ratings.dat"]), "the archive lacks movies.dat"),
    ],
    ids=["outside", "tar-outside", "link", "cut-short", "lacking"],
)
def test_an_archive_that_does_not_do_leaves_nothing(
    publisher: Publisher, data: Path, name: str, content: bytes, problem: str
) -> None:
    publisher.files[name] = content
    with pytest.raises(DownloadFailed, match=problem):
        get(publisher, data, files=[name])
    left = {each.name for each in data.parent.rglob("*") if each.is_file()}
    assert left <= {"sources.yaml", "lock"}
    publisher.files[name] = GOOD  # the publisher mends it
    if name == "a.zip":
        assert get(publisher, data, files=[name]).is_dir()


@pytest.mark.parametrize("holds", [["ratings.csv", "books.csv"]])
def test_an_archive_without_a_folder(publisher: Publisher, data: Path, holds: list[str]) -> None:
    publisher.files["goodbooks.zip"] = a_zip([*holds, "tags.csv"])
    folder = get(publisher, data, name="books", files=["goodbooks.zip"], holds=holds)
    assert sorted(each.name for each in folder.iterdir()) == [
        "books.csv",
        "ratings.csv",
        "tags.csv",
    ]


def test_files_are_put_beside_those_that_are_there(publisher: Publisher, data: Path) -> None:
    publisher.files |= {"books.json.gz": b"one", "reviews.json.gz": b"two"}
    (data / "goodreads").mkdir(parents=True)
    (data / "goodreads" / "books.json.gz").write_bytes(b"mine")
    names = ["books.json.gz", "reviews.json.gz"]
    folder = get(publisher, data, name="gr-x", files=names, holds=names, folder="goodreads")
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == {
        "books.json.gz": b"mine",
        "reviews.json.gz": b"two",
    }
    assert [name for name, _ in publisher.requests] == ["reviews.json.gz"]


def test_a_folder_that_lacks_a_file_is_not_touched(publisher: Publisher, data: Path) -> None:
    (data / "ml-1m").mkdir(parents=True)
    (data / "ml-1m" / "movies.dat").write_text("mine")
    with pytest.raises(Unwritable, match="lacks ratings") as caught:
        get(publisher, data)
    assert caught.value.remedy == "move it away, then fetch again"
    assert (data / "ml-1m" / "movies.dat").read_text() == "mine"
    assert publisher.requests == []


def test_an_empty_folder_is_filled(publisher: Publisher, data: Path) -> None:
    (data / "ml-1m").mkdir(parents=True)
    assert (get(publisher, data) / "ratings.dat").is_file()


def test_a_data_folder_that_is_a_file(publisher: Publisher, data: Path) -> None:
    data.write_text("")
    with pytest.raises(Unwritable, match="cannot be written"):
        get(publisher, data)


def test_two_at_once_are_refused(publisher: Publisher, data: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    work = data / ".fetching" / "ml-1m"
    work.mkdir(parents=True)
    with (work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(DownloadFailed, match="fetched by another process"):
            get(publisher, data)
    assert get(publisher, data).is_dir()


def test_terms_that_must_be_agreed_to_first(data: Path) -> None:
    with pytest.raises(DownloadFailed, match="agree") as caught:
        fetch("yelp", data)
    assert str(data / "yelp") in caught.value.remedy
    (data / "yelp").mkdir(parents=True)
    for name in ("business", "review"):
        (data / "yelp" / f"yelp_academic_dataset_{name}.json.gz").touch()
    assert fetch("Yelp", data) == data / "yelp"


def test_an_unknown_name_is_answered_with_the_nearest(data: Path) -> None:
    with pytest.raises(UnknownName) as caught:
        fetch("ml-1n", data)
    assert "ml-1m" in caught.value.remedy
    assert not data.exists()
    assert source_of("ML_1M").name == "ml-1m"


@pytest.mark.parametrize("source", read_sources().values(), ids=lambda each: each.name)
def test_every_source_has_terms_and_an_address(source: Source) -> None:
    assert source.licence
    assert source.citation in source.terms()
    assert source.holds
    assert bool(source.files) != bool(source.manual)
    if source.files:
        assert source.base.startswith("https://")
        assert source.base.endswith("/")


def test_every_dataset_that_is_read_can_be_fetched() -> None:
    made_here = {"demo", "tables"}
    assert set(REGISTRIES["datasets"].table) - made_here <= set(read_sources())
