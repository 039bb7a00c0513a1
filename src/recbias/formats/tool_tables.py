"""Interactions as other tools write them: RecBole's atomic files and Elliot's splits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from recbias.formats.delimited.layout import BadLines, Kind, Layout
from recbias.formats.delimited.reader import Rows, read_table
from recbias.formats.tables import TableFile, Wanted, named_file, read_file
from recbias.formats.text_files import BOM, opened, refuse_bytes, split_line

TYPED = re.compile(r"([^:]+):(?:token|float)(?:_seq)?")
"""A column as the header of a RecBole file names it: ``user_id:token``."""

ELLIOT: dict[str, Kind] = {
    "user_id": "id",
    "item_id": "id",
    "rating": "float32",
    "timestamp": "text",
}
"""The columns of a file of Elliot's, which may end after the rating."""

TEXT = (".csv", ".tsv", ".inter")


def read_interactions(path: Path, wanted: Wanted, *, bad_lines: BadLines = "error") -> TableFile:
    """Return the columns of a table of interactions, whichever tool wrote it.

    A file is RecBole's where each cell of its first line is a name with a type, and Elliot's where
    its name ends in ``.tsv`` and its first line is three or four cells of which the third is a
    number; else it is a table with a header.

    Raises:
        MissingFile: There is no such file.
        MalformedLine: It is not a table, or a row does not fit.
        UnknownColumn: It lacks a column.
    """
    kind = Path(named_file(path).name.removesuffix(".gz")).suffix
    if kind not in TEXT:
        return read_file(path, wanted, bad_lines=bad_lines)
    with opened(path) as file:
        raw = file.readline()
    refuse_bytes(raw, path)
    line = raw.removeprefix(BOM).decode().rstrip("\r\n")
    delimiter = "\t" if "\t" in line else ","
    cells = split_line(line, delimiter)
    if cells and all(map(TYPED.fullmatch, cells)):
        return _recbole(path, wanted, bad_lines, cells=cells, delimiter=delimiter)
    if kind == ".tsv" and len(cells) in {3, 4} and _is_number(cells[2]):
        layout = Layout(
            columns=dict(list(ELLIOT.items())[: len(cells)]), delimiter="\t", header=False
        )
        return TableFile(path, read_table(path, layout, bad_lines=bad_lines), layout)
    return read_file(path, wanted, bad_lines=bad_lines)


def _recbole(
    path: Path, wanted: Wanted, bad_lines: BadLines, *, cells: Sequence[str], delimiter: str
) -> TableFile:
    names = {cell.partition(":")[0]: cell for cell in cells}
    kinds = wanted.among(list(names), path)
    columns = {names[name]: kind for name, kind in kinds.items()}
    layout = Layout(columns=columns, delimiter=delimiter, quoted=True)
    rows = read_table(path, layout, bad_lines=bad_lines)
    return TableFile(path, Rows(rows.table.rename_columns(list(kinds)), rows.bad_lines), layout)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
