"""Excel files as Arrow tables: the first sheet, whose first row has the names of the columns."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from recbias.core.errors import MalformedLine
from recbias.core.packages import require_packages
from recbias.formats.limited.file_limits import check_columns, get_unpacked_limit, make_size_error

SUFFIX = ".xlsx"

REMEDY = "download or save it again, or save it as CSV"

MAX_BYTES = 2**31
"""The largest size of the unpacked content, in bytes."""


def read_sheet(path: Path) -> Any:
    """Return the ``pyarrow.Table`` of the first sheet.

    A column of which each cell is a number or empty is ``float64``, any other one is text: a
    whole number is written without a fraction, a date as ``2022-03-01 00:00:00``, and an empty
    cell is null.

    Raises:
        MissingExtra: The package that reads Excel files is not installed.
        MalformedLine: The file is not an Excel file, is larger than ``MAX_BYTES`` when unpacked,
            has no rows, or two columns have one name.
    """
    require_packages(f"{path.name}, an Excel file,", "python-calamine", where=str(path))
    import pandas as pd
    from python_calamine import CalamineError

    _check_size(path)
    options: Any = {"engine": "calamine", "header": None, "na_filter": False, "dtype": object}
    try:
        frame = pd.read_excel(path, **options)
    except (CalamineError, ValueError) as error:
        raise MalformedLine(
            f"is no Excel file: {error}", where=str(path), remedy=REMEDY
        ) from error
    if frame.empty:
        raise MalformedLine("the first sheet is empty", where=str(path))
    names = [_format_cell(cell) or "" for cell in frame.iloc[0]]
    check_columns(names, str(path))
    cells = frame.iloc[1:]
    columns = [_build_column(cells[at].tolist()) for at in frame.columns]
    return pa.table(dict(zip(names, columns, strict=True)))


def _check_size(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, zipfile.LargeZipFile) as error:
        raise MalformedLine(
            f"is no Excel file: {error}", where=str(path), remedy=REMEDY
        ) from error
    if size > MAX_BYTES:
        message = f"has {size:,} bytes when unpacked, more than {MAX_BYTES:,}"
        raise MalformedLine(message, where=str(path), remedy="save it as CSV")
    if size > (limit := get_unpacked_limit(path.stat().st_size)):
        raise make_size_error(str(path), limit)


def _build_column(cells: list[Any]) -> Any:
    is_number = [isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in cells]
    is_empty = [cell is None or cell == "" for cell in cells]
    if any(is_number) and all(a or b for a, b in zip(is_number, is_empty, strict=True)):
        numbers = [None if empty else cell for cell, empty in zip(cells, is_empty, strict=True)]
        is_whole = all(number is None or float(number).is_integer() for number in numbers)
        return pa.array(numbers, pa.int64() if is_whole else pa.float64())
    return pa.array([_format_cell(cell) for cell in cells], pa.string())


def _format_cell(cell: Any) -> str | None:
    if cell is None or cell == "":
        return None
    is_whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell)) if is_whole else str(cell)
