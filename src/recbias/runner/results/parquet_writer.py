"""Parquet files written in chunks, so that memory holds one chunk at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from recbias.core.arrays import AnyArray, Ids


def encode_constant(value: str, length: int) -> Any:
    """Return a column that repeats one text, as an Arrow dictionary array."""
    return encode_column(np.zeros(length, dtype=np.int32), np.array([value], dtype=object))


def encode_column(codes: AnyArray, texts: Ids) -> Any:
    """Return the column ``texts[codes]`` as an Arrow dictionary array."""
    import pyarrow as pa

    indices = pa.array(codes.astype(np.int32, copy=False))
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts, type=pa.string()))


class TableWriter:
    """Writes chunks of one table to a Parquet file, which is not created if none has rows."""

    GROUP: ClassVar[int] = 2**20
    """The most rows of a row group; larger chunks are divided."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def add(self, columns: Mapping[str, Any]) -> None:
        """Write a chunk, the array of each column by name, unless it has no rows."""
        import pyarrow as pa
        from pyarrow import parquet

        chunk = pa.table(dict(columns))
        if not chunk.num_rows:
            return
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self.path, chunk.schema)
        self._writer.write_table(chunk)
