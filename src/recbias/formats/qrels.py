"""Relevance judgements, TREC qrels or JSON, as the rows of a test part."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.dataset.interactions import Interactions
from recbias.core.errors import MalformedLine, MissingFile
from recbias.core.input_files import has_file
from recbias.core.stage_context import warn
from recbias.formats.encode_ids import encode, repeats
from recbias.formats.text_cells import parse_numbers, shorten
from recbias.formats.text_files import opened, parse_json, read_cells, read_text

COLUMNS = ("query_id", "iteration", "item_id", "grade")
SUFFIXES = (".qrels", ".qrel", ".trec", ".txt", ".json")
SHAPE = "{query: {item: grade}}"


@dataclass(frozen=True, eq=False)
class Judgements:
    """What a file of judgements says, row by row.

    Args:
        path: The file.
        queries: Arrow array of the query of each row, text.
        items: Arrow array of the item of each row, text.
        grades: The grade of each row, ``float64[n]``.
    """

    path: Path
    queries: Any
    items: Any
    grades: FloatArray

    def where(self, row: int) -> str:
        """Return ``file:line`` of a row (from 0)."""
        if _kind(self.path) == ".json":
            return _json_place(self.path, self.queries[row].as_py(), self.items[row].as_py())
        line, _ = next(islice(_lines(self.path), row, None))
        return f"{self.path}:{line}"


def is_qrels(path: Path) -> bool:
    """Return whether a file holds judgements, by its name.

    >>> is_qrels(Path("test.qrels.gz")), is_qrels(Path("test.csv"))
    (True, False)
    """
    return _kind(path) in SUFFIXES


def read_qrels(path: Path, least_grade: int) -> Interactions:
    """Return the relevant rows: those with a grade of at least ``least_grade``.

    A file is JSON by its name, ``{query: {item: grade}}``; else each line is query, iteration,
    item and grade between white space. The value of a row is its grade.

    Raises:
        MissingFile: It is not there.
        MalformedLine: A line does not fit, a grade is no number, or an item is judged twice.
    """
    if not has_file(path):
        remedy = "paths are relative to the spec"
        raise MissingFile("no such file of judgements", where=str(path), remedy=remedy)
    judged = _of_json(path) if _kind(path) == ".json" else _of_lines(path)
    user_ids, (users,) = encode(judged.queries)
    item_ids, (items,) = encode(judged.items)
    _, again = repeats(users.astype(np.int64) * max(len(item_ids), 1) + items)
    if again >= 0:
        pair = f"item {judged.items[again].as_py()!r} of query {judged.queries[again].as_py()!r}"
        raise MalformedLine(f"{pair} is judged twice", where=judged.where(again))
    values = judged.grades.astype(np.float32)
    rows = Interactions(users, items, values, None, user_ids, item_ids)
    return _relevant(rows, judged.grades >= least_grade, least_grade, path.name)


def _relevant(rows: Interactions, kept: AnyArray, least_grade: int, name: str) -> Interactions:
    relevant = rows.take(kept).compacted()
    lost = rows.n_users - relevant.n_users
    if lost:
        warn(
            f"{name}: {lost:,} of {rows.n_users:,} queries have no item of grade {least_grade} "
            "or more: they are not measured"
        )
    return relevant


def _kind(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _of_lines(path: Path) -> Judgements:
    import pyarrow as pa

    text = read_text(path)
    try:
        table = _table(text, "\t" if b"\t" in text.partition(b"\n")[0] else " ")
    except pa.ArrowInvalid:
        table = _evened(text, path)
    columns = {name: table[name].combine_chunks() for name in COLUMNS}
    queries, items, grades = (columns[name] for name in ("query_id", "item_id", "grade"))
    ungraded = Judgements(path, queries, items, np.empty(0))
    numbers = parse_numbers(grades, "grade", ungraded.where)
    return _graded(replace(ungraded, grades=numbers), grades.to_pylist)


def _evened(text: bytes, path: Path) -> Any:
    """Return the columns of lines whose cells stand between any white space."""
    import pyarrow as pa

    even = re.sub(rb"[ \t\r]*\n[ \t]*", b"\n", re.sub(rb"[ \t]+", b" ", text)).strip()
    try:
        return _table(even or b"\n", " ")
    except pa.ArrowInvalid as error:
        raise _malformed(path, error) from error


def _table(text: bytes, delimiter: str) -> Any:
    return read_cells(text, names=COLUMNS, texts=COLUMNS, delimiter=delimiter, quote_char=False)


def _graded(judged: Judgements, written: Callable[[], list[Any]]) -> Judgements:
    """Return the judgements; MalformedLine where a grade as written is no finite number."""
    wrong = np.flatnonzero(~np.isfinite(judged.grades))
    if wrong.size:
        row = int(wrong[0])
        found = f"the grade {shorten(written()[row])} is not a number"
        raise MalformedLine(found, where=judged.where(row))
    return judged


def _number_of(grade: Any) -> float:
    """Return a grade of JSON, NaN where it is no number."""
    try:
        return float(grade) if isinstance(grade, (int, float, str)) else math.nan
    except (OverflowError, ValueError):
        return math.nan


def _lines(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    with opened(path) as file:
        numbered = enumerate(file, start=1)
        yield from ((line, text.split()) for line, text in numbered if text.strip())


def _malformed(path: Path, error: Exception) -> MalformedLine:
    for line, cells in _lines(path):
        if len(cells) != len(COLUMNS):
            found = f"{len(cells)} cells, not {len(COLUMNS)}: query, iteration, item, grade"
            return MalformedLine(found, where=f"{path}:{line}")
    return MalformedLine(str(error).partition("\n")[0], where=str(path))


def _of_json(path: Path) -> Judgements:
    import pyarrow as pa

    queries = _parsed(path)
    wrong = [name for name, items in queries if not isinstance(items, tuple)]
    if wrong:
        where = _json_place(path, wrong[0])
        raise MalformedLine(f"query {wrong[0]!r} breaks the shape {SHAPE}", where=where)
    pairs = list(chain.from_iterable(items for _, items in queries))
    owner = np.repeat(np.arange(len(queries)), [len(items) for _, items in queries])
    names = pa.array([name for name, _ in queries], pa.string()).take(pa.array(owner))
    items = pa.array([item for item, _ in pairs], pa.string())
    written = [grade for _, grade in pairs]
    grades = np.array([_number_of(grade) for grade in written], dtype=np.float64)
    return _graded(Judgements(path, names, items, grades), lambda: written)


def _parsed(path: Path) -> tuple[tuple[str, Any], ...]:
    parsed = parse_json(read_text(path).decode(), path, pairs=tuple)
    if not isinstance(parsed, tuple):
        raise MalformedLine(f"not an object: {SHAPE}", where=f"{path}:1")
    return parsed


def _json_place(path: Path, *names: str) -> str:
    """Return ``file:line`` of the last of keys that follow each other."""
    with opened(path) as file:
        text = file.read().decode("utf-8", "replace")
    at = 0
    for name in names:
        found = re.compile(re.escape(json.dumps(name, ensure_ascii=False)) + r"\s*:").search(
            text, at
        )
        at = found.start() if found else at
    return f"{path}:{text.count(chr(10), 0, at) + 1}"
