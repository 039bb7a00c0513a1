"""The contents of files as faults change them: tables in each format, trees, packed bytes."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from support.files.excel_files import write_excel

Table = Mapping[str, Sequence[str]]
"""The columns of a table by name, each cell as text."""

DELIMITERS = {".csv": ",", ".tsv": "\t", ".inter": "\t"}


def to_lines(table: Table, delimiter: str = ",", *, header: bool = True) -> bytes:
    """Return a table as lines, quoted where a cell needs it."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerows([[*table]] * header)
    writer.writerows(zip(*table.values(), strict=True))
    return text.getvalue().encode()


def to_plain_lines(rows: Sequence[Sequence[object]], delimiter: str) -> bytes:
    """Return rows without a header, as tools without quotes write them."""
    return "".join(delimiter.join(map(str, row)) + "\n" for row in rows).encode()


def to_json_lines(records: Sequence[object]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def to_parquet(table: Mapping[str, Any]) -> bytes:
    stream = io.BytesIO()
    parquet.write_table(pa.table(dict(table)), stream)
    return stream.getvalue()


def to_excel(table: Table) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        rows = [[*table], *map(list, zip(*table.values(), strict=True))]
        return write_excel(Path(folder) / "a.xlsx", rows).read_bytes()


def to_array(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def to_archive(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def to_file(table: Table, suffix: str) -> bytes:
    """Return a table as a file of a format."""
    if suffix.endswith(".gz"):
        return pack(to_file(table, suffix.removesuffix(".gz")))
    if suffix == ".parquet":
        return to_parquet(table)
    if suffix == ".xlsx":
        return to_excel(table)
    if suffix == ".jsonl":
        rows = zip(*table.values(), strict=True)
        return to_json_lines([dict(zip(table, row, strict=True)) for row in rows])
    return to_lines(table, DELIMITERS[suffix])


def pack(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)
