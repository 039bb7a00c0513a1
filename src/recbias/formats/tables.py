"""A user's own tables: ``.csv``, ``.tsv`` (also ``.gz``) and ``.parquet``, as columns of text.

Identifiers are kept exactly as they are written: ``007`` stays ``007``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray
from recbias.core.dataset.attributes import SEPARATOR
from recbias.core.errors import MalformedLine, MissingFile, UnknownColumn
from recbias.core.input_files import has_file
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.formats.delimited.layout import SKIPPING, BadLines, Kind, Layout
from recbias.formats.delimited.reader import Rows, header_of, line_of_row, read_table
from recbias.formats.parquet_files import (
    decode_dictionary,
    read_parquet,
    read_schema,
    to_numbers,
    to_text,
)

DELIMITERS = {".csv": ",", ".tsv": "\t"}
NUMBER = r"^(?:[+-]?(?:0|[1-9]\d*)?(?:\.\d+)?(?:[eE][+-]?\d+)?|[nN]a[nN]|NAN)$"
"""A number as a column of numbers holds it, or an empty cell; ``007`` is text."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The columns to read of a table.

    Args:
        needed: Columns that must be there, and what they hold.
        optional: Columns that may be there.
        others: Whether all other columns are read too, as text.
    """

    needed: Mapping[str, Kind]
    optional: Mapping[str, Kind] = field(default_factory=dict)
    others: bool = False

    def among(self, names: list[str], path: Path) -> dict[str, Kind]:
        """Return the columns to read of a table that has ``names``.

        Raises:
            UnknownColumn: One that must be there is not.
        """
        for name in self.needed:
            if name not in names:
                found = f"there is no column {name!r}"
                raise UnknownColumn(found, where=f"{path}", remedy=suggest(name, names))
        known = {**self.needed, **{k: v for k, v in self.optional.items() if k in names}}
        if self.others:
            known |= {name: "text" for name in names if name not in known}
        return known


@dataclass(frozen=True, eq=False)
class TableFile:
    """A table that was read, and where its rows stand.

    Args:
        path: The file.
        rows: The rows that fit.
        layout: How the text file is written; None for Parquet.
    """

    path: Path
    rows: Rows
    layout: Layout | None

    def where(self, row: int) -> str:
        """Return the place of a row, counted from 0 among those that fit."""
        if self.layout is None:
            return f"{self.path}: row {row + 1}"
        return f"{self.path}:{line_of_row(self.path, self.layout, row)}"

    def without(self, wrong: BoolArray, problem: str, bad_lines: BadLines) -> TableFile:
        """Return the table without the rows that are wrong.

        Raises:
            MalformedLine: There is one, and such rows are not left out.
        """
        if not wrong.any():
            return self
        if bad_lines == "error":
            where = self.where(int(np.flatnonzero(wrong)[0]))
            raise MalformedLine(problem, where=where, remedy=SKIPPING)
        warn(f"{self.path.name}: {int(wrong.sum()):,} row(s) left out: {problem}")
        kept = Rows(self.rows.table.filter(~wrong), self.rows.bad_lines + int(wrong.sum()))
        return TableFile(self.path, kept, self.layout)


def named_file(path: Path) -> Path:
    """Return the path of a table, which must be there.

    Raises:
        MissingFile: It is not.
    """
    if not has_file(path):
        remedy = "paths are relative to the spec"
        raise MissingFile("no such table", where=str(path), remedy=remedy)
    return path


def read_file(path: Path, wanted: Wanted, *, bad_lines: BadLines = "error") -> TableFile:
    """Return the columns of a table.

    Raises:
        MissingFile: There is no such file.
        MalformedLine: It is not a table, or a row does not fit.
        UnknownColumn: It lacks a column.
    """
    if named_file(path).suffix == ".parquet":
        return _parquet(path, wanted, bad_lines)
    kind = Path(path.name.removesuffix(".gz")).suffix
    if kind not in DELIMITERS:
        remedy = "give a .csv, .tsv, .csv.gz, .tsv.gz or .parquet file"
        raise MalformedLine("is not a kind of table that is read", where=str(path), remedy=remedy)
    bare = Layout(columns={}, delimiter=DELIMITERS[kind], quoted=True)
    columns = wanted.among(header_of(path, bare).names, path)
    layout = Layout(columns=columns, delimiter=DELIMITERS[kind], quoted=True)
    return TableFile(path, read_table(path, layout, bad_lines=bad_lines), layout)


def typed(column: Any) -> AnyArray:
    """Return a column as ``float64`` where every cell is a number or empty, else as text.

    >>> import pyarrow as pa
    >>> typed(pa.chunked_array([["1", "", "2.5"]])).tolist()
    [1.0, nan, 2.5]
    >>> typed(pa.chunked_array([["007", "", "2"]])).tolist()
    ['007', None, '2']
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        return np.asarray(column.to_numpy())
    filled = pc.not_equal(column, "")
    if pc.any(filled).as_py() and pc.all(pc.match_substring_regex(column, NUMBER)).as_py():
        numbers = pc.if_else(filled, column, pa.scalar(None, pa.string())).cast(pa.float64())
        return np.asarray(numbers.to_numpy())
    texts = np.asarray(column.to_numpy(), dtype=object)
    texts[texts == ""] = None
    return texts


def _parquet(path: Path, wanted: Wanted, bad_lines: BadLines) -> TableFile:
    import pyarrow as pa

    columns = wanted.among(read_schema(path).names, path)
    raw = read_parquet(path, list(columns))
    made = {name: _cast(raw[name], kind, f"{path}: {name}") for name, kind in columns.items()}
    table = TableFile(path, Rows(pa.table(made)), None)
    for name, kind in columns.items():
        cells = table.rows.table[name]
        if kind == "id":
            missing = np.asarray(cells.to_numpy(), dtype=object) == ""
            table = table.without(missing, f"{name} is empty", bad_lines)
        elif kind == "float32":
            wrong = ~np.isfinite(cells.to_numpy())
            table = table.without(wrong, f"{name} is not a finite number", bad_lines)
    return table


def _cast(column: Any, kind: Kind, where: str) -> Any:
    """Return a column of a Parquet file as the text reader would give it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = decode_dictionary(column)
    type_ = column.type
    if kind == "float32":
        return to_numbers(column, where).cast(pa.float32(), safe=False)
    if kind == "id" and pa.types.is_floating(type_):
        remedy = "write identifiers as text or as whole numbers"
        raise MalformedLine("identifiers are decimal numbers", where=where, remedy=remedy)
    if kind == "text" and (pa.types.is_floating(type_) or pa.types.is_boolean(type_)):
        return to_numbers(column, where)
    if kind == "text" and pa.types.is_timestamp(type_):
        column = column.cast(pa.timestamp("s", type_.tz), safe=False)
    is_list = pa.types.is_list(type_) or pa.types.is_large_list(type_)
    if is_list and not pa.types.is_nested(type_.value_type):
        column = pc.binary_join(column.cast(pa.list_(pa.string())), SEPARATOR)
    return to_text(column, where)
