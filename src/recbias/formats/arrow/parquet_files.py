"""Parquet files as Arrow tables of text and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.errors import MalformedLine
from recbias.formats.limited.file_limits import check_columns


def read_schema(path: Path) -> Any:
    """Return the ``pyarrow.Schema`` of a Parquet file.

    Raises:
        MalformedLine: The file is not a Parquet file.
    """
    from pyarrow import parquet  # slow, and not needed to plan

    with _report_damage(path):
        schema = parquet.read_schema(path)
    check_columns(schema.names, str(path))
    return schema


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> Any:
    """Return the ``pyarrow.Table`` in a Parquet file, or some of its columns.

    Raises:
        MalformedLine: The file is not a Parquet file, or its text is not UTF-8.
    """
    from pyarrow import parquet

    read_schema(path)
    names = None if columns is None else list(columns)
    with _report_damage(path):
        table = parquet.read_table(path, columns=names, partitioning=None)
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        remedy = "write its text as UTF-8"
        raise MalformedLine(f"is damaged: {error}", where=str(path), remedy=remedy) from error
    return table


def locate_row(path: Path, row: int) -> str:
    """Return ``file: row n`` of a row, counted from 0.

    >>> locate_row(Path("a.parquet"), 4)
    'a.parquet: row 5'
    """
    return f"{path}: row {row + 1:,}"


def decode_dictionary(column: Any) -> Any:
    """Return a dictionary-encoded column as its values; any other column as it is."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def to_text(column: Any, location: str) -> Any:
    """Return a column as text, "" for null.

    Raises:
        MalformedLine: The type of the column cannot be converted.
    """
    return _cast(column, pa.string(), location, "text", "text or as whole numbers")


def to_numbers(column: Any, location: str) -> Any:
    """Return a column as ``float64``, NaN for null.

    Raises:
        MalformedLine: The type of the column cannot be converted.
    """
    return _cast(column, pa.float64(), location, "numbers", "numbers")


def _cast(column: Any, arrow_type: Any, location: str, content: str, remedy: str) -> Any:
    column, is_text = decode_dictionary(column), pa.types.is_string(arrow_type)
    try:
        return pc.fill_null(column.cast(arrow_type, safe=is_text), "" if is_text else np.nan)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        message = f"is a column of {column.type}, not of {content}"
        raise MalformedLine(message, where=location, remedy=f"write it as {remedy}") from error


@contextmanager
def _report_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        message = f"is not a Parquet file: {str(error)[:200]}"
        remedy = "write or download it again: it may be truncated"
        raise MalformedLine(message, where=str(path), remedy=remedy) from error
