"""The extents of the sheets of Excel files, which are allocated whole when a sheet is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import IO
from zipfile import ZipFile

FREE_CELLS, CELLS_PER_CELL, MAX_CELLS = 10**6, 50, 2**26
"""A sheet may extend over a million cells, or over 50 for each cell that it has; at most 2^26."""

FREE_STRINGS, BYTES_OF_A_STRING = 10**5, 5
"""The strings that a file may promise, or one for each 5 bytes (``<si/>``) of their list."""

PIECE_BYTES = 2**20

LONGEST_PART = 2**19
"""The most bytes between two tags: the text of a cell has at most 32,767 characters."""

_TAG = re.compile(rb"<(?:[\w.-]+:)?(?:c|row)[\s/>]")
_ATTRIBUTE = re.compile(rb"r\s*=")
_PLACED_TAG = re.compile(rb"""<(?:c|row) r="([A-Z]*)([0-9]{1,18})\"""")
"""Cells and rows as most programs write them, with their place first."""

_TOKEN = re.compile(
    rb"""<(/row|row|c)(?=[\s/>])|<(/)?[\w.-]+:(row|c)(?=[\s/>])"""
    rb"""|r(?<![\w.:-]r)\s*+=\s*+["']([A-Za-z]*+)([0-9]++)["']"""
    rb"""|uniqueCount\s*+=\s*+["']([0-9]++)"""
)


def find_excess(archive: ZipFile) -> str:
    """Return what a member of an Excel file has too much of; blank if all of them can be read.

    A single cell in the last row and column would make a sheet of 17 billion cells.
    """
    for entry in archive.infolist():
        extent = _Extent()
        with archive.open(entry) as stream:
            for text in _split(stream):
                extent.add(text)
        area = extent.n_rows * extent.n_columns
        if area > min(max(FREE_CELLS, CELLS_PER_CELL * extent.n_cells), MAX_CELLS):
            return (
                f"{entry.filename[:60]!r} has {extent.n_cells:,} cells that extend over "
                f"{extent.n_rows:,} rows and {extent.n_columns:,} columns"
            )
        if extent.n_strings > max(FREE_STRINGS, entry.file_size // BYTES_OF_A_STRING):
            return f"{entry.filename[:60]!r} promises {extent.n_strings:,} strings"
    return ""


@dataclass
class _Extent:
    """The extent of the cells in a part of a sheet: an upper bound where rows have no number."""

    n_cells: int = 0
    n_rows: int = 0
    n_columns: int = 0
    n_strings: int = 0
    row: int = 0
    column: int = 0

    def add(self, text: bytes) -> None:
        """Add the cells of the next part."""
        placed = _PLACED_TAG.findall(text)
        if placed and len(placed) == len(_TAG.findall(text)) == len(_ATTRIBUTE.findall(text)):
            letters, digits = zip(*placed, strict=True)
            self.n_cells += len(placed) - letters.count(b"")
            self.row, self.column = int(digits[-1]), _to_number(letters[-1])
            self.n_rows = max(self.n_rows, *map(int, digits))
            self.n_columns = max(self.n_columns, *map(_to_number, set(letters)))
            return
        for plain_tag, slash, prefixed_tag, *place, strings in _TOKEN.findall(text):
            if strings:
                self.n_strings = max(self.n_strings, _to_size(strings))
            else:
                self._move(plain_tag or slash + prefixed_tag, *place)

    def _move(self, tag: bytes, letters: bytes, digits: bytes) -> None:
        if tag == b"/row":
            self.row, self.column = self.row + 1, 0
        elif tag == b"row":
            self.row += 1
        elif tag == b"c":
            self.column += 1
            self.n_cells += 1
        elif letters:
            self.row, self.column = _to_size(digits), _to_number(letters)
        else:
            self.row = _to_size(digits)
        self.n_rows = max(self.n_rows, self.row)
        self.n_columns = max(self.n_columns, self.column)


@lru_cache(maxsize=2**15)
def _to_number(letters: bytes) -> int:
    """Return the number of a column: 1 for A, 27 for AA."""
    number = 0
    for letter in letters.upper()[:9]:
        number = 26 * number + letter - 64
    return number


def _to_size(digits: bytes) -> int:
    return int(digits.lstrip(b"0")[:18] or b"0")


def _split(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the content in parts that end before a tag."""
    rest, has_cells = b"", False
    while piece := stream.read(PIECE_BYTES):
        text = rest + piece
        end = text.rfind(b"<", max(len(text) - LONGEST_PART, 0))
        yield text[: end if end >= 0 else len(text)]
        rest = text[end:] if end >= 0 else b""
        has_cells = has_cells or _TAG.search(text) is not None
        if end < 0 and has_cells:
            message = f"it has {LONGEST_PART:,} bytes without a tag"
            raise ValueError(message)
    yield rest
