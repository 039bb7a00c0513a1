"""The sizes of tables, estimated from samples of their lines without reading them whole."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from recbias.core.errors import UserError
from recbias.core.input_files import has_file
from recbias.formats.interactions import ID_COLUMNS, find_text_columns
from recbias.formats.tables import TableColumns, read_schema
from recbias.formats.text_files import (
    DELIMITERS,
    get_suffix,
    is_gzip,
    open_binary,
    read_first_line,
    require_file,
)

N_CHUNKS, CHUNK_SIZE = 64, 2**16
"""The number of places of a file at which lines are read, and the bytes that are read there."""


_PARQUET = frozenset({".parquet", ".parq"})

_CELL = 8
"""Bytes of a cell of a Parquet file as text, about."""

_PARSED = 1000
"""The number of JSON objects whose values are measured, about."""

_PAIR = 16
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
        if get_suffix(path) in _PARQUET:
            return _read_parquet_size(path)
        sample, first = sample_rows(path), read_first_line(path)
    except (UserError, OSError, ValueError, EOFError):
        return None
    lines = [line for chunk in sample.chunks for line in chunk]
    n_bytes = sample.n_rows * (1 + sum(map(len, lines)) / max(len(lines), 1))
    suffix = get_suffix(path)
    rows = n_bytes / _PAIR if suffix == ".json" else sample.n_rows
    if suffix in DELIMITERS:
        return TableSize(rows, n_bytes, rows * (first.count(DELIMITERS[suffix]) + 1), n_bytes)
    n_cells, share = _measure_objects(lines[:: -(-len(lines) // _PARSED) or 1])
    return TableSize(rows, n_bytes, rows * n_cells, n_bytes * share)


def estimate_interactions(path: Path, columns: TableColumns) -> dict[str, int]:
    """Return about how many ``users``, ``items``, ``interactions`` and ``times`` a table has.

    They are estimated from samples. Nothing is returned for a table whose columns are not found,
    which reading it would report.

    Raises:
        MissingFile: The file does not exist.
    """
    suffix = get_suffix(require_file(path))
    with suppress(UserError):
        if suffix == ".parquet":
            return _estimate_parquet(path, columns)
        if suffix in {".csv", ".tsv", ".inter"}:
            return _estimate_text(path, columns)
    return {}


def estimate_distinct(chunks: Sequence[Sequence[bytes]], n_rows: int) -> int:
    """Return the estimated number of different values of a column.

    If equal values are adjacent, as in a file that is sorted by user, it is the number of changes
    of the value for each row times the rows; else, by Chao's estimator, at least

        D + f₁ (f₁ - 1) / (2 (f₂ + 1))

    with D the different values of the sample and f₁, f₂ the numbers of those that occur once and
    twice in it.

    Args:
        chunks: The cells of sampled rows; those of a chunk are adjacent.
        n_rows: The number of rows of the file.

    Source:
        Chao, "Nonparametric estimation of the number of classes in a population", Scandinavian
        Journal of Statistics 11(4), 1984.

    >>> estimate_distinct([[b"1", b"1", b"2"], [b"7", b"7", b"8"]], 600)
    300
    >>> estimate_distinct([[b"1", b"2", b"1", b"2"]], 600)
    2
    """
    counts = Counter(cell for chunk in chunks for cell in chunk)
    n_sampled = counts.total()
    if n_sampled >= n_rows:
        return len(counts)
    n_changes = sum(a != b for chunk in chunks for a, b in pairwise(chunk))
    n_runs = n_changes + len(chunks)
    if n_runs < 0.8 * n_sampled and len(counts) > 0.8 * n_runs:
        return round(n_rows * n_changes / max(n_sampled - len(chunks), 1))
    frequencies = Counter(counts.values())
    once, twice = frequencies[1], frequencies[2]
    return min(round(len(counts) + once * (once - 1) / (2 * (twice + 1))), n_rows)


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
    return TableSize(sum(n_values), _CELL * n_cells, n_cells, _CELL * n_cells)


def _estimate_parquet(path: Path, columns: TableColumns) -> dict[str, int]:
    from pyarrow import parquet

    sources = columns.list_sources(list(read_schema(path).names))
    ids = [sources[name] for name in ID_COLUMNS if name in sources]
    with parquet.ParquetFile(path) as file:
        batch = next(file.iter_batches(CHUNK_SIZE, columns=ids), pa.record_batch({}))
        n_rows = file.metadata.num_rows
    cells = [[[str(cell).encode() for cell in column.to_pylist()]] for column in batch.columns]
    return _count_distinct(cells, n_rows, has_times="timestamp" in sources)


def _estimate_text(path: Path, columns: TableColumns) -> dict[str, int]:
    names, delimiter, skip = find_text_columns(path)
    sources = columns.list_sources(names)
    places = [names.index(sources[name]) for name in ID_COLUMNS if name in sources]
    sample = sample_rows(path, skip=skip)
    split = [[line.split(delimiter.encode()) for line in chunk] for chunk in sample.chunks]
    cells = [
        [[row[place] for row in chunk if len(row) == len(names)] for chunk in split]
        for place in places
    ]
    return _count_distinct(cells, sample.n_rows, has_times="timestamp" in sources)


def _count_distinct(
    columns: Sequence[Sequence[Sequence[bytes]]], n_rows: int, *, has_times: bool
) -> dict[str, int]:
    """Return the sizes of a table by the cells of both columns; none if one was not found."""
    if len(columns) < len(ID_COLUMNS):
        return {}
    users, items = (estimate_distinct(chunks, n_rows) for chunks in columns)
    sizes = {"users": users, "items": items, "interactions": n_rows}
    return sizes | ({"times": n_rows} if has_times else {})


class RowSample(NamedTuple):
    """Lines of a file.

    Args:
        n_rows: The estimated number of lines of the file.
        chunks: The lines that were read, without their line ends; those of a chunk are adjacent.
    """

    n_rows: int
    chunks: list[list[bytes]]


def sample_rows(path: Path, *, skip: int = 0) -> RowSample:
    """Read lines at even distances, or the first ones of a compressed file.

    Args:
        path: The file.
        skip: Bytes at the start, a header line, that are left out.
    """
    size = path.stat().st_size - skip
    if is_gzip(path) or size <= N_CHUNKS * CHUNK_SIZE:
        return _read_start(path, skip)
    chunks = []
    with path.open("rb") as file:
        for number in range(N_CHUNKS):
            file.seek(skip + number * (size - CHUNK_SIZE) // (N_CHUNKS - 1))
            chunks.append(file.read(CHUNK_SIZE).splitlines()[1:-1])
    n_lines = sum(map(len, chunks))
    n_bytes = sum(len(line) + 1 for chunk in chunks for line in chunk)
    return RowSample(round(size * n_lines / max(n_bytes, 1)), chunks)


def _read_start(path: Path, skip: int) -> RowSample:
    with open_binary(path) as stream:
        stream.read(skip)
        data = stream.read(N_CHUNKS * CHUNK_SIZE)
        is_whole = not stream.read(1)
        packed = getattr(stream.raw, "packed", stream)
        share = packed.tell() / max(path.stat().st_size, 1)
    lines = data.splitlines()
    return RowSample(len(lines) if is_whole else round(len(lines) / max(share, 1e-9)), [lines])
