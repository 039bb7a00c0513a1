"""The memory of models that read their output from a table."""

from __future__ import annotations

from pathlib import Path

from recbias.core.machine.expected import ModelMemory, Sizes
from recbias.formats.sizes import estimate_table

PER_BYTE = 2.5
"""Bytes of memory per byte of text: the text, its columns, and its values."""

PER_CELL = 20.0
"""Bytes of an item of a recommended list: its row in the file, its code and its score."""


def plan_table(
    path: Path, sizes: Sizes, read: float, kept: float, cell: float = 0.0
) -> ModelMemory | None:
    """Return the memory of a table; None if the file cannot be read.

    Args:
        path: The file.
        sizes: The sizes of the data.
        read: The bytes of a row while the table is read, beside those of its text.
        kept: The bytes of a row that the model keeps.
        cell: The bytes of a cell while the table is read, beside those of its text.
    """
    table = estimate_table(path)
    if table is None:
        return None
    lists = PER_CELL * sizes.get("queries", sizes["users"])
    n_bytes = table.text_bytes if cell else table.bytes
    fit = PER_BYTE * n_bytes + read * table.rows + cell * table.cells
    return ModelMemory(fit=fit, state=kept * table.rows, lists=lists, ranking="none")


def estimate_answers(path: Path) -> dict[str, int]:
    """Return the sizes of the answers of a table; nothing if the file cannot be read."""
    table = estimate_table(path)
    if table is None:
        return {}
    n_bytes = int(table.text_bytes)
    return {
        "answers": int(table.rows),
        "answer_cells": int(table.cells),
        "answer_characters": n_bytes,
        "text_characters": n_bytes,
    }
