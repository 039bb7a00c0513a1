"""Interactions as RecBole, Elliot and others write them, with their times; qrels of TREC."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.context import warn
from recbias.core.dataset import BoolArray, FloatArray, Interactions
from recbias.core.errors import MalformedLine
from recbias.formats.delimited import (
    BadLines,
    Kind,
    Layout,
    Rows,
    encode,
    find_repeat,
    read_encoded_table,
    read_header,
    read_texts,
)
from recbias.formats.json_files import locate_value, read_pairs
from recbias.formats.lists import RECBOLE_COLUMN
from recbias.formats.tables import TableColumns, TableFile, parse_numbers, read_file
from recbias.formats.text_files import (
    get_suffix,
    is_number,
    read_first_line,
    require_file,
    shorten,
    split_line,
)

_ELLIOT: dict[str, Kind] = {
    "user_id": "id",
    "item_id": "id",
    "rating": "float32",
    "timestamp": "text",
}
"""The columns of an Elliot file, of which the last may be missing."""

_ID_COLUMNS = ("user_id", "item_id")

_SECONDS = r"^-?\d{1,15}(?:\.\d*)?$"


_QRELS = ("query_id", "iteration", "item_id", "grade")
_QRELS_SUFFIXES = (".qrels", ".qrel", ".trec", ".txt", ".json")
_SHAPE = "{query: {item: grade}}"


def read_interactions(
    path: Path, columns: TableColumns, *, bad_lines: BadLines = "error"
) -> TableFile:
    """Return the columns of a table of interactions, whichever tool wrote it.

    A file is in RecBole's format if each cell of its first line is a name with a type, and in
    Elliot's if its name ends in ``.tsv`` and its first line has three or four cells of which the
    third is a number; else it is a table with a header. The identifiers of a text file are
    dictionary-encoded columns.

    Raises:
        MissingFile: The file does not exist.
        MalformedLine: The file is not a table, or a row is invalid.
        UnknownColumn: A required column is missing.
    """
    if get_suffix(require_file(path)) in {".csv", ".tsv", ".inter"}:
        cells, delimiter = _read_first_cells(path)
        if _is_recbole(cells):
            return _read_recbole(path, columns, bad_lines, delimiter=delimiter)
        if _is_elliot(cells, path):
            kinds = dict(islice(_ELLIOT.items(), len(cells)))
            layout = Layout(columns=kinds, delimiter="\t", header=False)
            return TableFile(path, read_encoded_table(path, layout, bad_lines=bad_lines), layout)
    return read_file(path, columns, bad_lines=bad_lines, read=read_encoded_table)


def _read_first_cells(path: Path) -> tuple[list[str], str]:
    line = read_first_line(path)
    delimiter = "\t" if "\t" in line else ","
    return split_line(line, delimiter, f"{path}:1"), delimiter


def _is_recbole(cells: Sequence[str]) -> bool:
    return bool(cells) and all(map(RECBOLE_COLUMN.fullmatch, cells))


def _is_elliot(cells: Sequence[str], path: Path) -> bool:
    return get_suffix(path) == ".tsv" and len(cells) in {3, 4} and is_number(cells[2])


def _read_recbole(
    path: Path, columns: TableColumns, bad_lines: BadLines, *, delimiter: str
) -> TableFile:
    header = read_header(path, Layout(columns={}, delimiter=delimiter, quoted=True))
    headers = {cell.partition(":")[0]: cell for cell in header.names}
    kinds = columns.select(list(headers), f"{path}:{header.line}")
    sources = columns.list_sources(list(headers))
    typed_kinds = {headers[sources[name]]: kind for name, kind in kinds.items()}
    layout = Layout(columns=typed_kinds, delimiter=delimiter, quoted=True)
    rows = read_encoded_table(path, layout, bad_lines=bad_lines)
    return TableFile(path, Rows(rows.table.rename_columns(list(kinds)), rows.bad_lines), layout)


def to_seconds(column: Any) -> tuple[npt.NDArray[np.int64], BoolArray]:
    """Return seconds since 1970, and a mask of the cells that are not a time.

    Numbers are seconds, with NaN for a missing time; text is ISO 8601, in UTC if it names no time
    zone. An Arrow column is one of the two throughout.

    >>> import pyarrow as pa
    >>> times, wrong = to_seconds(pa.chunked_array([["1970-01-02", "1970-01-01T00:00:09Z", "x"]]))
    >>> times[:2].tolist(), wrong.tolist()
    ([86400, 9], [False, False, True])
    """
    if pa.types.is_floating(column.type):
        wrong = ~np.isfinite(column.to_numpy())
        return np.floor(np.where(wrong, 0, column.to_numpy())).astype(np.int64), wrong
    numeric = pc.match_substring_regex(column, _SECONDS)
    if pc.any(numeric).as_py():
        numbers = pc.if_else(numeric, column, "0").cast(pa.float64())
        return np.floor(numbers.to_numpy()).astype(np.int64), ~np.asarray(numeric.to_numpy())
    texts = pd.Series(np.asarray(column.to_numpy(), dtype=object), dtype=object)
    parsed = pd.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
    stamps = parsed.dt.tz_localize(None)
    times = stamps.to_numpy(dtype="datetime64[s]").astype(np.int64)
    return times, stamps.isna().to_numpy()


def is_blank(column: Any) -> bool:
    """Return whether all cells of a column of times are empty."""
    if pa.types.is_floating(column.type):
        return bool(np.isnan(column.to_numpy()).all())
    return not pc.any(pc.not_equal(column, "")).as_py()


def is_qrels(path: Path) -> bool:
    """Return whether the suffix of a file is one of relevance judgements.

    >>> is_qrels(Path("test.qrels.gz")), is_qrels(Path("test.csv"))
    (True, False)
    """
    return get_suffix(path) in _QRELS_SUFFIXES


def read_qrels(path: Path, least_grade: float) -> Interactions:
    """Return the relevant rows: those with a grade of at least ``least_grade``.

    A ``.json`` file holds ``{query: {item: grade}}``; each line of any other file is query,
    iteration, item and grade, separated by white space. The value of a row is its grade.

    Raises:
        MissingFile: The file does not exist.
        MalformedLine: A line does not fit, a grade is not a number, or a pair is judged twice.
    """
    require_file(path)
    judged = _read_json(path) if get_suffix(path) == ".json" else _read_lines(path)
    infinite = np.flatnonzero(~np.isfinite(judged.grades))
    if infinite.size:
        row = int(infinite[0])
        message = f"the grade {shorten(judged.raw_grades()[row])} is not a number"
        raise MalformedLine(message, where=judged.locate(row))
    user_ids, (users,) = encode(judged.queries)
    item_ids, (items,) = encode(judged.items)
    _, repeat = find_repeat(users.astype(np.int64) * max(len(item_ids), 1) + items)
    if repeat >= 0:
        query, item = judged.queries[repeat].as_py(), judged.items[repeat].as_py()
        message = f"item {item!r} of query {query!r} is judged twice"
        raise MalformedLine(message, where=judged.locate(repeat))
    values = judged.grades.astype(np.float32)
    rows = Interactions(users, items, values, None, user_ids, item_ids)
    return select_relevant(rows, least_grade, path)


def select_relevant(rows: Interactions, least_grade: float, path: Path) -> Interactions:
    """Return the rows of a file with a grade, or rating, of at least ``least_grade``."""
    relevant = rows.take(rows.values >= least_grade).drop_unused_ids()
    if n_excluded := rows.n_users - relevant.n_users:
        warn(
            f"{path.name}: {n_excluded:,} of {rows.n_users:,} queries have no item of grade "
            f"{least_grade:g} or more and are excluded from the evaluation"
        )
    return relevant


@dataclass(frozen=True, eq=False)
class _Judgements:
    """The rows of a file of judgements: Arrow text, the grades as numbers and as written."""

    queries: Any
    items: Any
    grades: FloatArray
    raw_grades: Callable[[], list[Any]]
    locate: Callable[[int], str]


def _read_lines(path: Path) -> _Judgements:
    table, locate = read_texts(path, "", _QRELS, header=False)
    queries, _, items, grades = (column.combine_chunks() for column in table.columns)
    numbers = parse_numbers(grades, "grade", locate)
    return _Judgements(queries, items, numbers, grades.to_pylist, locate)


def _read_json(path: Path) -> _Judgements:
    queries = read_pairs(path, _SHAPE)
    for number, (query, judged) in enumerate(queries):
        if not isinstance(judged, tuple):
            location = locate_value(path, number, depth=1, key=True)
            message = f"query {query!r} does not have the form {_SHAPE}"
            raise MalformedLine(message, where=location)
    pairs = list(chain.from_iterable(judged for _, judged in queries))
    owners = np.repeat(np.arange(len(queries)), [len(judged) for _, judged in queries])
    names = pa.array([query for query, _ in queries], pa.string()).take(pa.array(owners))
    items = pa.array([item for item, _ in pairs], pa.string())
    raw = [grade for _, grade in pairs]
    grades = np.array([_convert_grade(grade) for grade in raw], dtype=np.float64)
    locate = partial(locate_value, path, depth=2, key=True)
    return _Judgements(names, items, grades, lambda: raw, locate)


def _convert_grade(grade: Any) -> float:
    """Return a grade in JSON as a number, NaN if it is none."""
    try:
        return float(grade) if isinstance(grade, (int, float, str)) else math.nan
    except (OverflowError, ValueError):
        return math.nan
