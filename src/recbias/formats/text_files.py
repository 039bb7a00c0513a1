"""Plain and gzip text files: opening, decoding and splitting into cells."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any, TextIO

from recbias.core.errors import MalformedLine
from recbias.core.input_files import open_input
from recbias.formats.limited.file_limits import CELL, describe_long_cell, get_limit
from recbias.formats.limited.unpacked_files import unpack

BOM = b"\xef\xbb\xbf"
"""The byte order mark that some programs write at the start of UTF-8 text."""

DELIMITERS = {".csv": ",", ".tsv": "\t"}
"""The delimiter of a table, by the suffix of its file."""

CHUNK_SIZE = 2**20
"""Bytes that are decoded at once."""

LARGEST_BLOCK = 2**31 - 1
"""The largest block that Arrow reads at once, in bytes."""


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
def open_binary(path: Path) -> Iterator[BufferedReader[Any]]:
    """Open a file for reading; a ``.gz`` file is decompressed.

    Raises:
        MissingFile: The file does not exist or cannot be read.
        MalformedLine: The compressed data is damaged or truncated, unpacks to too much, or is not
            text in UTF-8 whose lines end with LF or CR LF.
    """
    with open_input(path) as raw:
        if not is_gzip(path):
            _refuse_other_text(raw, path)
            yield raw
            return
        with unpack(raw, path) as stream:
            _refuse_other_text(stream, path)
            yield stream


def _refuse_other_text(stream: BufferedReader[Any], path: Path) -> None:
    """Raise MalformedLine for UTF-16, for several byte order marks, and for CR as line end."""
    start = stream.peek(1)
    remedy = "save the file as UTF-8"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or _is_wide(start[:64]):
        raise MalformedLine("is UTF-16 or UTF-32, not UTF-8", where=f"{path}:1", remedy=remedy)
    if start.startswith(2 * BOM):
        message, remedy = "starts with two byte order marks", "remove one of them"
        raise MalformedLine(message, where=f"{path}:1", remedy=remedy)
    if b"\r" in start.rstrip(b"\r") and b"\n" not in start:
        with path.open("rb") as raw, unpack(raw, path) if is_gzip(path) else raw as content:
            has_line_ends = any(
                b"\n" in part for part in iter(partial(content.read, CHUNK_SIZE), b"")
            )
        if not has_line_ends:
            message = "its lines end with CR alone, as on a Mac before 2001"
            remedy = "save it with LF or CR LF as line end"
            raise MalformedLine(message, where=f"{path}:1", remedy=remedy)


def _is_wide(start: bytes) -> bool:
    """Return whether every second byte is 0, as in UTF-16 without a byte order mark."""
    halves = start[::2], start[1::2]
    return len(start) > 8 and any(not any(half) for half in halves) and any(start)


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
def limit_cells() -> Iterator[None]:
    """Set the longest cell of the csv module, which has one limit for the process."""
    limit = csv.field_size_limit(get_limit(CELL))
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def split_line(line: str, delimiter: str, where: str = "") -> list[str]:
    """Return the cells of a line; cells may be quoted.

    >>> split_line('a,"b,c"', ",")
    ['a', 'b,c']

    Raises:
        MalformedLine: A cell is too long, or has a line end without quotes.
    """
    try:
        with limit_cells():
            return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error as error:
        raise make_csv_error(error, where) from error


def make_csv_error(error: csv.Error, where: str) -> MalformedLine:
    """Return the user's error for one of the csv module."""
    if "field limit" in str(error):
        message, remedy = describe_long_cell()
        return MalformedLine(message, where=where, remedy=remedy)
    if "new-line" in str(error):
        message = "a cell without quotes contains a line end (CR)"
        return MalformedLine(message, where=where, remedy="put the cell in double quotes")
    return MalformedLine(str(error), where=where)
