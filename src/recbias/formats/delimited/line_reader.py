"""Text files line by line: slower than Arrow, but it knows which line is at fault and why."""

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
from recbias.formats.delimited.file_blocks import BLOCK, Block, blocks
from recbias.formats.delimited.layout import SKIPPING, Kind, Layout
from recbias.formats.text_files import BOM, any_length

LARGEST = float(np.finfo(np.float32).max)
WHOLE = re.compile(r"-?[0-9]{1,19}")


@dataclass(frozen=True)
class Record:
    """One row of a text file.

    Args:
        line: The line it begins on, from 0 in its block.
        n_lines: How many lines it takes.
        cells: Its cells; empty where it cannot be taken apart.
        problem: Why it cannot.
    """

    line: int
    n_lines: int
    cells: list[str]
    problem: str = ""


def read_exactly(
    block: Block, layout: Layout, names: list[str], *, skipping: bool
) -> tuple[dict[str, list[object]], int]:
    """Return the values of each column of the layout, and how many lines were left out.

    Args:
        block: The lines.
        layout: How they are written.
        names: All columns of the file, in its order.
        skipping: Leave malformed lines out.

    Raises:
        MalformedLine: A line does not fit the layout, and they are not left out.
    """
    wanted = [(names.index(name), name, kind) for name, kind in layout.columns.items()]
    columns: dict[str, list[object]] = {name: [] for name in layout.columns}
    bad = 0
    for record in records_of(block.data, layout):
        values, problem = _values(record, wanted, names, layout.delimiter)
        if problem and not skipping:
            line = block.first_line() + record.line
            raise MalformedLine(problem, where=f"{block.path}:{line}", remedy=SKIPPING)
        if problem:
            bad += record.n_lines
            continue
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    return columns, bad


def records_of(data: bytes, layout: Layout) -> Iterator[Record]:
    """Yield the rows of some lines of a file, blank lines left out.

    Args:
        data: The lines.
        layout: How they are written.
    """
    read = _quoted if layout.quoted else _unquoted
    return read(data.removeprefix(BOM), layout)


def line_of(path: Path, layout: Layout, names: list[str], *, skip: int, row: int) -> int:
    """Return the line on which row ``row`` (from 0) of the rows that were read begins.

    Args:
        path: The file.
        layout: How it is written.
        names: All columns of the file, in its order.
        skip: Bytes of its header.
        row: The row's place among those that fit the layout.
    """
    wanted = [(names.index(name), name, kind) for name, kind in layout.columns.items()]
    place = -1
    for block in blocks(path, skip=skip, quoted=layout.quoted, size=BLOCK):
        for record in records_of(block.data, layout):
            place += not _values(record, wanted, names, layout.delimiter)[1]
            if place == row:
                return block.first_line() + record.line
    return 0


def _unquoted(data: bytes, layout: Layout) -> Iterator[Record]:
    for line, raw in enumerate(data.split(b"\n")):
        text = raw.removesuffix(b"\r")
        if not text:
            continue
        try:
            yield Record(line, 1, text.decode(layout.encoding).split(layout.delimiter))
        except UnicodeDecodeError as error:
            yield Record(line, 1, [], f"is not {layout.encoding}: {error.reason}")


def _quoted(data: bytes, layout: Layout) -> Iterator[Record]:
    text = io.StringIO(data.decode(layout.encoding, "surrogateescape"), newline="")
    reader = csv.reader(text, delimiter=layout.delimiter, strict=True)
    with any_length():
        while True:
            before = reader.line_num
            cells, problem = _next(reader)
            if cells is None:
                return
            if cells or problem:
                n_lines = reader.line_num - before
                yield Record(before, n_lines, cells, problem)


def _next(reader: Iterator[list[str]]) -> tuple[list[str] | None, str]:
    try:
        cells = next(reader)
    except StopIteration:
        return None, ""
    except csv.Error as error:
        reason = "a quote is never closed" if "end of data" in str(error) else str(error)
        return [], reason
    if any("\udc80" <= letter <= "\udcff" for cell in cells for letter in cell):
        return [], "is not utf-8"
    return cells, ""


def _values(
    record: Record, wanted: list[tuple[int, str, Kind]], names: list[str], delimiter: str
) -> tuple[Sequence[object], str]:
    """Return the values of a row, and what is wrong with it (blank for nothing)."""
    if record.problem:
        return (), record.problem
    if len(record.cells) != len(names):
        shape = delimiter.join(names) if len(names) <= 8 else f"{len(names)} cells"
        return (), f"has {len(record.cells)} cells, not {len(names)} ({shape})"
    values: list[object] = []
    for place, name, kind in wanted:
        value, problem = CONVERT[kind](record.cells[place])
        if problem:
            return (), f"{name} {problem}"
        values.append(value)
    return values, ""


def _whole(cell: str, limit: int) -> tuple[object, str]:
    text = cell.strip(" \t")
    if not WHOLE.fullmatch(text):
        return None, _wrong(cell, "a whole number")
    value = int(text)
    if not -limit <= value <= limit:
        return None, f"is out of range: {cell!r}"
    return value, ""


def _finite(cell: str) -> tuple[object, str]:
    try:
        value = math.nan if "_" in cell else float(cell)
    except ValueError:
        return None, _wrong(cell, "a number")
    if not abs(value) <= LARGEST:
        return None, _wrong(cell, "a finite number")
    return value, ""


def _maybe(cell: str) -> tuple[object, str]:
    try:
        return (float(cell) if cell and "_" not in cell else None), ""
    except ValueError:
        return None, _wrong(cell, "a number")


def _wrong(cell: str, what: str) -> str:
    return f"is not {what}: {cell[:40]!r}" if cell.strip() else "is empty"


def _id(cell: str) -> tuple[object, str]:
    return cell, "" if cell else "is empty"


def _text(cell: str) -> tuple[object, str]:
    return cell, ""


CONVERT: Mapping[Kind, Callable[[str], tuple[object, str]]] = {
    "int32": lambda cell: _whole(cell, 2**31 - 1),
    "int64": lambda cell: _whole(cell, 2**63 - 1),
    "float32": _finite,
    "float64": _maybe,
    "id": _id,
    "text": _text,
}
