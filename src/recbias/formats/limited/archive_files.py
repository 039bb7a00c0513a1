"""Archives of files, zip and tar, whose headers may state anything."""

from __future__ import annotations

import io
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, cast

ARCHIVE_ERRORS = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, OSError, RuntimeError),
    *(TypeError, ValueError, struct.error, zlib.error, tarfile.TarError, zipfile.BadZipFile),
)
"""What ``tarfile``, ``zipfile`` and ``gzip`` raise for a damaged archive."""

LARGEST_READ = 16 * 2**20
"""The most bytes of an archive that are read at once: the list of 10,000 members has fewer."""

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_OTHER_METHODS = {zipfile.ZIP_BZIP2: "bzip2", zipfile.ZIP_LZMA: "lzma"}


@contextmanager
def open_zip(stream: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive whose members can be read piece by piece.

    One of ``ARCHIVE_ERRORS`` is raised if the archive is malformed, if its list of members would
    fill the memory, or if a member is compressed by another method than deflate: of the others,
    Python unpacks a piece whole, which may be a thousand times as large.
    """
    with zipfile.ZipFile(cast("IO[bytes]", BoundedReads(stream))) as archive:
        for entry in archive.infolist():
            if entry.compress_type not in _METHODS:
                method = _OTHER_METHODS.get(entry.compress_type, "an unknown method")
                message = f"{entry.filename[:60]!r} is compressed by {method}, not by deflate"
                raise ValueError(message)
        yield archive


@dataclass
class BoundedReads:
    """The bytes of an archive, of which no header is read that would fill the memory.

    Args:
        stream: The archive.
        left: The most bytes that may be read until this is set anew.
    """

    stream: IO[bytes]
    left: int = sys.maxsize

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; ValueError for more than ``LARGEST_READ`` or ``left``."""
        most = min(LARGEST_READ, self.left)
        data = self.stream.read(size if 0 <= size <= most else most + 1)
        if len(data) > most:
            is_long = size > LARGEST_READ
            raise ValueError(
                f"a header of {size:,} bytes" if is_long else "its headers are too long"
            )
        self.left -= len(data)
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
