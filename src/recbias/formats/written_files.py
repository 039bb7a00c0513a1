"""Files that commands write: whole or not at all, and never over another file."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from recbias.core.errors import Unwritable

FORMULA_STARTS = (*"=+-@＝＋－＠", "\t", "\r", "\n")
"""With these characters a spreadsheet takes a cell for a formula."""


def write_file(path: Path, data: bytes) -> Path:
    """Write a temporary file in the same folder and rename it.

    Raises:
        Unwritable: The file exists, or cannot be written.
    """
    if path.exists():
        remedy = "remove it, or give another name"
        raise Unwritable("exists and is not overwritten", where=str(path), remedy=remedy)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        message = f"cannot be written: {error.strerror or error}"
        remedy = "free some space, or give a folder that you may write to"
        raise Unwritable(message, where=str(path), remedy=remedy) from error
    return path


def write_json_lines(path: Path, records: Iterable[Mapping[str, object]]) -> Path:
    """Write one JSON object per line; raises ``Unwritable``."""
    lines = [json.dumps(dict(record), ensure_ascii=False) for record in records]
    text = "".join(f"{line}\n" for line in lines)
    return write_file(path, text.encode("utf-8", errors="backslashreplace"))


def write_sheet(path: Path, names: Sequence[str], rows: Iterable[Sequence[str]]) -> Path:
    """Write a CSV file for a spreadsheet: UTF-8 with a byte order mark, no cell a formula.

    Raises:
        Unwritable: The file exists, or cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(names)
    writer.writerows([guard_formula(cell) for cell in row] for row in rows)
    return write_file(path, text.getvalue().encode("utf-8-sig", errors="backslashreplace"))


def guard_formula(cell: str) -> str:
    """Return a cell that a spreadsheet shows as text: with an apostrophe before a formula.

    >>> guard_formula("=1+1"), guard_formula("1+1")
    ("'=1+1", '1+1')
    """
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell
