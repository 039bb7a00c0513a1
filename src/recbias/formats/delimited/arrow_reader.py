"""Delimited text parsed by Arrow; lines that may be malformed are left to the line reader."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from recbias.core.arrays import AnyArray
from recbias.formats.delimited.file_blocks import Block
from recbias.formats.delimited.layout import Layout
from recbias.formats.limited.file_limits import may_have_long_cells

SNIFF_SIZE = 2**16
"""Bytes that are searched for a decimal point."""

HEX = b"0x", b"0X"
"""Arrow reads a cell of digits behind these as a number."""

MIN_THREADED_SIZE = 2**20
"""Smaller blocks are parsed in one thread: a process that ends right after an error may abort
while threads of Arrow still start."""


def read_with_arrow(block: Block, layout: Layout, names: list[str]) -> Any:
    """Return the table of a block, or None if Arrow rejects a line or a value is suspicious.

    Ratings without a decimal point are first read as whole numbers, which is faster. ``::`` is
    read as two delimiters around an empty column. That this column is empty follows from the
    number of bytes if all cells are whole numbers; else it is read as a column of nulls.
    ``names`` are all columns of the file, in order.
    """
    kinds = layout.columns.values()
    if {"int32", "int64"} & set(kinds) and _may_have_hexadecimals(block):
        return None
    is_double = layout.delimiter == "::"
    if "float32" in kinds and b"." not in block.slice(0, SNIFF_SIZE):
        table = _parse(block, layout, names, ratings="int8")
        if table is not None and (not is_double or _accounts_for_all_bytes(table, block)):
            return table.cast(layout.schema())
    return _parse(block, layout, names, gaps=_name_gaps(names) if is_double else [])


def _may_have_hexadecimals(block: Block) -> bool:
    """Return whether ``0x`` occurs; its second letter alone is found faster, and mostly absent."""
    return block.contains(b"x", b"X") and block.contains(*HEX)


def _name_gaps(names: list[str]) -> list[str]:
    """Return the names of the empty columns between the two colons of ``::``."""
    return [f"::{position}" for position in range(1, len(names))]


def _parse(
    block: Block, layout: Layout, names: list[str], ratings: str = "float32", gaps: Any = ()
) -> Any:
    """Return the table that Arrow reads; ``gaps`` are empty columns to read as nulls."""
    schema = layout.schema(ratings=ratings)
    types = dict(zip(schema.names, schema.types, strict=True))
    if layout.delimiter == "::":
        pairs = zip(names, [*_name_gaps(names), ""], strict=True)
        names = [name for pair in pairs for name in pair][:-1]
    convert = arrow_csv.ConvertOptions(
        column_types=types | dict.fromkeys(gaps, pa.null()),
        include_columns=[*schema.names, *gaps],
        null_values=[""],
        strings_can_be_null=False,
    )
    is_quoted = layout.quoted and block.contains(b'"')
    parse = arrow_csv.ParseOptions(
        delimiter=layout.delimiter[0],
        quote_char='"' if is_quoted else False,
        newlines_in_values=is_quoted,  # Arrow then finds the ends of rows in one thread
    )
    read = arrow_csv.ReadOptions(
        use_threads=block.size > MIN_THREADED_SIZE, column_names=names, encoding=layout.encoding
    )
    try:
        table = arrow_csv.read_csv(block.source(), read, parse, convert)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    table = table.select(schema.names)
    return None if _is_suspicious(table, layout) else table


def _accounts_for_all_bytes(table: Any, block: Block) -> bool:
    """Return whether the digits of a table of whole numbers and its ``::`` are all bytes read."""
    columns = [column.to_numpy() for column in table.columns]
    if any(column.dtype.kind != "i" or column.min(initial=0) < 0 for column in columns):
        return False
    separators = 2 * (len(columns) - 1) + 1
    size = table.num_rows * separators + sum(count_digits(column) for column in columns)
    return size == block.size and block.is_ended


def count_digits(values: AnyArray) -> int:
    """Return the total number of digits of some non-negative whole numbers.

    >>> count_digits(np.array([7, 10, 999, 0]))
    7
    """
    if not values.size:
        return 0
    fewest, most = len(str(values.min())), len(str(values.max()))
    longer = [np.count_nonzero(values >= 10**digits) for digits in range(fewest, most)]
    return fewest * values.size + int(sum(longer))


def _is_suspicious(table: Any, layout: Layout) -> bool:
    """Return whether a number or an identifier is missing, or a rating is not finite."""
    for name, kind in layout.columns.items():
        column = table[name]
        if column.null_count and kind != "float64":
            return True
        if kind == "float32" and not np.isfinite(column.to_numpy()).all():
            return True
        if kind == "id" and pc.any(pc.equal(column, "")).as_py():
            return True
    return may_have_long_cells(table.columns)
