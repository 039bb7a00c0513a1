"""Tables that users give: ``.csv``, ``.tsv`` (also ``.gz``), ``.parquet``, ``.xlsx``, ``.jsonl``.

How the columns of a user's own table are read: names, types, missing cells, spelling.

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
from recbias.core.dataset import SEPARATOR, AnyArray, FloatArray
from recbias.core.docstrings import InheritsSections
from recbias.core.errors import Contradiction, MalformedLine, UnknownColumn, WrongType
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
from recbias.formats.identifiers import to_texts
from recbias.formats.json_files import read_records
from recbias.formats.text_files import (
    DELIMITERS,
    JSON_TO_TABLE,
    TAB,
    get_suffix,
    read_first_line,
    refuse_large_zip,
    require_file,
    shorten,
)

_EXCEL, _PARQUET = ".xlsx", ".parquet"

_DELIMITED_SUFFIXES = (*DELIMITERS, ".txt", ".inter", ".json", ".jsonl")
"""The suffixes of tables of which the first line is read, if only for what is wrong with it."""

_TEXT_SUFFIXES = (*DELIMITERS, ".jsonl", _PARQUET)
"""The suffixes of tables of text."""

_NUMBER = r"^(?:[+-]?(?:0|[1-9]\d*)?(?:\.\d+)?(?:[eE][+-]?\d+)?|[nN]a[nN]|NAN)$"
"""A number as a column of numbers holds it, or an empty cell; ``007`` is text."""

_HISTORIES = "item_id_list"
"""The column of RecBole's sequence files with the items before that of the row."""


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """The columns to read from a table; with ``others``, the columns not listed are text.

    ``renamed`` are the new names of columns of the file, None if none can be renamed.
    """

    needed: Mapping[str, Kind]
    optional: Mapping[str, Kind] = field(default_factory=dict)
    others: bool = False
    renamed: Mapping[str, str] | None = None

    def select(self, file_names: Sequence[str], where: str) -> dict[str, tuple[str, Kind]]:
        """Return the name in the file and the kind of each column to read.

        Raises:
            UnknownColumn: A required column is missing.
            Contradiction: Two columns have the same name after renaming.
        """
        sources = rename(file_names, self.renamed or {}, where)
        names = [*sources]
        require_columns(self.needed, names, where, renames=self.renamed is not None)
        if _HISTORIES in names and "user_id" in self.needed:
            message = f"the histories in the column {_HISTORIES!r} would be lost"
            remedy = "write each item of a history in a row of its own: user_id, item_id"
            raise MalformedLine(message, where=where, remedy=remedy)
        kinds = {**self.needed, **{k: v for k, v in self.optional.items() if k in names}}
        if self.others:
            kinds |= {name: "text" for name in names if name not in kinds}
        return {name: (sources[name], kind) for name, kind in kinds.items()}


def rename(names: Sequence[str], columns: Mapping[str, str], where: str) -> dict[str, str]:
    """Return the name in the file of each column, by its new name.

    Raises:
        Contradiction: Two columns have the same name after renaming.
    """
    new_names = [columns.get(name, name) for name in names]
    for name, count in Counter(new_names).items():
        if count > 1:
            message = f"two columns are called {name!r} after renaming"
            raise Contradiction(message, where=where, remedy="correct columns: in the spec")
    return dict(zip(new_names, names, strict=True))


def rename_all(names: Sequence[str], columns: Mapping[str, str], where: str) -> dict[str, str]:
    """Do what ``rename`` does; UnknownColumn if the table lacks a column that is renamed."""
    TableSettings(columns=dict(columns)).refuse_unknown_columns(names)
    return rename(names, columns, where)


def read_file(
    path: Path, columns: TableColumns, *, bad_lines: BadLines = "error", encoded: bool = False
) -> Table:
    """Return the columns of a table; ``encoded`` is that of ``read_table``.

    Raises:
        MissingFile: The file does not exist.
        MalformedLine: The file is not a table, or a row is invalid.
        UnknownColumn: A required column is missing.
    """
    suffix = get_suffix(require_file(path))
    if suffix in {_PARQUET, _EXCEL}:
        return _read_typed(path, columns, bad_lines)
    if suffix not in _DELIMITED_SUFFIXES:
        remedy = "give a .csv, .tsv, .csv.gz, .tsv.gz, .parquet or .xlsx file"
        message = "is not a kind of table that is supported"
        raise MalformedLine(message, where=str(path), remedy=remedy)
    header = read_table_header(path)
    selected = columns.select([*header.columns], header.where)
    return read_columns(path, header, selected, bad_lines=bad_lines, encoded=encoded)


def list_file_columns(path: Path) -> list[str]:
    """Return the names of the columns of a table, without the types of RecBole."""
    suffix = get_suffix(require_file(path))
    if suffix == _PARQUET:
        return list(read_schema(path).names)
    if suffix == _EXCEL:
        return list(_read_sheet(path).column_names)
    return [*read_table_header(path, announce=False).columns]


_SEPARATORS = {TAB: "tabs", ",": "commas", ";": "semicolons", "|": "vertical bars"}

_TYPED = re.compile(r"\s*([^:]+):(?:token|float)(?:_seq)?\s*")
"""A column in the header of a RecBole file: ``user_id:token``."""


class _TableHeader(NamedTuple):
    """The columns of a table as the file writes them, by name; where their line is."""

    columns: dict[str, str]
    delimiter: str
    where: str


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
        remedy = f"separate them by {_SEPARATORS[usual or TAB]}"
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


def read_columns(
    path: Path,
    header: _TableHeader,
    selected: Mapping[str, tuple[str, Kind]],
    *,
    bad_lines: BadLines = "error",
    encoded: bool = False,
) -> Table:
    """Return columns of a delimited table: of each its name in the header, and its kind."""
    in_file: dict[str, Kind] = {header.columns[name]: kind for name, kind in selected.values()}
    layout = Layout(columns=in_file, delimiter=header.delimiter, quoted=True)
    table = read_table(path, layout, bad_lines=bad_lines, encoded=encoded)
    return replace(table, cells=table.cells.rename_columns([*selected]), header=header.where)


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
    if pc.any(filled).as_py() and pc.all(pc.match_substring_regex(column, _NUMBER)).as_py():
        numbers = pc.if_else(filled, column, pa.scalar(None, pa.string())).cast(pa.float64())
        return np.asarray(numbers.to_numpy())
    return to_texts(column)


def _read_typed(path: Path, columns: TableColumns, bad_lines: BadLines) -> Table:
    """Return columns of a Parquet or Excel file as the reader of text files would return them."""
    if get_suffix(path) == _EXCEL:
        raw = _read_sheet(path)
        selected = columns.select(raw.column_names, str(path))
    else:
        selected = columns.select(list(read_schema(path).names), str(path))
        raw = read_parquet(path, [source for source, _ in selected.values()])
    cells = {
        name: _cast(raw[source], kind, f"{path}: {source}")
        for name, (source, kind) in selected.items()
    }
    table = Table(path, pa.table(cells), partial(locate_row, path))
    for name, (_, kind) in selected.items():
        if kind == "id":
            is_empty = np.asarray(pc.equal(table[name], "").to_numpy())
            table = table.without(is_empty, f"{name} is empty", bad_lines)
        elif kind == "float32":
            problem = f"{name} is not a finite number"
            table = table.without(~np.isfinite(table.numbers(name)), problem, bad_lines)
    return table


def _cast(column: Any, kind: Kind, location: str) -> Any:
    """Return a Parquet column as the reader of text files would return it."""
    column = decode_dictionary(column)
    arrow_type = column.type
    is_number = pa.types.is_floating(arrow_type) or pa.types.is_boolean(arrow_type)
    if kind in {"float32", "float64"} or (kind == "text" and is_number):
        numbers = cast_column(column, "numbers", location)
        return numbers.cast(pa.float32(), safe=False) if kind == "float32" else numbers
    if kind == "id" and pa.types.is_floating(arrow_type):
        remedy = "write identifiers as text or as whole numbers"
        raise MalformedLine("identifiers are decimal numbers", where=location, remedy=remedy)
    if kind == "text" and pa.types.is_timestamp(arrow_type):
        column = column.cast(pa.timestamp("s", arrow_type.tz), safe=False)
    is_list = pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type)
    if is_list and not pa.types.is_nested(arrow_type.value_type):
        column = pc.binary_join(column.cast(pa.list_(pa.string())), SEPARATOR)
    return cast_column(column, "text", location)


def find_suffix(path: Path) -> str:
    """Return ``.csv``, ``.tsv``, ``.jsonl`` or ``.parquet``, by the name of a file.

    >>> find_suffix(Path("mine.csv.gz"))
    '.csv'

    Raises:
        WrongType: The file has another suffix.
    """
    suffix = get_suffix(path)
    if suffix not in _TEXT_SUFFIXES:
        remedy = f"name it {', '.join(_TEXT_SUFFIXES)} or .csv.gz"
        raise WrongType(f"{path.name} is no table of text", where="path", remedy=remedy)
    return suffix


def read_text_table(path: Path, columns: Mapping[str, str] | None = None) -> Table:
    """Return the table in a file, all of it as text, with new names of its ``columns``.

    Raises:
        MissingFile: The file does not exist.
        WrongType: Its suffix is not supported.
        UnknownColumn: It lacks a column that ``columns`` renames.
        Contradiction: Two columns have the same name after renaming.
        MalformedLine: A line does not fit, or the file has no rows.
    """
    suffix = find_suffix(path)
    require_file(path)
    if suffix == _PARQUET:
        raw = read_parquet(path)
        table = _format_table(path, dict(zip(raw.column_names, raw.columns, strict=True)))
    elif suffix == ".jsonl":
        lines = [*read_records(path)]
        names = dict.fromkeys(name for _, record in lines for name in record)
        cells = {name: [record.pop(name, None) for _, record in lines] for name in names}
        numbers = [number for number, _ in lines]
        table = _format_table(path, cells, lambda row: f"{path}:{numbers[row]}")
    else:
        header = read_table_header(path)
        table = read_columns(path, header, {name: (name, "text") for name in header.columns})
    if not len(table):
        remedy = "add a row below the names of the columns"
        raise MalformedLine("the file has no rows", where=str(path), remedy=remedy)
    sources = rename_all(table.columns, columns or {}, table.header or str(path))
    return replace(table, cells=table.cells.rename_columns([*sources]))


def _format_table(
    path: Path, columns: Mapping[str, Any], place: Callable[[int], str] | None = None
) -> Table:
    """Return JSON or Parquet values as the text that CSV cells would hold."""
    place = place or partial(locate_row, path)
    texts = {}
    for name, column in columns.items():
        if not isinstance(column, list) and not pa.types.is_nested(column.type):
            texts[name] = cast_column(column, "text", f"{path}: {name}")
            continue
        values = column if isinstance(column, list) else column.to_pylist()
        cells = [_format_cell(value) for value in values]
        if None in cells:
            message = f"the {name} is neither text nor a number"
            raise MalformedLine(message, where=place(cells.index(None)))
        texts[name] = pa.array(cells, pa.string())
    return Table(path, pa.table(texts), place)


def _format_cell(cell: Any) -> str | None:
    """Return a value as text, None if it has none."""
    if cell is None:
        return ""
    if isinstance(cell, (str, int, float)):
        return str(cell)
    if isinstance(cell, list) and all(isinstance(number, (int, float)) for number in cell):
        return " ".join(map(str, cell))
    if isinstance(cell, list) and all(isinstance(text, str) for text in cell):
        return "\n".join(" ".join(text.splitlines()) for text in cell)
    return None


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


def locate_row(path: Path, row: int) -> str:
    """Return ``file: row n`` of a row, counted from 0.

    >>> locate_row(Path("a.parquet"), 4)
    'a.parquet: row 5'
    """
    return f"{path}: row {row + 1:,}"


def decode_dictionary(column: Any) -> Any:
    """Return a dictionary-encoded column as its values; any other column as it is."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def cast_column(column: Any, content: Literal["text", "numbers"], where: str) -> Any:
    """Return a column as text, "" for null, or as ``float64``, NaN for null.

    Raises:
        MalformedLine: The type of the column cannot be converted.
    """
    column, is_text = decode_dictionary(column), content == "text"
    arrow_type, empty = (pa.string(), "") if is_text else (pa.float64(), np.nan)
    try:
        return pc.fill_null(column.cast(arrow_type, safe=is_text), empty)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        message = f"is a column of {column.type}, not of {content}"
        remedy = f"write it as {content}" + " or as whole numbers" * is_text
        raise MalformedLine(message, where=where, remedy=remedy) from error


def _read_sheet(path: Path) -> Any:
    """Return the text of the first sheet, null for an empty cell; its first row has the names."""
    require_packages(f"{path.name}, an Excel file,", "python-calamine", where=str(path))
    from python_calamine import CalamineError

    options: Any = {"engine": "calamine", "header": None, "na_filter": False, "dtype": object}
    with open_input(path) as stream:
        try:
            refuse_large_zip(stream, path)
            frame = pd.read_excel(path, **options)
        except (CalamineError, BadZipFile, ValueError, OverflowError) as error:
            remedy = "download or save it again, or save it as CSV"
            message = f"is no Excel file: {error}"
            raise MalformedLine(message, where=str(path), remedy=remedy) from error
    if frame.empty:
        raise MalformedLine("the first sheet is empty", where=str(path))
    names = [_format_excel_cell(cell) or "" for cell in frame.iloc[0]]
    refuse_same_names(names, str(path))
    columns = [[_format_excel_cell(cell) for cell in frame[at].tolist()[1:]] for at in frame]
    arrays = [pa.array(cells, pa.string()) for cells in columns]
    return pa.table(dict(zip(names, arrays, strict=True)))


def _format_excel_cell(cell: Any) -> str | None:
    if cell is None or cell == "":
        return None
    is_whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell)) if is_whole else str(cell)


_ColumnType: TypeAlias = Literal["number", "yes_no", "text"]
"""The type that a column is read as."""

_ANSWERS = {
    **dict.fromkeys(("yes", "y", "true", "t", "1"), 1.0),
    **dict.fromkeys(("no", "n", "false", "f", "0"), 0.0),
}
"""The number of each answer in a column of the type ``yes_no``, without regard to case."""

_SYMBOLS = r"[\s$€£¥₹]|(?<=\d),(?=\d{3}(?:\D|$))"
"""Matches what ``number`` removes: spaces, signs of currencies, commas between thousands."""

_MAX_SHOWN = 5
"""The number of spellings that a warning names."""

_NO_VALUES = ("nan", "<na>", "nat", "n/a", "#n/a")
"""How other programs write a missing cell as text, in lower case."""

_NULLS = ("null", "NULL")
"""The same in these cases only: Null is a name."""

_MAX_LABELS = 20
"""A column with more different values is a label if its values occur twice on average."""


@dataclass(frozen=True, kw_only=True)
class Clean:
    """How the text of a table is changed.

    Args:
        trim: Whether white space at the ends of values is removed.
        case: ``lower`` or ``upper`` for all text; ``most_common`` writes values that differ by
            case only as the most frequent one of them; ``keep`` changes nothing.
    """

    trim: bool = False
    case: Literal["keep", "lower", "upper", "most_common"] = "keep"


@dataclass(frozen=True, kw_only=True)
class TableSettings(InheritsSections):
    """The settings of tables.

    Args:
        columns: New names of columns, by their names in the files: ``{customer: user_id}``.
        types: The types of columns, by their new names: ``number`` also reads ``$5`` and
            ``1,000``, ``yes_no`` reads yes, no, true, false, y, n, t, f, 1 and 0 as 1 and 0,
            ``text`` keeps numbers as text. Columns that are not named are numeric if every cell
            is a number.
        missing: Values that mean that a cell has no value, as in ``[N/A, unknown, null]``, without
            regard to case and white space at the ends. Empty cells are always missing.
        clean: How text is changed, as in ``{trim: true, case: lower}``. Values that differ by
            white space or case only are warned about.
        separator: The text between several values of a cell, by column: ``{genres: ","}``; white
            space around the values is removed. ``|`` for columns that are not named.
    """

    columns: dict[str, str] = field(default_factory=dict, hash=False)
    types: dict[str, _ColumnType] = field(default_factory=dict, hash=False)
    missing: tuple[str | int | float | None, ...] = ()
    clean: Clean = Clean()
    separator: dict[str, str] = field(default_factory=dict, hash=False)

    def refuse_unknown_columns(self, names: Iterable[str]) -> None:
        """Raise UnknownColumn if a setting names a column that no table has.

        Args:
            names: The columns of the tables, as in the files.
        """
        names = list(names)
        renamed = [self.columns.get(name, name) for name in names]
        for setting, named, known in (
            ("columns", self.columns, names),
            ("types", self.types, renamed),
            ("separator", self.separator, renamed),
        ):
            for name in named:
                if name not in known:
                    message = f"no table has a column {name!r}"
                    raise UnknownColumn(message, where=setting, remedy=suggest(name, known))

    def read_columns(self, table: Table) -> dict[str, AnyArray]:
        """Return the columns of a table without its identifiers, the first column.

        Raises:
            MalformedLine: A cell does not have the type of its column.
        """
        _, *names = table.columns
        return {name: self._read_column(table, name) for name in names}

    def _read_column(self, table: Table, name: str) -> AnyArray:
        column, kind = table[name], self.types.get(name)
        if pa.types.is_floating(column.type):
            return self._read_numbers(np.asarray(column.to_numpy()), kind)
        separator = self.separator.get(name)
        if separator:
            pattern = rf"\s*{re.escape(separator.strip() or separator)}\s*"
            column = pc.replace_substring_regex(column, pattern, SEPARATOR)
        codes, cells = pd.factorize(np.asarray(column.to_numpy(), dtype=object))
        counts = np.bincount(codes, minlength=cells.size)
        is_changed = self.missing or self.clean != Clean()
        cleaned = self._clean(pd.Series(cells, dtype=object), counts) if is_changed else cells
        if kind in {"number", "yes_no"}:
            numbers, is_wrong = _parse_numbers(cleaned, kind)
            expected, n_wrong = kind.replace("_", " or "), np.count_nonzero(is_wrong[codes])
            table.refuse(
                is_wrong[codes],
                lambda row: f"{name} is {cells[codes[row]]!r}, not {expected}: {n_wrong:,} such",
                "correct the table, or name such cells in missing: [...]",
            )
            return numbers[codes]
        values = cleaned[codes]
        if kind != "text":
            values = infer_column(pa.chunked_array([pa.array(values, pa.string())]))
        if values.dtype == object:
            values[values == ""] = None
            _warn_of_labels(f"{table.path.name}: {name}", cleaned, counts, separator)
        return values

    def _read_numbers(self, numbers: FloatArray, kind: str | None) -> AnyArray:
        """Return a column of numbers of a Parquet file without the missing ones."""
        missing = [float(value) for value in self.missing if isinstance(value, int | float)]
        numbers = np.where(np.isin(numbers, missing), np.nan, numbers)
        if kind != "text":
            return numbers
        shown = pd.Series(numbers).map(lambda x: np.format_float_positional(x, trim="-"), "ignore")
        return shown.astype(object).where(shown.notna(), None).to_numpy(dtype=object)

    def _clean(self, cells: pd.Series[Any], counts: AnyArray) -> AnyArray:
        """Return the changed text of each different cell, "" where it is missing."""
        values = _split_cells(cells)
        texts = ("null" if value is None else str(value) for value in self.missing)
        missing = {text.strip().casefold() for text in texts}
        values = values[~values.str.strip().str.casefold().isin(missing)]
        if self.clean.trim:
            values = values.str.strip()
        values = _change_case(values, self.clean.case, counts)
        joined = values.groupby(level=0, sort=False).agg(SEPARATOR.join)
        return joined.reindex(range(cells.size), fill_value="").to_numpy(dtype=object)


def _split_cells(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return the values of each cell, indexed by the position of the cell."""
    values: pd.Series[Any] = cells.str.split(SEPARATOR, regex=False).explode().astype(object)
    return values


def _change_case(values: pd.Series[Any], case: str, counts: AnyArray) -> pd.Series[Any]:
    if case in {"lower", "upper"}:
        changed: pd.Series[Any] = getattr(values.str, case)()
        return changed
    if case == "keep" or values.empty:
        return values
    frame = _count_spellings(values, counts)
    best = frame.sort_values(["n", "value"], ascending=[False, True]).drop_duplicates("folded")
    spelling = best.set_index("folded")["value"]
    return values.str.casefold().map(spelling)


def _count_spellings(values: pd.Series[Any], counts: AnyArray) -> pd.DataFrame:
    """Return how often each value occurs, and what it is without regard to case."""
    occurrences = pd.Series(counts[values.index.to_numpy()], index=values.to_numpy())
    totals = occurrences.groupby(level=0).sum()
    spellings = totals.index.to_series().astype(str)
    return pd.DataFrame(
        {"value": spellings, "n": totals, "folded": spellings.str.casefold()}
    ).reset_index(drop=True)


def _warn_of_labels(
    column: str, cells: AnyArray, counts: AnyArray, separator: str | None = None
) -> None:
    """Warn of labels that are no value, several values, or one value in several spellings."""
    values = _split_cells(pd.Series(cells, dtype=object))
    frame = _count_spellings(values[values.str.strip() != ""], counts)
    frame["key"] = frame["folded"].str.strip()
    name = column.rpartition(": ")[2]
    is_none = frame["key"].isin(_NO_VALUES) | frame["value"].str.strip().isin(_NULLS)
    for value in frame["value"][is_none]:
        warn(f"{column} has the text {value!r} as a value; missing: [{value}] reads it as none")
    for mark in "" if separator else ",;":
        if joined := _find_joined(frame, mark, name):
            remedy = f'separator: {{{name}: "{mark}"}} reads several values from such a cell'
            warn(f"{column} may hold several values in a cell, as in {shorten(joined)}; {remedy}")
    n_labels = frame["key"].nunique()
    if n_labels > max(_MAX_LABELS, frame["n"].sum() / 2):
        return
    has_space = frame["value"] != frame["value"].str.strip()
    is_repeated = frame["key"].duplicated(keep=False)
    unlike = frame[has_space | is_repeated].sort_values(["key", "value"])
    if unlike.empty:
        return
    pairs = zip(unlike["value"], unlike["n"], strict=True)
    shown = ", ".join(f"{shorten(value)} ({n:,})" for value, n in [*pairs][: 2 * _MAX_SHOWN])
    more = ", ..." if len(unlike) > 2 * _MAX_SHOWN else ""
    problem = "values that differ only by case or white space, or have white space at their ends"
    remedy = "clean: {trim: true, case: most_common} changes that"
    warn(f"{column} has {problem}: {shown}{more}; {remedy}")


_LISTS = re.compile(r"(?i)genre|categor|tag|topic|keyword|lang|actor|cast|director|author")
"""Names of columns that often hold several values."""


def _find_joined(frame: pd.DataFrame, mark: str, column: str) -> str:
    """Return a value whose parts between marks are labels; "" if the column has none."""
    values = frame["key"][~frame["key"].str.contains(r"\d")]
    is_joined = values.str.contains(mark, regex=False)
    if not is_joined.any():
        return ""
    parts = values.str.split(mark).explode().str.strip()
    places = (1 + parts.groupby(level=0).cumcount()).where(is_joined[parts.index], 0)
    n_places = places.groupby(parts.to_numpy()).nunique()[parts[places > 0]]
    is_label = _LISTS.search(column) and len(frame) <= min(_MAX_LABELS, frame["n"].sum() / 2)
    least = 0.5 if len(frame) > _MAX_LABELS else 1e-9
    is_joined &= bool(is_label) or (n_places > 1).mean() >= least
    return str(frame["value"][values[is_joined].index].iloc[0]) if is_joined.any() else ""


def _parse_numbers(cells: AnyArray, kind: str) -> tuple[AnyArray, AnyArray]:
    """Return the number of each cell, NaN if it is empty, and which cells are none."""
    texts = pd.Series(cells, dtype=object).str.strip()
    if kind == "yes_no":
        numbers = texts.str.casefold().map(_ANSWERS).to_numpy(dtype=np.float64)
    else:
        plain = texts.str.replace(_SYMBOLS, "", regex=True)
        numbers = pd.to_numeric(plain, errors="coerce").to_numpy(dtype=np.float64)
    return np.asarray(numbers), np.isnan(numbers) & (texts != "").to_numpy()
