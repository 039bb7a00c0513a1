from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from recbias.core.errors import DownloadFailed
from recbias.data.fetch import unpack

FILES = {"ml-1m/README": b"read me", "ml-1m/sub/ratings.dat": b"1::2::3::4\n"}


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("ml-1m/", b"")
        for name, content in files.items():
            packed.writestr(name, content)
    return path


def write_tar(path: Path, members: list[tarfile.TarInfo], content: bytes = b"") -> Path:
    with tarfile.open(path, "w:gz") as packed:
        for member in members:
            member.size = len(content) if member.isreg() else 0
            packed.addfile(member, io.BytesIO(content))
    return path


def make_member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "into"
    folder.mkdir()
    return folder


def read_files(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_a_zip_is_unpacked(tmp_path: Path, into: Path) -> None:
    unpack(write_zip(tmp_path / "a.zip", FILES), into)
    assert read_files(into) == FILES


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tgz"])
def test_a_tar_is_unpacked(tmp_path: Path, into: Path, name: str) -> None:
    members = [
        make_member("./", tarfile.DIRTYPE),
        make_member("./d", tarfile.DIRTYPE),
        make_member("d/f.txt"),
    ]
    unpack(write_tar(tmp_path / name, members, b"text"), into)
    assert read_files(into) == {"d/f.txt": b"text"}


@pytest.mark.parametrize(
    "name", ["../evil", "/evil", "a/../../evil", "..\\evil", "C:/evil", "C:evil", "a\\..\\b"]
)
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_path_outside_the_folder_is_refused(
    tmp_path: Path, into: Path, name: str, kind: str
) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "zip":
        write_zip(path, {name: b"evil"})
    else:
        write_tar(path, [make_member(name)], b"evil")
    with pytest.raises(DownloadFailed, match="outside its folder"):
        unpack(path, into)
    assert read_files(tmp_path).keys() == {path.name}


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, into: Path, kind: bytes) -> None:
    path = write_tar(tmp_path / "a.tar.gz", [make_member("link", kind, "/etc/passwd")])
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
def test_an_archive_that_unpacks_to_too_many_bytes_is_refused(
    tmp_path: Path, into: Path, kind: str
) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "zip":
        write_zip(path, {"zeros": bytes(3_000_000)})
    elif kind == "tar.gz":
        write_tar(path, [make_member("zeros")], bytes(3_000_000))
    else:
        path.write_bytes(bytes(3_000_000))
    with pytest.raises(DownloadFailed, match="unpacks to more than 2,000,000 bytes"):
        unpack(path, into, max_bytes=2_000_000)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize("length", [0, 10, 0.5, 0.95])
def test_a_truncated_archive_is_refused(
    tmp_path: Path, into: Path, kind: str, length: float
) -> None:
    path = tmp_path / f"a.{kind}"
    content = bytes(range(256)) * 40
    if kind == "zip":
        write_zip(path, {"f": content})
    else:
        write_tar(path, [make_member("f")], content)
    archive = path.read_bytes()
    path.write_bytes(archive[: int(length if length >= 1 else length * len(archive))])
    with pytest.raises(DownloadFailed, match="damaged or truncated"):
        unpack(path, into)


@pytest.mark.parametrize("names", [["a", "a"], ["a", "a/b"], ["a/b", "a"]])
def test_members_with_conflicting_paths_are_refused(
    tmp_path: Path, into: Path, names: list[str]
) -> None:
    path = write_tar(tmp_path / "a.tar.gz", [make_member(name) for name in names], b"x")
    with pytest.raises(DownloadFailed, match="damaged"):
        unpack(path, into)


def test_an_archive_unpacks_to_at_most_30_times_its_size_and_100_mib(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed,
        packed.open("zeros.csv", "w") as stream,
    ):
        for _ in range(210):  # zeros compress to a thousandth and less
            stream.write(bytes(2**20))
    limit = 30 * path.stat().st_size + 100 * 2**20
    assert limit < 210 * 2**20
    (into := tmp_path / "into").mkdir()
    with pytest.raises(DownloadFailed, match=f"unpacks to more than {limit:,} bytes"):
        unpack(path, into)
    assert (into / "zeros.csv").stat().st_size <= limit
