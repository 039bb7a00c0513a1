"""A user's own tables: ``.csv``, ``.tsv`` (also ``.gz``), ``.parquet`` and ``.xlsx``.

Identifiers are kept exactly as written: ``007`` stays ``007``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.arrays import AnyArray, BoolArray
from recbias.core.dataset.attributes import SEPARATOR
from recbias.core.errors import Contradiction, MalformedLine, MissingFile, UnknownColumn
from recbias.core.input_files import has_file
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.formats.arrow import excel_files
from recbias.formats.arrow.parquet_files import (
    decode_dictionary,
    locate_row,
    read_parquet,
    read_schema,
    to_numbers,
    to_text,
)
from recbias.formats.delimited.layout import SKIP_HINT, BadLines, Kind, Layout
from recbias.formats.delimited.reader import Rows, find_line_of_row, read_header, read_table
from recbias.formats.text_files import DELIMITERS, get_suffix

NUMBER = r"^(?:[+-]?(?:0|[1-9]\d*)?(?:\.\d+)?(?:[eE][+-]?\d+)?|[nN]a[nN]|NAN)$"
"""A number as a column of numbers holds it, or an empty cell; ``007`` is text."""


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """The columns to read from a table; with ``others``, the columns not listed are text.

    ``renamed`` are the new names of columns of the file, None if none can be renamed.
    """

    needed: Mapping[str, Kind]
    optional: Mapping[str, Kind] = field(default_factory=dict)
    others: bool = False
    renamed: Mapping[str, str] | None = None

    def list_sources(self, names: list[str]) -> dict[str, str]:
        """Return the name in the file of each column, by its new name."""
        return {(self.renamed or {}).get(name, name): name for name in names}

    def select(self, file_names: list[str], where: str) -> dict[str, Kind]:
        """Return the columns to read from a table that names ``file_names`` at ``where``.

        Raises:
            UnknownColumn: A required column is missing.
            Contradiction: Two columns have the same name after renaming.
        """
        names = list(self.list_sources(file_names))
        if len(names) < len(file_names):
            counts = Counter((self.renamed or {}).get(name, name) for name in file_names)
            ((repeated, _),) = counts.most_common(1)
            message = f"two columns are called {repeated!r} after renaming"
            remedy = "correct columns: in the spec"
            raise Contradiction(message, where=where, remedy=remedy)
        for name in self.needed:
            if name not in names:
                message, remedy = f"there is no column {name!r}", suggest(name, names)
                if self.renamed is not None and names:
                    remedy += f"; another column is renamed by columns: {{{names[0]}: {name}}}"
                raise UnknownColumn(message, where=where, remedy=remedy)
        kinds = {**self.needed, **{k: v for k, v in self.optional.items() if k in names}}
        if self.others:
            kinds |= {name: "text" for name in names if name not in kinds}
        return kinds


@dataclass(frozen=True, eq=False)
class TableFile:
    """The valid rows of a table, and the format of its text file, None for other files."""

    path: Path
    rows: Rows
    layout: Layout | None

    def where(self, row: int) -> str:
        """Return the place of a row, counted from 0 among the valid ones."""
        if self.layout is None:
            return locate_row(self.path, row)
        return f"{self.path}:{find_line_of_row(self.path, self.layout, row)}"

    def without(self, wrong: BoolArray, problem: str, bad_lines: BadLines) -> TableFile:
        """Return the table without its invalid rows, ``bool[n]``.

        Raises:
            MalformedLine: There is an invalid row, and such rows are not skipped.
        """
        if not wrong.any():
            return self
        if bad_lines == "error":
            location = self.where(int(np.flatnonzero(wrong)[0]))
            raise MalformedLine(problem, where=location, remedy=SKIP_HINT)
        n_wrong = int(wrong.sum())
        warn(f"{self.path.name}: {n_wrong:,} row(s) skipped: {problem}")
        rows = Rows(self.rows.table.filter(~wrong), self.rows.bad_lines + n_wrong)
        return TableFile(self.path, rows, self.layout)


def require_file(path: Path) -> Path:
    """Return the path of a file.

    Raises:
        MissingFile: There is no such file.
    """
    if not has_file(path):
        remedy = "paths are relative to the experiment file"
        raise MissingFile("no such file", where=str(path), remedy=remedy)
    return path


def read_file(
    path: Path,
    columns: TableColumns,
    *,
    bad_lines: BadLines = "error",
    read: Callable[..., Rows] = read_table,
) -> TableFile:
    """Return the columns of a table; ``read`` reads text files.

    Raises:
        MissingFile: The file does not exist.
        MalformedLine: The file is not a table, or a row is invalid.
        UnknownColumn: A required column is missing.
    """
    suffix = get_suffix(require_file(path))
    if suffix == ".parquet":
        names = list(read_schema(path).names)
        sources = columns.list_sources(names)
        kinds = columns.select(names, str(path))
        raw = read_parquet(path, [sources[name] for name in kinds])
        return _convert_table(path, raw, columns, bad_lines)
    if suffix == excel_files.SUFFIX:
        return _convert_table(path, excel_files.read_sheet(path), columns, bad_lines)
    if suffix not in DELIMITERS:
        remedy = "give a .csv, .tsv, .csv.gz, .tsv.gz, .parquet or .xlsx file"
        message = "is not a kind of table that is supported"
        raise MalformedLine(message, where=str(path), remedy=remedy)
    header = read_header(path, Layout(columns={}, delimiter=DELIMITERS[suffix], quoted=True))
    kinds, sources = columns.select(header.names, f"{path}:1"), columns.list_sources(header.names)
    in_file = {sources[name]: kind for name, kind in kinds.items()}
    layout = Layout(columns=in_file, delimiter=DELIMITERS[suffix], quoted=True)
    rows = read(path, layout, bad_lines=bad_lines)
    return TableFile(path, Rows(rows.table.rename_columns([*kinds]), rows.bad_lines), layout)


def list_file_columns(path: Path) -> list[str]:
    """Return the names of the columns of a table, without the types of RecBole."""
    suffix = get_suffix(require_file(path))
    if suffix == ".parquet":
        return list(read_schema(path).names)
    if suffix == excel_files.SUFFIX:
        return list(excel_files.read_sheet(path).column_names)
    delimiter = DELIMITERS.get(suffix, ",")
    header = read_header(path, Layout(columns={}, delimiter=delimiter, quoted=True))
    return [name.partition(":")[0] for name in header.names]


def infer_column(column: Any) -> AnyArray:
    """Return a column as ``float64`` if every cell is a number or empty, else as text.

    >>> import pyarrow as pa
    >>> infer_column(pa.chunked_array([["1", "", "2.5"]])).tolist()
    [1.0, nan, 2.5]
    >>> infer_column(pa.chunked_array([["007", "", "2"]])).tolist()
    ['007', None, '2']
    """
    if pa.types.is_floating(column.type):
        return np.asarray(column.to_numpy())
    filled = pc.not_equal(column, "")
    if pc.any(filled).as_py() and pc.all(pc.match_substring_regex(column, NUMBER)).as_py():
        numbers = pc.if_else(filled, column, pa.scalar(None, pa.string())).cast(pa.float64())
        return np.asarray(numbers.to_numpy())
    texts = np.asarray(column.to_numpy(), dtype=object)
    texts[texts == ""] = None
    return texts


def _convert_table(path: Path, raw: Any, columns: TableColumns, bad_lines: BadLines) -> TableFile:
    """Return the columns of an Arrow table as the reader of text files would return them."""
    names = list(raw.column_names)
    kinds, sources = columns.select(names, str(path)), columns.list_sources(names)
    cast = {
        name: _cast(raw[sources[name]], kind, f"{path}: {sources[name]}")
        for name, kind in kinds.items()
    }
    table = TableFile(path, Rows(pa.table(cast)), None)
    for name, kind in kinds.items():
        cells = table.rows.table[name]
        if kind == "id":
            is_empty = np.asarray(pc.equal(cells, "").to_numpy())
            table = table.without(is_empty, f"{name} is empty", bad_lines)
        elif kind == "float32":
            problem = f"{name} is not a finite number"
            table = table.without(~np.isfinite(cells.to_numpy()), problem, bad_lines)
    return table


def _cast(column: Any, kind: Kind, location: str) -> Any:
    """Return a Parquet column as the reader of text files would return it."""
    column = decode_dictionary(column)
    arrow_type = column.type
    if kind == "float32":
        return to_numbers(column, location).cast(pa.float32(), safe=False)
    if kind == "float64":
        return to_numbers(column, location)
    if kind == "id" and pa.types.is_floating(arrow_type):
        remedy = "write identifiers as text or as whole numbers"
        raise MalformedLine("identifiers are decimal numbers", where=location, remedy=remedy)
    if kind == "text" and (pa.types.is_floating(arrow_type) or pa.types.is_boolean(arrow_type)):
        return to_numbers(column, location)
    if kind == "text" and pa.types.is_timestamp(arrow_type):
        column = column.cast(pa.timestamp("s", arrow_type.tz), safe=False)
    is_list = pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type)
    if is_list and not pa.types.is_nested(arrow_type.value_type):
        column = pc.binary_join(column.cast(pa.list_(pa.string())), SEPARATOR)
    return to_text(column, location)


@contextmanager
def require_every_line() -> Iterator[None]:
    """Remove the advice to skip malformed lines from the errors raised in this block."""
    try:
        yield
    except MalformedLine as error:
        remedy = "correct the line" if error.remedy == SKIP_HINT else error.remedy
        raise MalformedLine(error.message, where=error.where, remedy=remedy) from error
