"""Files of text: UTF-8, plain or gzip, refused where they unpack to too much.

Files of the Hugging Face hub by their address: ``hf://datasets/OWNER/NAME@REVISION/FILE``.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any

from recbias.core.errors import DownloadFailed, MalformedLine, MissingFile, OutOfRange
from recbias.core.files import has_file, is_offline, open_input
from recbias.core.packages import require_packages

BOM = codecs.BOM_UTF8
"""The byte order mark that some programs write at the start of UTF-8 text."""

TAB = "\t"

DELIMITERS = {".csv": ",", ".tsv": TAB}
"""The delimiter of a table, by the suffix of its file."""

SAVE_AS_UTF_8 = "save the file as UTF-8"

JSON_TO_TABLE = "write a table: pandas.read_json(path, lines=True).to_csv(table, index=False)"

_OTHER_KINDS = {
    b"\x1f\x8b": ("gzip", "name it .gz"),
    b"\x28\xb5\x2f\xfd": ("Zstandard", "unpack it, or pack it by gzip"),
    b"PK\x03\x04": ("zip or Excel", "unpack it, or name it .xlsx"),
    b"PAR1": ("Parquet", "name it .parquet"),
}
"""The first bytes of files of other kinds, and what to do with such a file."""

MAX_RATIO, FREE_BYTES = 200, 64 * 2**20
"""A file may unpack to 200 times its size, or to 64 MiB."""

csv.field_size_limit(2**31 - 1)  # of the process: a cell may hold a long text


def require_file(path: Path) -> Path:
    """Return the path of a file.

    Raises:
        MissingFile: There is no such file.
    """
    if not has_file(path):
        remedy = "paths are relative to the experiment file"
        raise MissingFile("no such file", where=str(path), remedy=remedy)
    return path


def get_suffix(path: Path) -> str:
    """Return the suffix of a file name in lower case, without ``.gz``.

    >>> get_suffix(Path("mine.CSV.gz"))
    '.csv'
    """
    return Path(path.name.lower().removesuffix(".gz")).suffix


class _Unpacked(io.RawIOBase):
    """The content of a gzip file, read once from its start; ``packed`` is the file."""

    def __init__(self, packed: BufferedReader, path: Path) -> None:
        super().__init__()
        self.packed, self._content = packed, gzip.GzipFile(fileobj=packed)
        self._path, self._position = path, 0
        self._limit = max(FREE_BYTES, MAX_RATIO * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        n_bytes = self._content.readinto(buffer)
        self._position += n_bytes
        if self._position > self._limit:
            message = (
                f"unpacks to more than {self._limit:,} bytes, over {MAX_RATIO} times its size"
            )
            remedy = "if it is right, unpack it, and name that file"
            raise MalformedLine(message, where=str(self._path), remedy=remedy)
        return n_bytes


@contextmanager
def open_binary(path: Path) -> Iterator[BufferedReader[Any]]:
    """Open a file for reading; a ``.gz`` file is decompressed.

    Raises:
        MissingFile: The file does not exist or cannot be read.
        MalformedLine: The compressed data is damaged or truncated, or unpacks to too much, or the
            text is UTF-16.
    """
    with open_input(path) as file:
        is_packed = path.suffix.lower() == ".gz"
        stream = BufferedReader(_Unpacked(file, path), 2**18) if is_packed else file
        try:
            start = stream.peek(1)[:64]
            for mark, (kind, remedy) in _OTHER_KINDS.items():
                if start.startswith(mark):
                    message = f"is a file of {kind}, not of text"
                    raise MalformedLine(message, where=str(path), remedy=remedy)
            if b"\0" in start or start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                message = "is UTF-16 or UTF-32, not UTF-8"
                raise MalformedLine(message, where=f"{path}:1", remedy=SAVE_AS_UTF_8)
            yield stream
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            message = f"the compressed data is damaged: {error}"
            remedy = "download the file again: it is damaged or truncated"
            raise MalformedLine(message, where=str(path), remedy=remedy) from error


def read_text(path: Path) -> str:
    """Return the content of a UTF-8 file, without a byte order mark.

    Raises:
        MissingFile: The file does not exist or cannot be read.
        MalformedLine: The compressed data is damaged, or a line is not UTF-8.
    """
    with open_binary(path) as stream:
        return decode(stream.read().removeprefix(BOM), path)


def decode(data: bytes, path: Path, line: int = 1) -> str:
    """Return text that starts on a line of a file; MalformedLine if a line of it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        location = f"{path}:{line + data.count(10, 0, error.start)}"
        message = f"is not UTF-8: {error.reason}"
        raise MalformedLine(message, where=location, remedy=SAVE_AS_UTF_8) from error


def read_first_lines(path: Path, n: int) -> list[str]:
    """Return the first ``n`` lines that are not blank, without their line ends."""
    with open_binary(path) as file:
        lines = ((number, line.removeprefix(BOM)) for number, line in enumerate(file, 1))
        first = list(islice(((number, line) for number, line in lines if line.strip()), n))
    return [decode(line, path, number).rstrip("\r\n") for number, line in first]


def read_first_line(path: Path) -> str:
    """Return the first line that is not blank, without its line end; "" for an empty file."""
    return next(iter(read_first_lines(path, 1)), "")


def find_line(path: Path, text: str) -> str:
    """Return ``file:line`` of the first line with a text; the file if none has it as it is."""
    with open_binary(path) as lines:
        numbers = (number for number, line in enumerate(lines, 1) if text.encode() in line)
        return f"{path}:{number}" if (number := next(numbers, 0)) else str(path)


def split_line(line: str, delimiter: str, where: str = "") -> list[str]:
    r"""Return the cells of a line; cells may be quoted, or between tabs begin with a quote.

    >>> split_line('a,"b,c"', ","), split_line('"a"\t"b', TAB)
    (['a', 'b,c'], ['"a"', '"b'])

    Raises:
        MalformedLine: A cell has a line end without quotes.
    """
    text, is_tabbed = io.StringIO(line, newline=""), delimiter == TAB
    try:
        return next(csv.reader(text, delimiter=delimiter, strict=is_tabbed), [])
    except csv.Error as error:
        if is_tabbed:
            return line.split(TAB)
        raise MalformedLine(str(error), where=where) from error


def is_number(text: str) -> bool:
    """Return whether Python reads a text as a number.

    >>> is_number("-1e-3"), is_number("score")
    (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True


def shorten(value: object, max_length: int = 60) -> str:
    """Return the representation of a value for a message, truncated if it is long.

    >>> shorten("abc"), shorten("9" * 5000, 8)
    ("'abc'", "'9999...")
    """
    text = repr(value)
    return text if len(text) <= max_length else f"{text[: max_length - 3]}..."


# ---- files of the Hugging Face hub ----

_ADDRESS = re.compile(
    r"hf://(?P<kind>datasets/|spaces/)?(?P<name>[^/@]+/[^/@]+)(@(?P<revision>[^/]+))?/(?P<file>.+)"
)
_STORED = re.compile(
    r".*/(?P<kind>dataset|space|model)s--(?P<owner>.+?)--(?P<name>[^/]+)"
    r"/snapshots/(?P<commit>[0-9a-f]{40})/(?P<file>.+)"
)


def is_hub_address(text: str) -> bool:
    """Return whether a text is the address of a file of the hub."""
    return text.startswith("hf://")


def fetch_hub_file(address: str) -> Path:
    """Return a file of the hub in its cache on this machine, downloaded if the cache lacks it.

    Without a revision the newest one is asked for; offline it is the one in the cache.

    Raises:
        OutOfRange: It is not the address of a file.
        MissingExtra: ``huggingface_hub`` is not installed.
        DownloadFailed: The hub does not provide it, or the network may not be used.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        remedy = "give hf://datasets/OWNER/NAME/FILE, or NAME@REVISION"
        raise OutOfRange(f"{address!r} is not the address of a file", remedy=remedy)
    require_packages("hf://", "huggingface_hub")
    from huggingface_hub import hf_hub_download

    try:
        path: str = hf_hub_download(
            match["name"],
            match["file"],
            repo_type=(match["kind"] or "models/").removesuffix("s/"),
            revision=match["revision"],
            endpoint=os.environ.get("HF_ENDPOINT"),
            local_files_only=is_offline(),
        )
    except (OSError, ValueError) as error:
        state = " and offline it is not asked for" if is_offline() else ""
        message = f"{address} is not there{state}: {' '.join(str(error).split())}"
        remedy = "check its owner, name, revision and path; HF_TOKEN opens private ones"
        raise DownloadFailed(message, remedy=remedy) from error
    return Path(path)


def name_hub_file(path: Path) -> str:
    """Return the address of a file in the cache of the hub, with its commit; else blank.

    >>> commit = 40 * "a"
    >>> name_hub_file(Path(f"/c/datasets--shop--clicks/snapshots/{commit}/day/1.csv"))
    'hf://datasets/shop/clicks@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/day/1.csv'
    """
    match = _STORED.fullmatch(path.as_posix())
    if match is None:
        return ""
    kind = "" if match["kind"] == "model" else f"{match['kind']}s/"
    return f"hf://{kind}{match['owner']}/{match['name']}@{match['commit']}/{match['file']}"
