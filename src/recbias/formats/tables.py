"""Tables that users give: ``.csv``, ``.tsv``, ``.jsonl`` (also ``.gz``), ``.parquet``, ``.xlsx``.

Identifiers are kept exactly as written: ``007`` stays ``007``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias
from zipfile import BadZipFile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.context import warn
from recbias.core.dataset import SEPARATOR
from recbias.core.errors import (
    Contradiction,
    Faults,
    MalformedLine,
    UnknownColumn,
    UserError,
    WrongType,
)
from recbias.core.files import open_input
from recbias.core.packages import require_packages
from recbias.core.text import suggest
from recbias.formats.delimited import (
    BadLines,
    Kind,
    Layout,
    Table,
    read_header,
    read_table,
    refuse_same_names,
    require_columns,
)
from recbias.formats.json_files import read_records
from recbias.formats.text_files import (
    DELIMITERS,
    JSON_TO_TABLE,
    TAB,
    get_suffix,
    read_first_line,
    require_file,
    shorten,
)

PARQUET = ".parquet"
_EXCEL, _JSON_LINES = ".xlsx", ".jsonl"

_DELIMITED = (*DELIMITERS, ".txt", ".inter", ".json")
"""The suffixes of delimited text; of JSON the first line is read for what is wrong with it."""

_HISTORIES = "item_id_list"
"""The column of RecBole's sequence files with the items before that of the row."""

Selected: TypeAlias = Mapping[str, tuple[str, Kind]]
"""The name in the file and the kind of each column to read."""

Select: TypeAlias = Callable[[Sequence[str], str], Selected]
"""Returns what to read of a table with some names of columns, which stand at a place."""


# ---- which columns are read ----


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """The columns to read from a table; with ``others``, those not listed are of any type.

    ``renamed`` are the new names of columns of the file, None if none can be renamed.
    """

    needed: Mapping[str, Kind]
    optional: Mapping[str, Kind] = field(default_factory=dict)
    others: bool = False
    renamed: Mapping[str, str] | None = None

    def __call__(self, file_names: Sequence[str], where: str) -> Selected:
        """Return the name in the file and the kind of each column to read.

        Raises:
            UnknownColumn: A required column is missing.
            Contradiction: Two columns have the same name after renaming.
        """
        sources = _rename(file_names, self.renamed or {}, where)
        names = [*sources]
        require_columns(self.needed, names, where, renames=self.renamed is not None)
        if _HISTORIES in names and "user_id" in self.needed:
            message = f"the histories in the column {_HISTORIES!r} would be lost"
            remedy = "write each item of a history in a row of its own: user_id, item_id"
            raise MalformedLine(message, where=where, remedy=remedy)
        kinds = {**self.needed, **{k: v for k, v in self.optional.items() if k in names}}
        if self.others:
            kinds |= {name: "any" for name in names if name not in kinds}
        return {name: (sources[name], kind) for name, kind in kinds.items()}


def _rename(names: Sequence[str], columns: Mapping[str, str], where: str) -> dict[str, str]:
    """Return the name in the file of each column, by its new name."""
    new_names = [columns.get(name, name) for name in names]
    for name, count in Counter(new_names).items():
        if count > 1:
            message = f"two columns are called {name!r} after renaming"
            raise Contradiction(message, where=where, remedy="correct columns: in the spec")
    return dict(zip(new_names, names, strict=True))


def check_headers(
    tables: Iterable[tuple[Path | None, TableColumns]], renamed: Mapping[str, str]
) -> None:
    """Raise Faults with the missing columns of all tables."""
    faults: list[UserError] = []
    for path, columns in tables:
        try:
            if path is not None:
                replace(columns, renamed=renamed)(list_file_columns(path), str(path))
        except UnknownColumn as error:
            faults.append(error)
    if faults:
        raise Faults(faults)


def rename_all(names: Sequence[str], columns: Mapping[str, str], where: str) -> dict[str, str]:
    """Return the name in the file of each column, by its new name.

    Raises:
        UnknownColumn: The table lacks a column that is renamed.
        Contradiction: Two columns have the same name after renaming.
    """
    refuse_unknown("columns", columns, names)
    return _rename(names, columns, where)


def refuse_unknown(setting: str, named: Iterable[str], known: Sequence[str]) -> None:
    """Raise UnknownColumn if a setting names a column that no table has."""
    for name in named:
        if name not in known:
            message = f"no table has a column {name!r}"
            raise UnknownColumn(message, where=setting, remedy=suggest(name, known))


# ---- every kind of file ----


def find_suffix(path: Path, where: str = "path") -> str:
    """Return the suffix of a table, without ``.gz``.

    >>> find_suffix(Path("mine.csv.gz"))
    '.csv'

    Raises:
        WrongType: The file is not a kind of table that is read.
    """
    suffix = get_suffix(path)
    if suffix not in {*_DELIMITED, _JSON_LINES, PARQUET, _EXCEL}:
        remedy = "name it .csv, .tsv, .jsonl (also with .gz), .parquet or .xlsx"
        message = f"{path.name} is not a kind of table that is read"
        raise WrongType(message, where=where, remedy=remedy)
    return suffix


def read_file(
    path: Path, columns: Select, *, bad_lines: BadLines = "error", encoded: bool = False
) -> Table:
    """Return the columns of a table; ``encoded`` is that of ``read_table``.

    Raises:
        MissingFile: The file does not exist.
        WrongType: It is not a kind of table.
        MalformedLine: The file is not a table, or a row is invalid.
        UnknownColumn: A required column is missing.
    """
    suffix = find_suffix(path, str(path))
    require_file(path)
    if suffix in _DELIMITED:
        header = read_table_header(path)
        selected = columns([*header.columns], header.where)
        layout = header.make_layout(selected)
        table = read_table(path, layout, bad_lines=bad_lines, encoded=encoded)
        return replace(table, cells=table.cells.rename_columns([*selected]), header=header.where)
    selected, raw, place = _load(path, suffix, columns)
    cells = {
        name: cast_cells(raw[source], kind, f"{path}: {source}", place)
        for name, (source, kind) in selected.items()
    }
    table = Table(path, pa.table(cells), place)
    for name, (_, kind) in selected.items():
        if kind == "id":
            is_empty = np.asarray(pc.equal(table[name], "").to_numpy())
            table = table.without(is_empty, f"{name} is empty", bad_lines)
        elif kind == "float32":
            problem = f"{name} is not a finite number"
            table = table.without(~np.isfinite(table.numbers(name)), problem, bad_lines)
    return table


def _load(path: Path, suffix: str, columns: Select) -> tuple[Selected, Any, Callable[[int], str]]:
    """Return what is read of a file that is no delimited text, and what places a row."""
    if suffix == PARQUET:
        selected = columns(read_schema(path).names, str(path))
        raw = read_parquet(path, [source for source, _ in selected.values()])
        return selected, raw, partial(locate_row, path)
    if suffix == _EXCEL:
        raw = _read_sheet(path)
        return columns(raw.column_names, str(path)), raw, partial(locate_row, path)
    lines = [*read_records(path)]
    rows = [row for _, row in lines]

    def place(row: int) -> str:
        return f"{path}:{lines[row][0]}"

    selected = columns([*dict.fromkeys(name for row in rows for name in row)], str(path))
    raw = {
        source: _format_cells([row.get(source) for row in rows], source, kind, place)
        for source, kind in selected.values()
    }
    return selected, raw, place


def read_text_table(path: Path, columns: Mapping[str, str] | None = None) -> Table:
    """Return the table in a file, all of it as text, with new names of its ``columns``.

    Raises:
        MissingFile: The file does not exist.
        WrongType: It is not a kind of table.
        UnknownColumn: It lacks a column that ``columns`` renames.
        Contradiction: Two columns have the same name after renaming.
        MalformedLine: A line does not fit, or the file has no rows.
    """

    def select(names: Sequence[str], where: str) -> Selected:
        sources = rename_all(names, columns or {}, where)
        return {name: (source, "text") for name, source in sources.items()}

    table = read_file(path, select)
    if not len(table):
        remedy = "add a row below the names of the columns"
        raise MalformedLine("the file has no rows", where=str(path), remedy=remedy)
    return table


def list_file_columns(path: Path) -> list[str]:
    """Return the names of the columns of a table, without the types of RecBole."""
    suffix = find_suffix(require_file(path), str(path))
    if suffix in _DELIMITED:
        return [*read_table_header(path, announce=False).columns]
    if suffix == PARQUET:
        return [*read_schema(path).names]
    if suffix == _EXCEL:
        return [*_read_sheet(path).column_names]
    return [*dict.fromkeys(name for _, row in read_records(path) for name in row)]


def locate_row(path: Path, row: int) -> str:
    """Return ``file: row n`` of a row, counted from 0.

    >>> locate_row(Path("a.parquet"), 4)
    'a.parquet: row 5'
    """
    return f"{path}: row {row + 1:,}"


# ---- delimited text ----

_SEPARATORS = {
    TAB: "tabs",
    ",": "commas",
    ";": "semicolons",
    "|": "vertical bars",
    "::": "double colons",
}

_TYPED = re.compile(r"\s*([^:]+):(?:token|float)(?:_seq)?\s*")
"""A column in the header of a RecBole file: ``user_id:token``."""


class _TableHeader(NamedTuple):
    """The columns of a table as the file writes them, by name; where their line is."""

    columns: dict[str, str]
    delimiter: str
    where: str

    def make_layout(self, selected: Selected) -> Layout:
        """Return the layout of some columns, by their names in the file."""
        kinds = {self.columns[source]: kind for source, kind in selected.values()}
        return Layout(columns=kinds, delimiter=self.delimiter, quoted=True)


def read_table_header(path: Path, *, announce: bool = True) -> _TableHeader:
    """Return the columns of a delimited table, by their names without the types of RecBole.

    The delimiter is that of the suffix; if the first line has none, or no suffix says it, it is
    another one of that line, with a warning unless the suffix leaves it open.

    Raises:
        MalformedLine: The file is empty, is JSON, separates cells by blanks, names a column twice
            or has no header.
    """
    usual, line = DELIMITERS.get(get_suffix(path), ""), read_first_line(path)
    if line.lstrip().startswith(("{", "[")):
        raise MalformedLine("is JSON, not a table", where=f"{path}:1", remedy=JSON_TO_TABLE)
    found = [usual] if usual and usual in line else [mark for mark in _SEPARATORS if mark in line]
    if not found and len(line.split()) > 1:
        message = f"the cells are separated by blanks: {shorten(line)}"
        mark = _SEPARATORS[usual or TAB]
        remedy = f"separate them by {mark}; line 1 names the columns, each other line is a row"
        raise MalformedLine(message, where=f"{path}:1", remedy=remedy)
    delimiter = found[0] if found else ","
    if announce and usual and found and delimiter != usual:
        warn(f"{path.name}: the cells are separated by {_SEPARATORS[delimiter]}")
    header = read_header(path, Layout(columns={}, delimiter=delimiter, quoted=True))
    where, names = f"{path}:{header.line}", header.names
    if is_typed(names):
        names = [name.strip().partition(":")[0] for name in names]
    refuse_same_names(names, where)
    return _TableHeader(dict(zip(names, header.names, strict=True)), delimiter, where)


def is_typed(names: Sequence[str]) -> bool:
    """Return whether each name has a type, as in the header of a RecBole file."""
    return all(map(_TYPED.fullmatch, names))


# ---- typed cells ----


def cast_cells(
    column: Any, kind: Kind, where: str, place: Callable[[int], str] | None = None
) -> Any:
    """Return a column as the reader of text files would return it.

    Raises:
        MalformedLine: The cells are of another kind.
    """
    column = decode_dictionary(column)
    arrow_type = column.type
    is_decimal = pa.types.is_floating(arrow_type)
    is_number = is_decimal or pa.types.is_boolean(arrow_type)
    if kind not in {"id", "text", "any"} or (kind == "any" and is_number):
        numbers = cast_column(column, "numbers", where)
        return numbers.cast(pa.float32(), safe=False) if kind == "float32" else numbers
    if kind == "id" and is_decimal:
        remedy = "write identifiers as text or as whole numbers"
        raise MalformedLine("identifiers are decimal numbers", where=where, remedy=remedy)
    if kind == "any" and pa.types.is_timestamp(arrow_type):
        column = column.cast(pa.timestamp("s", arrow_type.tz), safe=False)
    if pa.types.is_nested(arrow_type) and kind != "id":
        column = _format_cells(
            column.to_pylist(), where.rpartition(": ")[2], kind, place or (lambda _: where)
        )
    return cast_column(column, "text", where)


def _format_cells(
    values: Sequence[Any], name: str, kind: Kind, place: Callable[[int], str]
) -> Any:
    """Return values as the text that the cells of a table would hold, null for None."""
    cells = [None if value is None else _format_cell(value, kind) for value in values]
    for row, (cell, value) in enumerate(zip(cells, values, strict=True)):
        if cell is None and value is not None:
            message = f"the {name} is neither text nor a number"
            raise MalformedLine(message, where=place(row), remedy="write text or numbers")
    return pa.chunked_array([pa.array(cells, pa.string())])


def _format_cell(value: Any, kind: Kind) -> str | None:
    """Return a value as text, of a list ``a|b`` or a line for each; None if it is neither."""
    if not isinstance(value, list):
        return str(value) if isinstance(value, (str, int, float)) else None
    if kind == "text" and all(isinstance(part, (int, float)) for part in value):
        return " ".join(map(str, value))
    if not all(isinstance(part, (str, int, float)) for part in value):
        return None
    parts = [" ".join(str(part).splitlines()) for part in value]
    return ("\n" if kind == "text" else SEPARATOR).join(parts)


def decode_dictionary(column: Any) -> Any:
    """Return a dictionary-encoded column as its values; any other column as it is."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def cast_column(column: Any, content: Literal["text", "numbers"], where: str) -> Any:
    """Return a column as text, "" for null, or as ``float64``, NaN for null.

    Raises:
        MalformedLine: The type of the column cannot be converted.
    """
    is_text = content == "text"
    arrow_type, empty = (pa.string(), "") if is_text else (pa.float64(), np.nan)
    try:
        return pc.fill_null(column.cast(arrow_type, safe=is_text), empty)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        message = f"is a column of {column.type}, not of {content}"
        remedy = f"write it as {content}" + " or as whole numbers" * is_text
        raise MalformedLine(message, where=where, remedy=remedy) from error


# ---- Parquet and Excel ----


def read_schema(path: Path) -> Any:
    """Return the ``pyarrow.Schema`` of a Parquet file.

    Raises:
        MalformedLine: The file is not a Parquet file.
    """
    from pyarrow import parquet  # slow, and not needed to plan

    with _report_damage(path):
        schema = parquet.read_schema(path)
    refuse_same_names(schema.names, str(path))
    return schema


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> Any:
    """Return the ``pyarrow.Table`` in a Parquet file, or some of its columns.

    Raises:
        MalformedLine: The file is not a Parquet file, or its text is not UTF-8.
    """
    from pyarrow import parquet

    read_schema(path)
    names = None if columns is None else list(columns)
    with _report_damage(path):
        table = parquet.read_table(path, columns=names, partitioning=None)
        table.validate(full=True)
    return table


@contextmanager
def _report_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        message = f"is not a Parquet file: {str(error)[:200]}"
        remedy = "write or download it again: it may be truncated, or its text is not UTF-8"
        raise MalformedLine(message, where=str(path), remedy=remedy) from error


def _read_sheet(path: Path) -> Any:
    """Return the text of the first sheet, null for an empty cell; its first row has the names."""
    require_packages(f"{path.name}, an Excel file,", "python-calamine", where=str(path))
    from python_calamine import CalamineError

    options: Any = {"engine": "calamine", "header": None, "na_filter": False, "dtype": object}
    with open_input(path) as stream:
        try:
            frame = pd.read_excel(stream, **options)
        except (CalamineError, BadZipFile, ValueError, OverflowError) as error:
            remedy = "download or save it again, or save it as CSV"
            message = f"is no Excel file: {error}"
            raise MalformedLine(message, where=str(path), remedy=remedy) from error
    if frame.empty:
        raise MalformedLine("the first sheet is empty", where=str(path))
    names, *rows = [[_format_excel_cell(cell) for cell in row] for row in frame.to_numpy()]
    refuse_same_names(["" if name is None else name for name in names], str(path))
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    arrays = [pa.array(cells, pa.string()) for cells in columns]
    return pa.table(arrays, names=[name or "" for name in names])


def _format_excel_cell(cell: Any) -> str | None:
    if cell is None or cell == "":
        return None
    is_whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell)) if is_whole else str(cell)
