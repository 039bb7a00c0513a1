"""JSON: one object per line, read in bounded memory, and objects ``{query: {item: number}}``."""

from __future__ import annotations

import ast
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from recbias.core.dataset import BoolArray, FloatArray
from recbias.core.errors import MalformedLine
from recbias.formats.delimited import (
    SKIP_HINT,
    BadLines,
    Block,
    Table,
    collect_rows,
    read_blocks,
)
from recbias.formats.text_files import JSON_TO_TABLE, read_text

_ARROW_BLOCK = 4 * 2**20
"""Bytes that one thread parses at a time; a block with a longer line is read line by line."""


def parse_json(
    text: str, path: Path, *, line: int = 1, pairs: Callable[[Any], Any] | None = None
) -> Any:
    """Return the value of a JSON text, which starts on a line of a file.

    ``pairs`` converts the key-value pairs of an object; ``dict`` by default.

    Raises:
        MalformedLine: The text is not JSON, is nested too deeply, or contains a number with too
            many digits or an unpaired surrogate.
    """
    try:
        value = json.loads(text, object_pairs_hook=pairs)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()  # half a character is no UTF-8
    except json.JSONDecodeError as error:
        line, reason = line + error.lineno - 1, error.msg
    except RecursionError:
        reason = "it is nested too deeply"
    except UnicodeEncodeError:
        reason = "an escape such as \\ud83d is half a character"
    except ValueError as error:
        reason = str(error).partition(";")[0]
    else:
        return value
    raise MalformedLine(f"is not JSON: {reason}", where=f"{path}:{line}")


def read_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON object on each line, after the number of its line; blank ones are skipped.

    Raises:
        MalformedLine: A line is not a JSON object.
        MissingFile: The file does not exist or cannot be read.
    """
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        record = parse_json(line, path, line=number)
        if not isinstance(record, dict):
            remedy = "write one object per line"
            raise MalformedLine("not a JSON object", where=f"{path}:{number}", remedy=remedy)
        yield number, record


# ---- objects of queries ----


def read_queries(
    path: Path, shape: str, *, may_rank: bool = False
) -> tuple[list[str], list[Any], FloatArray | None, Callable[[int], str]]:
    """Return the query, item and number of each row of a JSON file, and what places a row.

    The file holds ``{query: {item: number}}``; if it ``may_rank``, also ``{query: [item, ...]}``,
    which has no numbers. A value that is no number is NaN.

    Raises:
        MalformedLine: The file is not JSON, or not of the ``shape``, or repeats a key.
    """
    text = read_text(path)

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) < len(pairs):
            key = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise MalformedLine(f"{key!r} occurs twice in one object", where=str(path))
        return built

    try:
        lists = parse_json(text, path, pairs=build)
    except MalformedLine as error:
        lines = text.split("\n", 2)
        if len(lines) > 1 and all(line.lstrip().startswith("{") for line in lines[:2]):
            message = "has one JSON object a line, not one of all"
            raise MalformedLine(message, where=f"{path}:1", remedy=JSON_TO_TABLE) from error
        raise
    if not isinstance(lists, dict):
        raise MalformedLine(f"is not an object of the form {shape}", where=f"{path}:1")
    is_ranked = may_rank and isinstance(next(iter(lists.values()), None), list)
    for query, items in lists.items():
        if not isinstance(items, list if is_ranked else dict):
            message = f"query {query!r} does not have the form {shape}"
            raise MalformedLine(message, where=str(path))
    queries = [query for query, items in lists.items() for _ in items]
    items = [item for items in lists.values() for item in items]
    numbers = None if is_ranked else _to_floats(x for y in lists.values() for x in y.values())
    return queries, items, numbers, lambda row: f"{path}: query {queries[row]!r}"


def _to_floats(values: Iterable[Any]) -> FloatArray:
    return np.array([_to_float(value) for value in values], dtype=np.float64)


def _to_float(value: Any) -> float:
    try:
        return float(value) if isinstance(value, (int, float, str)) else math.nan
    except OverflowError:
        return math.copysign(math.inf, value)
    except ValueError:
        return math.nan


# ---- lines of a large file ----


def read_json_lines(
    path: Path,
    schema: Any,
    *,
    needed: Sequence[str] = (),
    is_python: bool = False,
    bad_lines: BadLines = "error",
    keep: Callable[[Any], Any] | None = None,
) -> Table:
    """Return the fields of every line.

    Args:
        path: The file.
        schema: The ``pyarrow.Schema`` of the fields; one that is missing on a line is null.
        needed: Fields that must be on every line, neither null nor empty.
        is_python: Whether each line is a dictionary as Python writes it: ``{u'id': u'7'}``.
        bad_lines: What to do with malformed lines.
        keep: Returns the rows to keep of the table of a block; all by default.

    Raises:
        MalformedLine: A line is not a JSON object, or a field is missing or of another type.
        MissingFile: The file does not exist or cannot be read.
    """

    def read() -> Iterator[tuple[Any, int]]:
        yield schema.empty_table(), 0
        for block in read_blocks(path):
            yield _read_block(block, schema, needed, bad_lines, is_python=is_python)

    return collect_rows(path, read(), keep, lambda _: str(path))


def _read_block(
    block: Block, schema: Any, needed: Sequence[str], bad_lines: BadLines, *, is_python: bool
) -> tuple[Any, int]:
    """Return the table of a block, and the number of lines skipped."""
    table = None if is_python else _parse_with_arrow(block.data, schema)
    problems: dict[int, str] = {}
    numbers: Sequence[int] = range(0 if table is None else table.num_rows)
    if table is None:
        records, problems = _parse_lines(block, schema, is_python=is_python)
        table, numbers = pa.Table.from_pylist([*records.values()], schema=schema), [*records]
    is_wrong = np.zeros(table.num_rows, dtype=bool)
    for name, mask, reason in _find_faults(table, needed):
        is_wrong |= mask
        for row in np.flatnonzero(mask):
            problems.setdefault(numbers[int(row)], f"{name} {reason}")
    if problems and bad_lines == "error":
        number = min(problems)
        raise MalformedLine(problems[number], where=block.locate(number), remedy=SKIP_HINT)
    return table.filter(pa.array(~is_wrong)) if is_wrong.any() else table, len(problems)


def _parse_with_arrow(data: bytes, schema: Any) -> Any:
    """Return the lines as Arrow reads them; None if it rejects one or skips a blank one."""
    options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        table = arrow_json.read_json(
            pa.BufferReader(data),
            read_options=arrow_json.ReadOptions(block_size=_ARROW_BLOCK),
            parse_options=options,
        )
        table.validate(full=True)
    except pa.ArrowInvalid:
        return None
    n_lines = data.count(b"\n") + (not data.endswith(b"\n"))
    return table if table.num_rows == n_lines else None


def _parse_lines(
    block: Block, schema: Any, *, is_python: bool
) -> tuple[dict[int, Any], dict[int, str]]:
    """Return the records of a block and what is wrong with other lines, by number from 0."""
    records: dict[int, Any] = {}
    problems: dict[int, str] = {}
    for number, line in enumerate(block.data.split(b"\n")):
        try:
            if text := line.decode().strip():
                value = ast.literal_eval(text) if is_python else parse_json(text, block.path)
                records[number] = _convert(value, pa.struct(schema), "")
        except UnicodeDecodeError:
            problems[number] = "is not UTF-8"
        except (MalformedLine, TypeError) as error:
            problems[number] = str(getattr(error, "message", error))
        except (ValueError, SyntaxError, RecursionError) as error:
            problems[number] = f"is not JSON: {error}"
    return records, problems


def _find_faults(table: Any, needed: Sequence[str]) -> Iterator[tuple[str, BoolArray, str]]:
    """Yield a field, a mask of the rows in which it is invalid, and the reason."""
    for name in needed:
        is_filled = pc.fill_null(pc.not_equal(table[name], ""), fill_value=False)
        yield name, ~np.asarray(is_filled.to_numpy()), "is missing"
    for name in table.column_names:
        if pa.types.is_floating(table[name].type):
            numbers = pc.fill_null(table[name], 0.0).to_numpy()
            is_finite = np.abs(numbers) <= np.finfo(np.float32).max
            yield name, ~is_finite, "is not a finite number"


def _convert(value: Any, kind: Any, name: str) -> Any:
    """Return a JSON value as its Arrow type takes it; a number may stand for its text."""
    if value is None and name:
        return None
    if pa.types.is_struct(kind) and isinstance(value, dict):
        return {part.name: _convert(value.get(part.name), part.type, part.name) for part in kind}
    if pa.types.is_list(kind) and isinstance(value, list):
        return [_convert(element, kind.value_type, name) for element in value]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if pa.types.is_string(kind) and (is_number or isinstance(value, str)):
        str(value).encode()  # an unpaired surrogate is a UnicodeEncodeError, a ValueError
        return str(value)
    if pa.types.is_floating(kind) and is_number:
        return float(value)
    message = f"{name} is not a {kind}: {str(value)[:40]!r}" if name else "is not a JSON object"
    raise TypeError(message)
