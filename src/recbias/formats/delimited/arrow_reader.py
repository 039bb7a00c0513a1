"""Text to Arrow tables as fast as Arrow parses it; what looks wrong is left to exact reading."""

from __future__ import annotations

from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.formats.delimited.file_blocks import Block
from recbias.formats.delimited.layout import Layout

SNIFFED = 2**16
"""Bytes that are looked at for a decimal point."""


def read_fast(block: Block, layout: Layout, names: list[str]) -> Any:
    """Return the table of some lines, or None where Arrow refuses them or it looks wrong.

    Ratings without a decimal point are first read as whole numbers, which is faster. ``::`` is
    read as two delimiters with an empty column between them; that it is empty is seen from the
    number of bytes where all cells are whole numbers, else by reading it as a column of nulls.

    Args:
        block: The lines.
        layout: How they are written.
        names: All columns of the file, in its order.
    """
    if "float32" in layout.columns.values() and b"." not in block.part(0, SNIFFED):
        table = _parsed(block, layout, names, ratings="int8")
        if table is not None and (layout.delimiter != "::" or _adds_up(table, block)):
            return table.cast(layout.schema())
    gaps = [f"::{place}" for place in range(1, len(names))] if layout.delimiter == "::" else []
    return _parsed(block, layout, names, gaps=gaps)


def _parsed(
    block: Block,
    layout: Layout,
    names: list[str],
    *,
    ratings: str = "float32",
    gaps: list[str] | None = None,
) -> Any:
    """Return what Arrow reads; ``gaps`` are the columns between two delimiters, read as nulls."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    kinds = layout.schema(ratings=ratings)
    types = dict(zip(kinds.names, kinds.types, strict=True))
    if layout.delimiter == "::":
        between = [f"::{place}" for place in range(1, len(names))]
        names = [each for pair in zip(names, [*between, ""], strict=True) for each in pair][:-1]
    convert = arrow_csv.ConvertOptions(
        column_types=types | dict.fromkeys(gaps or [], pa.null()),
        include_columns=[*kinds.names, *(gaps or [])],
        null_values=[""],
        strings_can_be_null=False,
    )
    cut = arrow_csv.ParseOptions(
        delimiter=layout.delimiter[0],
        quote_char='"' if layout.quoted else False,
        newlines_in_values=layout.quoted,
    )
    read = arrow_csv.ReadOptions(column_names=names, encoding=layout.encoding)
    try:
        table = arrow_csv.read_csv(block.source(), read, cut, convert)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    table = table.select(kinds.names)
    return None if _suspicious(table, layout) else table


def _adds_up(table: Any, block: Block) -> bool:
    """Return whether the whole numbers of a table and their ``::`` are every byte of the lines.

    Anything else in the lines only makes them longer.
    """
    columns = [column.to_numpy() for column in table.columns]
    if any(each.dtype.kind != "i" or each.min(initial=0) < 0 for each in columns):
        return False
    separators = 2 * (len(columns) - 1) + 1
    size = table.num_rows * separators + sum(_digits(each) for each in columns)
    return size == block.size and block.is_ended


def _digits(values: AnyArray) -> int:
    """Return how many digits some whole numbers, none of them negative, have together.

    >>> _digits(np.array([7, 10, 999, 0]))
    7
    """
    if not values.size:
        return 0
    fewest, most = len(str(values.min())), len(str(values.max()))
    more = [np.count_nonzero(values >= 10**each) for each in range(fewest, most)]
    return fewest * values.size + int(sum(more))


def _suspicious(table: Any, layout: Layout) -> bool:
    """Return whether a number or an identifier is missing, or a number is not finite."""
    import pyarrow.compute as pc

    for name, kind in layout.columns.items():
        column = table[name]
        if column.null_count and kind != "float64":
            return True
        if kind == "float32" and not np.isfinite(column.to_numpy()).all():
            return True
        if kind == "id" and pc.any(pc.equal(column, "")).as_py():
            return True
    return False
