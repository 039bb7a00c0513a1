"""Parquet files of lists: one row an item, or one row a list as LensKit writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from recbias.formats.lists.columns import roles_of
from recbias.formats.lists.rows import ListRows, encoded, rows_of
from recbias.formats.parquet_files import (
    decode_dictionary,
    read_parquet,
    read_schema,
    to_numbers,
    to_text,
)

ITEMS = "items"
"""The column in which LensKit keeps the items of a list."""


def is_nested(path: Path) -> bool:
    """Return whether each row of a Parquet file is a list, as in LensKit's own layout.

    Raises:
        MalformedLine: It is not a Parquet file.
    """
    import pyarrow as pa

    schema = read_schema(path)
    if ITEMS not in schema.names:
        return False
    kind = schema.field(ITEMS).type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return bool(is_list and pa.types.is_struct(kind.value_type))


def read_flat(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of a Parquet file of one row an item, and which column was which."""
    table = read_parquet(path)
    roles = roles_of(table.column_names, str(path))
    columns = {role: table.column(name) for role, name in roles.items()}
    return rows_of(_typed(columns, path), path, partial(_place, path)), roles


def read_nested(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of LensKit's own Parquet layout, and which column was which.

    A row is a list: its keys, and a column ``items`` of lists of ``item_id``, ``rank`` and
    ``score``. A list without items is there and empty. Without rank and score, the items stand in
    the order of the list.
    """
    table = read_parquet(path)
    lists = table.column(ITEMS).combine_chunks()
    keys = [name for name in table.column_names if name != ITEMS]
    parts = _parts(lists)
    roles = roles_of([*keys, *parts], str(path), ordered=True)
    owner = _owners(lists)
    place = partial(_place_in_list, path, owner)
    queries = _cells("query_id", table.column(roles["query_id"]), path)
    names, codes = encoded(queries, "query_id", partial(_place, path))
    columns = {role: parts[name] for role, name in roles.items() if name in parts}
    for role in ("query_id", "dataset"):
        if roles.get(role) in keys:
            columns[role] = table.column(roles[role]).take(owner)
    if not {"rank", "score"} & set(columns):
        columns["rank"] = _positions(owner)
    rows = rows_of(_typed(columns, path), path, place)
    return replace(rows, query_ids=names, queries=codes[owner]), roles


def _typed(columns: Mapping[str, Any], path: Path) -> dict[str, Any]:
    return {role: _cells(role, column, path) for role, column in columns.items()}


def _cells(role: str, column: Any, path: Path) -> Any:
    """Return a column as text, a rank or score as numbers unless it is text or whole numbers."""
    import pyarrow as pa

    where, column = f"{path}: {role}", decode_dictionary(column)
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    number = role in {"rank", "score"} and not is_text
    if number:
        return column if pa.types.is_integer(column.type) else to_numbers(column, where)
    return to_text(column, where)


def _parts(lists: Any) -> dict[str, Any]:
    """Return the fields of all items of all lists, each a chunked array."""
    import pyarrow as pa
    from pyarrow import compute

    items = compute.list_flatten(lists)
    names = [field.name for field in items.type]
    return {
        name: pa.chunked_array([values])
        for name, values in zip(names, items.flatten(), strict=True)
    }


def _owners(lists: Any) -> Any:
    """Return the row of the list that each item is of, ``int64[n]``."""
    from pyarrow import compute

    return compute.list_parent_indices(lists).to_numpy()


def _positions(owner: Any) -> Any:
    """Return the position of each item in its list, from 1."""
    import pyarrow as pa

    starts = np.searchsorted(owner, owner)
    return pa.chunked_array([np.arange(1, owner.size + 1) - starts])


def _place(path: Path, row: int) -> str:
    return f"{path}: row {row + 1:,}"


def _place_in_list(path: Path, owner: Any, row: int) -> str:
    return _place(path, int(owner[row]))
