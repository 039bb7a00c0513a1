"""Tables of sentences as records of text."""

from __future__ import annotations

from pathlib import Path

from recbias.core.errors import MalformedLine
from recbias.formats.tables import read_text_table


def read_rows(path: Path, *needed: str) -> list[dict[str, str]]:
    """Return the rows of a table of sentences; empty cells are left out.

    Args:
        path: A ``.csv``, ``.tsv``, ``.jsonl`` (also with ``.gz``) or ``.parquet`` file with ``id``
            and ``text``.
        needed: Other columns that every row needs.

    Raises:
        MissingFile: The file does not exist.
        WrongType: It has another suffix.
        UnknownColumn: A column is missing.
        MalformedLine: An ``id`` occurs twice, or a cell of a needed column is empty.
    """
    table = read_text_table(path)
    keys = ("id", "text", *needed)
    table.need(*keys)
    columns = {name: (table.ids if name in keys else table.texts)(name) for name in table.columns}
    ids = columns["id"]
    table.refuse_repeats(ids, lambda row: f"two sentences have the id {ids[row]!r}")
    for row, text in enumerate(columns["text"]):
        if not text.strip():
            raise MalformedLine("an empty text", where=table.place(row), remedy="remove the row")
    names = list(columns)
    return [
        {name: cell for name, cell in zip(names, cells, strict=True) if cell}
        for cells in zip(*columns.values(), strict=True)
    ]
