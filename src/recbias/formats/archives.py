"""Compressed files: gzip streams and zip archives, refused where they unpack to too much."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

from recbias.core.errors import MalformedLine

ARCHIVE_ERRORS = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, OSError, RuntimeError),
    *(TypeError, ValueError, struct.error, zlib.error, tarfile.TarError, zipfile.BadZipFile),
)
"""What ``tarfile``, ``zipfile`` and ``gzip`` raise for a damaged archive."""

_LARGEST_READ = 16 * 2**20
"""The most bytes of an archive that are read at once: the list of 10,000 members has fewer."""

MAX_RATIO, FREE_BYTES = 200, 64 * 2**20
"""A file may unpack to 200 times its size, or to 64 MiB."""

_ENCRYPTED = 1  # a bit of the flags of a member
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_OTHER_METHODS = {
    9: "deflate64",
    zipfile.ZIP_BZIP2: "bzip2",
    zipfile.ZIP_LZMA: "lzma",
    93: "zstandard",
    95: "xz",
    98: "PPMd",
}


class _UnsupportedArchive(ValueError):
    """An archive, or a member of a zip archive, is packed in a way that is not read."""

    remedy = "pack it again with deflate and without a password, as zip -r does"


@contextmanager
def open_zip(stream: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive whose members can be read piece by piece.

    One of ``ARCHIVE_ERRORS`` is raised if the archive is malformed, or if its list of members
    would fill the memory.

    Raises:
        UnsupportedArchive: A member is encrypted, or compressed by another method than deflate:
            of the others, Python unpacks a piece whole, which may be a thousand times as large.
    """
    with zipfile.ZipFile(cast("IO[bytes]", _BoundedReads(stream))) as archive:
        for entry in archive.infolist():
            _require_readable(entry)
        yield archive


def _require_readable(entry: zipfile.ZipInfo) -> None:
    name = repr(entry.filename[:60])
    if entry.flag_bits & _ENCRYPTED:
        raise _UnsupportedArchive(f"{name} is encrypted, which is not supported")
    if entry.compress_type not in _METHODS:
        method = _OTHER_METHODS.get(entry.compress_type, "an unknown method")
        message = f"{name} is compressed by {method}, which is not supported"
        raise _UnsupportedArchive(message)


@dataclass
class _BoundedReads:
    """The bytes of an archive, of which no header is read that would fill the memory."""

    stream: IO[bytes]

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; ValueError for more than ``_LARGEST_READ``."""
        data = self.stream.read(size if 0 <= size <= _LARGEST_READ else _LARGEST_READ + 1)
        if len(data) > _LARGEST_READ:
            raise ValueError(f"a header of {size:,} bytes")
        return data

    def seek(self, position: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position."""
        return self.stream.seek(position, whence)

    def tell(self) -> int:
        """Return the position."""
        return self.stream.tell()

    def seekable(self) -> bool:
        """Return whether positions can be chosen."""
        return self.stream.seekable()


def refuse_size(path: Path, n_bytes: int) -> None:
    """Raise MalformedLine if a compressed file unpacks to too many bytes."""
    limit = max(FREE_BYTES, MAX_RATIO * path.stat().st_size)
    if n_bytes > limit:
        message = f"unpacks to more than {limit:,} bytes, over {MAX_RATIO} times its size"
        remedy = "if it is right, unpack it, and name that file"
        raise MalformedLine(message, where=str(path), remedy=remedy)


class _Unpacked(io.RawIOBase):
    """The content of a gzip file, read once from its start; ``packed`` is the file."""

    def __init__(self, packed: BufferedReader, path: Path) -> None:
        super().__init__()
        self.packed, self._content = packed, gzip.GzipFile(fileobj=packed)
        self._path, self._position = path, 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        n_bytes = self._content.readinto(buffer)
        self._position += n_bytes
        if self._position > FREE_BYTES:
            refuse_size(self._path, self._position)
        return n_bytes


@contextmanager
def unpack(packed: BufferedReader, path: Path) -> Iterator[BufferedReader[Any]]:
    """Yield the content of a gzip file.

    Raises:
        MalformedLine: The compressed data is damaged or truncated, or its content too large.
    """
    try:
        with BufferedReader(_Unpacked(packed, path), 2**18) as stream:
            yield stream
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        message = f"the compressed data is damaged: {error}"
        remedy = "download the file again: it is damaged or truncated"
        raise MalformedLine(message, where=str(path), remedy=remedy) from error
