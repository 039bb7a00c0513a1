"""Files of lists made elsewhere, in the layout of the tool that wrote them, to rows of codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from recbias.core.errors import MalformedLine, MissingFile, UnknownColumn
from recbias.core.input_files import has_file
from recbias.core.stage_context import warn
from recbias.formats.lists.detect import BY_NAME, PARQUET, Layout, guess, kind_of
from recbias.formats.lists.parquet import is_nested, read_flat, read_nested
from recbias.formats.lists.ranx_json import read_json
from recbias.formats.lists.rows import ListRows
from recbias.formats.lists.tables import read_elliot, read_recbole, read_run, read_table

Reader = Callable[[Path], tuple[ListRows, dict[str, str]]]


def _read_table(path: Path) -> tuple[ListRows, dict[str, str]]:
    return read_flat(path) if kind_of(path) in PARQUET else read_table(path)


def _read_lenskit(path: Path) -> tuple[ListRows, dict[str, str]]:
    nested = kind_of(path) in PARQUET and is_nested(path)
    return read_nested(path) if nested else _read_table(path)


READERS: Mapping[Layout, Reader] = {
    "table": _read_table,
    "trec": read_run,
    "elliot": read_elliot,
    "recbole": read_recbole,
    "ranx": read_json,
    "lenskit": _read_lenskit,
}
"""What reads each layout: to its rows, and the name of the column that was taken for each role."""


def present(path: Path) -> Path:
    """Return the path; MissingFile where there is no such file."""
    if not has_file(path):
        raise MissingFile(f"no file {str(path)!r}", remedy="paths are relative to the spec")
    return path


def read_rows(path: Path, layout: Layout | Literal["auto"] = "auto") -> ListRows:
    """Read a file of lists.

    What its name and columns do not say outright is said in a warning: the layout where the first
    line shows it, and each column that has another name than ours or ``user_id``.

    Args:
        path: The file.
        layout: How it is written; ``auto`` is what ``list_layouts.guess`` says.

    Raises:
        MissingFile: It is not there.
        UnknownColumn: The query, the item, or both rank and score are absent.
        MalformedLine: A line does not fit the layout, two columns may be the same, an id is empty,
            or a rank or score is not a number.
    """
    present(path)
    chosen = guess(path) if layout == "auto" else layout
    try:
        rows, roles = READERS[chosen](path)
    except (MalformedLine, UnknownColumn) as error:
        if layout in {"auto", guess(path)}:
            raise
        remedy = f"by its name and first line it is {guess(path)}: leave layout out, or mend it"
        raise type(error)(error.message, where=error.where, remedy=remedy) from error
    _say(path, chosen, roles, seen=layout == "auto" and kind_of(path) not in {*BY_NAME, *PARQUET})
    return rows


def _say(path: Path, layout: Layout, roles: Mapping[str, str], *, seen: bool) -> None:
    usual = {*roles, "user_id"}
    taken = [f"{name} is the {role}" for role, name in roles.items() if name not in usual]
    if taken or (seen and layout != "table"):
        warn("; ".join([f"{path.name} was read as {layout}", *taken]))
