"""A file as blocks of whole lines, gzip or not: large files are read in bounded memory."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from recbias.core.stage_context import report_progress
from recbias.formats.text_files import is_packed, opened

BLOCK = 32 * 2**20
"""Bytes of a block that is read; a block is longer by the rest of its last line."""

SOUGHT = 128 * 2**20
"""Bytes of a block of which only the end is looked for."""

PIECE = 2**20
"""Bytes of a piece of a block that is looked at more closely."""


@dataclass(frozen=True)
class Block:
    """Some whole lines of a file, read when they are asked for.

    Args:
        path: The file.
        start: Bytes of the file (after decompression) before the block.
        size: Bytes of the block; only the last line of the file may lack its line end.
        read: The lines, where they had to be read to find their end.
    """

    path: Path
    start: int
    size: int
    read: bytes | None = None

    @property
    def data(self) -> bytes:
        """The lines."""
        return self.part(0, self.size) if self.read is None else self.read

    def part(self, start: int, stop: int) -> bytes:
        """Return some bytes of the block."""
        if self.read is not None:
            return self.read[start:stop]
        with opened(self.path) as stream:
            stream.seek(self.start + start)
            return stream.read(min(stop, self.size) - start)

    @property
    def is_ended(self) -> bool:
        """Whether the last line has its line end."""
        return self.part(self.size - 1, self.size) in {b"\n", b"\r"}

    def pieces(self, *, quoted: bool) -> Iterator[Block]:
        """Yield the block in small blocks of whole lines."""
        stream, start = io.BytesIO(self.data), self.start
        while data := _whole_lines(stream, PIECE, quoted=quoted):
            yield Block(self.path, start, len(data), data)
            start += len(data)

    def source(self) -> Any:
        """Return the block as Arrow reads it: from the file itself, where nothing was read yet."""
        import pyarrow as pa

        if self.read is not None:
            return pa.BufferReader(self.read)
        return pa.OSFile(str(self.path)).get_stream(self.start, self.size)

    def first_line(self) -> int:
        """Return the line number, from 1, of the block's first line: the file is read again."""
        if not self.start:
            return 1
        lines, left = 1, self.start
        with opened(self.path) as stream:
            while left and (data := stream.read(min(left, BLOCK))):
                lines += data.count(b"\n")
                left -= len(data)
        return lines


def blocks(
    path: Path, *, skip: int = 0, quoted: bool = False, size: int | None = None
) -> Iterator[Block]:
    """Yield the file's lines in blocks of about ``size`` bytes, and report progress.

    Args:
        path: The file; ``.gz`` is decompressed on the way.
        skip: Bytes to leave out at the beginning: a header line.
        quoted: Whether a line end within double quotes is part of a cell: no block ends there.
        size: Bytes of a block; by default ``BLOCK``.
    """
    with opened(path) as stream:
        total = path.stat().st_size
        stream.read(skip)
        if quoted or is_packed(path):
            found = _read(path, stream, size or BLOCK, quoted=quoted)
        else:
            found = _sought(path, stream, size or SOUGHT)
        for block in found:
            yield block
            report_progress(f"read {path.name}", _read_so_far(stream), total)


def _read(path: Path, stream: IO[bytes], size: int, *, quoted: bool) -> Iterator[Block]:
    """Yield blocks whose end is found by reading them."""
    start = stream.tell()
    while data := _whole_lines(stream, size, quoted=quoted):
        yield Block(path, start, len(data), data)
        start += len(data)


def _sought(path: Path, stream: IO[bytes], size: int) -> Iterator[Block]:
    """Yield blocks whose end is found by looking at their last line only."""
    start, total = stream.tell(), path.stat().st_size
    while start < total:
        stream.seek(min(start + size, total) - 1)
        stream.readline()
        yield Block(path, start, stream.tell() - start)
        start = stream.tell()


def _whole_lines(stream: IO[bytes], size: int, *, quoted: bool) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        return data
    ended, inside = data.endswith(b"\n"), quoted and data.count(b'"') % 2 == 1
    parts = [data]
    while (inside or not ended) and (line := stream.readline()):
        parts.append(line)
        ended = True
        inside ^= quoted and line.count(b'"') % 2 == 1
    return b"".join(parts)


def _read_so_far(stream: IO[bytes]) -> int:
    raw = stream.fileobj if isinstance(stream, gzip.GzipFile) else stream
    return int(raw.tell())
