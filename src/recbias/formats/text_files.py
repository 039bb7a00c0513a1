"""Text files, plain or gzip: the one place where they are opened, decoded and taken apart.

Compressed data that is damaged, bytes that are not UTF-8 and JSON that cannot be held are the
user's errors here, with the line, so that no reader needs a guard of its own.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TextIO, cast

from recbias.core.errors import MalformedLine
from recbias.core.input_files import opened_input

BOM = b"\xef\xbb\xbf"
"""The mark that some programs write at the beginning of UTF-8."""

_CUT_SHORT = "fetch the file again: it is damaged or was cut short"

PIECE = 2**20
"""Bytes that are decoded at once."""

DEEPEST = 100
"""The nesting of JSON that no file of ours comes near."""

_ENCODE = "write the file as UTF-8"
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escape of JSON; ``half`` is one half of a surrogate pair."""
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<open>[\[{])|(?P<close>[\]}])', re.DOTALL)
_LARGEST_CELLS = 2**31 - 1


def is_packed(path: Path) -> bool:
    """Return whether a file is gzip, by its name.

    >>> is_packed(Path("a.csv.GZ")), is_packed(Path("a.csv"))
    (True, False)
    """
    return path.suffix.lower() == ".gz"


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, through gzip where its name ends in ``.gz``.

    Raises:
        MissingFile: It is not there or cannot be read.
        MalformedLine: Its compressed data is damaged or ends early.
    """
    with opened_input(path) as raw:
        try:
            if is_packed(path):
                with gzip.GzipFile(fileobj=raw) as stream:
                    yield cast("IO[bytes]", stream)
            else:
                yield raw
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            found = f"the compressed data is damaged: {error}"
            raise MalformedLine(found, where=str(path), remedy=_CUT_SHORT) from error


@contextmanager
def opened_text(path: Path) -> Iterator[TextIO]:
    """Open a UTF-8 text file for reading, unpacked, with the line ends that it has.

    Raises:
        MissingFile: It is not there or cannot be read.
        MalformedLine: Its compressed data is damaged, or a line is not UTF-8.
    """
    try:
        with opened(path) as raw:
            yield io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
    except UnicodeDecodeError:
        read_text(path)
        raise


def read_text(path: Path) -> bytes:
    """Return the text of a file, unpacked, as bytes that are UTF-8, without a mark before them.

    Raises:
        MissingFile: It is not there or cannot be read.
        MalformedLine: Its compressed data is damaged, or a line is not UTF-8.
    """
    with opened(path) as stream:
        data = stream.read().removeprefix(BOM)
    refuse_bytes(data, path)
    return data


def refuse_bytes(data: bytes, path: Path) -> None:
    """Refuse a file's bytes that are not UTF-8, with the line of the first.

    Raises:
        MalformedLine: There are such.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(data)
    for start in range(0, len(data), PIECE):
        begun = start - len(decoder.getstate()[0])
        try:
            decoder.decode(bytes(view[start : start + PIECE]), final=start + PIECE >= len(data))
        except UnicodeDecodeError as error:
            where = f"{path}:{data.count(10, 0, begun + error.start) + 1}"
            found = f"is not UTF-8: {error.reason}"
            raise MalformedLine(found, where=where, remedy=_ENCODE) from error


def parse_json(
    text: str, path: Path, *, line: int = 1, pairs: Callable[[Any], Any] | None = None
) -> Any:
    """Return the value of a JSON text.

    Args:
        text: The text.
        path: The file that it is of.
        line: The line of the file that it begins on.
        pairs: What makes an object of its keys and values; by default ``dict``.

    Raises:
        MalformedLine: It is not JSON, nested too deeply, or holds a number of too many digits or
            half a character.
    """
    try:
        value = json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise _not_json(error.msg, path, line + error.lineno - 1) from error
    except RecursionError as error:
        at = _too_deep(text)
        raise _not_json("it is nested too deeply", path, line + text.count("\n", 0, at)) from error
    except ValueError as error:
        most = sys.get_int_max_str_digits()
        number = re.search(rf"\d{{{most + 1}}}", text)
        at = number.start() if number else 0
        found = f"a number has more than {most:,} digits"
        raise _not_json(found, path, line + text.count("\n", 0, at)) from error
    _refuse_halves(text, path, line)
    return value


@contextmanager
def any_length() -> Iterator[None]:
    """Let the csv module read cells of any length: its limit is of the whole process."""
    before = csv.field_size_limit(_LARGEST_CELLS)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def split_line(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line, which may be quoted and of any length.

    >>> split_line('a,"b,c"', ",")
    ['a', 'b,c']
    """
    with any_length():
        return next(csv.reader([line], delimiter=delimiter), [])


def read_cells(
    data: bytes,
    *,
    names: Sequence[str] | None,
    texts: Iterable[str],
    only: bool = False,
    **cut: Any,
) -> Any:
    """Return a ``pyarrow.Table`` of lines of cells; a line may be of any length.

    Args:
        data: The lines.
        names: The columns, where the first line does not name them.
        texts: The columns of text.
        only: Whether the others are left out.
        cut: How the lines are taken apart, as ``pyarrow.csv.ParseOptions`` has it.

    Raises:
        pyarrow.ArrowInvalid: A line has another number of cells than the first.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow

    columns = list(texts)
    convert = arrow.ConvertOptions(
        column_types=dict.fromkeys(columns, pa.string()),
        include_columns=columns if only else None,
    )
    read = arrow.ReadOptions(column_names=names)
    try:
        return arrow.read_csv(pa.BufferReader(data), read, arrow.ParseOptions(**cut), convert)
    except pa.ArrowInvalid as error:
        if "straddling" not in str(error):
            raise
    read.block_size = min(len(data) + 1, _LARGEST_CELLS)
    return arrow.read_csv(pa.BufferReader(data), read, arrow.ParseOptions(**cut), convert)


def _not_json(found: str, path: Path, line: int) -> MalformedLine:
    return MalformedLine(f"not JSON: {found}", where=f"{path}:{line}")


def _too_deep(text: str) -> int:
    """Return where a JSON text is nested more deeply than ``DEEPEST``, 0 where it is not."""
    depth = 0
    for token in _BRACKET.finditer(text):
        depth += bool(token["open"]) - bool(token["close"])
        if depth > DEEPEST:
            return token.start()
    return 0


def _refuse_halves(text: str, path: Path, line: int) -> None:
    """Refuse a JSON text with half a surrogate pair: no text can hold it."""
    if "\\ud" not in text and "\\uD" not in text:
        return
    half = next((each for each in _ESCAPE.finditer(text) if each["half"]), None)
    if half is not None:
        found = f"the escape {half[0]} is half a character"
        remedy = "write characters as they are, or both halves of the escape"
        where = f"{path}:{line + text.count(chr(10), 0, half.start())}"
        raise MalformedLine(found, where=where, remedy=remedy)
