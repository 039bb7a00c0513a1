"""Detection of the layout of a file of lists, by its name and its first line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from recbias.core.errors import WrongType
from recbias.formats.lists.parquet import is_nested
from recbias.formats.text_cells import RECBOLE_COLUMN, is_number
from recbias.formats.text_files import get_suffix
from recbias.formats.text_lines import read_first_line

Layout: TypeAlias = Literal["table", "trec", "elliot", "recbole", "ranx", "lenskit"]
"""The layout of a file of lists."""

PARQUET = (".parquet", ".parq")
TEXT = (".csv", ".tsv", ".txt", ".inter")
BY_NAME: Mapping[str, Layout] = {".trec": "trec", ".run": "trec", ".json": "ranx"}


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
