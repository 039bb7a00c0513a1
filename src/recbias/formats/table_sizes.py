"""The number of rows of a table and their bytes as text, without reading it whole."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from recbias.core.errors import UserError
from recbias.core.input_files import has_file
from recbias.formats.delimited.row_samples import sample_rows
from recbias.formats.text_files import get_suffix

PARQUET = frozenset({".parquet", ".parq"})

CELL = 8
"""Bytes of a cell of a Parquet file as text, about."""

PAIR = 16
"""Bytes of an item and its score in a JSON file, about."""


class TableSize(NamedTuple):
    """The size of a table: its rows, and their bytes as text."""

    rows: float
    bytes: float


def estimate_table(path: Path) -> TableSize | None:
    """Return the size of a table; None where there is no such file, or it cannot be read.

    Of text it is estimated by samples of its lines, of JSON on one line by its length.
    """
    try:
        if not has_file(path):
            return None
        if get_suffix(path) in PARQUET:
            return _read_parquet_size(path)
        sample = sample_rows(path)
    except (UserError, OSError, ValueError, EOFError):
        return None
    lengths = [len(line) + 1 for chunk in sample.chunks for line in chunk]
    n_bytes = sample.n_rows * sum(lengths) / max(len(lengths), 1)
    rows = n_bytes / PAIR if get_suffix(path) == ".json" else sample.n_rows
    return TableSize(rows, n_bytes)


def _read_parquet_size(path: Path) -> TableSize:
    from pyarrow import parquet

    footer = parquet.read_metadata(path)
    groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
    n_values = [
        max(group.column(column).num_values for column in range(group.num_columns))
        for group in groups
    ]
    return TableSize(sum(n_values), CELL * sum(n_values) * footer.num_columns)
