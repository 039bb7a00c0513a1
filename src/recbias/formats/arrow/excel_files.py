"""Excel files as Arrow tables: the first sheet, whose first row has the names of the columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyarrow as pa

from recbias.core.errors import MalformedLine
from recbias.core.input_files import open_input
from recbias.core.machine.memory import raise_shortage
from recbias.core.packages import require_packages
from recbias.formats.arrow.excel_extents import find_excess
from recbias.formats.limited.archive_files import ARCHIVE_ERRORS, UnsupportedArchive, open_zip
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
            has cells far from the others, has no rows, or two columns have one name.
    """
    require_packages(f"{path.name}, an Excel file,", "python-calamine", where=str(path))
    import pandas as pd
    from python_calamine import CalamineError

    _check_archive(path)
    options: Any = {"engine": "calamine", "header": None, "na_filter": False, "dtype": object}
    try:
        frame = pd.read_excel(path, **options)
    except (CalamineError, ValueError, OverflowError) as error:
        raise _make_error(path, error) from error
    if frame.empty:
        raise MalformedLine("the first sheet is empty", where=str(path))
    names = [_format_cell(cell) or "" for cell in frame.iloc[0]]
    check_columns(names, str(path))
    cells = frame.iloc[1:]
    columns = [_build_column(cells[at].tolist()) for at in frame.columns]
    return pa.table(dict(zip(names, columns, strict=True)))


def _check_archive(path: Path) -> None:
    """Refuse a file for which the reader would allocate more memory than its content takes up."""
    with open_input(path) as stream:
        try:
            with open_zip(stream) as archive:
                _check_members(path, archive)
                excess = find_excess(archive)
        except UnsupportedArchive as error:
            raise MalformedLine(str(error), where=str(path), remedy=error.remedy) from error
        except ARCHIVE_ERRORS as error:
            raise_shortage(error)
            raise _make_error(path, error) from error
    if excess:
        remedy = "delete what is far from the table, or save it as CSV"
        raise MalformedLine(excess, where=str(path), remedy=remedy)


def _check_members(path: Path, archive: ZipFile) -> None:
    """Refuse other formats of spreadsheets, which the reader knows, and too large a content."""
    names = {entry.filename.lower() for entry in archive.infolist()}
    if other := names & {"xl/workbook.bin", "mimetype", "content.xml"}:
        raise _make_error(path, f"it contains {min(other)}")
    size = sum(entry.file_size for entry in archive.infolist())
    if size > MAX_BYTES:
        message = f"has {size:,} bytes when unpacked, more than {MAX_BYTES:,}"
        raise MalformedLine(message, where=str(path), remedy="save it as CSV")
    if size > (limit := get_unpacked_limit(path.stat().st_size)):
        raise make_size_error(str(path), limit)


def _make_error(path: Path, reason: object) -> MalformedLine:
    return MalformedLine(f"is no Excel file: {reason}", where=str(path), remedy=REMEDY)


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
