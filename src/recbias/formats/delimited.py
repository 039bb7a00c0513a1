"""Delimited text as Arrow tables: each block parsed by Arrow, or row by row if it has a fault."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from recbias.core.context import report_progress, warn
from recbias.core.dataset import AnyArray, BoolArray, FloatArray, Ids
from recbias.core.errors import MalformedLine, UnknownColumn, UserError
from recbias.core.text import find_nearest, suggest
from recbias.formats.identifiers import find_repeat, to_texts
from recbias.formats.text_files import (
    BOM,
    SAVE_AS_UTF_8,
    TAB,
    decode,
    is_number,
    open_binary,
    shorten,
    split_line,
)

Kind: TypeAlias = Literal["int32", "int64", "float32", "float64", "id", "text", "any"]
"""What a column holds: whole numbers, ratings (``float32``, finite), numbers that may be missing
(``float64``), identifiers (text that is never empty), text, or text where the file has no types
(``any``)."""

BadLines: TypeAlias = Literal["error", "skip"]
"""What to do with a malformed line: report it and stop, or skip and count it."""

SKIP_HINT = "correct the line, or for the rows of a dataset: --set dataset.bad_lines=skip"
"""The remedy for a malformed line."""

BLOCK_SIZE = 8 * 2**20
"""Bytes of a block, to which the rest of its last line is added."""

_MIN_THREADED_SIZE = 2**20
"""Smaller blocks are parsed in one thread: a process that ends right after an error may abort
while threads of Arrow still start."""

_TYPES: Mapping[str, Any] = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "text": pa.string(),
    "any": pa.string(),
}
_CODES = pa.dictionary(pa.int32(), pa.string())
_NUMBERS: Mapping[str, tuple[Callable[[str], float], float, str]] = {
    "int32": (int, 2**31 - 1, "a whole number below 2^31"),
    "int64": (int, 2**63 - 1, "a whole number below 2^63"),
    "float32": (float, float(np.finfo(np.float32).max), "a finite number"),
    "float64": (float, np.inf, "a number"),
}
"""How a number is read, the largest one, and what it is called."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The format of a delimited text file.

    Args:
        columns: The columns to read and what they hold; all columns, in order, if the file has no
            header.
        delimiter: The text between cells; ``::`` as in MovieLens is supported. "" for any number
            of spaces and tabs.
        header: Whether the first line names the columns.
        quoted: Whether a cell may be in double quotes, with delimiters and line ends inside.
            Between tabs, a quote that is not closed in its cell is a character of it.
        escaped: Whether a backslash in a quoted cell stands before a quote that belongs to it.
        encoding: The encoding of the text.
    """

    columns: Mapping[str, Kind]
    delimiter: str = ","
    header: bool = True
    quoted: bool = False
    escaped: bool = False
    encoding: str = "utf-8"

    @property
    def separator(self) -> str:
        """The delimiter as one character, which stands for it while lines are parsed."""
        return {"::": "\x1f", "": " "}.get(self.delimiter, self.delimiter)


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of a file as a ``pyarrow.Table``, in which an empty text is ``""``.

    Args:
        path: The file.
        cells: The rows.
        place: Returns the place of a row, counted from 0: ``file:line``, or ``file: row n``.
        header: Where the columns are named, ``file:line``; blank where no line names them.
        bad_lines: The number of rows that were skipped.
    """

    path: Path
    cells: Any
    place: Callable[[int], str]
    header: str = ""
    bad_lines: int = 0

    def __len__(self) -> int:
        return int(self.cells.num_rows)

    def __getitem__(self, name: str) -> Any:
        return self.cells[name]

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [*self.cells.column_names]

    def need(self, *names: str) -> None:
        """Raise UnknownColumn if one of the columns is missing."""
        require_columns(names, self.columns, self.header or str(self.path))

    def texts(self, name: str) -> Ids:
        """Return a column of text as written, ``object[n]``."""
        return np.array(self.cells[name].to_pylist(), dtype=object)

    def optional(self, name: str) -> Ids:
        """Return a column of text, None where the cell is empty or the column is missing."""
        if name not in self.columns:
            return np.full(len(self), None, dtype=object)
        return to_texts(self.cells[name])

    def ids(self, name: str) -> Ids:
        """Return a column of identifiers; raises MalformedLine if one is empty."""
        texts = self.texts(name)
        self.refuse(texts == "", f"{name} is empty", "fill it in")
        return texts

    def numbers(self, name: str) -> AnyArray:
        """Return a column of numbers; a missing one is NaN, and text is read as numbers."""
        column = self.cells[name]
        if pa.types.is_string(column.type):
            return parse_numbers(column, name, self.place)
        return np.asarray(column.to_numpy())

    def labels(self, used: Sequence[str]) -> pd.DataFrame:
        """Return all columns but ``used`` as text, None where a cell is empty."""
        cells = {name: self.optional(name) for name in self.columns if name not in used}
        return pd.DataFrame(cells, index=range(len(self)), dtype=object)

    def refuse(
        self, is_wrong: AnyArray, problem: str | Callable[[int], str], remedy: str = ""
    ) -> None:
        """Raise MalformedLine with the first wrong row, if there is one."""
        if (rows := np.flatnonzero(is_wrong)).size:
            row = int(rows[0])
            message = problem if isinstance(problem, str) else problem(row)
            raise MalformedLine(message, where=self.place(row), remedy=remedy)

    def refuse_repeats(self, keys: AnyArray, what: Callable[[int], str]) -> None:
        """Raise MalformedLine, with the message ``what(row)``, if a row repeats a key."""
        first, repeat = find_repeat(keys)
        if repeat >= 0:
            remedy = f"keep one of the rows; the other is at {self.place(first)}"
            raise MalformedLine(what(repeat), where=self.place(repeat), remedy=remedy)

    def without(self, is_wrong: BoolArray, problem: str, bad_lines: BadLines) -> Table:
        """Return the table without its invalid rows, ``bool[n]``.

        Raises:
            MalformedLine: There is an invalid row, and such rows are not skipped.
        """
        if bad_lines == "error":
            self.refuse(is_wrong, problem, SKIP_HINT)
        if not is_wrong.any():
            return self
        n_wrong = int(np.count_nonzero(is_wrong))
        warn(f"{self.path.name}: {n_wrong:,} row(s) skipped: {problem}")
        return replace(self.take(~is_wrong), bad_lines=self.bad_lines + n_wrong)

    def take(self, is_kept: BoolArray) -> Table:
        """Return some of the rows, by a mask."""
        rows = np.flatnonzero(is_kept)
        cells = self.cells.take(rows)
        return replace(self, cells=cells, place=lambda row: self.place(int(rows[row])))


def parse_numbers(column: Any, name: str, place: Callable[[int], str]) -> FloatArray:
    """Return Arrow text as ``float64``; white space around a number is ignored, blank is NaN.

    Raises:
        MalformedLine: A cell of the column ``name`` is not a number; ``place`` returns the place
            of a row, counted from 0.
    """
    texts = pc.utf8_trim_whitespace(column)
    texts = pc.if_else(pc.equal(texts, ""), "nan", texts)
    try:
        return np.asarray(texts.cast(pa.float64()), dtype=np.float64)
    except pa.ArrowInvalid as error:
        cells = texts.to_pylist()
        row = next((row for row, cell in enumerate(cells) if not is_number(cell)), 0)
        message = f"the {name} {shorten(cells[row])} is not a number"
        raise MalformedLine(message, where=place(row)) from error


def read_table(
    path: Path,
    layout: Layout,
    *,
    bad_lines: BadLines = "error",
    keep: Callable[[Any], Any] | None = None,
    encoded: bool = False,
) -> Table:
    """Return the rows of a text file.

    Args:
        path: The file.
        layout: Its format.
        bad_lines: What to do with malformed lines.
        keep: Returns the rows to keep of the table of a block; all by default.
        encoded: Whether identifiers are dictionary-encoded columns, which hold the text of an
            identifier once a block.

    Raises:
        MalformedLine: A line does not fit the layout, unless ``bad_lines`` is ``"skip"``.
        UnknownColumn: The header lacks a column.
        MissingFile: The file does not exist or cannot be read.
    """
    tables = read_blocks_of_table(path, layout, bad_lines=bad_lines, encoded=encoded)
    return collect_rows(path, tables, keep, partial(place_row, path, layout))


def read_blocks_of_table(
    path: Path, layout: Layout, *, bad_lines: BadLines = "error", encoded: bool = False
) -> Iterator[tuple[Any, int]]:
    """Yield the table of each block of a text file, and the number of its lines skipped."""
    types = {**_TYPES, "id": _CODES if encoded else pa.string()}
    schema = pa.schema([(name, types[kind]) for name, kind in layout.columns.items()])
    names, size, _ = read_header(path, layout)
    yield schema.empty_table(), 0
    for block in read_blocks(path, skip=size, quoted=layout.quoted):
        if (table := _parse(block.data, layout, names, schema)) is not None:
            yield table.unify_dictionaries(), 0
        else:
            yield _read_rows(block, layout, names, schema, bad_lines)


def collect_rows(
    path: Path,
    tables: Iterable[tuple[Any, int]],
    keep: Callable[[Any], Any] | None,
    place: Callable[[int], str],
) -> Table:
    """Return the rows of the blocks of a file, with a warning if lines were skipped.

    Args:
        path: The file.
        tables: The table of each block and the number of its lines skipped.
        keep: Returns the rows to keep of a table; all by default.
        place: Returns the place of a row.
    """
    retained, n_skipped = [], 0
    for table, n_bad in tables:
        retained.append(keep(table) if keep else table)
        n_skipped += n_bad
    if n_skipped:
        warn(f"{path.name}: {n_skipped:,} malformed line(s) skipped")
    return Table(path, pa.concat_tables(retained), place, bad_lines=n_skipped)


class Header(NamedTuple):
    """All columns of a text file, in order, the bytes up to the first row, and the line."""

    names: list[str]
    size: int = 0
    line: int = 1


def read_header(path: Path, layout: Layout) -> Header:
    """Return the columns of a file, which must include those of the layout.

    Raises:
        UnknownColumn: A column is missing.
        MalformedLine: The file is empty, or a column of the layout is there twice.
    """
    if not layout.header:
        return Header(list(layout.columns))
    with open_binary(path) as stream:
        line, data = 1, stream.readline().removeprefix(BOM)
        while data and not data.strip():
            line, data = line + 1, stream.readline()
        while layout.quoted and data.count(b'"') % 2 and (more := stream.readline()):
            data += more
        size = stream.tell()
    where = f"{path}:{line}"
    text = decode(data, path, line).rstrip("\r\n")
    if "\r" in text and not text.count('"'):
        message, remedy = "its lines end in CR only", "save it with the line ends LF or CR LF"
        raise MalformedLine(message, where=where, remedy=remedy)
    text = text.replace(layout.delimiter or " ", layout.separator)
    names = split_line(text, layout.separator, where) if text.strip() else []
    if not names:
        message, remedy = "the file is empty: there is no header", "name the columns in line 1"
        raise MalformedLine(message, where=f"{path}:1", remedy=remedy)
    require_columns([*layout.columns], names, where)
    refuse_same_names([name for name in names if name in layout.columns], where)
    return Header(names, size, line)


def require_columns(
    needed: Collection[str], names: Sequence[str], where: str, *, renames: bool = False
) -> None:
    """Raise UnknownColumn if a file with some ``names`` lacks a column.

    ``renames`` says whether a setting ``columns`` renames others.
    """
    if missing := [name for name in needed if name not in names]:
        error = make_unknown(missing, names, where, needed if renames else None)
        raise explain_header(error, names, needed)


def make_unknown(
    missing: Sequence[str], names: Sequence[str], where: str, used: Collection[str] | None
) -> UnknownColumn:
    """Return the error of missing columns, and how those not ``used`` are renamed, if they can."""
    remedy = "; ".join(dict.fromkeys(suggest(name, names) for name in missing))
    unused, renamed = [name for name in names if name not in (used or ())], dict[str, str]()
    for name in missing if used is not None else ():
        others = find_nearest(name, names) or unused
        renamed |= dict.fromkeys([x for x in others if x not in renamed][:1], name)
    if renamed:
        shown = (f"{x if x == x.strip() else repr(x)}: {name}" for x, name in renamed.items())
        remedy += f"; another column is renamed by columns: {{{', '.join(shown)}}}"
    message = f"there is no column {' and no column '.join(map(repr, missing))}"
    return UnknownColumn(message, where=where, remedy=remedy)


def refuse_same_names(names: Sequence[str], where: str) -> None:
    """Raise MalformedLine if two columns have one name."""
    for name, count in Counter(names).items():
        if count > 1:
            message = f"two columns are called {name[:80]!r}"
            error = MalformedLine(message, where=where, remedy="give each column its own name")
            raise explain_header(error, names)


def explain_header(
    error: UserError,
    names: Sequence[str],
    needed: Collection[str] = (),
    example: str = "user_id,item_id,rating",
) -> UserError:
    """Return the error of a column; with no ``needed`` or similar name, a row may be the first."""
    if not {*needed}.isdisjoint(names) or "did you mean" in error.remedy:
        return error
    remedy = f"write the names of the columns in a line above it, as in {example}"
    if any(map(is_number, names)):
        message = f"the first line does not name the columns: {shorten(','.join(names))}"
        return MalformedLine(message, where=error.where, remedy=remedy)
    remedy = f"{error.remedy}; if this is a row, {remedy}"
    return type(error)(error.message, where=error.where, remedy=remedy)


class Block(NamedTuple):
    """Whole lines of a file, behind ``start`` bytes, and the stream that has the next ones."""

    path: Path
    start: int
    data: bytes
    stream: IO[bytes]

    def locate(self, line: int) -> str:
        """Return ``file:line`` of a line, counted from 0; the file is read again up to it."""
        left, number = self.start, 1 + line
        with open_binary(self.path) as stream:
            while left and (data := stream.read(min(left, BLOCK_SIZE))):
                left, number = left - len(data), number + data.count(b"\n")
        return f"{self.path}:{number}"


def read_blocks(path: Path, *, skip: int = 0, quoted: bool = False) -> Iterator[Block]:
    """Yield the lines of a file in blocks, and report progress.

    Args:
        path: The file.
        skip: Bytes at the start, a header line, that are left out.
        quoted: Whether no block ends inside double quotes.
    """
    total = path.stat().st_size
    with open_binary(path) as stream:
        start = len(stream.read(skip))
        packed = getattr(stream.raw, "packed", stream)
        while data := stream.read(BLOCK_SIZE):
            lines = [data] if data.endswith(b"\n") else [data, stream.readline()]
            is_open = quoted and data.count(b'"') + lines[-1].count(b'"') * (len(lines) - 1)
            while is_open % 2 and (line := stream.readline()):
                lines.append(line)
                is_open += line.count(b'"')
            data = b"".join(lines)
            yield Block(path, start, data if start else data.removeprefix(BOM), stream)
            start = stream.tell()
            report_progress(f"read {path.name}", packed.tell(), total)


_BLANKS, _BLANK_ENDS = re.compile(rb" +"), re.compile(rb" *(\r?\n) *")
_ESCAPED = re.compile(rb'(?<!\\)\\"')
_NOT_UTF_8 = "is not UTF-8"


def _normalize(data: bytes, layout: Layout) -> bytes:
    """Return lines as UTF-8 with a delimiter of one byte, and quotes in cells written twice."""
    if layout.encoding != "utf-8":
        data = data.decode(layout.encoding).encode()
    if layout.escaped:
        data = _ESCAPED.sub(b'""', data)
    if len(layout.delimiter) == 2:
        return data.replace(layout.delimiter.encode(), layout.separator.encode())
    if layout.delimiter:
        return data
    data = data.replace(b"\t", b" ")
    is_white = np.frombuffer(data, dtype=np.uint8) <= ord(" ")
    if (is_white[1:] & is_white[:-1]).any():  # several blanks, or some at the end of a line
        data = _BLANK_ENDS.sub(rb"\1", _BLANKS.sub(b" ", data))
    return data.strip(b" ")


def _has_regular_quotes(data: bytes, delimiter: str) -> bool:
    r"""Return whether quotes are only at both ends of cells, or twice inside them.

    >>> _has_regular_quotes(b'1,"a ""b"" c"', ","), _has_regular_quotes(b'1,5" nail\n', ",")
    (True, False)
    """
    if b'"' not in data:
        return True
    letters = np.frombuffer(data, dtype=np.uint8)
    ends = np.frombuffer(f'{delimiter}"\r\n'.encode(), dtype=np.uint8)
    quotes = np.flatnonzero(letters == ord('"'))
    opening, closing = quotes[::2], quotes[1::2]
    before = letters[opening[opening > 0] - 1]
    after = letters[closing[closing < letters.size - 1] + 1]
    is_regular = np.isin(before, ends).all() and np.isin(after, ends).all()
    return bool(is_regular and quotes.size % 2 == 0)


# ---- blocks without a fault ----


def _parse(data: bytes, layout: Layout, names: list[str], schema: Any) -> Any:
    """Return the table that Arrow reads; None if a line or a value may be at fault."""
    data = _normalize(data, layout)
    if layout.quoted and not _has_regular_quotes(data, layout.separator):
        return None
    has_quotes = layout.quoted and b'"' in data  # without any, Arrow splits lines faster
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(use_threads=len(data) > _MIN_THREADED_SIZE, column_names=names),
            arrow_csv.ParseOptions(
                delimiter=layout.separator,
                quote_char='"' if has_quotes else False,
                newlines_in_values=has_quotes,
            ),
            arrow_csv.ConvertOptions(
                column_types=schema,
                include_columns=schema.names,
                null_values=[""],
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid:
        return None
    return None if _has_missing_values(table, layout) else table


def _has_missing_values(table: Any, layout: Layout) -> bool:
    """Return whether a number or an identifier is missing, or a rating is not finite."""
    for name, kind in layout.columns.items():
        column = table[name]
        if column.null_count and kind != "float64":
            return True
        if kind == "float32" and not np.isfinite(column.to_numpy()).all():
            return True
        if kind == "id":
            is_encoded = pa.types.is_dictionary(column.type)
            texts = [chunk.dictionary for chunk in column.chunks] if is_encoded else [column]
            if any(pc.index(text, "").as_py() >= 0 for text in texts):
                return True
    return False


# ---- blocks with a fault, and the place of a row ----


class _Row(NamedTuple):
    """The first line of a row, from 0 in its block, its lines, and its values or its problem."""

    line: int
    n_lines: int
    values: list[object]
    problem: str


def _split_rows(block: Block, layout: Layout, names: Sequence[str]) -> Iterator[_Row]:
    """Yield the rows of a block; the last one may go on in the stream. Blank lines are skipped."""
    data, mark = _normalize(block.data, layout), layout.separator
    lines = data.splitlines(keepends=True)
    is_literal = mark == TAB and not _has_regular_quotes(data, TAB)
    following = (_normalize(line, layout) for line in block.stream)
    reader = csv.reader(
        (line.decode(errors="surrogateescape") for line in chain(lines, following)),
        delimiter=mark,
        strict=True,
        quoting=csv.QUOTE_MINIMAL if layout.quoted and not is_literal else csv.QUOTE_NONE,
    )
    while (line := reader.line_num) < len(lines):
        values: list[object] = []
        problem = ""
        try:
            if not (cells := next(reader)):
                continue
            if layout.quoted and is_literal:
                cells = split_line(TAB.join(cells), TAB)
            values = _convert_row(cells, layout, names)
        except csv.Error as error:
            is_open = "end of data" in str(error)
            problem = "a quote is never closed" if is_open else f"a cell is malformed: {error}"
        except ValueError as error:
            problem = str(error)
        yield _Row(line, reader.line_num - line, values, problem)


def _convert_row(cells: list[str], layout: Layout, names: Sequence[str]) -> list[object]:
    """Return the values in the columns of the layout; ValueError if one is malformed."""
    if any("\udc80" <= letter <= "\udcff" for cell in cells for letter in cell):
        raise ValueError(_NOT_UTF_8)
    if len(cells) != len(names):
        joined = (layout.delimiter or " ").join(names)
        shape = joined if len(names) <= 8 else f"{len(names)} cells"
        message = f"has {len(cells)} cells, not {len(names)} ({shape})"
        raise ValueError(message)
    by_name = dict(zip(names, cells, strict=True))
    return [_convert_cell(by_name[name], kind, name) for name, kind in layout.columns.items()]


def _convert_cell(cell: str, kind: Kind, name: str) -> object:
    """Return the value of a cell as Arrow reads it; ValueError says what is wrong with it."""
    if kind in {"text", "any"} or (kind == "id" and cell):
        return cell
    if kind == "float64" and not cell:
        return None
    if not (text := cell.strip(" \t")):
        message = f"{name} is empty"
        raise ValueError(message)
    read, largest, expected = _NUMBERS[kind]
    if is_number(text) and "_" not in text:
        with suppress(ValueError):  # a whole number is expected
            value = read(text)
            if abs(value) <= largest or kind == "float64":
                return value
    message = f"{name} is not {expected}: {cell[:40]!r}"
    raise ValueError(message)


def _read_rows(
    block: Block, layout: Layout, names: Sequence[str], schema: Any, bad_lines: BadLines
) -> tuple[Any, int]:
    """Return the table of a block, and the number of lines skipped."""
    rows = [*_split_rows(block, layout, names)]
    for row in rows if bad_lines == "error" else ():
        if row.problem:
            remedy = SAVE_AS_UTF_8 if row.problem == _NOT_UTF_8 else SKIP_HINT
            raise MalformedLine(row.problem, where=block.locate(row.line), remedy=remedy)
    good = [row.values for row in rows if not row.problem]
    columns = zip(*good, strict=True) if good else [() for _ in layout.columns]
    arrays = [pa.array(cells, kind) for cells, kind in zip(columns, schema.types, strict=True)]
    n_skipped = sum(row.n_lines for row in rows if row.problem)
    return pa.table(arrays, schema=schema), n_skipped


def place_row(path: Path, layout: Layout, number: int) -> str:
    """Return ``file:line`` of a row, counted from 0 among those that fit."""
    names, size, _ = read_header(path, layout)
    for block in read_blocks(path, skip=size, quoted=layout.quoted):
        for row in _split_rows(block, layout, names):
            number -= not row.problem
            if number < 0:
                return block.locate(row.line)
    return str(path)
