"""Lists in text files: tables with a header, RecBole's, Elliot's and TREC runs."""

from __future__ import annotations

from pathlib import Path

from recbias.core.errors import MalformedLine
from recbias.formats.lists.rows import ListRows, assign_roles, encode_rows
from recbias.formats.text_files import DELIMITERS, get_suffix
from recbias.formats.text_lines import TextLines, read_first_line

RUN_COLUMNS = ("query_id", "iteration", "item_id", "rank", "score", "tag")
ELLIOT_COLUMNS = ("query_id", "item_id", "score")


def read_table(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of a table with a header, and the column of each role.

    The delimiter is a comma in ``.csv``, a tab in ``.tsv``, and detected in any other file.
    """
    delimiter = DELIMITERS.get(get_suffix(path)) or _detect_delimiter(path)
    return _read_with_header(TextLines(path, delimiter), typed=False)


def read_recbole(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of a table as users of RecBole write it, and the column of each role.

    Column names may have a type (``user_id:token``). Rows of equal score are in file order, and
    without rank and score the lists are in that order.
    """
    return _read_with_header(TextLines(path, _detect_delimiter(path)), typed=True)


def read_elliot(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of an Elliot file: user, item and score separated by tabs, no header."""
    lines = TextLines(path, "\t", header=False, quoted=False, width=len(ELLIOT_COLUMNS))
    table = lines.read(ELLIOT_COLUMNS)
    columns = dict(zip(table.column_names, table.columns, strict=True))
    return encode_rows(columns, path, lines.locate, in_order=True), {}


def read_run(path: Path) -> tuple[ListRows, dict[str, str]]:
    """Return the rows of a TREC run: query, Q0, item, rank, score and tag, no header."""
    lines = TextLines(path, None, header=False, quoted=False, width=len(RUN_COLUMNS))
    table = lines.read(RUN_COLUMNS)
    if not table.num_rows:
        raise MalformedLine("the file is empty", where=str(path))
    columns = {role: table.column(role) for role in ("query_id", "item_id", "rank", "score")}
    return encode_rows(columns, path, lines.locate), {}


def _read_with_header(lines: TextLines, *, typed: bool) -> tuple[ListRows, dict[str, str]]:
    line, headers = next(lines.records(), (1, []))
    if not headers:
        remedy = "its first line names the columns: query_id, item_id and rank or score"
        raise MalformedLine("the file is empty", where=str(lines.path), remedy=remedy)
    names = [header.strip().partition(":")[0] for header in headers] if typed else headers
    roles = assign_roles(names, f"{lines.path}:{line}", ordered=typed)
    role_headers = {role: headers[names.index(name)] for role, name in roles.items()}
    table = lines.read(list(role_headers.values()))
    columns = {role: table.column(header) for role, header in role_headers.items()}
    return encode_rows(columns, lines.path, lines.locate, in_order=typed), roles


def _detect_delimiter(path: Path) -> str:
    return "\t" if "\t" in read_first_line(path) else ","
