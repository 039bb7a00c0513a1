"""Unpacking of untrusted archives: no links, and no files outside the target folder."""

from __future__ import annotations

import gzip
import stat
import sys
import tarfile
import unicodedata
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, cast

from recbias.core.errors import DownloadFailed
from recbias.core.machine.memory import raise_shortage
from recbias.formats.archives import (
    ARCHIVE_ERRORS,
    BoundedReads,
    UnsupportedArchive,
    open_zip,
    read_name,
    require_known_format,
)

CHUNK_BYTES = 2**20
MAX_RATIO, FREE_BYTES = 30, 100 * 2**20
"""An archive may unpack to 30 times its size and 100 MiB; ratings in text compress to a sixth."""

MOST_MEMBERS, LONGEST_NAME, LONGEST_PATH = 10_000, 255, 500
"""The most files and folders of an archive, and the most bytes of the name and path of one."""

MOST_HEADER_BYTES = 2**20
"""The most bytes of the headers of a member of a tar archive, which may state any length."""

REMEDY = "the archive differs from the published one; no file of it was kept"


def unpack(archive: Path, into: Path, *, max_bytes: int | None = None) -> None:
    """Unpack a ``.zip``, ``.tar``, ``.tar.gz`` or ``.tgz`` archive; copy any other file.

    The unpacked size is limited to ``max_bytes``, by default 30 times the size of the archive and
    100 MiB, whatever the headers of the archive say.

    Raises:
        DownloadFailed: A member is outside the folder, is a link, a device or a sparse file, has
            too long a name, or differs from another by letter case only; the archive is damaged,
            it unpacks to too many bytes or members, or it is packed in a way
            that is not read.
    """
    n_bytes = 0
    names = _Names(archive)
    if max_bytes is None:
        max_bytes = MAX_RATIO * archive.stat().st_size + FREE_BYTES
    with closing(_open_members(archive)) as members:
        for member in members:
            target = names.resolve(member.name, into)
            with _refuse_conflicts(archive):
                (target.parent if member.source else target).mkdir(parents=True, exist_ok=True)
                if member.source is None:
                    continue
                with member.source, target.open("xb") as stream:
                    for piece in _read_pieces(member, archive):
                        n_bytes += len(piece)
                        if n_bytes > max_bytes:
                            message = f"unpacks to more than {max_bytes:,} bytes"
                            raise DownloadFailed(message, where=str(archive), remedy=REMEDY)
                        stream.write(piece)


def find_inner_folder(unpacked: Path, inner: str = "") -> Path:
    """Return the folder of an unpacked archive with the dataset: ``inner``, or the only one."""
    if inner and (unpacked / inner).is_dir():
        return unpacked / inner
    paths = [path for path in unpacked.iterdir() if path.name != "__MACOSX"]
    return paths[0] if len(paths) == 1 and paths[0].is_dir() else unpacked


@dataclass(frozen=True)
class _Member:
    """A member of an archive: its size as its header states it, no source for a folder."""

    name: str
    n_bytes: int = 0
    source: IO[bytes] | None = None


@dataclass
class _Names:
    """The names of the members of an archive so far, by how each is written.

    Systems that ignore letter case or normalize Unicode would take one file for another.
    """

    archive: Path
    n_members: int = 0
    spellings: dict[str, str] = field(default_factory=dict)

    def resolve(self, name: str, into: Path) -> Path:
        """Return the path of the next member; DownloadFailed if it may not have this name."""
        self.n_members += 1
        if self.n_members > MOST_MEMBERS:
            message = f"contains more than {MOST_MEMBERS:,} files and folders"
            raise DownloadFailed(message, where=str(self.archive), remedy=REMEDY)
        path = PurePosixPath(name)
        is_outside = path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name
        if is_outside or ":" in "".join(path.parts[:1]):
            raise self._refuse(name, "is outside its folder")
        sizes = [len(part.encode(errors="replace")) for part in path.parts]
        if max(sizes, default=0) > LONGEST_NAME or sum(sizes) + len(sizes) > LONGEST_PATH:
            raise self._refuse(name, "has too long a name")
        for each in (path, *path.parents[:-1]):
            parts = [part.rstrip(". ") for part in each.parts]
            key = unicodedata.normalize("NFC", "/".join(parts)).casefold()
            if self.spellings.setdefault(key, str(each)) != str(each):
                other = self.spellings[key]
                raise self._refuse(name, f"some systems do not distinguish from {other[:60]!r}")
        return into.joinpath(*path.parts)

    def _refuse(self, name: str, problem: str) -> DownloadFailed:
        return _refuse_member(name, problem, self.archive)


@contextmanager
def _wrap_read_errors(archive: Path) -> Iterator[None]:
    try:
        yield
    except UnsupportedArchive as error:
        raise DownloadFailed(str(error), where=str(archive), remedy=error.remedy) from error
    except ARCHIVE_ERRORS as error:
        raise_shortage(error)
        raise _make_damage_error(error, archive) from error


@contextmanager
def _refuse_conflicts(archive: Path) -> Iterator[None]:
    """Refuse a member at the path of another, or one within a file."""
    try:
        yield
    except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        raise _make_damage_error(error, archive) from error


def _make_damage_error(error: BaseException, archive: Path) -> DownloadFailed:
    message = f"is damaged or truncated: {error}"
    return DownloadFailed(message, where=str(archive), remedy="fetch it again")


def _read_pieces(member: _Member, archive: Path) -> Generator[bytes]:
    """Yield the content of a member, which must be as long as its header says."""
    n_bytes = 0
    with _wrap_read_errors(archive):
        while piece := cast("IO[bytes]", member.source).read(CHUNK_BYTES):
            n_bytes += len(piece)
            yield piece
        if n_bytes != member.n_bytes:
            message = f"{member.name[:60]!r} has {n_bytes:,} bytes, not {member.n_bytes:,}"
            raise EOFError(message)


def _open_members(archive: Path) -> Generator[_Member]:
    """Yield the members of an archive; the only one of another file is the file itself."""
    with _wrap_read_errors(archive):
        if archive.name.endswith((".zip", ".tar", ".tar.gz", ".tgz")):
            with archive.open("rb") as stream:
                require_known_format(stream.read(8))
            is_zip = archive.name.endswith(".zip")
            yield from (_open_zipped if is_zip else _open_tarred)(archive)
        else:
            yield _Member(archive.name, archive.stat().st_size, archive.open("rb"))


def _open_zipped(archive: Path) -> Generator[_Member]:
    with archive.open("rb") as stream, open_zip(stream) as packed:
        for entry in packed.infolist():
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
                raise _refuse_member(read_name(entry), "is a link or a device", archive)
            is_folder = entry.filename.endswith("/")
            source = None if is_folder else packed.open(entry)
            yield _Member(read_name(entry), entry.file_size, source)


def _open_tarred(archive: Path) -> Generator[_Member]:
    is_plain = archive.name.endswith(".tar")
    with cast("IO[bytes]", archive.open("rb") if is_plain else gzip.open(archive)) as stream:
        reads = BoundedReads(stream, MOST_HEADER_BYTES)
        with tarfile.open(fileobj=reads, mode="r:") as tar:  # type: ignore[call-overload]
            while (member := tar.next()) is not None:
                if member.issparse():
                    raise _refuse_member(member.name, "is a sparse file", archive)
                if not (member.isreg() or member.isdir()):
                    raise _refuse_member(member.name, "is a link or a device", archive)
                reads.left = sys.maxsize
                source = tar.extractfile(member) if member.isreg() else None
                yield _Member(member.name, member.size, source)
                reads.left = MOST_HEADER_BYTES


def _refuse_member(name: str, problem: str, archive: Path) -> DownloadFailed:
    shown = name if len(name) <= LONGEST_NAME else f"{name[:60]}..."
    message = f"contains {shown!r}, which {problem}"
    return DownloadFailed(message, where=str(archive), remedy=REMEDY)
