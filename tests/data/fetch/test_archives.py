from __future__ import annotations

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


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil"])
def test_no_file_is_written_outside_the_folder(tmp_path: Path, into: Path, name: str) -> None:
    unpack(write_zip(tmp_path / "a.zip", {name: b"evil"}), into)
    assert set(read_files(tmp_path)) <= {"a.zip", "into/evil", "into/a/evil"}


@pytest.mark.parametrize("length", [0, 10, 0.5, 0.95])
def test_a_truncated_archive_is_refused(tmp_path: Path, into: Path, length: float) -> None:
    path = write_zip(tmp_path / "a.zip", {"f": bytes(range(256)) * 40})
    archive = path.read_bytes()
    path.write_bytes(archive[: int(length if length >= 1 else length * len(archive))])
    with pytest.raises(DownloadFailed, match="damaged or truncated"):
        unpack(path, into)


def test_an_archive_unpacks_to_at_most_30_times_its_size_and_100_mib(
    tmp_path: Path, into: Path
) -> None:
    path = tmp_path / "bomb.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed,
        packed.open("zeros.csv", "w") as stream,
    ):
        for _ in range(210):  # zeros compress to a thousandth and less
            stream.write(bytes(2**20))
    limit = 30 * path.stat().st_size + 100 * 2**20
    assert limit < 210 * 2**20
    with pytest.raises(DownloadFailed, match=f"unpacks to more than {limit:,} bytes"):
        unpack(path, into)
    assert read_files(into) == {}
