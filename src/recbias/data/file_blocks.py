"""A file as blocks of whole lines, gzip or not: large files are read in bounded memory."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from recbias.core.errors import MalformedLine, MissingFile
from recbias.core.progress import report

BLOCK = 32 * 2**20
"""Bytes of a block, after decompression; a block is longer by the rest of its last line."""

BOM = b"\xef\xbb\xbf"
"""The mark that some programs write at the beginning of UTF-8."""

CUT_SHORT = "fetch the file again: it is damaged or was cut short"


@dataclass(frozen=True)
class Block:
    """Some whole lines of a file.

    Args:
        path: The file.
        start: Bytes of the file (after decompression) before the block.
        data: The lines; only the last line of the file may lack its line end.
    """

    path: Path
    start: int
    data: bytes

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


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, through gzip where its name ends in ``.gz``.

    Raises:
        MissingFile: It is not there or cannot be read.
        MalformedLine: Its compressed data is damaged or ends early.
    """
    try:
        with path.open("rb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile(fileobj=raw) as stream:
                    yield cast("IO[bytes]", stream)
            else:
                yield raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        found = f"the compressed data is damaged: {error}"
        raise MalformedLine(found, where=str(path), remedy=CUT_SHORT) from error
    except FileNotFoundError as error:
        raise MissingFile("no such file", where=str(path)) from error
    except OSError as error:
        raise MissingFile(f"cannot be read: {error.strerror}", where=str(path)) from error


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
        start = skip
        while data := _whole_lines(stream, size or BLOCK, quoted=quoted):
            yield Block(path, start, data)
            start += len(data)
            report(f"read {path.name}", _read_so_far(stream), total)


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
