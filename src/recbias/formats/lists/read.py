"""Files of lists from other tools, read in the layout of the tool that wrote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from recbias.core.errors import MalformedLine, UnknownColumn
from recbias.core.stage_context import warn
from recbias.formats.lists.detect import BY_NAME, PARQUET, Layout, detect_layout
from recbias.formats.lists.parquet import is_nested, read_flat, read_nested
from recbias.formats.lists.ranx_json import read_json
from recbias.formats.lists.rows import ListRows
from recbias.formats.lists.tables import read_elliot, read_recbole, read_run, read_table
from recbias.formats.tables import require_file
from recbias.formats.text_files import get_suffix

Reader = Callable[[Path], tuple[ListRows, dict[str, str]]]


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
