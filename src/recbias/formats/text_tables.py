"""Text tables from other tools (CSV, TSV, JSON lines, Parquet) with every cell as written."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute

from recbias.core.arrays import AnyArray, FloatArray, Ids
from recbias.core.errors import MalformedLine, UnknownColumn, WrongType
from recbias.core.suggestions import suggest
from recbias.formats.arrow.parquet_files import locate_row, read_parquet, to_text
from recbias.formats.encode_ids import find_repeat
from recbias.formats.json_text import parse_json
from recbias.formats.limited.file_limits import check_columns, refuse_long_cells
from recbias.formats.tables import require_file
from recbias.formats.text_files import DELIMITERS, get_suffix, open_text
from recbias.formats.text_lines import TextLines, parse_numbers

SUFFIXES = (*DELIMITERS, ".jsonl", ".parquet")

BLOCK_ROWS = 2**14
"""The number of JSON objects that are in memory at once, besides the columns of those before."""


@dataclass(frozen=True, eq=False)
class TextTable:
    """The columns of a file as Arrow arrays of text, in which an empty cell is ``""``.

    Args:
        path: The file.
        columns: The arrays by name.
        place: Returns ``file:line`` of a row (from 0); ``file: row n`` for a Parquet file.
        header: Where the columns are named, ``file:line``; blank where no line names them.
    """

    path: Path
    columns: Mapping[str, Any]
    place: Callable[[int], str]
    header: str = ""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def need(self, *names: str) -> None:
        """Raise UnknownColumn if one of the columns is missing."""
        for name in names:
            if name not in self.columns:
                message = f"there is no column {name!r}"
                remedy = f"rename the column; {suggest(name, self.columns)}"
                raise UnknownColumn(message, where=self.header or str(self.path), remedy=remedy)

    def texts(self, name: str) -> Ids:
        """Return a column of text as written, ``object[n]``."""
        return np.array(self.columns[name].to_pylist(), dtype=object)

    def optional(self, name: str) -> Ids:
        """Return a column of text, None where the cell is empty or the column is missing."""
        if name not in self.columns:
            return np.full(len(self), None, dtype=object)
        texts = self.texts(name)
        texts[texts == ""] = None
        return texts

    def ids(self, name: str) -> Ids:
        """Return a column of identifiers; raises MalformedLine if one is empty."""
        texts = self.texts(name)
        if (empty := np.flatnonzero(texts == "")).size:
            raise MalformedLine(f"an empty {name}", where=self.place(int(empty[0])))
        return texts

    def numbers(self, name: str) -> FloatArray:
        """Return a column of numbers, ``float64[n]``; an empty cell is NaN."""
        return parse_number_column(self.columns[name], name, self.place)

    def labels(self, used: Sequence[str]) -> pd.DataFrame:
        """Return all columns but ``used`` as text, None where a cell is empty."""
        cells = {name: self.optional(name) for name in self.columns if name not in used}
        return pd.DataFrame(cells, index=range(len(self)), dtype=object)

    def refuse_repeats(self, keys: AnyArray, what: Callable[[int], str]) -> None:
        """Raise MalformedLine, with the message ``what(row)``, if a row repeats a key."""
        first, repeat = find_repeat(keys)
        if repeat >= 0:
            remedy = f"keep one of the rows; the other is at {self.place(first)}"
            raise MalformedLine(what(repeat), where=self.place(repeat), remedy=remedy)


def find_suffix(path: Path) -> str:
    """Return ``.csv``, ``.tsv``, ``.jsonl`` or ``.parquet``, by the name of a file.

    >>> find_suffix(Path("mine.csv.gz"))
    '.csv'

    Raises:
        WrongType: The file has another suffix.
    """
    suffix = get_suffix(path)
    if suffix not in SUFFIXES:
        remedy = f"name it {', '.join(SUFFIXES)} or .csv.gz"
        raise WrongType(f"{path.name} is no table of text", where="path", remedy=remedy)
    return suffix


def read_text_table(path: Path) -> TextTable:
    """Return the table in a file.

    Raises:
        MissingFile: The file does not exist.
        WrongType: Its suffix is not supported.
        MalformedLine: A line does not fit, or the file has no rows.
    """
    suffix = find_suffix(path)
    require_file(path)
    readers = {".parquet": _read_parquet, ".jsonl": _read_json_lines}
    table = readers.get(suffix, _read_delimited)(path)
    check_columns(list(table.columns), str(path))
    if not len(table):
        remedy = "add a row below the names of the columns"
        raise MalformedLine("the file has no rows", where=str(path), remedy=remedy)
    refuse_long_cells(table.columns, table.place)
    return table


def parse_number_column(column: Any, name: str, locate: Callable[[int], str]) -> FloatArray:
    """Return Arrow text as ``float64`` like ``parse_numbers``; an empty cell is NaN."""
    texts = compute.utf8_trim_whitespace(column)
    return parse_numbers(compute.if_else(compute.equal(texts, ""), "nan", texts), name, locate)


def _read_delimited(path: Path) -> TextTable:
    lines = TextLines(path, DELIMITERS[get_suffix(path)])
    line, names = next(lines.records(), (1, []))
    if not names:
        raise MalformedLine("the file is empty", where=f"{path}:{line}")
    check_columns(names, f"{path}:{line}")
    table = lines.read(names)
    columns = dict(zip(names, table.columns, strict=True))
    return TextTable(path, columns, lines.locate, f"{path}:{line}")


def _read_parquet(path: Path) -> TextTable:
    locate = partial(locate_row, path)
    table = read_parquet(path)
    columns = {
        name: pa.chunked_array([_format_cells(column.to_pylist(), name, locate)])
        if pa.types.is_nested(column.type)
        else to_text(column, f"{path}: {name}")
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return TextTable(path, columns, locate)


def _read_json_lines(path: Path) -> TextTable:
    numbers = array("q")
    blocks: list[tuple[int, dict[str, Any]]] = []
    with open_text(path) as file:
        lines = ((number, line) for number, line in enumerate(file, start=1) if line.strip())
        while block := list(islice(lines, BLOCK_ROWS)):
            numbers.extend([number for number, _ in block])
            blocks.append((len(block), _parse_records(block, path)))
    columns = {
        name: pa.chunked_array(
            [block.get(name, pa.array([""] * size, pa.string())) for size, block in blocks]
        )
        for name in dict.fromkeys(name for _, block in blocks for name in block)
    }
    return TextTable(path, columns, lambda row: f"{path}:{numbers[row]}")


def _parse_records(lines: Sequence[tuple[int, str]], path: Path) -> dict[str, Any]:
    """Return the columns of JSON objects, each with the number of its line."""
    records = []
    for number, line in lines:
        record = parse_json(line.rstrip("\r\n"), path, line=number)
        if not isinstance(record, dict):
            remedy = "write one object per line"
            raise MalformedLine("not a JSON object", where=f"{path}:{number}", remedy=remedy)
        records.append(record)
    return {
        name: _format_cells(
            [record.get(name) for record in records], name, lambda row: f"{path}:{lines[row][0]}"
        )
        for name in dict.fromkeys(name for record in records for name in record)
    }


def _format_cells(cells: list[Any], name: str, locate: Callable[[int], str]) -> Any:
    """Return JSON or Parquet values as the text that CSV cells would hold."""
    texts = [_format_cell(cell) for cell in cells]
    if None in texts:
        message = f"the {name} is neither text nor a number"
        raise MalformedLine(message, where=locate(texts.index(None)))
    return pa.array(texts, pa.string())


def _format_cell(cell: Any) -> str | None:
    """Return a value as text, None if it has none.

    A list of numbers is joined by spaces, a list of texts by line ends; a line end within one of
    the texts becomes a space.
    """
    if cell is None:
        return ""
    if isinstance(cell, (str, int, float)):
        return str(cell)
    if isinstance(cell, list) and all(isinstance(number, (int, float)) for number in cell):
        return " ".join(map(str, cell))
    if isinstance(cell, list) and all(isinstance(text, str) for text in cell):
        return "\n".join(" ".join(text.splitlines()) for text in cell)
    return None
