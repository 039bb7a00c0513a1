"""Parquet files of lists: one row per item, or one row per list as LensKit writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from recbias.formats.arrow.parquet_files import (
    decode_dictionary,
    locate_row,
    read_parquet,
    read_schema,
    to_numbers,
    to_text,
)
from recbias.formats.lists.rows import ListRows, assign_roles, encode_column, encode_rows

ITEMS = "items"
"""The column in which LensKit stores the items of a list."""


def is_nested(path: Path) -> bool:
    """Return whether each row of a Parquet file is a list, as in LensKit's layout.

    Raises:
        MalformedLine: The file is not a Parquet file.
    """
    schema = read_schema(path)
    if ITEMS not in schema.names:
        return False
    column_type = schema.field(ITEMS).type
    is_list = pa.types.is_list(column_type) or pa.types.is_large_list(column_type)
    return bool(is_list and pa.types.is_struct(column_type.value_type))


def read_flat(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of a Parquet file with one row per item, and the column of each role."""
    table = read_parquet(path)
    roles = assign_roles(table.column_names, str(path))
    columns = {role: table.column(name) for role, name in roles.items()}
    return encode_rows(_convert_columns(columns, path), path, partial(locate_row, path)), roles


def read_nested(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of LensKit's Parquet layout, and the column of each role.

    A row is a list: its keys, and a column ``items`` of lists of ``item_id``, ``rank`` and
    ``score``. A list may be empty. Without rank and score, the items are in list order.
    """
    table = read_parquet(path)
    lists = table.column(ITEMS).combine_chunks()
    keys = [name for name in table.column_names if name != ITEMS]
    items = compute.list_flatten(lists)
    names = [field.name for field in items.type]
    chunks = [pa.chunked_array([values]) for values in items.flatten()]
    fields = dict(zip(names, chunks, strict=True))
    roles = assign_roles([*keys, *fields], str(path), ordered=True)
    list_rows = compute.list_parent_indices(lists).to_numpy()
    queries = _convert_column("query_id", table.column(roles["query_id"]), path)
    query_ids, codes = encode_column(queries, "query_id", partial(locate_row, path))
    columns = {role: fields[name] for role, name in roles.items() if name in fields}
    for role in ("query_id", "dataset"):
        if roles.get(role) in keys:
            columns[role] = table.column(roles[role]).take(list_rows)
    if not {"rank", "score"} & set(columns):
        starts = np.searchsorted(list_rows, list_rows)
        columns["rank"] = pa.chunked_array([np.arange(1, list_rows.size + 1) - starts])

    def locate(row: int) -> str:
        return locate_row(path, int(list_rows[row]))

    rows = encode_rows(_convert_columns(columns, path), path, locate)
    return replace(rows, query_ids=query_ids, queries=codes[list_rows]), roles


def _convert_columns(columns: Mapping[str, Any], path: Path) -> dict[str, Any]:
    return {role: _convert_column(role, column, path) for role, column in columns.items()}


def _convert_column(role: str, column: Any, path: Path) -> Any:
    """Return a column as text; a rank or score as numbers, unless it is text."""
    location, column = f"{path}: {role}", decode_dictionary(column)
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if is_text or role not in {"rank", "score"}:
        return to_text(column, location)
    return column if pa.types.is_integer(column.type) else to_numbers(column, location)
