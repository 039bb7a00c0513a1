"""Delimited text files to Arrow tables: as fast as the file can be parsed, exact when it is not.

Every block of lines goes through Arrow's parser. Only a block that Arrow refuses, or whose result
looks wrong, is read a second time line by line (``exact_reading``), which finds the line that is
at fault, or shows that there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, Codes, Ids
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MalformedLine, UnknownColumn
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.formats.delimited.arrow_reader import read_fast
from recbias.formats.delimited.file_blocks import Block, blocks
from recbias.formats.delimited.layout import BadLines, Layout
from recbias.formats.delimited.line_reader import line_of, read_exactly
from recbias.formats.encode_ids import repeats
from recbias.formats.text_files import BOM, opened, refuse_bytes, split_line


@dataclass(frozen=True, eq=False)
class Rows:
    """What was read.

    Args:
        table: A ``pyarrow.Table`` of the layout's columns; an empty text is ``""``.
        bad_lines: Lines that were left out.
    """

    table: Any
    bad_lines: int = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.table.num_rows)

    def numbers(self, name: str) -> AnyArray:
        """Return a column of numbers; a missing one is NaN."""
        return np.asarray(self.table[name].to_numpy())

    def texts(self, name: str) -> Ids:
        """Return a column of text, ``str`` or None where the cell is empty."""
        cells = np.asarray(self.table[name].to_numpy(), dtype=object)
        cells[cells == ""] = None
        return cells


@dataclass(frozen=True)
class Header:
    """The columns of a text file.

    Args:
        names: All of them, in the file's order.
        size: Bytes that the header takes; 0 where there is none.
    """

    names: list[str]
    size: int


def read_table(
    path: Path,
    layout: Layout,
    *,
    bad_lines: BadLines = "error",
    keep: Callable[[Any], Any] | None = None,
) -> Rows:
    """Return the rows of a text file.

    Args:
        path: The file.
        layout: How it is written.
        bad_lines: What a malformed line does.
        keep: Is given the table of each block of lines, and returns what to keep of it.

    Raises:
        MalformedLine: A line does not fit the layout; with ``bad_lines="skip"`` it is left out.
        UnknownColumn: The header lacks a column.
        MissingFile: The file is not there or cannot be read.
    """
    import pyarrow as pa

    header = header_of(path, layout)
    tables, bad = [], 0
    for table, left_out in _parts(path, layout, header, bad_lines):
        tables.append(keep(table) if keep else table)
        bad += left_out
    if not tables:
        empty = layout.schema().empty_table()
        tables.append(keep(empty) if keep else empty)
    if bad:
        warn(f"{path.name}: {bad:,} malformed line(s) left out")
    return Rows(pa.concat_tables(tables), bad)


def header_of(path: Path, layout: Layout) -> Header:
    """Return the columns of a file, which must hold those of the layout.

    Raises:
        UnknownColumn: A column is not there.
        MalformedLine: The file is empty, or names a column twice.
    """
    if not layout.header:
        return Header(list(layout.columns), 0)
    with opened(path) as stream:
        line = stream.readline()
    refuse_bytes(line, path)
    names, where = _names(line, layout.delimiter), f"{path}:1"
    if not names:
        remedy = "the first line names the columns"
        raise MalformedLine("the file has no header", where=where, remedy=remedy)
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        raise MalformedLine(f"the header names {twice[0]!r} twice", where=where)
    for name in layout.columns:
        if name not in names:
            found = f"there is no column {name!r}"
            raise UnknownColumn(found, where=where, remedy=suggest(name, names))
    return Header(names, len(line))


def line_of_row(path: Path, layout: Layout, row: int) -> int:
    """Return the line of a file on which a row (from 0, of those that fit the layout) begins."""
    header = header_of(path, layout)
    return line_of(path, layout, header.names, skip=header.size, row=row)


def refuse_repeats(path: Path, layout: Layout, codes: Codes, ids: Vocabulary) -> None:
    """Refuse a table in which an identifier has two rows.

    Args:
        path: The file.
        layout: How it is written.
        codes: The identifier of each row.
        ids: The identifiers.

    Raises:
        MalformedLine: One has, with the lines of both.
    """
    first, again = repeats(codes)
    if again >= 0:
        found = f"{str(ids.ids[codes[again]])!r} has a row already"
        remedy = f"keep one row; the other is on line {line_of_row(path, layout, first)}"
        where = f"{path}:{line_of_row(path, layout, again)}"
        raise MalformedLine(found, where=where, remedy=remedy)


def _names(line: bytes, delimiter: str) -> list[str]:
    return split_line(line.removeprefix(BOM).decode().strip("\r\n"), delimiter)


def _parts(
    path: Path, layout: Layout, header: Header, bad_lines: BadLines
) -> Iterator[tuple[Any, int]]:
    """Yield each block's table, and how many of its lines were left out."""
    ended = True
    for block in blocks(path, skip=header.size, quoted=layout.quoted):
        table = _read_fast(block, layout, header)
        if table is not None:
            yield table, 0
        else:
            yield from _closely(block, layout, header, bad_lines)
        ended = block.is_ended
    if not (ended or layout.quoted):
        warn(f"{path.name}: the last line has no line end, so the file may be cut short")


def _read_fast(block: Block, layout: Layout, header: Header) -> Any:
    """Return a block's table; None where it is refused, looks wrong or ends within quotes."""
    if layout.quoted and block.data.count(b'"') % 2:
        return None
    return read_fast(block, layout, header.names)


def _closely(
    block: Block, layout: Layout, header: Header, bad_lines: BadLines
) -> Iterator[tuple[Any, int]]:
    """Yield the tables of a block's pieces; those that are refused again are read line by line."""
    import pyarrow as pa

    kinds = layout.schema()
    for piece in block.pieces(quoted=layout.quoted):
        table = _read_fast(piece, layout, header)
        if table is not None:
            yield table, 0
            continue
        skipping = bad_lines == "skip"
        columns, bad = read_exactly(piece, layout, header.names, skipping=skipping)
        arrays = [pa.array(columns[field.name], type=field.type) for field in kinds]
        yield pa.table(arrays, schema=kinds), bad
