from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from recbias.core.errors import DownloadFailed
from recbias.data.fetch.archives import inner_folder, unpack

FILES = {"ml-1m/README": b"read me", "ml-1m/sub/ratings.dat": b"1::2::3::4\n"}


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("ml-1m/", b"")
        for name, content in files.items():
            packed.writestr(name, content)
    return path


def tarred(path: Path, members: list[tarfile.TarInfo], content: bytes = b"") -> Path:
    with tarfile.open(path, "w:gz") as packed:
        for member in members:
            member.size = len(content) if member.isreg() else 0
            packed.addfile(member, io.BytesIO(content))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "into"
    folder.mkdir()
    return folder


def found_in(folder: Path) -> dict[str, bytes]:
    paths = [each for each in folder.rglob("*") if each.is_file()]
    return {each.relative_to(folder).as_posix(): each.read_bytes() for each in paths}


def test_a_zip_is_unpacked(tmp_path: Path, into: Path) -> None:
    unpack(zipped(tmp_path / "a.zip", FILES), into)
    assert found_in(into) == FILES


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tgz"])
def test_a_tar_is_unpacked(tmp_path: Path, into: Path, name: str) -> None:
    members = [member("./", tarfile.DIRTYPE), member("./d", tarfile.DIRTYPE), member("d/f.txt")]
    unpack(tarred(tmp_path / name, members, b"text"), into)
    assert found_in(into) == {"d/f.txt": b"text"}


def test_another_file_is_copied(tmp_path: Path, into: Path) -> None:
    (tmp_path / "books.json.gz").write_bytes(b"packed")
    unpack(tmp_path / "books.json.gz", into)
    assert found_in(into) == {"books.json.gz": b"packed"}


@pytest.mark.parametrize(
    "name", ["../evil", "/evil", "a/../../evil", "..\\evil", "C:/evil", "C:evil", "a\\..\\b"]
)
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_path_outside_the_folder_is_refused(
    tmp_path: Path, into: Path, name: str, kind: str
) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "zip":
        zipped(path, {name: b"evil"})
    else:
        tarred(path, [member(name)], b"evil")
    with pytest.raises(DownloadFailed, match="outside its folder"):
        unpack(path, into)
    assert found_in(tmp_path).keys() == {path.name}


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, into: Path, kind: bytes) -> None:
    path = tarred(tmp_path / "a.tar.gz", [member("link", kind, "/etc/passwd")])
    with pytest.raises(DownloadFailed, match="a link or a device"):
        unpack(path, into)
    assert list(into.iterdir()) == []


def test_a_link_in_a_zip_is_refused(tmp_path: Path, into: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr(link, "/etc/passwd")
    with pytest.raises(DownloadFailed, match="a link or a device"):
        unpack(tmp_path / "a.zip", into)


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "other"])
def test_too_much_is_refused_whatever_the_headers_say(
    tmp_path: Path, into: Path, kind: str
) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "zip":
        zipped(path, {"zeros": bytes(3_000_000)})
    elif kind == "tar.gz":
        tarred(path, [member("zeros")], bytes(3_000_000))
    else:
        path.write_bytes(bytes(3_000_000))
    with pytest.raises(DownloadFailed, match="unpacks to too much"):
        unpack(path, into, most_bytes=2_000_000)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize("kept", [0, 10, 0.5, 0.95])
def test_an_archive_that_was_cut_short_is_refused(
    tmp_path: Path, into: Path, kind: str, kept: float
) -> None:
    path = tmp_path / f"a.{kind}"
    content = bytes(range(256)) * 40
    if kind == "zip":
        zipped(path, {"f": content})
    else:
        tarred(path, [member("f")], content)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept if kept >= 1 else kept * len(whole))])
    with pytest.raises(DownloadFailed, match="damaged or was cut short"):
        unpack(path, into)


def test_a_damaged_zip_is_refused(tmp_path: Path, into: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"the-member": b"some text to pack" * 50})
    content = bytearray(path.read_bytes())
    place = content.index(b"the-member") + len(b"the-member") + 5  # inside the packed text
    content[place] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(DownloadFailed, match="damaged"):
        unpack(path, into)


@pytest.mark.parametrize("names", [["a", "a"], ["a", "a/b"], ["a/b", "a"]])
def test_members_in_each_others_way_are_refused(
    tmp_path: Path, into: Path, names: list[str]
) -> None:
    path = tarred(tmp_path / "a.tar.gz", [member(each) for each in names], b"x")
    with pytest.raises(DownloadFailed, match="damaged"):
        unpack(path, into)


@pytest.mark.parametrize(
    ("files", "inner", "expected"),
    [
        (["ml-1m/ratings.dat"], "", "ml-1m"),
        (["ml-1m/ratings.dat", "__MACOSX/x"], "", "ml-1m"),
        (["ml-10M100K/ratings.dat", "other/x"], "ml-10M100K", "ml-10M100K"),
        (["ratings.csv", "books.csv"], "", ""),
        (["ratings.csv"], "gone", ""),
    ],
)
def test_the_folder_that_holds_the_dataset(
    into: Path, files: list[str], inner: str, expected: str
) -> None:
    for each in files:
        (into / each).parent.mkdir(exist_ok=True)
        (into / each).touch()
    assert inner_folder(into, inner) == into / expected
