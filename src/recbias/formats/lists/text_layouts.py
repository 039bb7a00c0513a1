"""Lists in text files: tables with a header, RecBole's, Elliot's, TREC runs and ranx's JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from recbias.core.errors import MalformedLine
from recbias.formats.encode_ids import find_repeat
from recbias.formats.json_text import Pairs, locate_value, read_pairs
from recbias.formats.lists.rows import ListRows, RowLocator, assign_roles, encode_rows
from recbias.formats.text_files import DELIMITERS, get_suffix
from recbias.formats.text_lines import TextLines, read_first_line

RUN_COLUMNS = ("query_id", "iteration", "item_id", "rank", "score", "tag")
ELLIOT_COLUMNS = ("query_id", "item_id", "score")

SHAPE = "{query: {item: score}} or {query: [item, ...]}"


def read_table(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of a table with a header, and the column of each role.

    The delimiter is a comma in ``.csv``, a tab in ``.tsv``, and detected in any other file.
    """
    delimiter = DELIMITERS.get(get_suffix(path)) or _detect_delimiter(path)
    return _read_with_header(TextLines(path, delimiter), typed=False)


def read_recbole(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of a table as users of RecBole write it, and the column of each role.

    Column names may have a type (``user_id:token``). Rows of equal score are in file order, and
    without rank and score the lists are in that order.
    """
    return _read_with_header(TextLines(path, _detect_delimiter(path)), typed=True)


def read_elliot(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of an Elliot file: user, item and score separated by tabs, no header."""
    lines = TextLines(path, "\t", header=False, quoted=False, width=len(ELLIOT_COLUMNS))
    table = lines.read(ELLIOT_COLUMNS)
    columns = dict(zip(table.column_names, table.columns, strict=True))
    return encode_rows(columns, path, lines.locate, in_order=True), {}


def read_run(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of a TREC run: query, Q0, item, rank, score and tag, no header."""
    lines = TextLines(path, None, header=False, quoted=False, width=len(RUN_COLUMNS))
    table = lines.read(RUN_COLUMNS)
    if not table.num_rows:
        raise MalformedLine("the file is empty", where=str(path))
    columns = {role: table.column(role) for role in ("query_id", "item_id", "rank", "score")}
    return encode_rows(columns, path, lines.locate), {}


def _read_with_header(lines: TextLines, *, typed: bool) -> tuple[ListRows, dict[str, str]]:
    line, headers = next(lines.records(), (1, []))
    if not headers:
        remedy = "its first line names the columns: query_id, item_id and rank or score"
        raise MalformedLine("the file is empty", where=str(lines.path), remedy=remedy)
    names = [header.strip().partition(":")[0] for header in headers] if typed else headers
    roles = assign_roles(names, f"{lines.path}:{line}", ordered=typed)
    role_headers = {role: headers[names.index(name)] for role, name in roles.items()}
    table = lines.read(list(role_headers.values()))
    columns = {role: table.column(header) for role, header in role_headers.items()}
    return encode_rows(columns, lines.path, lines.locate, in_order=typed), roles


def _detect_delimiter(path: Path) -> str:
    return "\t" if "\t" in read_first_line(path) else ","


def read_json(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of a JSON file of lists; equal scores are in file order.

    Raises:
        MalformedLine: The file is not JSON or has another shape, names a query twice, or has a
            score that is not a number.
    """
    lists = read_pairs(path, SHAPE)
    is_ranked = bool(lists) and isinstance(lists[0][1], list)
    locate_query = partial(locate_value, path, depth=1, key=True)
    _validate_queries(lists, list if is_ranked else tuple, locate_query)
    locate = partial(locate_value, path, depth=2, key=not is_ranked)
    rows = list(chain.from_iterable(items for _, items in lists))
    columns = {"query_id": _repeat_queries(lists)}
    columns["item_id"] = _convert_items(rows if is_ranked else [item for item, _ in rows], locate)
    if not is_ranked:
        columns["score"] = _convert_scores([score for _, score in rows], locate)
    return encode_rows(columns, path, locate, in_order=True), {}


def _validate_queries(lists: Pairs, shape: type, locate: RowLocator) -> None:
    queries = [query for query, _ in lists]
    _, repeat = find_repeat(np.array(queries, dtype=object))
    if repeat >= 0:
        message = f"the query {queries[repeat]!r} occurs twice"
        raise MalformedLine(message, where=locate(repeat))
    for number, (query, items) in enumerate(lists):
        if not isinstance(items, shape):
            message = f"query {query!r} does not have the form {SHAPE}"
            raise MalformedLine(message, where=locate(number))


def _repeat_queries(lists: Pairs) -> Any:
    queries = pa.array([query for query, _ in lists], pa.string())
    owners = np.repeat(np.arange(len(lists)), [len(items) for _, items in lists])
    return pa.chunked_array([queries.take(pa.array(owners))])


def _convert_items(items: Sequence[Any], locate: RowLocator) -> Any:
    """Return the items as text; a whole number stands for its digits."""
    _validate_types(items, {str, int}, "an item is a text or a whole number", locate)
    return pa.chunked_array([list(map(str, items))], pa.string())


def _convert_scores(scores: Sequence[Any], locate: RowLocator) -> Any:
    _validate_types(scores, {int, float}, "a score is a number", locate)
    try:
        return pa.chunked_array([np.array(scores, dtype=np.float64)])
    except OverflowError as error:
        row = next(row for row, score in enumerate(scores) if abs(score) > sys.float_info.max)
        raise MalformedLine("a score is too large", where=locate(row)) from error


def _validate_types(
    values: Sequence[Any], types: set[type], rule: str, locate: RowLocator
) -> None:
    if not set(map(type, values)) <= types:
        row = next(row for row, value in enumerate(values) if type(value) not in types)
        raise MalformedLine(f"{rule}, not {_describe(values[row])}", where=locate(row))


def _describe(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "a list" if isinstance(value, list) else "an object"
    return json.dumps(value)[:40]
