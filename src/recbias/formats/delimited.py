"""Identifiers to a vocabulary and integer codes.

Delimited text as Arrow tables: parsed by Arrow, and line by line where a line is malformed.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from recbias.core.context import report_progress, warn
from recbias.core.dataset import AnyArray, Attributes, Codes, Ids, Vocabulary
from recbias.core.errors import MalformedLine, UnknownColumn, UnknownIdentifier, UserError
from recbias.core.text import suggest
from recbias.formats.text_files import (
    BOM,
    SAVE_AS_UTF_8,
    TAB,
    decode,
    is_number,
    open_binary,
    open_text,
    shorten,
    split_line,
)


def encode(*columns: Any) -> tuple[Vocabulary, list[Codes]]:
    """Return the common vocabulary of some columns, and the codes of each column.

    Args:
        columns: Arrow columns of identifiers, all of whole numbers or all of text without nulls,
            plain or dictionary-encoded.

    >>> import pyarrow as pa
    >>> ids, (ratings, movies) = encode(pa.array([10, 9, 10]), pa.array([2, 9]))
    >>> ids.ids.tolist(), ratings.tolist(), movies.tolist()
    (['2', '9', '10'], [2, 1, 2], [0, 1])
    """
    if pa.types.is_integer(columns[0].type):
        values = [np.asarray(column.to_numpy()) for column in columns]
        vocabulary, codes = Vocabulary.encode(np.concatenate(values))
    else:
        vocabulary, codes = _encode_texts(columns)
    ends = np.cumsum([len(column) for column in columns])[:-1]
    return vocabulary, [np.ascontiguousarray(column) for column in np.split(codes, ends)]


def _encode_texts(columns: tuple[Any, ...]) -> tuple[Vocabulary, Codes]:
    chunks = [chunk for column in columns for chunk in getattr(column, "chunks", [column])]
    filled = [_encode_chunk(chunk) for chunk in chunks if len(chunk)]
    if not filled:
        return Vocabulary.encode(np.empty(0, dtype=object))
    encoded = pa.chunked_array(filled).unify_dictionaries()
    ids = np.array(encoded.chunk(0).dictionary.to_pylist(), dtype=object)
    parts = [np.asarray(chunk.indices) for chunk in encoded.chunks]
    codes = parts[0] if len(parts) == 1 else np.concatenate(parts)
    occurs = np.zeros(ids.size, dtype=bool)
    occurs[codes] = True
    if not occurs.all():  # the rows of an identifier may have been left out
        codes = (np.cumsum(occurs, dtype=np.int32) - np.int32(1))[codes]
    return Vocabulary.ordered(ids[occurs], codes)


def _encode_chunk(chunk: Any) -> Any:
    """Return a dictionary-encoded array as it is, and any other one encoded as text."""
    is_encoded = pa.types.is_dictionary(chunk.type)
    return chunk if is_encoded else chunk.cast(pa.string()).dictionary_encode()


def find_repeat(codes: AnyArray) -> tuple[int, int]:
    """Return the positions of the first code that repeats: (-1, -1) if all are distinct.

    >>> find_repeat(np.array([4, 2, 4, 2])), find_repeat(np.array([1, 0]))
    ((0, 2), (-1, -1))
    """
    repeats = np.flatnonzero(pd.Series(codes).duplicated())
    if not repeats.size:
        return -1, -1
    return int((codes == codes[repeats[0]]).argmax()), int(repeats[0])


def check_ids(  # noqa: PLR0913  what is compared, and how it is said
    ids: Ids,
    known: Vocabulary,
    noun: str,
    where: str,
    *,
    may_lack: bool = False,
    is_needed: bool = True,
    remedy: str = "",
) -> None:
    """Warn of identifiers of a file that a dataset lacks, with the way it may write them.

    Args:
        ids: The different identifiers.
        known: Those of the dataset; if there are none, nothing is compared.
        noun: What they denote.
        where: The file.
        may_lack: Whether only those are warned of that it writes otherwise.
        is_needed: Whether it must have one of them also if it writes none otherwise.
        remedy: What to do if it has none; by default, use its ids.

    Raises:
        UnknownIdentifier: It has none.
    """
    unknown = ids[known.find(ids) < 0]
    if not unknown.size or not len(known):
        return
    spelling, name = known.compare_spelling(unknown), Path(where).name
    if unknown.size == ids.size and (spelling or is_needed):
        message = f"none of the {ids.size:,} {noun} of {name} is in the dataset: it has "
        message += f"{list_some(ids)}, the dataset {list_some(known.ids)}"
        usual = "use the ids of the dataset, not the internal numbers of a tool: "
        remedy = spelling or remedy or usual + suggest(str(ids[0]), known.ids)
        raise UnknownIdentifier(message, where=where, remedy=remedy)
    if spelling or not may_lack:
        count = f"{name}: {unknown.size:,} of {ids.size:,} {noun} are not in the dataset"
        warn(": ".join(filter(None, [count, spelling])))


def list_some(ids: Ids) -> str:
    """Return the first identifiers, for messages."""
    return ", ".join(map(repr, ids[:3])) + (", ..." if ids.size > 3 else "")


def align_columns(
    codes: Codes, columns: Mapping[str, AnyArray], ids: Vocabulary, kind: str
) -> Attributes:
    """Return columns whose rows have the given codes in the order of the identifiers."""
    aligned = {name: scatter(codes, column, len(ids)) for name, column in columns.items()}
    return Attributes(ids, pd.DataFrame(aligned, index=range(len(ids))), kind)


def scatter(codes: Codes, values: AnyArray, n: int) -> AnyArray:
    """Return a column over ``n`` identifiers with each value at its code; the rest is missing.

    >>> scatter(np.array([2, 0]), np.array([1.5, 2.5]), 3).tolist()
    [2.5, nan, 1.5]
    """
    missing = None if values.dtype == object else np.nan
    column = np.full(n, missing, dtype=object if missing is None else np.float64)
    column[codes] = values
    return column


def to_texts(column: Any) -> Ids:
    """Return a column of text, None for null and for an empty text."""
    texts = np.array(column.to_numpy(zero_copy_only=False), dtype=object)
    texts[texts == ""] = None
    return texts


Kind: TypeAlias = Literal["int32", "int64", "float32", "float64", "id", "text"]
"""What a column holds: whole numbers, ratings (``float32``, finite), numbers that may be missing
(``float64``), identifiers (text that is never empty) or text."""

BadLines: TypeAlias = Literal["error", "skip"]
"""What to do with a malformed line: report it and stop, or skip and count it."""

SKIP_HINT = "correct the line, or skip such lines with --set dataset.bad_lines=skip"
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
}
_CODES = pa.dictionary(pa.int32(), pa.string())
_LARGEST = {"int32": 2**31 - 1, "int64": 2**63 - 1, "float32": float(np.finfo(np.float32).max)}
_EXPECTED: Mapping[Kind, str] = {
    "int32": "a whole number below 2^31",
    "int64": "a whole number below 2^63",
    "float32": "a finite number",
    "float64": "a number",
}


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

    def schema(self, ids: Any) -> Any:
        """Return the ``pyarrow.Schema`` of the columns, with a type for identifiers."""
        types: dict[str, Any] = {**_TYPES, "id": ids}
        return pa.schema([(name, types[kind]) for name, kind in self.columns.items()])


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
        return to_texts(self.table[name])


class _Header(NamedTuple):
    """All columns of a text file, in order, the bytes up to the first row, and the line."""

    names: list[str]
    size: int = 0
    line: int = 1


class Block(NamedTuple):
    """Whole lines of a file, behind ``start`` bytes; only the last one may lack its line end."""

    path: Path
    start: int
    data: bytes

    def locate(self, line: int) -> str:
        """Return ``file:line`` of a line, counted from 0; the file is read again up to it."""
        n_lines, left, last = 1 + line, self.start, b""
        with open_binary(self.path) as stream:
            while left and (data := stream.read(min(left, BLOCK_SIZE))):
                n_lines += _count_line_ends(last + data) - _count_line_ends(last)
                left, last = left - len(data), data[-1:]
        return f"{self.path}:{n_lines}"


def read_table(
    path: Path,
    layout: Layout,
    *,
    bad_lines: BadLines = "error",
    keep: Callable[[Any], Any] | None = None,
    encoded: bool = False,
) -> Rows:
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
    schema = layout.schema(_CODES if encoded else pa.string())
    names, size, _ = read_header(path, layout)

    def read_tables() -> Iterator[tuple[Any, int]]:
        end = b"\n"
        for block in read_blocks(path, skip=size, layout=layout):
            if (table := _parse(block.data, layout, names, schema)) is not None:
                yield table.unify_dictionaries(), 0
            else:
                yield _read_lines(block, layout, names, schema, bad_lines)
            end = block.data[-1:]
        is_published = not layout.quoted and not {*layout.columns.values()} <= {"text", "id"}
        if is_published and end not in b"\r\n":
            warn(f"{path.name}: the last line has no line end; the file may be truncated")

    return collect_rows(path, read_tables(), schema.empty_table(), keep)


def read_texts(
    path: Path, delimiter: str, columns: Sequence[str], *, header: bool = True
) -> tuple[Any, Callable[[int], str]]:
    """Return columns of text, and a function that returns ``file:line`` of a row, from 0.

    Cells may be quoted. In a file without a header, ``columns`` are all columns.

    Raises:
        MalformedLine: A line has another number of cells than the first, or is not UTF-8.
    """
    kinds: dict[str, Kind] = dict.fromkeys(columns, "text" if delimiter else "id")
    layout = Layout(columns=kinds, delimiter=delimiter, header=header, quoted=bool(delimiter))
    with require_every_line():
        table = read_table(path, layout).table
    return table, lambda row: f"{path}:{find_line_of_row(path, layout, row)}"


@contextmanager
def require_every_line() -> Iterator[None]:
    """Remove the advice to skip malformed lines from the errors raised in this block."""
    try:
        yield
    except MalformedLine as error:
        remedy = "correct the line" if error.remedy == SKIP_HINT else error.remedy
        raise MalformedLine(error.message, where=error.where, remedy=remedy) from error


def read_cells(path: Path, delimiter: str) -> Iterator[list[str]]:
    """Yield the cells of each row of a text file, of which only one is in memory.

    Raises:
        MalformedLine: A line is not UTF-8, or a cell has a line end without quotes.
    """
    with open_text(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        try:
            yield from filter(None, reader)
        except csv.Error as error:
            raise MalformedLine(str(error), where=f"{path}:{reader.line_num}") from error


def read_header(path: Path, layout: Layout) -> _Header:
    """Return the columns of a file, which must include those of the layout.

    Raises:
        UnknownColumn: A column is missing.
        MalformedLine: The file is empty, or a column of the layout is there twice.
    """
    if not layout.header:
        return _Header(list(layout.columns))
    with open_binary(path) as stream:
        line, data = 1, stream.readline().removeprefix(BOM)
        while data and not data.strip():
            line, data = line + 1, stream.readline()
        while layout.quoted and data.count(b'"') % 2 and (more := stream.readline()):
            data += more
        size = stream.tell()
    location = f"{path}:{line}"
    text = decode(data, path, line).rstrip("\r\n")
    names = split_line(text, layout.delimiter or " ", location) if text.strip() else []
    if not names:
        location = f"{path}:1"
        message, remedy = "the file is empty: there is no header", "name the columns in line 1"
        raise MalformedLine(message, where=location, remedy=remedy)
    known = {*names}
    for name in layout.columns:
        if name not in known:
            message = f"there is no column {name!r}"
            raise UnknownColumn(message, where=location, remedy=suggest(name, names))
    refuse_same_names([name for name in names if name in layout.columns], location)
    return _Header(names, size, line)


def refuse_same_names(names: Sequence[str], where: str) -> None:
    """Raise MalformedLine if two columns have one name."""
    for name, count in Counter(names).items():
        if count > 1:
            message = f"two columns are called {name[:80]!r}"
            error = MalformedLine(message, where=where, remedy="give each column its own name")
            raise explain_header(error, names)


def explain_header(
    error: UserError, names: Sequence[str], needed: Collection[str] = ()
) -> UserError:
    """Return the error of a column; with no ``needed`` or similar name, a row may be the first."""
    if not {*needed}.isdisjoint(names) or "did you mean" in error.remedy:
        return error
    remedy = "write the names of the columns in a line above it, as in user_id,item_id,rating"
    if any(map(is_number, names)):
        message = f"the first line does not name the columns: {shorten(','.join(names))}"
        return MalformedLine(message, where=error.where, remedy=remedy)
    remedy = f"{error.remedy}; if this is a row, {remedy}"
    return type(error)(error.message, where=error.where, remedy=remedy)


def find_line_of_row(path: Path, layout: Layout, row: int) -> int:
    """Return the first line of a row, counted from 0 among those that fit; 0 if there is none."""
    names, size, _ = read_header(path, layout)
    position = -1
    for block in read_blocks(path, skip=size, layout=layout):
        for record in _parse_records(block.data, layout):
            try:
                _convert(record, layout, names)
            except ValueError:
                continue
            position += 1
            if position == row:
                return int(block.locate(record.line).rpartition(":")[2])
    return 0


def read_blocks(path: Path, *, skip: int = 0, layout: Layout | None = None) -> Iterator[Block]:
    """Yield the lines of a file in blocks, and report progress.

    Args:
        path: The file.
        skip: Bytes at the start, a header line, that are left out.
        layout: The format; if cells may be in double quotes, a line end inside them belongs to a
            cell, and no block ends there.
    """
    total = path.stat().st_size
    with open_binary(path) as stream:
        start = len(stream.read(skip))
        packed = getattr(stream.raw, "packed", stream)
        while data := _read_whole_lines(stream, BLOCK_SIZE, layout):
            yield Block(path, start, data if start else data.removeprefix(BOM))
            start += len(data)
            report_progress(f"read {path.name}", packed.tell(), total)


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


def _read_whole_lines(stream: IO[bytes], size: int, layout: Layout | None) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        return data
    if not data.endswith(b"\n"):
        data += stream.readline()
    if (
        not (layout and layout.quoted)
        or not _scan_quotes(_unescape(data, layout), layout.delimiter)[1]
    ):
        return data
    lines, is_open = [data], True
    while is_open and (line := stream.readline()):
        lines.append(line)
        is_open = _scan_quotes(b'"' + _unescape(line, layout), layout.delimiter)[1]
    return b"".join(lines)


def _unescape(data: bytes, layout: Layout) -> bytes:
    return _ESCAPED.sub(b'""', data) if layout.escaped else data


def _scan_quotes(data: bytes, delimiter: str) -> tuple[bool, bool]:
    r"""Return whether the quotes are regular, and whether the lines end inside a quoted cell.

    >>> _scan_quotes(b'1,"a ""b"" c"', ","), _scan_quotes(b'1,5" nail\n', ",")
    ((True, False), (False, False))
    """
    if b'"' not in data:
        return True, False
    letters = np.frombuffer(data, dtype=np.uint8)
    ends = np.frombuffer(f'{delimiter}"\r\n'.encode(), dtype=np.uint8)
    quotes = np.flatnonzero(letters == ord('"'))
    opening, closing = quotes[::2], quotes[1::2]
    before = letters[opening[opening > 0] - 1]
    after = letters[closing[closing < letters.size - 1] + 1]
    if np.isin(before, ends).all() and np.isin(after, ends).all():
        return True, quotes.size % 2 == 1
    if delimiter == TAB:
        return False, False
    layout = Layout(columns={}, delimiter=delimiter, quoted=True)
    return False, any(record.problem == _UNCLOSED for record in _parse_records(data, layout))


def _parse(data: bytes, layout: Layout, names: list[str], schema: Any) -> Any:
    """Return the table that Arrow reads; None if it rejects a line or a value is suspicious."""
    data = _unescape(data, layout)
    is_regular, is_open = _scan_quotes(data, layout.delimiter) if layout.quoted else (True, False)
    if is_open or not is_regular:
        return None
    table = _parse_with_arrow(data, layout, names, schema)
    if table is not None and not _is_suspicious(table, layout):
        return table
    even = data if layout.delimiter else _BLANK_ENDS.sub(b"\n", _BLANKS.sub(b" ", data)).strip()
    return None if even == data else _parse(even, layout, names, schema)


def _parse_with_arrow(data: bytes, layout: Layout, names: list[str], schema: Any) -> Any:
    """Return the table that Arrow reads; None if it rejects a line."""
    delimiter = layout.delimiter or ("\t" if b"\t" in data.partition(b"\n")[0] else " ")
    gaps: list[str] = []
    if len(delimiter) == 2:
        gaps = [f"::{position}" for position in range(1, len(names))]
        pairs = zip(names, [*gaps, ""], strict=True)
        names = [name for pair in pairs for name in pair][:-1]
    types = dict(zip(schema.names, schema.types, strict=True)) | dict.fromkeys(gaps, pa.null())
    convert = arrow_csv.ConvertOptions(
        column_types=types,
        include_columns=[*types],
        null_values=[""],
        strings_can_be_null=False,
    )
    has_quotes = layout.quoted and b'"' in data  # without any, Arrow splits lines faster
    parse = arrow_csv.ParseOptions(
        delimiter=delimiter[0],
        quote_char='"' if has_quotes else False,
        newlines_in_values=has_quotes,
    )
    is_threaded = len(data) > _MIN_THREADED_SIZE
    read = arrow_csv.ReadOptions(
        use_threads=is_threaded, column_names=names, encoding=layout.encoding
    )
    try:
        table = arrow_csv.read_csv(pa.BufferReader(data), read, parse, convert)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    return table.select(schema.names)


def _is_suspicious(table: Any, layout: Layout) -> bool:
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


class _Record(NamedTuple):
    """A row of a text file: its first line, from 0 in its block, and why it is bad, if it is."""

    line: int
    n_lines: int
    cells: list[str]
    problem: str = ""


_BLANKS, _BLANK_ENDS = re.compile(rb"[ \t]+"), re.compile(rb"[ \t\r]*\n[ \t]*")
_ESCAPED = re.compile(rb'(?<!\\)\\"')
_UNCLOSED = "a quote is never closed"


def _read_lines(
    block: Block, layout: Layout, names: list[str], schema: Any, bad_lines: BadLines
) -> tuple[Any, int]:
    """Return the table of some lines, and the number of lines skipped."""
    columns: dict[str, list[object]] = {name: [] for name in layout.columns}
    n_skipped = 0
    for record in _parse_records(block.data, layout):
        try:
            values = _convert(record, layout, names)
        except ValueError as error:
            if bad_lines == "error":
                location, message = block.locate(record.line), str(error)
                remedy = SAVE_AS_UTF_8 if message.startswith("is not UTF-8") else SKIP_HINT
                raise MalformedLine(message, where=location, remedy=remedy) from None
            n_skipped += record.n_lines
            continue
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    return pa.table(columns, schema=schema), n_skipped


def _parse_records(data: bytes, layout: Layout) -> Iterator[_Record]:
    """Yield the rows in some lines of a file; blank lines are skipped."""
    data = _unescape(data, layout)
    if layout.quoted and (layout.delimiter != TAB or _scan_quotes(data, TAB) == (True, False)):
        yield from _parse_quoted(data, layout)
        return
    for line, raw in enumerate(data.splitlines()):  # also at a carriage return, as Arrow does
        try:
            text = raw.decode(layout.encoding)
        except UnicodeDecodeError as error:
            yield _Record(line, 1, [], f"is not {layout.encoding.upper()}: {error.reason}")
            continue
        if not layout.delimiter and text.strip(" \t"):
            yield _Record(line, 1, re.split(r"[ \t]+", text.strip(" \t")))
        elif layout.quoted and text:
            yield _Record(line, 1, split_line(text, TAB))
        elif layout.delimiter and text:
            yield _Record(line, 1, text.split(layout.delimiter))


def _parse_quoted(data: bytes, layout: Layout) -> Iterator[_Record]:
    text = io.StringIO(data.decode(layout.encoding, "surrogateescape"), newline="")
    reader = csv.reader(text, delimiter=layout.delimiter or " ", strict=True)
    while True:
        line, problem = reader.line_num, ""
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            cells, problem = [], f"a cell is malformed: {error}"
            if "end of data" in str(error):
                problem = _UNCLOSED
        if any("\udc80" <= letter <= "\udcff" for cell in cells for letter in cell):
            cells, problem = [], "is not UTF-8"
        if cells or problem:
            yield _Record(line, reader.line_num - line, cells, problem)


def _convert(record: _Record, layout: Layout, names: list[str]) -> list[object]:
    """Return the values of a row in the columns of the layout; ValueError if it is malformed."""
    if record.problem:
        raise ValueError(record.problem)
    if len(record.cells) != len(names):
        joined = (layout.delimiter or " ").join(names)
        shape = joined if len(names) <= 8 else f"{len(names)} cells"
        message = f"has {len(record.cells)} cells, not {len(names)} ({shape})"
        raise ValueError(message)
    cells = dict(zip(names, record.cells, strict=True))
    return [_convert_cell(cells[name], kind, name) for name, kind in layout.columns.items()]


def _convert_cell(cell: str, kind: Kind, name: str) -> object:
    """Return the value of a cell as Arrow reads it; ValueError says what is wrong with it."""
    if kind == "text" or (kind == "id" and cell):
        return cell
    if kind == "float64" and not cell:
        return None
    text = cell.strip(" \t")
    if kind in {"int32", "int64"}:
        is_valid = re.fullmatch("-?[0-9]{1,19}", text) is not None
        value: float = int(text) if is_valid else math.nan
    else:
        is_valid = is_number(text) and "_" not in text
        value = float(text) if is_valid else math.nan
    if is_valid and (kind == "float64" or abs(value) <= _LARGEST[kind]):
        return value
    message = f"{name} is not {_EXPECTED[kind]}: {cell[:40]!r}" if text else f"{name} is empty"
    raise ValueError(message)


def _count_line_ends(data: bytes) -> int:
    r"""Return the number of line ends: a line feed, a carriage return, or both in this order.

    >>> _count_line_ends(b"1\n2\r3\r\n")
    3
    """
    n_returns = data.count(b"\r")
    return data.count(b"\n") + (n_returns and n_returns - data.count(b"\r\n"))
