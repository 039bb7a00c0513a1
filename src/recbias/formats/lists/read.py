"""Files of lists from other tools, read in the layout that name and first line show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from recbias.core.errors import MalformedLine, UnknownColumn, WrongType
from recbias.core.stage_context import warn
from recbias.formats.lists.parquet import is_nested, read_flat, read_nested
from recbias.formats.lists.rows import ListRows
from recbias.formats.lists.text_layouts import (
    read_elliot,
    read_json,
    read_recbole,
    read_run,
    read_table,
)
from recbias.formats.tables import require_file
from recbias.formats.text_files import get_suffix
from recbias.formats.text_lines import RECBOLE_COLUMN, is_number, read_first_line

Layout: TypeAlias = Literal["table", "trec", "elliot", "recbole", "ranx", "lenskit"]
"""The layout of a file of lists."""

PARQUET = (".parquet", ".parq")
TEXT = (".csv", ".tsv", ".txt", ".inter")
BY_NAME: Mapping[str, Layout] = {".trec": "trec", ".run": "trec", ".json": "ranx"}

Reader = Callable[[Path], tuple[ListRows, dict[str, str]]]


def check_name(path: Path, layout: Layout | Literal["auto"]) -> None:
    """Raise WrongType if the suffix of a file contradicts its layout.

    Raises:
        WrongType: The suffix is unknown and no layout is named, or a Parquet file has a layout of
            text files.
    """
    suffix = get_suffix(path)
    suffixes = (*TEXT, *PARQUET, *BY_NAME)
    if layout == "auto" and suffix not in suffixes:
        message = f"{path.name} does not have the suffix of a file of lists"
        remedy = f"name it {', '.join(suffixes)} (also with .gz), or set its layout"
        raise WrongType(message, where="path", remedy=remedy)
    if suffix in PARQUET and layout not in {"auto", "table", "lenskit"}:
        message = f"{path.name} is not in the {layout} layout"
        remedy = "omit layout: a Parquet file is a table, or LensKit's"
        raise WrongType(message, where="layout", remedy=remedy)


def detect_layout(path: Path) -> Layout:
    """Return the layout of a file, by its name and, if that leaves it open, its first line.

    ``.json`` is ``ranx``; ``.trec`` and ``.run`` are ``trec``; Parquet is ``lenskit`` if it has a
    column ``items`` of lists, else ``table``. Any other file is ``recbole`` if each cell of the
    first line is a name with a type, ``elliot`` if it has three cells separated by tabs of which
    the third is a number, ``trec`` if it has six cells of which the fourth and fifth are numbers,
    and ``table`` otherwise.
    """
    suffix = get_suffix(path)
    if suffix in PARQUET:
        return "lenskit" if is_nested(path) else "table"
    return BY_NAME.get(suffix) or detect_by_line(read_first_line(path))


def detect_by_line(line: str) -> Layout:
    r"""Return the layout that the first line of a text file shows.

    >>> detect_by_line("user_id:token\titem_id:token"), detect_by_line("1\t7\t0.5")
    ('recbole', 'elliot')
    """
    cells = line.split("\t" if "\t" in line else ",")
    if all(RECBOLE_COLUMN.fullmatch(cell.strip()) for cell in cells):
        return "recbole"
    if "\t" in line and len(cells) == 3 and is_number(cells[2]):
        return "elliot"
    words = line.split()
    if len(words) == 6 and is_number(words[3]) and is_number(words[4]):
        return "trec"
    return "table"


def _read_table(path: Path) -> tuple[ListRows, dict[str, str]]:
    return read_flat(path) if get_suffix(path) in PARQUET else read_table(path)


def _read_lenskit(path: Path) -> tuple[ListRows, dict[str, str]]:
    nested = get_suffix(path) in PARQUET and is_nested(path)
    return read_nested(path) if nested else _read_table(path)


READERS: Mapping[Layout, Reader] = {
    "table": _read_table,
    "trec": read_run,
    "elliot": read_elliot,
    "recbole": read_recbole,
    "ranx": read_json,
    "lenskit": _read_lenskit,
}
"""The reader of each layout: returns the rows, and the name of the column of each role."""


def read_rows(path: Path, layout: Layout | Literal["auto"] = "auto") -> ListRows:
    """Return the rows of a file of lists.

    A warning names what was inferred: the layout if it was detected by the first line, and each
    column with another name than its role or ``user_id``.

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: There is no column for the query or the item, or neither rank nor score.
        MalformedLine: A line does not fit the layout, two columns match the same role, an
            identifier is empty, or a rank or score is not a number.
    """
    require_file(path)
    used_layout = detect_layout(path) if layout == "auto" else layout
    try:
        rows, roles = READERS[used_layout](path)
    except (MalformedLine, UnknownColumn) as error:
        detected = detect_layout(path)
        if layout in {"auto", detected}:
            raise
        remedy = f"by its name and first line it is {detected}: omit layout, or correct the file"
        raise type(error)(error.message, where=error.where, remedy=remedy) from error
    by_line = layout == "auto" and get_suffix(path) not in {*BY_NAME, *PARQUET}
    usual = {*roles, "user_id"}
    inferred = [f"{name} is the {role}" for role, name in roles.items() if name not in usual]
    if inferred or (by_line and used_layout != "table"):
        warn("; ".join([f"{path.name} was read as {used_layout}", *inferred]))
    return rows
