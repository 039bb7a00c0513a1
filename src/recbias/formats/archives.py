"""Compressed files: gzip streams, refused where they unpack to too much."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

from recbias.core.errors import MalformedLine

MAX_RATIO, FREE_BYTES = 200, 64 * 2**20
"""A file may unpack to 200 times its size, or to 64 MiB."""


def _refuse_size(path: Path, n_bytes: int) -> None:
    """Raise MalformedLine if a compressed file unpacks to too many bytes."""
    limit = max(FREE_BYTES, MAX_RATIO * path.stat().st_size)
    if n_bytes > limit:
        message = f"unpacks to more than {limit:,} bytes, over {MAX_RATIO} times its size"
        remedy = "if it is right, unpack it, and name that file"
        raise MalformedLine(message, where=str(path), remedy=remedy)


def refuse_large_zip(packed: BufferedReader, path: Path) -> None:
    """Raise MalformedLine if a zip archive unpacks to too many bytes."""
    with zipfile.ZipFile(packed) as archive:
        _refuse_size(path, sum(entry.file_size for entry in archive.infolist()))


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
            _refuse_size(self._path, self._position)
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
