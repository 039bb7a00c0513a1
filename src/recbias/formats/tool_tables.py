"""Interactions as other tools write them: RecBole's atomic files and Elliot's splits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from recbias.formats.delimited.layout import BadLines, Kind, Layout
from recbias.formats.delimited.reader import Rows, read_table
from recbias.formats.tables import TableColumns, TableFile, read_file, require_file
from recbias.formats.text_cells import RECBOLE_COLUMN, is_number
from recbias.formats.text_files import BOM, get_suffix, open_binary, split_line, validate_utf8

ELLIOT: dict[str, Kind] = {
    "user_id": "id",
    "item_id": "id",
    "rating": "float32",
    "timestamp": "text",
}
"""The columns of an Elliot file, of which the last may be missing."""

_TEXT = (".csv", ".tsv", ".inter")


def read_interactions(
    path: Path, columns: TableColumns, *, bad_lines: BadLines = "error"
) -> TableFile:
    """Return the columns of a table of interactions, whichever tool wrote it.

    A file is in RecBole's format if each cell of its first line is a name with a type, and in
    Elliot's if its name ends in ``.tsv`` and its first line has three or four cells of which the
    third is a number; else it is a table with a header.

    Raises:
        MissingFile: The file does not exist.
        MalformedLine: The file is not a table, or a row is invalid.
        UnknownColumn: A required column is missing.
    """
    suffix = get_suffix(require_file(path))
    if suffix not in _TEXT:
        return read_file(path, columns, bad_lines=bad_lines)
    with open_binary(path) as file:
        raw = file.readline()
    validate_utf8(raw, path)
    line = raw.removeprefix(BOM).decode().rstrip("\r\n")
    delimiter = "\t" if "\t" in line else ","
    cells = split_line(line, delimiter)
    if cells and all(map(RECBOLE_COLUMN.fullmatch, cells)):
        return _read_recbole(path, columns, bad_lines, cells=cells, delimiter=delimiter)
    if suffix == ".tsv" and len(cells) in {3, 4} and is_number(cells[2]):
        layout = Layout(
            columns=dict(islice(ELLIOT.items(), len(cells))), delimiter="\t", header=False
        )
        return TableFile(path, read_table(path, layout, bad_lines=bad_lines), layout)
    return read_file(path, columns, bad_lines=bad_lines)


def _read_recbole(
    path: Path, columns: TableColumns, bad_lines: BadLines, *, cells: Sequence[str], delimiter: str
) -> TableFile:
    headers = {cell.partition(":")[0]: cell for cell in cells}
    kinds = columns.select(list(headers), path)
    typed_kinds = {headers[name]: kind for name, kind in kinds.items()}
    layout = Layout(columns=typed_kinds, delimiter=delimiter, quoted=True)
    rows = read_table(path, layout, bad_lines=bad_lines)
    return TableFile(path, Rows(rows.table.rename_columns(list(kinds)), rows.bad_lines), layout)
