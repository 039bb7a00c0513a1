"""Tables of interactions, also as RecBole and Elliot write them, and their timestamps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.arrays import BoolArray
from recbias.formats.delimited.layout import BadLines, Kind, Layout
from recbias.formats.delimited.reader import Rows, read_encoded_table
from recbias.formats.tables import TableColumns, TableFile, read_file, require_file
from recbias.formats.text_files import BOM, get_suffix, open_binary, split_line, validate_utf8
from recbias.formats.text_lines import RECBOLE_COLUMN, is_number

ELLIOT: dict[str, Kind] = {
    "user_id": "id",
    "item_id": "id",
    "rating": "float32",
    "timestamp": "text",
}
"""The columns of an Elliot file, of which the last may be missing."""

_TEXT = (".csv", ".tsv", ".inter")

SECONDS = r"^-?\d{1,15}(?:\.\d*)?$"


def read_interactions(
    path: Path, columns: TableColumns, *, bad_lines: BadLines = "error"
) -> TableFile:
    """Return the columns of a table of interactions, whichever tool wrote it.

    A file is in RecBole's format if each cell of its first line is a name with a type, and in
    Elliot's if its name ends in ``.tsv`` and its first line has three or four cells of which the
    third is a number; else it is a table with a header. The identifiers of a text file are
    dictionary-encoded columns.

    Raises:
        MissingFile: The file does not exist.
        MalformedLine: The file is not a table, or a row is invalid.
        UnknownColumn: A required column is missing.
    """
    suffix = get_suffix(require_file(path))
    if suffix not in _TEXT:
        return read_file(path, columns, bad_lines=bad_lines, read=read_encoded_table)
    cells, delimiter = _read_first_line(path)
    if _is_recbole(cells):
        return _read_recbole(path, columns, bad_lines, cells=cells, delimiter=delimiter)
    if _is_elliot(cells, suffix):
        layout = Layout(
            columns=dict(islice(ELLIOT.items(), len(cells))), delimiter="\t", header=False
        )
        return TableFile(path, read_encoded_table(path, layout, bad_lines=bad_lines), layout)
    return read_file(path, columns, bad_lines=bad_lines, read=read_encoded_table)


def _read_first_line(path: Path) -> tuple[list[str], str]:
    """Return the cells of the first line, and their delimiter."""
    with open_binary(path) as file:
        raw = file.readline()
    validate_utf8(raw, path)
    line = raw.removeprefix(BOM).decode().rstrip("\r\n")
    delimiter = "\t" if "\t" in line else ","
    return split_line(line, delimiter, f"{path}:1"), delimiter


def _is_recbole(cells: Sequence[str]) -> bool:
    return bool(cells) and all(map(RECBOLE_COLUMN.fullmatch, cells))


def _is_elliot(cells: Sequence[str], suffix: str) -> bool:
    return suffix == ".tsv" and len(cells) in {3, 4} and is_number(cells[2])


def _read_recbole(
    path: Path, columns: TableColumns, bad_lines: BadLines, *, cells: Sequence[str], delimiter: str
) -> TableFile:
    headers = {cell.partition(":")[0]: cell for cell in cells}
    kinds, sources = (
        columns.select(list(headers), f"{path}:1"),
        columns.list_sources(list(headers)),
    )
    typed_kinds = {headers[sources[name]]: kind for name, kind in kinds.items()}
    layout = Layout(columns=typed_kinds, delimiter=delimiter, quoted=True)
    rows = read_encoded_table(path, layout, bad_lines=bad_lines)
    return TableFile(path, Rows(rows.table.rename_columns(list(kinds)), rows.bad_lines), layout)


def to_seconds(column: Any) -> tuple[npt.NDArray[np.int64], BoolArray]:
    """Return seconds since 1970, and a mask of the cells that are not a time.

    Numbers are seconds, with NaN for a missing time; text is ISO 8601, in UTC if it names no time
    zone. An Arrow column is one of the two throughout.

    >>> import pyarrow as pa
    >>> times, wrong = to_seconds(pa.chunked_array([["1970-01-02", "1970-01-01T00:00:09Z", "x"]]))
    >>> times[:2].tolist(), wrong.tolist()
    ([86400, 9], [False, False, True])
    """
    if pa.types.is_floating(column.type):
        wrong = ~np.isfinite(column.to_numpy())
        return np.floor(np.where(wrong, 0, column.to_numpy())).astype(np.int64), wrong
    numeric = pc.match_substring_regex(column, SECONDS)
    if pc.any(numeric).as_py():
        numbers = pc.if_else(numeric, column, "0").cast(pa.float64())
        return np.floor(numbers.to_numpy()).astype(np.int64), ~np.asarray(numeric.to_numpy())
    texts = pd.Series(np.asarray(column.to_numpy(), dtype=object), dtype=object)
    parsed = pd.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
    stamps = parsed.dt.tz_localize(None)
    times = stamps.to_numpy(dtype="datetime64[s]").astype(np.int64)
    return times, stamps.isna().to_numpy()


def is_blank(column: Any) -> bool:
    """Return whether all cells of a column of times are empty."""
    if pa.types.is_floating(column.type):
        return bool(np.isnan(column.to_numpy()).all())
    return not pc.any(pc.not_equal(column, "")).as_py()
