"""Delimited text whose cells are all text, with the line of every row; cells to numbers."""

from __future__ import annotations

import csv
import io
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute
from pyarrow import csv as arrow

from recbias.core.arrays import FloatArray
from recbias.core.errors import MalformedLine
from recbias.formats.limited.file_limits import may_have_long_cells
from recbias.formats.text_files import (
    LARGEST_BLOCK,
    limit_cells,
    make_csv_error,
    open_text,
    read_text,
)

_BLANKS = " \t\r\n"

UNCLOSED = "a quote is never closed"
CLOSE_QUOTE = "close it, or write a quote inside a cell twice"

RECBOLE_COLUMN = re.compile(r"([^:]+):(?:token|float)(?:_seq)?")
"""A column in the header of a RecBole file: ``user_id:token``."""


@dataclass(frozen=True)
class TextLines:
    """A delimited text file.

    Args:
        path: The file.
        delimiter: The delimiter; None for any sequence of spaces and tabs.
        header: Whether the first line names the columns.
        quoted: Whether a cell may be in double quotes, with delimiters and line ends inside.
        width: The number of cells of a line; None for that of the first line.
    """

    path: Path
    delimiter: str | None = ","
    header: bool = True
    quoted: bool = True
    width: int | None = None

    def locate(self, row: int) -> str:
        """Return ``file:line`` of a row, counted from 0."""
        line, _ = next(islice(self.records(), row + self.header, None))
        return f"{self.path}:{line}"

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the first line number and the cells of each record; blank lines are skipped.

        Raises:
            MalformedLine: A line is not UTF-8, a cell is too long, or a quote is never closed.
        """
        with open_text(self.path) as file, limit_cells():
            if not self.quoted:
                for line, text in enumerate(file, start=1):
                    if text.strip(_BLANKS):
                        yield line, self._split(text)
                return
            reader = csv.reader(file, delimiter=self.delimiter or " ")
            start = 1
            try:
                for cells in reader:
                    if cells:
                        yield start, cells
                    start = reader.line_num + 1
            except csv.Error as error:
                raise make_csv_error(error, f"{self.path}:{start}") from error

    def read(self, columns: Sequence[str]) -> Any:
        """Return columns of the file, without a header all, as a ``pyarrow.Table`` of text.

        Raises:
            MalformedLine: A line has another number of cells than the first or is not UTF-8.
        """
        data = read_text(self.path)
        try:
            if self.delimiter is None:
                return self._parse_blanks(data, columns)
            if self.quoted and data.count(b'"') % 2:
                self._refuse_open_quote(data)
            table = self._parse(data, columns, self.delimiter)
        except pa.ArrowInvalid as error:
            raise self._find_malformed(error) from error
        if may_have_long_cells(table.columns):
            deque(self.records(), 0)  # raises the error with the line
        return table

    def _refuse_open_quote(self, data: bytes) -> None:
        """Raise MalformedLine with the line of the quote if the file ends inside quotes.

        Arrow would take all that follows the quote for one cell.
        """
        text = io.StringIO(data.decode(), newline="")
        reader = csv.reader(text, delimiter=self.delimiter or " ", strict=True)
        with limit_cells():
            line = 1
            try:
                for _ in reader:
                    line = reader.line_num + 1
            except csv.Error as error:
                location = f"{self.path}:{line}"
                if "end of data" in str(error):
                    raise MalformedLine(UNCLOSED, where=location, remedy=CLOSE_QUOTE) from error

    def _parse_blanks(self, data: bytes, columns: Sequence[str]) -> Any:
        """Return cells that any number of spaces and tabs separates; mostly it is one."""
        try:
            return self._parse(data, columns, "\t" if b"\t" in data.partition(b"\n")[0] else " ")
        except pa.ArrowInvalid:
            even = re.sub(rb"[ \t\r]*\n[ \t]*", b"\n", re.sub(rb"[ \t]+", b" ", data)).strip()
            return self._parse(even or b"\n", columns, " ")

    def _parse(self, data: bytes, columns: Sequence[str], delimiter: str) -> Any:
        has_quotes = self.quoted and b'"' in data  # without any, Arrow splits lines faster
        parse = arrow.ParseOptions(
            delimiter=delimiter,
            quote_char='"' if has_quotes else False,
            newlines_in_values=has_quotes,
        )
        types = dict.fromkeys(columns, pa.string())
        convert = arrow.ConvertOptions(column_types=types, include_columns=columns)
        read = arrow.ReadOptions(column_names=None if self.header else columns)
        try:
            return arrow.read_csv(pa.BufferReader(data), read, parse, convert)
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error):
                raise
        # a line is longer than a block of Arrow: read the file as one block
        read.block_size = min(len(data) + 1, LARGEST_BLOCK)
        return arrow.read_csv(pa.BufferReader(data), read, parse, convert)

    def _find_malformed(self, error: Exception) -> MalformedLine:
        """Return the error with the first line of another width, if there is one."""
        width = self.width
        for line, cells in self.records():
            width = width or len(cells)
            if len(cells) != width:
                message = f"{len(cells)} cells, not {width}"
                return MalformedLine(message, where=f"{self.path}:{line}")
        return MalformedLine(str(error).partition("\n")[0], where=str(self.path))

    def _split(self, text: str) -> list[str]:
        if self.delimiter is None:
            return re.split(r"[ \t]+", text.strip(_BLANKS))
        return text.rstrip("\r\n").split(self.delimiter)


def read_first_line(path: Path) -> str:
    """Return the first line that is not blank, without its line end; "" for an empty file."""
    with open_text(path) as file:
        return next((line.rstrip("\r\n") for line in file if line.strip()), "")


def parse_numbers(texts: Any, name: str, locate: Callable[[int], str]) -> FloatArray:
    """Return Arrow text as ``float64``; white space around a number is ignored.

    Raises:
        MalformedLine: A cell of the column ``name`` is not a number; ``locate`` returns the place
            of a row, counted from 0.
    """
    trimmed = compute.utf8_trim_whitespace(texts)
    try:
        return np.asarray(trimmed.cast(pa.float64()), dtype=np.float64)
    except pa.ArrowInvalid as error:
        cells = enumerate(trimmed.to_pylist())
        row, text = next((row, text) for row, text in cells if not _is_arrow_number(text))
        message = f"the {name} {shorten(text)} is not a number"
        raise MalformedLine(message, where=locate(row)) from error


def shorten(value: object, max_length: int = 60) -> str:
    """Return the representation of a value for a message, truncated if it is long.

    >>> shorten("abc"), shorten("9" * 5000, 8)
    ("'abc'", "'9999...")
    """
    text = repr(value)
    return text if len(text) <= max_length else f"{text[: max_length - 3]}..."


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


def _is_arrow_number(text: str) -> bool:
    try:
        pa.scalar(text, pa.string()).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True
