"""Unpacking of untrusted archives: no links, and no files outside the target folder."""

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

CHUNK_BYTES = 2**20
MAX_BYTES = 200 * 2**30
"""The maximum unpacked size of an archive."""

REMEDY = "the archive differs from the published one; no file of it was kept"


@dataclass
class _Budget:
    """The number of bytes that may still be written."""

    remaining: int

    def spend(self, size: int, archive: Path) -> None:
        self.remaining -= size
        if self.remaining < 0:
            raise DownloadFailed("unpacks to too many bytes", where=str(archive), remedy=REMEDY)


def unpack(archive: Path, into: Path, *, max_bytes: int = MAX_BYTES) -> None:
    """Unpack a ``.zip``, ``.tar``, ``.tar.gz`` or ``.tgz`` archive; copy any other file.

    Args:
        archive: The file.
        into: An existing, empty folder.
        max_bytes: The maximum unpacked size, whatever the headers of the archive say.

    Raises:
        DownloadFailed: A member is outside the folder or is a link or a device, the archive is
            damaged, or it unpacks to too many bytes.
    """
    budget = _Budget(max_bytes)
    with _wrap_read_errors(archive):
        if archive.name.endswith(".zip"):
            _unzip(archive, into, budget)
        elif archive.name.endswith((".tar", ".tar.gz", ".tgz")):
            _untar(archive, into, budget)
        else:
            with archive.open("rb") as source:
                _write(source, into / archive.name, budget, archive)


def find_inner_folder(unpacked: Path, inner: str = "") -> Path:
    """Return the folder of an unpacked archive that holds the dataset.

    Args:
        unpacked: The folder to which the archive was unpacked.
        inner: The folder in it; empty if the archive has a single folder, or none.
    """
    if inner and (unpacked / inner).is_dir():
        return unpacked / inner
    paths = [path for path in unpacked.iterdir() if path.name != "__MACOSX"]
    return paths[0] if len(paths) == 1 and paths[0].is_dir() else unpacked


@contextmanager
def _wrap_read_errors(archive: Path) -> Iterator[None]:
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
        message = f"is damaged or truncated: {error}"
        raise DownloadFailed(message, where=str(archive), remedy="fetch it again") from error


def _unzip(archive: Path, into: Path, budget: _Budget) -> None:
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
                raise _refuse_member(member.filename, "a link or a device", archive)
            target = _resolve_target(member.filename, into, archive)
            if member.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            else:
                with packed.open(member) as source:
                    _write(source, target, budget, archive)


def _untar(archive: Path, into: Path, budget: _Budget) -> None:
    with tarfile.open(archive) as packed:
        for member in packed:
            target = _resolve_target(member.name, into, archive)
            source = packed.extractfile(member) if member.isreg() else None
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
            elif source is None:
                raise _refuse_member(member.name, "a link or a device", archive)
            else:
                _write(source, target, budget, archive)


def _resolve_target(name: str, into: Path, archive: Path) -> Path:
    """Return the path of a member, always below ``into``."""
    path = PurePosixPath(name)
    is_outside = path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name
    if is_outside or ":" in "".join(path.parts[:1]):
        raise _refuse_member(name, "outside its folder", archive)
    return into.joinpath(*path.parts)


def _refuse_member(name: str, problem: str, archive: Path) -> DownloadFailed:
    return DownloadFailed(
        f"contains {name!r}, which is {problem}", where=str(archive), remedy=REMEDY
    )


def _write(source: IO[bytes], target: Path, budget: _Budget, archive: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as stream:
        while chunk := source.read(CHUNK_BYTES):
            budget.spend(len(chunk), archive)
            stream.write(chunk)
