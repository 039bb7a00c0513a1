"""Plain and gzip text files in UTF-8: opening, decoding, first lines.

Files that commands write: whole or not at all, and never over another file.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from recbias.core.errors import MalformedLine, MissingFile, Unwritable
from recbias.core.files import has_file, open_input
from recbias.formats.archives import unpack

BOM = codecs.BOM_UTF8
"""The byte order mark that some programs write at the start of UTF-8 text."""

TAB = "\t"

DELIMITERS = {".csv": ",", ".tsv": TAB}
"""The delimiter of a table, by the suffix of its file."""

SAVE_AS_UTF_8 = "save the file as UTF-8"

JSON_TO_TABLE = "write a table: pandas.read_json(path, lines=True).to_csv(table, index=False)"

csv.field_size_limit(2**31 - 1)  # of the process: a cell may hold a long text


def require_file(path: Path) -> Path:
    """Return the path of a file.

    Raises:
        MissingFile: There is no such file.
    """
    if not has_file(path):
        remedy = "paths are relative to the experiment file"
        raise MissingFile("no such file", where=str(path), remedy=remedy)
    return path


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
        MalformedLine: The compressed data is damaged or truncated, or unpacks to too much, or the
            text is UTF-16.
    """
    with open_input(path) as raw:
        if path.suffix.lower() != ".gz":
            _refuse_other_text(raw, path)
            yield raw
            return
        with unpack(raw, path) as stream:
            _refuse_other_text(stream, path)
            yield stream


def _refuse_other_text(stream: BufferedReader[Any], path: Path) -> None:
    """Raise MalformedLine for UTF-16, with or without its mark."""
    start = stream.peek(1)[:64]
    if b"\0" in start or start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        message = "is UTF-16 or UTF-32, not UTF-8"
        raise MalformedLine(message, where=f"{path}:1", remedy=SAVE_AS_UTF_8)


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
    decode(data, path)
    return data


def decode(data: bytes, path: Path, line: int = 1) -> str:
    """Return text that starts on a line of a file; MalformedLine if a line of it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        location = f"{path}:{line + data.count(10, 0, error.start)}"
        message = f"is not UTF-8: {error.reason}"
        raise MalformedLine(message, where=location, remedy=SAVE_AS_UTF_8) from error


def read_first_line(path: Path) -> str:
    """Return the first line that is not blank, without its line end; "" for an empty file."""
    return next(iter(read_first_lines(path, 1)), "")


def read_first_lines(path: Path, n: int) -> list[str]:
    """Return the first ``n`` lines that are not blank, without their line ends."""
    with open_binary(path) as file:
        lines = ((number, line.removeprefix(BOM)) for number, line in enumerate(file, 1))
        first = list(islice(((number, line) for number, line in lines if line.strip()), n))
    return [decode(line, path, number).rstrip("\r\n") for number, line in first]


def split_line(line: str, delimiter: str, where: str = "") -> list[str]:
    r"""Return the cells of a line; cells may be quoted, or between tabs begin with a quote.

    >>> split_line('a,"b,c"', ","), split_line('"a"\t"b', TAB)
    (['a', 'b,c'], ['"a"', '"b'])

    Raises:
        MalformedLine: A cell has a line end without quotes.
    """
    text, is_tabbed = io.StringIO(line, newline=""), delimiter == TAB
    try:
        return next(csv.reader(text, delimiter=delimiter, strict=is_tabbed), [])
    except csv.Error as error:
        if is_tabbed:
            return line.split(TAB)
        raise MalformedLine(str(error), where=where) from error


def is_number(text: str) -> bool:
    """Return whether Python reads a text as a number.

    >>> is_number("-1e-3"), is_number("score")
    (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True


def shorten(value: object, max_length: int = 60) -> str:
    """Return the representation of a value for a message, truncated if it is long.

    >>> shorten("abc"), shorten("9" * 5000, 8)
    ("'abc'", "'9999...")
    """
    text = repr(value)
    return text if len(text) <= max_length else f"{text[: max_length - 3]}..."


FORMULA_STARTS = (*"=+-@＝＋－＠", "\t", "\r", "\n")
"""With these characters a spreadsheet takes a cell for a formula."""


def write_file(path: Path, data: bytes) -> Path:
    """Write a temporary file in the same folder and rename it.

    Raises:
        Unwritable: The file exists, or cannot be written.
    """
    if path.exists():
        remedy = "remove it, or give another name"
        raise Unwritable("exists and is not overwritten", where=str(path), remedy=remedy)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        message = f"cannot be written: {error.strerror or error}"
        remedy = "free some space, or give a folder that you may write to"
        raise Unwritable(message, where=str(path), remedy=remedy) from error
    return path


def write_json_lines(path: Path, records: Iterable[Mapping[str, object]]) -> Path:
    """Write one JSON object per line; raises ``Unwritable``."""
    lines = [json.dumps(dict(record), ensure_ascii=False) for record in records]
    text = "".join(f"{line}\n" for line in lines)
    return write_file(path, text.encode("utf-8", errors="backslashreplace"))


def write_sheet(path: Path, names: Sequence[str], rows: Iterable[Sequence[str]]) -> Path:
    """Write a CSV file for a spreadsheet: UTF-8 with a byte order mark, no cell a formula.

    Raises:
        Unwritable: The file exists, or cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(names)
    writer.writerows([guard_formula(cell) for cell in row] for row in rows)
    return write_file(path, text.getvalue().encode("utf-8-sig", errors="backslashreplace"))


def guard_formula(cell: str) -> str:
    """Return a cell that a spreadsheet shows as text: with an apostrophe before a formula.

    >>> guard_formula("=1+1"), guard_formula("1+1")
    ("'=1+1", '1+1')
    """
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell
