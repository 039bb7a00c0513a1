"""Streams of gzip files that stop where the content is too large for the size of the file."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

from recbias.core.errors import MalformedLine
from recbias.formats.limited.file_limits import get_unpacked_limit, make_size_error

_BUFFER_BYTES = 2**18

_SMALL_BYTES = 2**19
"""A file of this size is unpacked once before anything is read: it takes little time, and reading
millions of lines up to a limit takes seconds."""


class UnpackedStream(io.RawIOBase):
    """The content of a gzip file, read once from its start.

    Args:
        packed: The file.
        path: Its path, for messages.
    """

    def __init__(self, packed: BufferedReader, path: Path) -> None:
        super().__init__()
        self.packed, self._content = packed, gzip.GzipFile(fileobj=packed)
        self._path, self._position = path, 0
        self._limit = get_unpacked_limit(path.stat().st_size)

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def tell(self) -> int:
        """Return the number of bytes that were read."""
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read some bytes; MalformedLine if there are too many in all."""
        n_bytes = self._content.readinto(buffer)
        self._position += n_bytes
        if self._position > self._limit:
            raise make_size_error(str(self._path), self._limit)
        return n_bytes


@contextmanager
def unpack(packed: BufferedReader, path: Path) -> Iterator[BufferedReader[Any]]:
    """Yield the content of a gzip file.

    Raises:
        MalformedLine: The compressed data is damaged or truncated, or its content too large.
    """
    try:
        if path.stat().st_size <= _SMALL_BYTES:
            buffer = memoryview(bytearray(_BUFFER_BYTES))
            check = UnpackedStream(packed, path)
            while check.readinto(buffer):
                pass
            packed.seek(0)
        with BufferedReader(UnpackedStream(packed, path), _BUFFER_BYTES) as stream:
            yield stream
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        message = f"the compressed data is damaged: {error}"
        remedy = "download the file again: it is damaged or truncated"
        raise MalformedLine(message, where=str(path), remedy=remedy) from error
