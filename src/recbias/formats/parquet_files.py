"""Parquet files to Arrow tables whose text is text and whose numbers are numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from recbias.core.errors import MalformedLine


def read_schema(path: Path) -> Any:
    """Return the ``pyarrow.Schema`` of a Parquet file.

    Raises:
        MalformedLine: It is none.
    """
    from pyarrow import parquet

    with _refused(path):
        return parquet.read_schema(path)


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> Any:
    """Return the ``pyarrow.Table`` of a Parquet file, or some of its columns.

    Raises:
        MalformedLine: It is none, or holds text that is not UTF-8.
    """
    import pyarrow as pa
    from pyarrow import parquet

    with _refused(path):
        table = parquet.read_table(
            path, columns=None if columns is None else list(columns), partitioning=None
        )
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        remedy = "write its text as UTF-8"
        raise MalformedLine(f"is damaged: {error}", where=str(path), remedy=remedy) from error
    return table


def decode_dictionary(column: Any) -> Any:
    """Return a column with its values in place of their codes."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def to_text(column: Any, where: str) -> Any:
    """Return a column as text, "" where it is null.

    Raises:
        MalformedLine: It is of a type that has no text.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = decode_dictionary(column)
    try:
        return pc.fill_null(column.cast(pa.string()), "")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        found = f"is a column of {column.type}, not of text"
        remedy = "write it as text or as whole numbers"
        raise MalformedLine(found, where=where, remedy=remedy) from error


def to_numbers(column: Any, where: str) -> Any:
    """Return a column as ``float64``, NaN where it is null.

    Raises:
        MalformedLine: It is of a type that is no number.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = decode_dictionary(column)
    try:
        return pc.fill_null(column.cast(pa.float64(), safe=False), np.nan)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        found = f"is a column of {column.type}, not of numbers"
        raise MalformedLine(found, where=where, remedy="write it as numbers") from error


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    """Say of a file that Arrow cannot read that it is no Parquet file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        found = f"is not a Parquet file: {str(error)[:200]}"
        remedy = "write it again, or fetch it again: it may be cut short"
        raise MalformedLine(found, where=str(path), remedy=remedy) from error
