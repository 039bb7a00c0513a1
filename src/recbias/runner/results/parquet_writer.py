"""Large tables to Parquet, piece by piece: memory holds one piece at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from recbias.core.arrays import AnyArray, Ids


def constant(value: str, length: int) -> Any:
    """Return a column of one text: an Arrow dictionary array."""
    return coded(np.zeros(length, dtype=np.int32), np.array([value], dtype=object))


def coded(codes: AnyArray, words: Ids) -> Any:
    """Return a column of texts given as codes into their words: an Arrow dictionary array."""
    import pyarrow as pa

    indices = pa.array(codes.astype(np.int32, copy=False))
    return pa.DictionaryArray.from_arrays(indices, pa.array(words, type=pa.string()))


class TableWriter:
    """Writes tables of the same columns to one Parquet file.

    Args:
        path: The file; it is not written where no piece is added.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._writer is not None:
            self._writer.close()

    def add(self, columns: Mapping[str, Any]) -> None:
        """Write one piece: a name and an array for each column; an empty piece is passed over."""
        import pyarrow as pa
        from pyarrow import parquet

        piece = pa.table(dict(columns))
        if not piece.num_rows:
            return
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self.path, piece.schema)
        self._writer.write_table(piece)
