"""Interactions as RecBole, Elliot and others write them, with their times; qrels of TREC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, BoolArray, Interactions
from recbias.core.errors import AmbiguousLayout, Contradiction, MalformedLine
from recbias.formats.delimited import BadLines, Kind, Layout, Table, read_table
from recbias.formats.identifiers import encode, find_repeat, list_some
from recbias.formats.json_files import read_queries
from recbias.formats.tables import TableColumns, read_file
from recbias.formats.text_files import (
    TAB,
    get_suffix,
    is_number,
    read_first_line,
    read_first_lines,
    read_text,
    require_file,
    split_line,
)

InteractionLayout: TypeAlias = Literal["auto", "elliot", "qrels", "lightgcn"]
"""The layout of a file without a header."""

_COLUMNS: Mapping[str, Mapping[str, Kind]] = {
    "elliot": {"user_id": "id", "item_id": "id", "rating": "float32", "timestamp": "text"},
    "qrels": {"query_id": "id", "iteration": "text", "item_id": "id", "grade": "float64"},
}
"""The columns of files without a header; the timestamp may be missing."""

_ID_COLUMNS = ("user_id", "item_id")

_SECONDS = r"^-?\d{1,16}(?:\.\d*)?$"

_QRELS_SUFFIXES = (".qrels", ".qrel", ".trec", ".json")
_SHAPE = "{query: {item: grade}}"
_ITERATIONS = frozenset({"0", "Q0"})
_LAYOUTS: tuple[InteractionLayout, ...] = ("elliot", "qrels", "lightgcn")
_N_COMPARED = 1000  # the lines by which a layout is detected


def detect_layout(path: Path, chosen: InteractionLayout = "auto") -> InteractionLayout:
    """Return the layout of a file of interactions; ``auto`` for a table, which has a header.

    ``.qrels``, ``.qrel``, ``.trec`` and ``.json`` are ``qrels``. Other text is compared by its
    first 1,000 lines: each line of ``elliot`` has three or four cells, of which the third is a
    number; of ``qrels`` four, the second the same throughout and the fourth a number; of
    ``lightgcn`` a user, who has no other line, and items, whole numbers between blanks. The
    ``chosen`` layout is returned if the first line may have it; else a warning shows that line.

    Raises:
        AmbiguousLayout: Several layouts fit.
    """
    if get_suffix(require_file(path)) not in {".tsv", ".txt", ".inter"}:
        return "qrels" if get_suffix(path) in _QRELS_SUFFIXES else "auto"
    lines = read_first_lines(path, _N_COMPARED)
    rows = [split_line(line, TAB) if TAB in line else line.split() for line in lines]
    layouts = [layout for layout in _LAYOUTS if rows and _has_shape(rows[0], layout)]
    if any(TAB in line for line in lines):
        layouts = [layout for layout in layouts if layout != "lightgcn"]
    if chosen in layouts:
        return chosen
    fitting = [layout for layout in layouts if _fits(rows, layout)] or layouts
    readings = [f"as {layout}, {_show_row(rows[0], layout)}" for layout in fitting]
    if len(fitting) > 1:
        message = f"its first line can be read {'; or '.join(readings)}"
        remedy = f"set layout: {' or layout: '.join(fitting)}"
        raise AmbiguousLayout(message, where=f"{path}:1", remedy=remedy)
    if fitting:
        warn(f"{path.name} was read {readings[0]}")
    return fitting[0] if fitting else "auto"


def _has_shape(row: Sequence[str], layout: InteractionLayout) -> bool:
    """Return whether a line may be one of a layout."""
    if layout == "lightgcn":
        return all(map(str.isdigit, row))
    if layout == "qrels":
        return len(row) == 4 and is_number(row[3])
    return len(row) in {3, 4} and is_number(row[2])


def _fits(rows: Sequence[Sequence[str]], layout: InteractionLayout) -> bool:
    """Return whether lines together may be those of a layout."""
    if not all(_has_shape(row, layout) for row in rows):
        return False
    if layout == "lightgcn":
        users = {row[0] for row in rows}
        repeats_item = any(len(set(row[1:])) < len(row) - 1 for row in rows)
        return len(users) == len(rows) and not repeats_item
    seconds, is_usual = {row[1] for row in rows}, all(row[1] in _ITERATIONS for row in rows)
    if layout == "qrels":
        return len(seconds) == 1 and (len(rows) > 1 or is_usual)
    is_qrels = is_usual and len(rows) > 1 and len(rows[0]) == 4  # one item 0, of all users
    return len({len(row) for row in rows}) == 1 and not is_qrels


def _show_row(row: Sequence[str], layout: InteractionLayout) -> str:
    """Return a line as a layout reads it, for messages."""
    if layout == "lightgcn":
        return f"user {row[0]!r} with the items {list_some(np.array(row[1:], dtype=object))}"
    return ", ".join(f"{name} {cell!r}" for name, cell in zip(_COLUMNS[layout], row, strict=False))


def read_interactions(
    path: Path,
    columns: TableColumns,
    *,
    bad_lines: BadLines = "error",
    layout: InteractionLayout = "auto",
) -> Table:
    """Return the columns of a table of interactions, whichever tool wrote it.

    The identifiers of a text file are dictionary-encoded columns. ``layout`` is that of a file
    without a header that several layouts fit.

    Raises:
        MissingFile: The file does not exist.
        MalformedLine: The file is not a table, or a row is invalid.
        UnknownColumn: A required column is missing.
        AmbiguousLayout: Several layouts fit.
        Contradiction: The file has another layout.
    """
    chosen, layout = layout, detect_layout(path, layout)
    if chosen not in {"auto", layout}:
        message = f"{path.name} cannot be in the layout {chosen}"
        raise Contradiction(message, where="layout", remedy="remove it, or correct the file")
    if layout == "qrels" and get_suffix(path) != ".json":
        message = "is a file of relevance judgements, which have no place in a dataset"
        remedy = "give it as a part of split: {name: given, train: ..., test: ...}"
        raise MalformedLine(message, where=str(path), remedy=remedy)
    if layout == "lightgcn":
        return _read_lightgcn(path)
    if layout == "elliot":
        return _read_elliot(path, bad_lines)
    return read_file(path, columns, bad_lines=bad_lines, encoded=True)


def _read_elliot(path: Path, bad_lines: BadLines) -> Table:
    line = read_first_line(path)
    delimiter = TAB if TAB in line else ""
    n_cells = len(split_line(line, TAB) if delimiter else line.split())
    kinds = dict(islice(_COLUMNS["elliot"].items(), n_cells))
    layout = Layout(columns=kinds, delimiter=delimiter, header=False, quoted=bool(delimiter))
    return read_table(path, layout, bad_lines=bad_lines, encoded=True)


def _read_lightgcn(path: Path) -> Table:
    """Read a user and all of the user's items in each line."""
    lines = [cells for line in read_text(path).split("\n") if (cells := line.split())]
    users = [cells[0] for cells in lines for _ in cells[1:]]
    items = [item for cells in lines for item in cells[1:]]
    columns = [pa.array(ids, pa.string()) for ids in (users, items)]
    return Table(path, pa.table(columns, names=[*_ID_COLUMNS]), lambda _: str(path))


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


def question_times(times: AnyArray) -> str:
    """Return what whole numbers seem to be if not seconds since 1970; "" if they may be.

    >>> question_times(np.array([20201115])), question_times(np.array([1600000000017]))
    ('is this the date 2020-11-15?', 'are these milliseconds?')
    """
    if times.size and np.median(times) > _LAST_SECOND:
        unit = "milliseconds" if np.median(times) < 1000 * _LAST_SECOND else "microseconds"
        return f"are these {unit}?"
    years, days = times // 10_000, times % 10_000
    is_date = np.isin(years, np.arange(1900, 2100)) & np.isin(days // 100, np.arange(1, 13))
    is_date &= np.isin(days % 100, np.arange(1, 32))
    if not times.size or not is_date.all():
        return ""
    text = str(times[0])
    return f"is this the date {text[:4]}-{text[4:6]}-{text[6:]}?"


_LAST_SECOND = 10**11
"""Later seconds are after the year 5000."""


def is_blank(column: Any) -> bool:
    """Return whether all cells of a column of times are empty."""
    if pa.types.is_floating(column.type):
        return bool(np.isnan(column.to_numpy()).all())
    return not pc.any(pc.not_equal(column, "")).as_py()


def read_qrels(path: Path, least_grade: float) -> Interactions:
    """Return the relevant rows: those with a grade of at least ``least_grade``.

    A ``.json`` file holds ``{query: {item: grade}}``; each line of any other file is query,
    iteration, item and grade, separated by white space. The value of a row is its grade.

    Raises:
        MissingFile: The file does not exist.
        MalformedLine: A line does not fit, a grade is not a number, or a pair is judged twice.
    """
    require_file(path)
    if get_suffix(path) == ".json":
        queries, items, grades, place = read_queries(path, _SHAPE)
        user_column, item_column = pa.array(queries, pa.string()), pa.array(items, pa.string())
        numbers = np.empty(0) if grades is None else grades
    else:
        layout = Layout(columns=_COLUMNS["qrels"], delimiter="", header=False)
        table = read_table(path, layout, encoded=True)
        user_column, item_column, place = table["query_id"], table["item_id"], table.place
        numbers = table.numbers("grade")
    user_ids, (users,) = encode(user_column)
    item_ids, (judged,) = encode(item_column)
    if (infinite := np.flatnonzero(~np.isfinite(numbers))).size:
        row = int(infinite[0])
        message = f"the grade of item {item_ids.ids[judged[row]]!r} is no number"
        raise MalformedLine(message, where=place(row))
    _, repeat = find_repeat(users.astype(np.int64) * max(len(item_ids), 1) + judged)
    if repeat >= 0:
        query, item = user_ids.ids[users[repeat]], item_ids.ids[judged[repeat]]
        message = f"item {item!r} of query {query!r} is judged twice"
        raise MalformedLine(message, where=place(repeat))
    rows = Interactions(users, judged, numbers.astype(np.float32), None, user_ids, item_ids)
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
