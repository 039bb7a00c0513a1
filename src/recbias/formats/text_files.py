"""Plain and gzip text files: opening, decoding and splitting into cells."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO, cast

from recbias.core.errors import MalformedLine
from recbias.core.input_files import open_input

BOM = b"\xef\xbb\xbf"
"""The byte order mark that some programs write at the start of UTF-8 text."""

DELIMITERS = {".csv": ",", ".tsv": "\t"}
"""The delimiter of a table, by the suffix of its file."""

CHUNK_SIZE = 2**20
"""Bytes that are decoded at once."""

LARGEST_CELL = 2**31 - 1
"""The longest cell, and the largest block that Arrow reads at once."""


def is_gzip(path: Path) -> bool:
    """Return whether the name of a file ends in ``.gz``.

    >>> is_gzip(Path("a.csv.GZ")), is_gzip(Path("a.csv"))
    (True, False)
    """
    return path.suffix.lower() == ".gz"


def get_suffix(path: Path) -> str:
    """Return the suffix of a file name in lower case, without ``.gz``.

    >>> get_suffix(Path("mine.CSV.gz"))
    '.csv'
    """
    return Path(path.name.lower().removesuffix(".gz")).suffix


@contextmanager
def open_binary(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading; a ``.gz`` file is decompressed.

    Raises:
        MissingFile: The file does not exist or cannot be read.
        MalformedLine: The compressed data is damaged or truncated.
    """
    with open_input(path) as raw:
        try:
            if is_gzip(path):
                with gzip.GzipFile(fileobj=raw) as stream:
                    yield cast("IO[bytes]", stream)
            else:
                yield raw
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            message = f"the compressed data is damaged: {error}"
            remedy = "download the file again: it is damaged or truncated"
            raise MalformedLine(message, where=str(path), remedy=remedy) from error


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open a UTF-8 file for reading; line ends are not translated.

    Raises:
        MissingFile: The file does not exist or cannot be read.
        MalformedLine: The compressed data is damaged, or a line is not UTF-8.
    """
    try:
        with open_binary(path) as raw:
            yield io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
    except UnicodeDecodeError:
        read_text(path)  # raises the error with the line
        raise


def read_text(path: Path) -> bytes:
    """Return the content of a UTF-8 file as bytes, without a byte order mark.

    Raises:
        MissingFile: The file does not exist or cannot be read.
        MalformedLine: The compressed data is damaged, or a line is not UTF-8.
    """
    with open_binary(path) as stream:
        data = stream.read().removeprefix(BOM)
    validate_utf8(data, path)
    return data


def validate_utf8(data: bytes, path: Path) -> None:
    """Raise MalformedLine with the line of the first bytes that are not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(data)
    for start in range(0, len(data), CHUNK_SIZE):
        undecoded = start - len(decoder.getstate()[0])
        chunk = bytes(view[start : start + CHUNK_SIZE])
        try:
            decoder.decode(chunk, final=start + CHUNK_SIZE >= len(data))
        except UnicodeDecodeError as error:
            line = data.count(10, 0, undecoded + error.start) + 1
            message = f"is not UTF-8: {error.reason}"
            remedy = "save the file as UTF-8"
            raise MalformedLine(message, where=f"{path}:{line}", remedy=remedy) from error


@contextmanager
def allow_long_cells() -> Iterator[None]:
    """Remove the limit on the length of a cell that the csv module sets for the process."""
    limit = csv.field_size_limit(LARGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def split_line(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line; cells may be quoted.

    >>> split_line('a,"b,c"', ",")
    ['a', 'b,c']
    """
    with allow_long_cells():
        return next(csv.reader([line], delimiter=delimiter), [])
