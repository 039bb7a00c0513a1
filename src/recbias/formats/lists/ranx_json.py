"""Lists as JSON: ``{query: {item: score}}`` as ranx saves a run, or ``{query: [item, ...]}``."""

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
from recbias.formats.lists.rows import ListRows, RowLocator, encode_rows

SHAPE = "{query: {item: score}} or {query: [item, ...]}"


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
    """Return the query of each row."""
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
