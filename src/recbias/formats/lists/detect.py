"""In which tool's layout a file of lists is written, by its name and its first line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from recbias.core.errors import WrongType
from recbias.formats.lists.lines import first_line
from recbias.formats.lists.parquet import is_nested

Layout: TypeAlias = Literal["table", "trec", "elliot", "recbole", "ranx", "lenskit"]
"""How a file of lists is written."""

PARQUET = (".parquet", ".parq")
TEXT = (".csv", ".tsv", ".txt", ".inter")
BY_NAME: Mapping[str, Layout] = {".trec": "trec", ".run": "trec", ".json": "ranx"}
TYPED = re.compile(r"[^:]+:(?:token|float)(?:_seq)?")
"""A column as the header of a RecBole file names it: ``user_id:token``."""


def kind_of(path: Path) -> str:
    """Return the suffix of a file's name, in small letters and without ``.gz``.

    >>> kind_of(Path("mine.csv.gz"))
    '.csv'
    """
    return Path(path.name.lower().removesuffix(".gz")).suffix


def check_name(path: Path, layout: Layout | Literal["auto"]) -> None:
    """Refuse a file whose name says nothing where it must, or says what the layout cannot be.

    Raises:
        WrongType: It is of no known kind and no layout is named, or Parquet in a text layout.
    """
    kind = kind_of(path)
    known = (*TEXT, *PARQUET, *BY_NAME)
    if layout == "auto" and kind not in known:
        found = f"{path.name} is no file of lists by its name"
        remedy = f"name it {', '.join(known)} (also with .gz), or say its layout"
        raise WrongType(found, where="path", remedy=remedy)
    if kind in PARQUET and layout not in {"auto", "table", "lenskit"}:
        remedy = "leave layout out: a Parquet file is a table, or LensKit's"
        raise WrongType(
            f"{path.name} is not in the {layout} layout", where="layout", remedy=remedy
        )


def guess(path: Path) -> Layout:
    """Return the layout of a file, by its name and, where that leaves it open, its first line.

    ``.json`` is ``ranx``; ``.trec`` and ``.run`` are ``trec``; Parquet is ``lenskit`` where it has
    a column ``items`` of lists, else ``table``. Any other file is ``recbole`` where each cell of
    the first line is a name with a type, ``elliot`` where it is three cells between tabs of which
    the third is a number, ``trec`` where it is six cells of which the fourth and fifth are
    numbers, and ``table`` else.
    """
    kind = kind_of(path)
    if kind in PARQUET:
        return "lenskit" if is_nested(path) else "table"
    return BY_NAME.get(kind) or by_line(first_line(path))


def by_line(line: str) -> Layout:
    r"""Return the layout that the first line of a text file shows.

    >>> by_line("user_id:token\titem_id:token"), by_line("1\t7\t0.5"), by_line("user\titem\tscore")
    ('recbole', 'elliot', 'table')
    """
    cells = line.split("\t" if "\t" in line else ",")
    if all(TYPED.fullmatch(cell.strip()) for cell in cells):
        return "recbole"
    if "\t" in line and len(cells) == 3 and _is_number(cells[2]):
        return "elliot"
    words = line.split()
    if len(words) == 6 and _is_number(words[3]) and _is_number(words[4]):
        return "trec"
    return "table"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
