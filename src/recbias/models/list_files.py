"""Files of lists made elsewhere: CSV, TSV, Parquet and TREC runs, to rows of codes."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from recbias.core.arrays import Codes, FloatArray
from recbias.core.errors import MalformedLine, MissingFile, UnknownColumn, WrongType
from recbias.core.suggestions import did_you_mean
from recbias.core.vocabulary import Vocabulary

DELIMITERS = {".csv": ",", ".tsv": "\t"}
RUNS = (".trec", ".run")
RUN_COLUMNS = ["query_id", "iteration", "item_id", "rank", "score", "tag"]
TEXT_COLUMNS = ("query_id", "item_id", "rank", "score")


@dataclass(frozen=True, eq=False)
class ListRows:
    """The rows of a file of lists, in the order of the file.

    Args:
        path: The file.
        query_ids: The queries of the file, in the order they appear.
        item_ids: The items of the file, in the order they appear.
        queries: Code of the query, ``int32[n]``.
        items: Code of the item, ``int32[n]``.
        ranks: Rank as written, ``float64[n]``, or None.
        scores: Score as written, ``float64[n]``, or None.
    """

    path: Path
    query_ids: Vocabulary
    item_ids: Vocabulary
    queries: Codes
    items: Codes
    ranks: FloatArray | None
    scores: FloatArray | None

    def place(self, row: int) -> str:
        """Return ``file:line`` of a row (from 0); ``file: row n`` in a Parquet file."""
        return _place(self.path, row)


def kind_of(path: Path) -> str:
    """Return ``.csv``, ``.tsv``, ``.parquet``, ``.trec`` or ``.run``, by the name of a file.

    >>> kind_of(Path("mine.csv.gz"))
    '.csv'

    Raises:
        WrongType: It is of none of the kinds.
    """
    kind = Path(path.name.lower().removesuffix(".gz")).suffix
    known = (*DELIMITERS, ".parquet", *RUNS)
    if kind not in known:
        found = f"{path.name} is no file of lists"
        raise WrongType(found, where="path", remedy=f"name it {', '.join(known)} or .csv.gz")
    return kind


def present(path: Path) -> Path:
    """Return the path; MissingFile where there is no such file."""
    if not path.is_file():
        raise MissingFile(f"no file {str(path)!r}", remedy="paths are relative to the spec")
    return path


def read_rows(path: Path) -> ListRows:
    """Read a file of lists.

    Raises:
        MissingFile: It is not there.
        WrongType: It is no CSV, TSV, Parquet file or TREC run by its name.
        UnknownColumn: ``query_id``, ``item_id``, or both ``rank`` and ``score`` are absent.
        MalformedLine: A line has another number of cells, an empty id, or a rank or score that
            is not a number.
    """
    table = _read(present(path))
    _check_columns(table.column_names, path)
    query_ids, queries = _encode(table, "query_id", path)
    item_ids, items = _encode(table, "item_id", path)
    ranks, scores = _numbers(table, "rank", path), _numbers(table, "score", path)
    return ListRows(path, query_ids, item_ids, queries, items, ranks, scores)


def _read(path: Path) -> Any:
    kind = kind_of(path)
    if kind == ".parquet":
        return _read_parquet(path)
    if kind in RUNS:
        return _read_run(path)
    return _read_delimited(path, DELIMITERS[kind])


def _read_parquet(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.read_table(path, partitioning=None)
    except (pa.ArrowInvalid, OSError) as error:
        raise MalformedLine(f"not a Parquet file: {error}", where=str(path)) from error


def _read_delimited(path: Path, delimiter: str) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow

    try:
        return arrow.read_csv(
            path,
            parse_options=arrow.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=_as_text(),
        )
    except pa.ArrowInvalid as error:
        raise _malformed(path, error) from error


def _read_run(path: Path) -> Any:
    import pyarrow as pa

    with pa.input_stream(str(path), compression="gzip" if path.suffix == ".gz" else None) as file:
        text: bytes = file.read()
    delimiter = "\t" if b"\t" in text.partition(b"\n")[0] else " "
    try:
        return _parse_run(text, delimiter)
    except pa.ArrowInvalid:
        evened = re.sub(rb"[ \t\r]*\n[ \t]*", b"\n", re.sub(rb"[ \t]+", b" ", text)).strip()
    try:
        return _parse_run(evened, " ")
    except pa.ArrowInvalid as error:
        raise _malformed(path, error) from error


def _parse_run(text: bytes, delimiter: str) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow

    return arrow.read_csv(
        pa.BufferReader(text),
        read_options=arrow.ReadOptions(column_names=RUN_COLUMNS),
        parse_options=arrow.ParseOptions(delimiter=delimiter, quote_char=False),
        convert_options=_as_text(),
    )


def _as_text() -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow

    return arrow.ConvertOptions(column_types=dict.fromkeys(TEXT_COLUMNS, pa.string()))


def _check_columns(names: list[str], path: Path) -> None:
    for name in ("query_id", "item_id"):
        if name not in names:
            raise UnknownColumn(f"no column {name!r}", where=str(path), remedy=_near(name, names))
    if not {"rank", "score"} & set(names):
        remedy = "give each row a rank (from the best), a score, or both"
        raise UnknownColumn("neither a column 'rank' nor 'score'", where=str(path), remedy=remedy)
    twice = [name for name in TEXT_COLUMNS if names.count(name) > 1]
    if twice:
        raise MalformedLine(f"two columns are called {twice[0]!r}", where=f"{path}:1")


def _near(name: str, names: list[str]) -> str:
    return f"rename the column to {name!r}; {did_you_mean(name, names)}"


def _encode(table: Any, name: str, path: Path) -> tuple[Vocabulary, Codes]:
    import pyarrow as pa
    from pyarrow import compute

    column = table.column(name).cast(pa.string())
    missing = compute.or_kleene(column.is_null(), compute.equal(column, "")).fill_null(True)  # noqa: FBT003  a value, no flag
    if compute.any(missing).as_py():
        row = missing.index(value=True).as_py()
        raise MalformedLine(f"an empty {name}", where=_place(path, row))
    encoded = column.dictionary_encode().combine_chunks()
    ids = np.array(encoded.dictionary.to_pylist(), dtype=object)
    return Vocabulary(ids), encoded.indices.to_numpy().astype(np.int32, copy=False)


def _numbers(table: Any, name: str, path: Path) -> FloatArray | None:
    import pyarrow as pa
    from pyarrow import compute

    if name not in table.column_names:
        return None
    column = table.column(name)
    if pa.types.is_string(column.type):
        column = compute.utf8_trim_whitespace(column)
    try:
        numbers: FloatArray = column.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid as error:
        texts = column.to_pandas()
        row = int(np.flatnonzero(pd.to_numeric(texts, errors="coerce").isna())[0])
        found = f"the {name} {texts.iloc[row]!r} is not a number"
        raise MalformedLine(found, where=_place(path, row)) from error
    return numbers


def _malformed(path: Path, error: Exception) -> MalformedLine:
    width = 0
    for line, cells in _records(path):
        width = width or (len(RUN_COLUMNS) if kind_of(path) in RUNS else len(cells))
        if len(cells) != width:
            return MalformedLine(f"{len(cells)} cells, not {width}", where=f"{path}:{line}")
    return MalformedLine(str(error).partition("\n")[0], where=str(path))


def _place(path: Path, row: int) -> str:
    kind = kind_of(path)
    if kind == ".parquet":
        return f"{path}: row {row + 1:,}"
    header = 0 if kind in RUNS else 1
    line, _ = next(islice(_records(path), row + header, None))
    return f"{path}:{line}"


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield each record with the line it starts at; a quoted cell may hold line ends."""
    kind = kind_of(path)
    with _text(path) as file:
        if kind in RUNS:
            lines = enumerate(file, start=1)
            yield from ((line, text.split()) for line, text in lines if text.strip())
            return
        reader = csv.reader(file, delimiter=DELIMITERS[kind])
        start = 1
        for cells in reader:
            if cells:
                yield start, cells
            start = reader.line_num + 1


@contextmanager
def _text(path: Path) -> Iterator[TextIO]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
        yield file
