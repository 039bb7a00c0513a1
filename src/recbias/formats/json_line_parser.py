"""Lines of JSON objects to an Arrow table: by Arrow, or line by line if Arrow rejects one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import json as arrow_json

ARROW_BLOCK = 4 * 2**20
"""Bytes that one thread parses at a time; a block with a longer line is read line by line."""


@dataclass(frozen=True)
class ParsedLines:
    """The lines of a block.

    Args:
        table: The lines that are JSON objects of the right types.
        numbers: The line of each row of the table, from 0 in the block.
        problems: What is wrong with the other lines, by the same number.
    """

    table: Any
    numbers: Any
    problems: dict[int, str]


def parse_lines(data: bytes, schema: Any) -> ParsedLines:
    """Return some lines of JSON objects; fields that are not in the Arrow schema are skipped."""
    return _parse_with_arrow(data, schema) or _parse_line_by_line(data, schema)


def _parse_with_arrow(data: bytes, schema: Any) -> ParsedLines | None:
    """Return the lines as Arrow reads them; None if it rejects one or skips a blank one."""
    options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        table = arrow_json.read_json(
            pa.BufferReader(data),
            read_options=arrow_json.ReadOptions(block_size=ARROW_BLOCK),
            parse_options=options,
        )
        table.validate(full=True)
    except pa.ArrowInvalid:
        return None
    n_lines = data.count(b"\n") + (not data.endswith(b"\n"))
    has_blank = data.startswith((b"\n", b"\r\n")) or b"\n\n" in data or b"\n\r\n" in data
    if has_blank or table.num_rows != n_lines:
        return None
    return ParsedLines(table, range(n_lines), {})


def _parse_line_by_line(data: bytes, schema: Any) -> ParsedLines:
    records, numbers, problems = [], [], {}
    for number, text in enumerate(data.split(b"\n")):
        if not text.strip():
            continue
        record, problem = _parse_record(text, schema)
        if problem:
            problems[number] = problem
        else:
            records.append(record)
            numbers.append(number)
    return ParsedLines(pa.Table.from_pylist(records, schema=schema), numbers, problems)


def _parse_record(text: bytes, schema: Any) -> tuple[dict[str, Any], str]:
    """Return the fields of a line, and what is wrong with it ("" if nothing)."""
    try:
        record = json.loads(text)
        if isinstance(record, dict):
            return {field.name: _convert(record.get(field.name), field) for field in schema}, ""
    except UnicodeDecodeError:
        return {}, "is not utf-8"
    except RecursionError:
        return {}, "is nested too deeply"
    except (ValueError, OverflowError) as error:
        return {}, f"is not JSON: {str(error).partition(' for integer')[0]}"
    except TypeError as error:
        return {}, str(error)
    return {}, "is not a JSON object"


def _convert(value: Any, field: Any) -> Any:
    """Return a JSON value as its Arrow type takes it; a number may stand for its text."""
    type_ = field.type
    if value is None:
        return None
    if pa.types.is_struct(type_) and isinstance(value, dict):
        return {child.name: _convert(value.get(child.name), child) for child in type_}
    if pa.types.is_list(type_) and isinstance(value, list):
        return [_convert(element, type_.value_field) for element in value]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if pa.types.is_string(type_) and isinstance(value, str):
        value.encode()  # an unpaired surrogate is a UnicodeEncodeError, a ValueError
        return value
    if pa.types.is_string(type_) and is_number:
        return str(value)
    if pa.types.is_floating(type_) and is_number:
        return float(value)
    message = f"{field.name} is not a {type_}: {str(value)[:40]!r}"
    raise TypeError(message)
