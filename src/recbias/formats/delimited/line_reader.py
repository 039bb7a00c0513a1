"""Delimited text read line by line: slower than Arrow, but it finds the malformed line."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recbias.core.errors import MalformedLine
from recbias.formats.delimited.file_blocks import READ_SIZE, Block, read_blocks
from recbias.formats.delimited.layout import SKIP_HINT, Kind, Layout
from recbias.formats.text_files import BOM, limit_cells, make_csv_error

LARGEST_RATING = float(np.finfo(np.float32).max)
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")


@dataclass(frozen=True)
class Record:
    """One row of a text file; ``line`` counts from 0 in the block, a problem is why it is bad."""

    line: int
    n_lines: int
    cells: list[str]
    problem: str = ""


def read_line_by_line(
    block: Block, layout: Layout, names: list[str], *, skip_bad_lines: bool
) -> tuple[dict[str, list[object]], int]:
    """Return the values of each column of the layout, and the number of lines skipped.

    ``names`` are all columns of the file, in order.

    Raises:
        MalformedLine: A line does not fit the layout, and malformed lines are not skipped.
    """
    columns: dict[str, list[object]] = {name: [] for name in layout.columns}
    n_skipped = 0
    for record, values, problem in _convert_records(block, layout, names):
        if problem and not skip_bad_lines:
            line = block.find_first_line() + record.line
            raise MalformedLine(problem, where=f"{block.path}:{line}", remedy=SKIP_HINT)
        if problem:
            n_skipped += record.n_lines
            continue
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    return columns, n_skipped


def parse_records(block: Block, layout: Layout) -> Iterator[Record]:
    """Yield the rows in some lines of a file; blank lines are skipped."""
    parse = _parse_quoted if layout.quoted else _parse_plain
    return parse(block.data if block.start else block.data.removeprefix(BOM), layout)


def find_line(path: Path, layout: Layout, names: list[str], *, skip: int, row: int) -> int:
    """Return the first line of a row, counted from 0 among those that fit; 0 if there is none.

    ``names`` are all columns of the file, in order, and ``skip`` are the bytes of its header.
    """
    position = -1
    for block in read_blocks(path, skip=skip, quoted=layout.quoted_delimiter, size=READ_SIZE):
        for record, _, problem in _convert_records(block, layout, names):
            position += not problem
            if position == row:
                return block.find_first_line() + record.line
    return 0


def _parse_plain(data: bytes, layout: Layout) -> Iterator[Record]:
    for line, text in enumerate(data.splitlines()):  # also at a carriage return, as Arrow does
        if not text:
            continue
        try:
            yield Record(line, 1, text.decode(layout.encoding).split(layout.delimiter))
        except UnicodeDecodeError as error:
            yield Record(line, 1, [], f"is not {layout.encoding}: {error.reason}")


def _parse_quoted(data: bytes, layout: Layout) -> Iterator[Record]:
    text = io.StringIO(data.decode(layout.encoding, "surrogateescape"), newline="")
    reader = csv.reader(text, delimiter=layout.delimiter, strict=True)
    with limit_cells():
        while True:
            line, problem = reader.line_num, ""
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                is_open = "end of data" in str(error)
                problem = (
                    "a quote is never closed" if is_open else make_csv_error(error, "").message
                )
                cells = []
            if any("\udc80" <= letter <= "\udcff" for cell in cells for letter in cell):
                cells, problem = [], "is not utf-8"
            if cells or problem:
                yield Record(line, reader.line_num - line, cells, problem)


def _convert_records(
    block: Block, layout: Layout, names: list[str]
) -> Iterator[tuple[Record, Sequence[object], str]]:
    """Yield each record with its values in the columns of the layout and its problem."""
    position_of = {name: position for position, name in enumerate(names)}
    columns = [(position_of[name], name, kind) for name, kind in layout.columns.items()]
    for record in parse_records(block, layout):
        yield record, *_convert(record, columns, names, layout.delimiter)


def _convert(
    record: Record, columns: list[tuple[int, str, Kind]], names: list[str], delimiter: str
) -> tuple[Sequence[object], str]:
    if record.problem:
        return (), record.problem
    if len(record.cells) != len(names):
        shape = delimiter.join(names) if len(names) <= 8 else f"{len(names)} cells"
        return (), f"has {len(record.cells)} cells, not {len(names)} ({shape})"
    values: list[object] = []
    for position, name, kind in columns:
        value, problem = CONVERTERS[kind](record.cells[position])
        if problem:
            return (), f"{name} {problem}"
        values.append(value)
    return values, ""


def _convert_integer(cell: str, limit: int) -> tuple[object, str]:
    text = cell.strip(" \t")
    if not WHOLE_NUMBER.fullmatch(text):
        return None, _describe(cell, "a whole number")
    value = int(text)
    if not -limit <= value <= limit:
        return None, f"is out of range: {cell!r}"
    return value, ""


def _convert_rating(cell: str) -> tuple[object, str]:
    try:
        value = math.nan if "_" in cell else float(cell)
    except ValueError:
        return None, _describe(cell, "a number")
    if not abs(value) <= LARGEST_RATING:
        return None, _describe(cell, "a finite number")
    return value, ""


def _convert_number(cell: str) -> tuple[object, str]:
    try:
        return (float(cell) if cell and "_" not in cell else None), ""
    except ValueError:
        return None, _describe(cell, "a number")


def _describe(cell: str, expected: str) -> str:
    return f"is not {expected}: {cell[:40]!r}" if cell.strip() else "is empty"


CONVERTERS: Mapping[Kind, Callable[[str], tuple[object, str]]] = {
    "int32": lambda cell: _convert_integer(cell, 2**31 - 1),
    "int64": lambda cell: _convert_integer(cell, 2**63 - 1),
    "float32": _convert_rating,
    "float64": _convert_number,
    "id": lambda cell: (cell, "" if cell else "is empty"),
    "text": lambda cell: (cell, ""),
}
