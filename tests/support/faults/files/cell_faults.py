"""Faults of values: a cell, line or column of a table, a value of a tree, a column of Parquet."""

from __future__ import annotations

import copy
import csv
import datetime as dt
import io
import json
import random
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import yaml
from pyarrow import parquet

from support.faults.files.contents import to_parquet
from support.faults.spec_faults import choose_place

MARK = "@@"
CELLS: Mapping[str, str] = {
    "an empty cell": "",
    "a blank cell": "   ",
    "an infinity": "inf",
    "minus infinity": "-inf",
    "no number": "nan",
    "a number beyond all": "1e400",
    "a number near 0": "1e-400",
    "a negative number": "-1",
    "zero": "0",
    "a hexadecimal number": "0x3",
    "a number with a separator": "1_000",
    "leading zeros": "007",
    "a decimal number": "1.0",
    "2 to the 31": str(2**31),
    "2 to the 53 and 1": str(2**53 + 1),
    "2 to the 63": str(2**63),
    "2 to the 64": str(2**64),
    "minus 2 to the 63": str(-(2**63)),
    "5,000 digits": "9" * 5000,
    "digits of another script": "\u0661\u0662",
    "an emoji": "\U0001f600",
    "a formula": "=cmd|' /C calc'!A0",
    "bars": "|||",
    "a control sequence in a cell": "\x1b]0;title\x07",
    "a reversed text": "\u202eabc",
    "a NUL in a cell": "a\x00b",
    "a quote in a cell": 'a"b',
    "an open quote in a cell": '"a',
    "a forged line": '"a\nerror: forged:1:1: x"',
    "another date": "2026-13-45",
    "a far date": "9999-12-31T23:59:59Z",
    "a long cell": "x" * 200_000,
}
"""Cells of text tables, as they stand in the file."""

LITERALS: Mapping[str, str] = {
    "null": "null",
    "a truth value": "true",
    "an empty text": '""',
    "a blank text": '"  "',
    "an empty list": "[]",
    "an empty object": "{}",
    "a list of lists": "[[1], [2]]",
    "an object in its place": '{"a": {"b": 1}}',
    "a list of mixed values": '[1, "a", null]',
    "an infinite number": "Infinity",
    "not a number": "NaN",
    "a number beyond all numbers": "1e400",
    "a negative value": "-1",
    "a half": "0.5",
    "2 to the 63 as a value": str(2**63),
    "5,000 digits as a value": "9" * 5000,
    "a number of 10,000 digits behind the point": "0." + "1" * 10_000,
    "half a character": '"\\ud800"',
    "another half": '"\\udc00a"',
    "an emoji in escapes": '"\\ud83d\\ude00"',
    "a NUL in escapes": '"a\\u0000b"',
    "a control sequence in escapes": '"\\u001b]0;t\\u0007"',
    "a line end in escapes": '"a\\nerror: forged:1:1: x"',
    "deep lists": "[" * 100_000 + "]" * 100_000,
    "deep objects": '{"a":' * 2000 + "1" + "}" * 2000,
    "lists of 90 levels": "[" * 90 + "]" * 90,
    "a hexadecimal value": "0x3",
    "a value without quotes": "abc",
    "a long text": '"' + "x" * 200_000 + '"',
    "a YAML tag": "!!python/object:os.system",
    "a YAML alias": "*a",
}
"""Values of JSON and YAML, as they stand in the file."""

Rows = list[list[str]]


def split_rows(data: bytes, delimiter: str) -> Rows:
    """Return the raw cells of a table; ``lines`` has one cell per line."""
    lines = data.decode().split("\n")
    if delimiter == "lines":
        return [[line] for line in lines]
    if len(delimiter) > 1 or delimiter in "| ":
        return [line.split(delimiter) for line in lines]
    rows = []
    for row in csv.reader(lines, delimiter=delimiter):
        stream = io.StringIO()
        cells = []
        for cell in row:
            stream = io.StringIO()
            csv.writer(stream, delimiter=delimiter, lineterminator="").writerow([cell, ""])
            cells.append(stream.getvalue()[: -len(delimiter)])
        rows.append(cells)
    return rows


def join_rows(rows: Rows, delimiter: str) -> bytes:
    text = "" if delimiter == "lines" else delimiter
    return "\n".join(text.join(cells) for cells in rows).encode()


def replace_cell(cell: str) -> Callable[[Rows, random.Random, bool], Rows]:
    def change(rows: Rows, rng: random.Random, header: bool) -> Rows:
        row = rng.choice(rows[header:-1] or rows)
        row[rng.randrange(len(row))] = cell
        return rows

    return change


def replace_column(rows: Rows, rng: random.Random, header: bool) -> Rows:
    at = rng.randrange(len(rows[0]))
    cell = rng.choice(["", "abc", "1", "2.5", "nan", "0x3", "inf", "-1", "True", "9" * 5000])
    for row in rows[header:-1]:
        row[at] = cell
    return rows


def repeat_row(rows: Rows, rng: random.Random, header: bool) -> Rows:
    row = rng.choice(rows[header:-1] or rows)
    return [*rows[:-1], [*row], rows[-1]]


def drop_column(rows: Rows, rng: random.Random, _: bool) -> Rows:
    at = rng.randrange(len(rows[0]))
    return [[cell for number, cell in enumerate(row) if number != at] for row in rows]


def repeat_header(rows: Rows, _: random.Random, header: bool) -> Rows:
    return [rows[0], *rows] if header else rows


def rename_twice(rows: Rows, _: random.Random, header: bool) -> Rows:
    rows[0] = [rows[0][0]] * len(rows[0])
    return rows


OF_ROWS: Mapping[str, Callable[[Rows, random.Random, bool], Rows]] = {
    **{name: replace_cell(cell) for name, cell in CELLS.items()},
    "a column of one value": replace_column,
    "a repeated row": repeat_row,
    "a missing column": drop_column,
    "header only": lambda rows, _, header: [*rows[:1], [""]] if header else [[""]],
    "no header": lambda rows, _, header: rows[header:],
    "two headers": repeat_header,
    "columns of one name": rename_twice,
    "an extra cell": lambda rows, rng, _: [
        [*row, "x"] if row is rng.choice(rows) else row for row in rows
    ],
    "short rows": lambda rows, _, header: [*rows[:header], *([row[:1] for row in rows[header:]])],
}
"""Faults of the rows of text tables; the last row is that behind the last line end."""


def change_rows(
    data: bytes, delimiter: str, name: str, rng: random.Random, *, header: bool
) -> bytes:
    rows = split_rows(data, delimiter)
    return join_rows(OF_ROWS[name](rows, rng, header), delimiter)


def change_json(data: bytes, literal: str, rng: random.Random, *, lines: bool) -> bytes:
    """Put a value into the place of another one, of one line or of the whole text."""
    texts = data.decode().splitlines() if lines else [data.decode()]
    at = rng.randrange(len(texts))
    tree = [json.loads(texts[at])]
    container, key = choose_place(tree, rng) or (tree, 0)
    container[key] = MARK
    texts[at] = json.dumps(tree[0]).replace(f'"{MARK}"', literal)
    return ("\n".join(texts) + "\n" * lines).encode()


def change_yaml(data: bytes, literal: str, rng: random.Random) -> bytes:
    tree = [copy.deepcopy(yaml.safe_load(data))]
    container, key = choose_place(tree, rng) or (tree, 0)
    container[key] = MARK
    return yaml.safe_dump(tree[0], sort_keys=False).replace(f"'{MARK}'", literal).encode()


def repeat_key(data: bytes, rng: random.Random) -> bytes:
    """Write one of the keys of a JSON object twice."""
    text = data.decode()
    starts = [at for at, letter in enumerate(text) if letter == "{"]
    if not starts:
        return data
    at = rng.choice(starts)
    key = text[at + 1 :].partition(":")[0]
    return (text[: at + 1] + (f"{key}: 1, " if '"' in key else "") + text[at + 1 :]).encode()


def make_columns(n: int) -> Mapping[str, Any]:
    """Return columns of every type that Parquet has."""
    day = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    return {
        "numbers": pa.array(range(n)),
        "large numbers": pa.array([2**64 - 1] * n, pa.uint64()),
        "decimal numbers": pa.array([0.5] * n),
        "no numbers": pa.array([float("nan")] * n),
        "infinities": pa.array([float("inf")] * n),
        "half precision": pa.array(np.full(n, 1.5, np.float16)),
        "nulls": pa.nulls(n),
        "null texts": pa.nulls(n, pa.string()),
        "truth values": pa.array([True] * n),
        "bytes": pa.array([b"\xff\x00"] * n),
        "fixed bytes": pa.array([b"ab"] * n, pa.binary(2)),
        "broken texts": _break_texts(n),
        "large texts": pa.array(["a"] * n, pa.large_string()),
        "texts": pa.array([f"t{row}" for row in range(n)]),
        "dates": pa.array([day.date()] * n),
        "times": pa.array([day] * n, pa.timestamp("us", "UTC")),
        "durations": pa.array([5] * n, pa.duration("s")),
        "clock times": pa.array([5] * n, pa.time64("us")),
        "decimals": pa.array([Decimal("1.50")] * n),
        "lists": pa.array([[1, 2]] * n),
        "lists of texts": pa.array([["a", "b"]] * n),
        "lists of lists": pa.array([[[1]]] * n),
        "records": pa.array([{"a": 1}] * n),
        "lists of records": pa.array([[{"item_id": "a", "rank": 1}]] * n),
        "maps": pa.array([[("a", 1)]] * n, pa.map_(pa.string(), pa.int64())),
        "coded texts": pa.array(["a"] * n).dictionary_encode(),
        "coded lists": pa.array(["\x1b]0;t\x07"] * n),
        "empty texts": pa.array([""] * n),
    }


def _break_texts(n: int) -> Any:
    offsets = np.arange(0, 2 * n + 1, 2, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"\xff\xfe" * n)]
    return pa.Array.from_buffers(pa.string(), n, buffers)


def change_parquet(data: bytes, column: str, rng: random.Random) -> bytes:
    """Replace a column of a Parquet file by one of another type."""
    table = parquet.read_table(pa.BufferReader(data))
    names = table.column_names
    columns = {name: table.column(name) for name in names}
    columns[rng.choice(names)] = make_columns(table.num_rows)[column]
    return to_parquet(columns)


def select_parquet(
    data: bytes, select: Callable[[Any, random.Random], Any], rng: random.Random
) -> bytes:
    stream = io.BytesIO()
    parquet.write_table(select(parquet.read_table(pa.BufferReader(data)), rng), stream)
    return stream.getvalue()


OF_PARQUET: Mapping[str, Callable[[Any, random.Random], Any]] = {
    "no rows": lambda table, _: table.slice(0, 0),
    "no columns": lambda table, _: table.select([]),
    "a column less": lambda table, rng: table.drop_columns(rng.choice(table.column_names)),
    "a row twice": lambda table, _: pa.concat_tables([table, table.slice(0, 1)]),
    "one name twice": lambda table, _: table.rename_columns(
        [table.column_names[0]] * table.num_columns
    ),
}
