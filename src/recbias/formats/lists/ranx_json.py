"""Lists as JSON: ``{query: {item: score}}`` as ranx saves a run, or ``{query: [item, ...]}``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.errors import MalformedLine
from recbias.formats.lists.rows import ListRows, Place, rows_of
from recbias.formats.text_files import parse_json, read_text

Pairs: TypeAlias = tuple[tuple[str, Any], ...]
"""A JSON object: its keys and values as written, repeats and all."""

SHAPE = "{query: {item: score}} or {query: [item, ...]}"
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"(?P<colon>\s*:)?|[{}\[\]]|[^\s{}\[\]",:]+')
"""A text, with the colon that makes it a key; a bracket; a number or word."""


def read_json(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of a JSON file of lists; equal scores stand in the order of the file.

    Raises:
        MalformedLine: It is not JSON, or of another shape, names a query twice, or has a score
            that is no number.
    """
    lists = _parsed(path)
    ranked = bool(lists) and isinstance(lists[0][1], list)
    _check_lists(lists, path, list if ranked else tuple)
    place = partial(_line, path, depth=2, key=not ranked)
    lengths = [len(each) for _, each in lists]
    rows = list(chain.from_iterable(each for _, each in lists))
    columns = {"query_id": _repeated([name for name, _ in lists], lengths)}
    columns["item_id"] = _items(rows if ranked else [item for item, _ in rows], place)
    if not ranked:
        columns["score"] = _scores([score for _, score in rows], place)
    return rows_of(columns, path, place, in_order=True), {}


def _parsed(path: Path) -> Pairs:
    parsed = parse_json(read_text(path).decode(), path, pairs=tuple)
    if not isinstance(parsed, tuple):
        raise MalformedLine(f"not an object: {SHAPE}", where=f"{path}:1")
    return parsed


def _check_lists(lists: Pairs, path: Path, shape: type) -> None:
    names = [name for name, _ in lists]
    if len(set(names)) < len(names):
        again = int(np.flatnonzero(pd.Series(names).duplicated())[0])
        where = _line(path, again, depth=1, key=True)
        raise MalformedLine(f"query {names[again]!r} stands there twice", where=where)
    wrong = [number for number, (_, each) in enumerate(lists) if not isinstance(each, shape)]
    if wrong:
        where = _line(path, wrong[0], depth=1, key=True)
        raise MalformedLine(f"query {names[wrong[0]]!r} breaks the shape {SHAPE}", where=where)


def _repeated(names: list[str], lengths: list[int]) -> Any:
    import pyarrow as pa

    owner = np.repeat(np.arange(len(names)), lengths)
    return pa.chunked_array([pa.array(names, pa.string()).take(pa.array(owner))])


def _items(items: Sequence[Any], place: Place) -> Any:
    """Return the items as text; whole numbers may stand for their digits."""
    import pyarrow as pa

    _refuse_others(items, {str, int}, "an item is a text or a whole number", place)
    return pa.chunked_array([list(map(str, items))], pa.string())


def _scores(values: Sequence[Any], place: Place) -> Any:
    import pyarrow as pa

    _refuse_others(values, {int, float}, "a score is a number", place)
    try:
        return pa.chunked_array([np.array(values, dtype=np.float64)])
    except OverflowError as error:
        row = next(row for row, value in enumerate(values) if abs(value) > sys.float_info.max)
        raise MalformedLine("a score is too large", where=place(row)) from error


def _refuse_others(values: Sequence[Any], kinds: set[type], rule: str, place: Place) -> None:
    if not set(map(type, values)) <= kinds:
        row = next(row for row, value in enumerate(values) if type(value) not in kinds)
        raise MalformedLine(f"{rule}, not {_shown(values[row])}", where=place(row))


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "a list" if isinstance(value, list) else "an object"
    return json.dumps(value)[:40]


def _line(path: Path, number: int, *, depth: int, key: bool) -> str:
    """Return ``file:line`` of a key, or of a value of a list, counted from 0, at a depth."""
    text = read_text(path).decode()
    at = next(islice(_starts(text, depth, key=key), number, None), 0)
    return f"{path}:{text.count(chr(10), 0, at) + 1}"


def _starts(text: str, wanted: int, *, key: bool) -> Iterator[int]:
    depth = 0
    for token in TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        elif depth == wanted and bool(token["colon"]) == key:
            yield token.start()
