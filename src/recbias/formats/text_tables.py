"""Tables of text made elsewhere: CSV, TSV, JSON lines and Parquet, every cell as written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, FloatArray, Ids
from recbias.core.errors import MalformedLine, MissingFile, UnknownColumn, WrongType
from recbias.core.input_files import has_file
from recbias.core.suggestions import suggest
from recbias.formats.lists.lines import Lines
from recbias.formats.parquet_files import read_parquet, to_text
from recbias.formats.text_cells import parse_numbers
from recbias.formats.text_files import opened_text, parse_json, read_cells, read_text

DELIMITERS = {".csv": ",", ".tsv": "\t"}
KINDS = (*DELIMITERS, ".jsonl", ".parquet")


@dataclass(frozen=True, eq=False)
class TextTable:
    """The columns of a file.

    Args:
        path: The file.
        columns: Each column, Arrow arrays of text; an empty cell is ``""``.
        place: Where a row (from 0) stands: ``file:line``; ``file: row n`` in a Parquet file.
    """

    path: Path
    columns: Mapping[str, Any]
    place: Callable[[int], str]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def need(self, *names: str) -> None:
        """Raise UnknownColumn unless the columns are there."""
        for name in names:
            if name not in self.columns:
                found = f"there is no column {name!r}"
                remedy = f"rename the column; {suggest(name, self.columns)}"
                raise UnknownColumn(found, where=str(self.path), remedy=remedy)

    def texts(self, name: str) -> Ids:
        """Return a column of text as it is, ``object[n]``."""
        return np.array(self.columns[name].to_pylist(), dtype=object)

    def optional(self, name: str) -> Ids:
        """Return a column of text, None where the cell is empty or there is no such column."""
        if name not in self.columns:
            return np.full(len(self), None, dtype=object)
        texts = self.texts(name)
        texts[texts == ""] = None
        return texts

    def ids(self, name: str) -> Ids:
        """Return a column of identifiers; MalformedLine where one is empty."""
        texts = self.texts(name)
        empty = np.flatnonzero(texts == "")
        if empty.size:
            raise MalformedLine(f"an empty {name}", where=self.place(int(empty[0])))
        return texts

    def numbers(self, name: str) -> FloatArray:
        """Return a column of numbers, ``float64[n]``; an empty cell is NaN."""
        return numbers_of(self.columns[name], name, self.place)

    def labels(self, used: Sequence[str]) -> pd.DataFrame:
        """Return the other columns as text, None where a cell is empty."""
        others = [name for name in self.columns if name not in used]
        cells = {name: self.optional(name) for name in others}
        return pd.DataFrame(cells, index=range(len(self)), dtype=object)

    def refuse_repeats(self, keys: AnyArray, what: Callable[[int], str]) -> None:
        """Refuse a key that two rows have; ``what`` says of a row what stands there again."""
        again = np.flatnonzero(pd.Series(keys).duplicated())
        if again.size:
            row = int(again[0])
            first = int(np.flatnonzero(keys == keys[row])[0])
            remedy = f"keep one of the rows; the other is at {self.place(first)}"
            raise MalformedLine(what(row), where=self.place(row), remedy=remedy)


def kind_of(path: Path) -> str:
    """Return ``.csv``, ``.tsv``, ``.jsonl`` or ``.parquet``, by the name of a file.

    >>> kind_of(Path("mine.csv.gz"))
    '.csv'

    Raises:
        WrongType: It is of none of the kinds.
    """
    kind = Path(path.name.lower().removesuffix(".gz")).suffix
    if kind not in KINDS:
        remedy = f"name it {', '.join(KINDS)} or .csv.gz"
        raise WrongType(f"{path.name} is no table of text", where="path", remedy=remedy)
    return kind


def read_text_table(path: Path) -> TextTable:
    """Read a file.

    Raises:
        MissingFile: It is not there.
        WrongType: It is of no known kind by its name.
        MalformedLine: A line does not fit, or the file has no rows.
    """
    kind = kind_of(path)
    if not has_file(path):
        raise MissingFile(f"no file {str(path)!r}", remedy="paths are relative to the spec")
    if kind == ".parquet":
        table = _read_parquet(path)
    elif kind == ".jsonl":
        table = _read_json_lines(path)
    else:
        table = _read_delimited(path, DELIMITERS[kind])
    if not len(table):
        raise MalformedLine("the file has no rows", where=str(path))
    return table


def numbers_of(column: Any, name: str, place: Callable[[int], str]) -> FloatArray:
    """Return Arrow text as numbers, NaN where it is empty; MalformedLine where it is no number."""
    from pyarrow import compute

    texts = compute.utf8_trim_whitespace(column)
    return parse_numbers(compute.if_else(compute.equal(texts, ""), "nan", texts), name, place)


def _read_delimited(path: Path, delimiter: str) -> TextTable:
    import pyarrow as pa

    lines = Lines(path, delimiter)
    line, names = next(lines.records(), (1, []))
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice or not names:
        found = f"two columns are called {twice[0]!r}" if twice else "the file is empty"
        raise MalformedLine(found, where=f"{path}:{line}")
    try:
        table = read_cells(
            read_text(path), names=None, texts=names, delimiter=delimiter, newlines_in_values=True
        )
    except pa.ArrowInvalid as error:
        raise lines.malformed(error) from error
    return TextTable(path, dict(zip(names, table.columns, strict=True)), lines.place)


def _read_parquet(path: Path) -> TextTable:
    import pyarrow as pa

    place = partial(_row, path)
    table = read_parquet(path)
    columns = {}
    for name in table.column_names:
        if pa.types.is_nested(table.column(name).type):
            cells = [_text(each, name, place(row)) for row, each in _cells(table, name)]
            columns[name] = pa.chunked_array([pa.array(cells, pa.string())])
        else:
            columns[name] = to_text(table.column(name), f"{path}: {name}")
    return TextTable(path, columns, place)


def _cells(table: Any, name: str) -> enumerate[Any]:
    return enumerate(table.column(name).to_pylist())


def _row(path: Path, row: int) -> str:
    return f"{path}: row {row + 1:,}"


def _read_json_lines(path: Path) -> TextTable:
    import pyarrow as pa

    with opened_text(path) as file:
        lines = [(number, line) for number, line in enumerate(file, start=1) if line.strip()]
    objects = [_object(line, path, number) for number, line in lines]
    numbers = [number for number, _ in lines]
    columns = {}
    for name in dict.fromkeys(key for each in objects for key in each):
        cells = [
            _text(each.get(name), name, f"{path}:{number}")
            for each, number in zip(objects, numbers, strict=True)
        ]
        columns[name] = pa.chunked_array([pa.array(cells, pa.string())])
    return TextTable(path, columns, lambda row: f"{path}:{numbers[row]}")


def _object(text: str, path: Path, line: int) -> dict[str, Any]:
    cells = parse_json(text.rstrip("\r\n"), path, line=line)
    if not isinstance(cells, dict):
        where, remedy = f"{path}:{line}", "write one object a line"
        raise MalformedLine("not a JSON object", where=where, remedy=remedy)
    return cells


def _text(cell: Any, name: str, where: str) -> str:
    """Return a JSON or Parquet value as the text that a CSV cell would hold."""
    if cell is None:
        return ""
    if isinstance(cell, (str, int, float)):
        return str(cell)
    if isinstance(cell, list) and all(isinstance(each, (int, float)) for each in cell):
        return " ".join(map(str, cell))
    raise MalformedLine(f"the {name} is neither text nor a number", where=where)
