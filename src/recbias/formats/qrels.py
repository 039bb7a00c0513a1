"""Relevance judgements (TREC qrels or JSON) as the rows of a test set."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from recbias.core.arrays import FloatArray
from recbias.core.dataset.interactions import Interactions
from recbias.core.errors import MalformedLine
from recbias.core.stage_context import warn
from recbias.formats.encode_ids import encode, find_repeat
from recbias.formats.json_text import locate_value, read_pairs
from recbias.formats.tables import require_file
from recbias.formats.text_files import get_suffix
from recbias.formats.text_lines import TextLines, parse_numbers, shorten

COLUMNS = ("query_id", "iteration", "item_id", "grade")
SUFFIXES = (".qrels", ".qrel", ".trec", ".txt", ".json")
SHAPE = "{query: {item: grade}}"


@dataclass(frozen=True, eq=False)
class Judgements:
    """The rows of a file of judgements: Arrow text, the grades as numbers and as written."""

    queries: Any
    items: Any
    grades: FloatArray
    raw_grades: Callable[[], list[Any]]
    locate: Callable[[int], str]


def is_qrels(path: Path) -> bool:
    """Return whether the suffix of a file is one of relevance judgements.

    >>> is_qrels(Path("test.qrels.gz")), is_qrels(Path("test.csv"))
    (True, False)
    """
    return get_suffix(path) in SUFFIXES


def read_qrels(path: Path, least_grade: int) -> Interactions:
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
    relevant = rows.take(judged.grades >= least_grade).drop_unused_ids()
    if n_excluded := rows.n_users - relevant.n_users:
        warn(
            f"{path.name}: {n_excluded:,} of {rows.n_users:,} queries have no item of grade "
            f"{least_grade} or more and are excluded from the evaluation"
        )
    return relevant


def _read_lines(path: Path) -> Judgements:
    lines = TextLines(path, None, header=False, quoted=False, width=len(COLUMNS))
    table = lines.read(COLUMNS)
    queries, _, items, grades = (column.combine_chunks() for column in table.columns)
    numbers = parse_numbers(grades, "grade", lines.locate)
    return Judgements(queries, items, numbers, grades.to_pylist, lines.locate)


def _read_json(path: Path) -> Judgements:
    queries = read_pairs(path, SHAPE)
    for number, (query, judged) in enumerate(queries):
        if not isinstance(judged, tuple):
            location = locate_value(path, number, depth=1, key=True)
            message = f"query {query!r} does not have the form {SHAPE}"
            raise MalformedLine(message, where=location)
    pairs = list(chain.from_iterable(judged for _, judged in queries))
    owners = np.repeat(np.arange(len(queries)), [len(judged) for _, judged in queries])
    names = pa.array([query for query, _ in queries], pa.string()).take(pa.array(owners))
    items = pa.array([item for item, _ in pairs], pa.string())
    raw = [grade for _, grade in pairs]
    grades = np.array([_convert_grade(grade) for grade in raw], dtype=np.float64)
    locate = partial(locate_value, path, depth=2, key=True)
    return Judgements(names, items, grades, lambda: raw, locate)


def _convert_grade(grade: Any) -> float:
    """Return a grade in JSON as a number, NaN if it is none."""
    try:
        return float(grade) if isinstance(grade, (int, float, str)) else math.nan
    except (OverflowError, ValueError):
        return math.nan
