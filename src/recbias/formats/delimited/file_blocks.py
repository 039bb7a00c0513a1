"""Plain and gzip files as blocks of whole lines: large files are read in bounded memory."""

from __future__ import annotations

import io
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from recbias.core.stage_context import report_progress
from recbias.formats.delimited.quotes import is_in_quotes
from recbias.formats.limited.unpacked_files import UnpackedStream
from recbias.formats.text_files import BOM, is_gzip, open_binary

READ_SIZE = 32 * 2**20
"""Bytes of a block that is read to find its end; the end of its last line is added."""

SEEK_SIZE = 128 * 2**20
"""Bytes of a block of which only the last line is read to find its end."""

PIECE_SIZE = 2**20
"""Bytes of a piece of a block in which a malformed line is searched."""


@dataclass(frozen=True)
class Block:
    """Whole lines of a file, read on demand; only its last line may lack its line end.

    Args:
        path: The file.
        start: Bytes of the file (after decompression) before the block.
        size: Bytes of the block.
        content: The lines, if they had to be read to find the end of the block.
    """

    path: Path
    start: int
    size: int
    content: bytes | None = None

    @property
    def data(self) -> bytes:
        """The lines."""
        return self.slice(0, self.size) if self.content is None else self.content

    def slice(self, start: int, stop: int) -> bytes:
        """Return the bytes of the block from ``start`` to ``stop``."""
        if self.content is not None:
            return self.content[start:stop]
        with open_binary(self.path) as stream:
            stream.seek(self.start + start)
            return stream.read(min(stop, self.size) - start)

    @property
    def is_ended(self) -> bool:
        """Whether the last line has its line end."""
        return self.slice(self.size - 1, self.size) in {b"\n", b"\r"}

    def contains(self, *parts: bytes) -> bool:
        """Return whether one of some byte strings occurs."""
        if self.content is not None:
            return any(part in self.content for part in parts)
        with (
            self.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as m,
        ):
            return any(m.find(part, self.start, self.start + self.size) >= 0 for part in parts)

    @property
    def has_mark(self) -> bool:
        """Whether the first bytes are those of a byte order mark."""
        return self.slice(0, len(BOM)) == BOM

    def pieces(self, *, quoted: str) -> Iterator[Block]:
        """Yield the block as small blocks of whole lines; ``quoted`` is as in `read_blocks`."""
        stream = io.BytesIO(self.data)
        return _read_to_end(self.path, stream, PIECE_SIZE, self.start, quoted=quoted)

    def source(self) -> Any:
        """Return the block as an Arrow input: a stream on the file if nothing was read yet."""
        if self.content is not None:
            return pa.BufferReader(self.content)
        return pa.OSFile(str(self.path)).get_stream(self.start, self.size)

    def find_first_line(self) -> int:
        """Return the line number, from 1, of the block's first line; reads the file again."""
        if not self.start:
            return 1
        line, left, last = 1, self.start, b""
        with open_binary(self.path) as stream:
            while left and (data := stream.read(min(left, READ_SIZE))):
                line += count_line_ends(last + data) - count_line_ends(last)
                left, last = left - len(data), data[-1:]
        return line


def count_line_ends(data: bytes) -> int:
    r"""Return the number of line ends: a line feed, a carriage return, or both in this order.

    >>> count_line_ends(b"1\n2\r3\r\n")
    3
    """
    n_returns = data.count(b"\r")
    return data.count(b"\n") + (n_returns and n_returns - data.count(b"\r\n"))


def read_blocks(
    path: Path, *, skip: int = 0, quoted: str = "", size: int | None = None
) -> Iterator[Block]:
    """Yield the lines of a file in blocks of about ``size`` bytes, and report progress.

    Args:
        path: The file.
        skip: Bytes at the start, a header line, that are left out.
        quoted: The delimiter, if cells may be in double quotes: a line end inside them belongs to
            a cell, and no block ends there.
        size: Bytes of a block.
    """
    with open_binary(path) as stream:
        total = path.stat().st_size
        stream.read(skip)
        if quoted or is_gzip(path):
            blocks = _read_to_end(path, stream, size or READ_SIZE, stream.tell(), quoted=quoted)
        else:
            blocks = _seek_ends(path, stream, size or SEEK_SIZE)
        raw = stream.raw.packed if isinstance(stream.raw, UnpackedStream) else stream
        for block in blocks:
            yield block
            report_progress(f"read {path.name}", raw.tell(), total)


def _read_to_end(
    path: Path, stream: IO[bytes], size: int, start: int, *, quoted: str
) -> Iterator[Block]:
    """Yield blocks whose end is found by reading them."""
    while data := _read_whole_lines(stream, size, quoted=quoted):
        yield Block(path, start, len(data), data)
        start += len(data)


def _seek_ends(path: Path, stream: IO[bytes], size: int) -> Iterator[Block]:
    """Yield blocks whose end is found by reading only their last line."""
    start, total = stream.tell(), path.stat().st_size
    while start < total:
        stream.seek(min(start + size, total) - 1)
        stream.readline()
        yield Block(path, start, stream.tell() - start)
        start = stream.tell()


def _read_whole_lines(stream: IO[bytes], size: int, *, quoted: str) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        return data
    if not data.endswith(b"\n"):
        data += stream.readline()
    if not quoted or not is_in_quotes(data, quoted):
        return data
    lines, is_open = [data], True
    while is_open and (line := stream.readline()):
        lines.append(line)
        is_open = is_in_quotes(b'"' + line, quoted)
    return b"".join(lines)
