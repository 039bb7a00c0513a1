"""Delimited text files to Arrow tables: fast if all lines are valid, exact if one is not.

Only a block that Arrow's parser rejects, or whose values are suspicious, is read line by line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from recbias.core.arrays import AnyArray, Codes, Ids
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MalformedLine, UnknownColumn
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.formats.delimited.arrow_reader import read_with_arrow
from recbias.formats.delimited.file_blocks import Block, read_blocks
from recbias.formats.delimited.layout import BadLines, Layout
from recbias.formats.delimited.line_reader import find_line, read_line_by_line
from recbias.formats.delimited.quotes import are_quotes_regular
from recbias.formats.delimited.streamed_ids import IdEncoder
from recbias.formats.encode_ids import find_repeat
from recbias.formats.limited.file_limits import check_columns
from recbias.formats.text_files import BOM, open_binary, split_line, validate_utf8


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a file, a ``pyarrow.Table`` in which an empty text is ``""``."""

    table: Any
    bad_lines: int = 0

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def numbers(self, name: str) -> AnyArray:
        """Return a column of numbers; a missing one is NaN."""
        return np.asarray(self.table[name].to_numpy())

    def texts(self, name: str) -> Ids:
        """Return a column of text, None where the cell is empty."""
        cells = np.asarray(self.table[name].to_numpy(), dtype=object)
        cells[cells == ""] = None
        return cells


@dataclass(frozen=True)
class Header:
    """All columns of a text file, in order, and the bytes of the header line, 0 without one."""

    names: list[str]
    size: int


def read_table(
    path: Path,
    layout: Layout,
    *,
    bad_lines: BadLines = "error",
    keep: Callable[[Any], Any] | None = None,
) -> Rows:
    """Return the rows of a text file; ``keep`` returns the rows to keep of the table of a block.

    Raises:
        MalformedLine: A line does not fit the layout, unless ``bad_lines`` is ``"skip"``.
        UnknownColumn: The header lacks a column.
        MissingFile: The file does not exist or cannot be read.
    """
    header = read_header(path, layout)
    tables = _read_tables(path, layout, header, bad_lines)
    return collect_rows(path, tables, layout.schema().empty_table(), keep)


def read_encoded_table(path: Path, layout: Layout, *, bad_lines: BadLines = "error") -> Rows:
    """Return the rows of a text file, with identifiers as dictionary-encoded columns.

    The text of an identifier is held once, not once for each row, while the file is read.

    Raises:
        MalformedLine: A line does not fit the layout, unless ``bad_lines`` is ``"skip"``.
        UnknownColumn: The header lacks a column.
        MissingFile: The file does not exist or cannot be read.
    """
    encoder = IdEncoder([name for name, kind in layout.columns.items() if kind == "id"])
    rows = read_table(path, layout, bad_lines=bad_lines, keep=encoder.encode)
    return Rows(encoder.decode(rows.table), rows.bad_lines)


def collect_rows(
    path: Path, tables: Iterator[tuple[Any, int]], empty: Any, keep: Callable[[Any], Any] | None
) -> Rows:
    """Return the rows of the blocks of a file, with a warning if lines were skipped.

    Args:
        path: The file.
        tables: The table of each block and the number of its lines skipped.
        empty: The table of a file without blocks.
        keep: Returns the rows to keep of a table; all by default.
    """
    retained, n_skipped = [], 0
    for table, n_bad in tables:
        retained.append(keep(table) if keep else table)
        n_skipped += n_bad
    if n_skipped:
        warn(f"{path.name}: {n_skipped:,} malformed line(s) skipped")
    return Rows(pa.concat_tables(retained or [keep(empty) if keep else empty]), n_skipped)


def read_header(path: Path, layout: Layout) -> Header:
    """Return the columns of a file, which must include those of the layout.

    Raises:
        UnknownColumn: A column is missing.
        MalformedLine: The file is empty, or two columns have the same name.
    """
    if not layout.header:
        return Header(list(layout.columns), 0)
    with open_binary(path) as stream:
        line = stream.readline()
    validate_utf8(line, path)
    text = line.removeprefix(BOM).decode().strip("\r\n")
    location = f"{path}:1"
    names = split_line(text, layout.delimiter, location)
    if not names:
        remedy = "the first line names the columns"
        raise MalformedLine("the file has no header", where=location, remedy=remedy)
    check_columns(names, location)
    for name in layout.columns:
        if name not in names:
            message = f"there is no column {name!r}"
            raise UnknownColumn(message, where=location, remedy=suggest(name, names))
    return Header(names, len(line))


def find_line_of_row(path: Path, layout: Layout, row: int) -> int:
    """Return the first line of a row, counted from 0 among those that fit the layout."""
    header = read_header(path, layout)
    return find_line(path, layout, header.names, skip=header.size, row=row)


def refuse_repeats(path: Path, layout: Layout, codes: Codes, ids: Vocabulary) -> None:
    """Raise MalformedLine if an identifier, by its code in each row, has two rows."""
    first, repeat = find_repeat(codes)
    if repeat >= 0:
        message = f"{str(ids.ids[codes[repeat]])!r} has a row already"
        remedy = f"keep one row; the other is on line {find_line_of_row(path, layout, first)}"
        location = f"{path}:{find_line_of_row(path, layout, repeat)}"
        raise MalformedLine(message, where=location, remedy=remedy)


def _read_tables(
    path: Path, layout: Layout, header: Header, bad_lines: BadLines
) -> Iterator[tuple[Any, int]]:
    is_ended = True
    for block in read_blocks(path, skip=header.size, quoted=layout.quoted_delimiter):
        if (table := _try_arrow(block, layout, header)) is not None:
            yield table, 0
        else:
            for piece in block.pieces(quoted=layout.quoted_delimiter):
                yield _read_piece(piece, layout, header, bad_lines)
        is_ended = block.is_ended
    if not (is_ended or layout.quoted):
        warn(f"{path.name}: the last line has no line end; the file may be truncated")


def _try_arrow(block: Block, layout: Layout, header: Header) -> Any:
    """Return the table of a block; None if it is suspicious.

    So is one whose quotes Arrow reads in its own way, or with a byte order mark, which Arrow
    removes from the start of every block, not only from that of the file.
    """
    if block.has_mark:
        return None
    if layout.quoted and not are_quotes_regular(block.data, layout.delimiter):
        return None
    return read_with_arrow(block, layout, header.names)


def _read_piece(
    piece: Block, layout: Layout, header: Header, bad_lines: BadLines
) -> tuple[Any, int]:
    if (table := _try_arrow(piece, layout, header)) is not None:
        return table, 0
    columns, n_skipped = read_line_by_line(
        piece, layout, header.names, skip_bad_lines=bad_lines == "skip"
    )
    return pa.table(columns, schema=layout.schema()), n_skipped
