"""Lists in lines of text: tables with a header, RecBole's, Elliot's and TREC runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from recbias.core.errors import MalformedLine
from recbias.formats.lists.columns import roles_of
from recbias.formats.lists.lines import Lines, first_line
from recbias.formats.lists.rows import ListRows, rows_of
from recbias.formats.text_files import read_cells, read_text

DELIMITERS = {".csv": ",", ".tsv": "\t"}
RUN_COLUMNS = ("query_id", "iteration", "item_id", "rank", "score", "tag")
ELLIOT_COLUMNS = ("query_id", "item_id", "score")
ROLES = ("query_id", "item_id", "rank", "score")


def read_table(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of a table with a header, and which column was which.

    ``.csv`` has commas between its cells, ``.tsv`` tabs, any other file what its first line has.
    """
    return _read(Lines(path, _delimiter(path)), typed=False)


def read_recbole(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of a table as RecBole's users write it, and which column was which.

    Names may have a type (``user_id:token``). Rows of equal score stand in the order of the lines,
    and without rank and score the lists are in that order.
    """
    return _read(Lines(path, "\t" if "\t" in first_line(path) else ","), typed=True)


def read_elliot(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of a file of Elliot's: user, item and score between tabs, no header."""
    lines = Lines(path, "\t", header=False, quoted=False, width=len(ELLIOT_COLUMNS))
    table = _parse(lines, read_text(path), ELLIOT_COLUMNS)
    return rows_of(_columns(table), path, lines.place, in_order=True), {}


def read_run(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of a TREC run: query, Q0, item, rank, score and tag, no header."""
    text = read_text(path)
    even = "\t" if b"\t" in text.partition(b"\n")[0] else " "
    lines = Lines(path, None, header=False, quoted=False, width=len(RUN_COLUMNS))
    try:
        table = _parse(replace(lines, delimiter=even), text, RUN_COLUMNS)
    except MalformedLine:
        text = re.sub(rb"[ \t\r]*\n[ \t]*", b"\n", re.sub(rb"[ \t]+", b" ", text)).strip()
        table = _parse(lines, text, RUN_COLUMNS)
    return rows_of(_columns(table), path, lines.place), {}


def _read(lines: Lines, *, typed: bool) -> tuple[ListRows, dict[str, str]]:
    line, names = next(lines.records(), (1, []))
    if not names:
        remedy = "its first line names the columns: query_id, item_id and rank or score"
        raise MalformedLine("the file is empty", where=str(lines.path), remedy=remedy)
    bare = [name.strip().partition(":")[0] for name in names] if typed else names
    where = f"{lines.path}:{line}"
    roles = roles_of(bare, where, ordered=typed)
    places = {role: names[bare.index(name)] for role, name in roles.items()}
    table = _parse(lines, read_text(lines.path), list(places.values()))
    columns = {role: table.column(name) for role, name in places.items()}
    return rows_of(columns, lines.path, lines.place, in_order=typed), roles


def _parse(lines: Lines, text: bytes, columns: Sequence[str]) -> Any:
    """Return the columns of a file as text; without a header they are all of its columns."""
    import pyarrow as pa

    try:
        return read_cells(
            text,
            names=None if lines.header else columns,
            texts=columns,
            only=True,
            delimiter=lines.delimiter or " ",
            quote_char='"' if lines.quoted else False,
            newlines_in_values=lines.quoted,
        )
    except pa.ArrowInvalid as error:
        raise lines.malformed(error) from error


def _columns(table: Any) -> dict[str, Any]:
    return {role: table.column(role) for role in ROLES if role in table.column_names}


def _delimiter(path: Path) -> str:
    kind = Path(path.name.lower().removesuffix(".gz")).suffix
    return DELIMITERS.get(kind) or ("\t" if "\t" in first_line(path) else ",")
