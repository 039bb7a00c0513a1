"""Unpacking archives from elsewhere: nothing is written outside the folder, and no links."""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from recbias.core.errors import DownloadFailed

CHUNK = 2**20
MOST_BYTES = 200 * 2**30
"""An archive that unpacks to more than this is refused."""

REMEDY = "the archive is not as its publisher made it; nothing of it was kept"


@dataclass
class _Budget:
    """How many bytes may still be written."""

    left: int

    def spend(self, size: int, archive: Path) -> None:
        self.left -= size
        if self.left < 0:
            raise DownloadFailed("unpacks to too much", where=str(archive), remedy=REMEDY)


def unpack(archive: Path, into: Path, *, most_bytes: int = MOST_BYTES) -> None:
    """Unpack a ``.zip``, ``.tar``, ``.tar.gz`` or ``.tgz`` archive; copy any other file.

    Args:
        archive: The file.
        into: A folder that is there and empty.
        most_bytes: How many bytes may come out of it, whatever its headers say.

    Raises:
        DownloadFailed: A member lies outside the folder or is a link or a device, the archive is
            damaged, or it unpacks to too much.
    """
    budget = _Budget(most_bytes)
    with _readable(archive):
        if archive.name.endswith(".zip"):
            _unzip(archive, into, budget)
        elif archive.name.endswith((".tar", ".tar.gz", ".tgz")):
            _untar(archive, into, budget)
        else:
            with archive.open("rb") as source:
                _write(source, into / archive.name, budget, archive)


def inner_folder(unpacked: Path, inner: str = "") -> Path:
    """Return the folder of an unpacked archive that holds the dataset.

    Args:
        unpacked: Where the archive was unpacked.
        inner: The folder in it; blank where the archive has a single folder, or none.
    """
    if inner and (unpacked / inner).is_dir():
        return unpacked / inner
    found = [each for each in unpacked.iterdir() if each.name != "__MACOSX"]
    return found[0] if len(found) == 1 and found[0].is_dir() else unpacked


@contextmanager
def _readable(archive: Path) -> Iterator[None]:
    try:
        yield
    except (
        EOFError,
        FileExistsError,
        IsADirectoryError,
        NotADirectoryError,
        NotImplementedError,
        RuntimeError,
        UnicodeError,
        gzip.BadGzipFile,
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        found = f"is damaged or was cut short: {error}"
        raise DownloadFailed(found, where=str(archive), remedy="fetch it again") from error


def _unzip(archive: Path, into: Path, budget: _Budget) -> None:
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
                raise _refused(member.filename, "a link or a device", archive)
            target = _target(member.filename, into, archive)
            if member.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            else:
                with packed.open(member) as source:
                    _write(source, target, budget, archive)


def _untar(archive: Path, into: Path, budget: _Budget) -> None:
    with tarfile.open(archive) as packed:
        for member in packed:
            target = _target(member.name, into, archive)
            source = packed.extractfile(member) if member.isreg() else None
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
            elif source is None:
                raise _refused(member.name, "a link or a device", archive)
            else:
                _write(source, target, budget, archive)


def _target(name: str, into: Path, archive: Path) -> Path:
    """Return where a member is written: always below ``into``."""
    path = PurePosixPath(name)
    outside = path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name
    if outside or ":" in "".join(path.parts[:1]):
        raise _refused(name, "outside its folder", archive)
    return into.joinpath(*path.parts)


def _refused(name: str, what: str, archive: Path) -> DownloadFailed:
    return DownloadFailed(f"holds {name!r}, which is {what}", where=str(archive), remedy=REMEDY)


def _write(source: IO[bytes], target: Path, budget: _Budget, archive: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as out:
        while chunk := source.read(CHUNK):
            budget.spend(len(chunk), archive)
            out.write(chunk)
