"""The number of rows of a table and their bytes as text, without reading it whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from recbias.core.errors import UserError
from recbias.core.input_files import has_file
from recbias.formats.delimited.row_samples import sample_rows
from recbias.formats.text_files import DELIMITERS, get_suffix
from recbias.formats.text_lines import read_first_line

PARQUET = frozenset({".parquet", ".parq"})

CELL = 8
"""Bytes of a cell of a Parquet file as text, about."""

PARSED = 1000
"""The number of JSON objects whose values are measured, about."""

PAIR = 16
"""Bytes of an item and its score in a JSON file, about."""


class TableSize(NamedTuple):
    """The size of a table.

    Args:
        rows: The number of rows.
        bytes: Their bytes in the file, or about so many as text.
        cells: The number of cells.
        text_bytes: The bytes of the cells, without the keys and escapes of JSON objects.
    """

    rows: float
    bytes: float
    cells: float
    text_bytes: float


def estimate_table(path: Path) -> TableSize | None:
    """Return the size of a table; None where there is no such file, or it cannot be read.

    Of text it is estimated by samples of its lines, of JSON on one line by its length.
    """
    try:
        if not has_file(path):
            return None
        if get_suffix(path) in PARQUET:
            return _read_parquet_size(path)
        sample, first = sample_rows(path), read_first_line(path)
    except (UserError, OSError, ValueError, EOFError):
        return None
    lines = [line for chunk in sample.chunks for line in chunk]
    n_bytes = sample.n_rows * (1 + sum(map(len, lines)) / max(len(lines), 1))
    suffix = get_suffix(path)
    rows = n_bytes / PAIR if suffix == ".json" else sample.n_rows
    if suffix in DELIMITERS:
        return TableSize(rows, n_bytes, rows * (first.count(DELIMITERS[suffix]) + 1), n_bytes)
    n_cells, share = _measure_objects(lines[:: -(-len(lines) // PARSED) or 1])
    return TableSize(rows, n_bytes, rows * n_cells, n_bytes * share)


def _measure_objects(lines: Sequence[bytes]) -> tuple[float, float]:
    """Return the mean number of values of JSON objects, and the share of their bytes.

    Other lines have one value, which is all of them.
    """
    n_cells, n_value_bytes = 0, 0
    for line in lines:
        with suppress(ValueError, RecursionError):
            record = json.loads(line)
            if isinstance(record, dict):
                n_cells += len(record) - 1
                n_value_bytes -= len(line) - sum(
                    len(str(value).encode()) for value in record.values()
                )
    n_bytes = sum(map(len, lines))
    return 1 + n_cells / max(len(lines), 1), 1 + n_value_bytes / max(n_bytes, 1)


def _read_parquet_size(path: Path) -> TableSize:
    from pyarrow import parquet

    footer = parquet.read_metadata(path)
    groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
    n_values = [
        max(group.column(column).num_values for column in range(group.num_columns))
        for group in groups
    ]
    n_cells = sum(n_values) * footer.num_columns
    return TableSize(sum(n_values), CELL * n_cells, n_cells, CELL * n_cells)
