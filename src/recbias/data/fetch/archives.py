"""Unpacking of untrusted archives: no links, and no files outside the target folder."""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from recbias.core.errors import DownloadFailed

CHUNK_BYTES = 2**20
MAX_RATIO, FREE_BYTES = 30, 100 * 2**20
"""An archive may unpack to 30 times its size and 100 MiB; ratings in text compress to a sixth."""

MOST_MEMBERS, LONGEST_NAME = 10_000, 255
"""The most files and folders of an archive, and the most bytes of the name of one."""

LARGEST_READ = 16 * 2**20
"""The most bytes of a tar archive that are read at once: its headers may state any length."""

REMEDY = "the archive differs from the published one; no file of it was kept"


def unpack(archive: Path, into: Path, *, max_bytes: int | None = None) -> None:
    """Unpack a ``.zip``, ``.tar``, ``.tar.gz`` or ``.tgz`` archive; copy any other file.

    The unpacked size is limited to ``max_bytes``, by default 30 times the size of the archive and
    100 MiB, whatever the headers of the archive say.

    Raises:
        DownloadFailed: A member is outside the folder, is a link or a device, or has too long a
            name; the archive is damaged, or it unpacks to too many bytes or members.
    """
    n_bytes = n_members = 0
    if max_bytes is None:
        max_bytes = MAX_RATIO * archive.stat().st_size + FREE_BYTES
    with _wrap_read_errors(archive), closing(_open_members(archive, into)) as members:
        for target, source in members:
            n_members += 1
            if n_members > MOST_MEMBERS:
                message = f"contains more than {MOST_MEMBERS:,} files and folders"
                raise DownloadFailed(message, where=str(archive), remedy=REMEDY)
            if source is None:
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with source, target.open("xb") as stream:
                while chunk := source.read(CHUNK_BYTES):
                    n_bytes += len(chunk)
                    if n_bytes > max_bytes:
                        message = f"unpacks to more than {max_bytes:,} bytes"
                        raise DownloadFailed(message, where=str(archive), remedy=REMEDY)
                    stream.write(chunk)


def find_inner_folder(unpacked: Path, inner: str = "") -> Path:
    """Return the folder of an unpacked archive with the dataset: ``inner``, or the only one."""
    if inner and (unpacked / inner).is_dir():
        return unpacked / inner
    paths = [path for path in unpacked.iterdir() if path.name != "__MACOSX"]
    return paths[0] if len(paths) == 1 and paths[0].is_dir() else unpacked


@contextmanager
def _wrap_read_errors(archive: Path) -> Iterator[None]:
    try:
        yield
    except (
        *(EOFError, FileExistsError, IsADirectoryError, NotADirectoryError),
        *(NotImplementedError, RuntimeError, UnicodeError),
        *(gzip.BadGzipFile, tarfile.TarError, zipfile.BadZipFile, zlib.error),
    ) as error:
        message = f"is damaged or truncated: {error}"
        raise DownloadFailed(message, where=str(archive), remedy="fetch it again") from error


def _open_members(archive: Path, into: Path) -> Generator[tuple[Path, IO[bytes] | None]]:
    """Yield the target and the content of each member, None for a folder."""
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive) as packed:
            for entry in packed.infolist():
                kind = stat.S_IFMT(entry.external_attr >> 16)
                if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
                    raise _refuse_member(entry.filename, "a link or a device", archive)
                target = _resolve_target(entry.filename, into, archive)
                yield target, None if entry.is_dir() else packed.open(entry)
    elif archive.name.endswith((".tar", ".tar.gz", ".tgz")):
        is_plain = archive.name.endswith(".tar")
        with (
            cast("IO[bytes]", archive.open("rb") if is_plain else gzip.open(archive)) as stream,
            tarfile.open(fileobj=_BoundedReads(stream), mode="r:") as tar,  # type: ignore[call-overload]
        ):
            for member in tar:
                target = _resolve_target(member.name, into, archive)
                if not (member.isreg() or member.isdir()):
                    raise _refuse_member(member.name, "a link or a device", archive)
                yield target, tar.extractfile(member) if member.isreg() else None
    else:
        yield into / archive.name, archive.open("rb")


@dataclass(frozen=True)
class _BoundedReads:
    """The bytes of a tar archive, of which no header is read that would fill the memory."""

    stream: IO[bytes]

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most ``LARGEST_READ``; ReadError if more are asked for."""
        if not 0 <= size <= LARGEST_READ:
            raise tarfile.ReadError(f"a header of {size:,} bytes")
        return self.stream.read(size)

    def seek(self, position: int) -> int:
        """Move to a position from the start."""
        return self.stream.seek(position)

    def tell(self) -> int:
        """Return the position."""
        return self.stream.tell()


def _resolve_target(name: str, into: Path, archive: Path) -> Path:
    path = PurePosixPath(name)
    is_outside = path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name
    if is_outside or ":" in "".join(path.parts[:1]):
        raise _refuse_member(name, "outside its folder", archive)
    if any(len(part.encode(errors="replace")) > LONGEST_NAME for part in path.parts):
        raise _refuse_member(f"{name[:60]}...", "too long a name", archive)
    return into.joinpath(*path.parts)


def _refuse_member(name: str, problem: str, archive: Path) -> DownloadFailed:
    message = f"contains {name!r}, which is {problem}"
    return DownloadFailed(message, where=str(archive), remedy=REMEDY)
