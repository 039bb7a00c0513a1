"""Large tables to Parquet, piece by piece: memory holds one piece at a time."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pandas as pd


class TableWriter:
    """Writes tables of the same columns to one Parquet file; text columns as dictionaries.

    Args:
        path: The file; it is not written where no table is added.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer: Any = None
        self._schema: Any = None

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

    def add(self, table: pd.DataFrame) -> None:
        """Write one piece; an empty one is passed over."""
        if table.empty:
            return
        import pyarrow as pa
        from pyarrow import parquet

        piece = pa.Table.from_pandas(_coded(table), preserve_index=False, schema=self._schema)
        if self._writer is None:
            self._schema = piece.schema.remove_metadata()
            piece = piece.cast(self._schema)
            self._writer = parquet.ParquetWriter(self.path, self._schema)
        self._writer.write_table(piece)


def _coded(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with every text column as categories with ``int32`` codes."""
    return table.assign(
        **{
            str(name): column.astype("category")
            for name, column in table.items()
            if column.dtype.kind == "O" and not isinstance(column.dtype, pd.CategoricalDtype)
        }
    )
