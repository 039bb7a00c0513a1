"""Sheets on which raters answer a question about texts: written blinded and shuffled, and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.errors import MalformedLine, Unwritable
from recbias.formats.text_tables import TextTable, read_text_table
from recbias.formats.written_files import write_json_lines, write_sheet

ITEM, TEXT = "item", "text"
"""The columns of a sheet besides the question."""

KEY_FILE = "key.jsonl"
"""The file that says which text each item is; raters do not see it."""

YES_NO: Mapping[str, float] = {
    **dict.fromkeys(("yes", "y", "true", "1", "是"), 1.0),
    **dict.fromkeys(("no", "n", "false", "0", "否"), 0.0),
}
"""The number of each answer to a question of yes or no, without regard to case."""


@dataclass(frozen=True, eq=False)
class Annotations:
    """The answers of the raters.

    Args:
        ids: The identifiers of the texts, in the order of the key.
        ratings: The answers, ``float64[raters, texts]``; NaN where a cell is empty.
    """

    ids: tuple[str, ...]
    ratings: FloatArray


def write_sheets(
    folder: Path,
    texts: Mapping[str, str],
    question: str,
    n_raters: int,
    rng: np.random.Generator,
) -> list[Path]:
    """Write a CSV sheet for each rater, and the key; return their paths.

    A sheet has the columns ``item``, ``text`` and the question, whose cells are empty. Items have
    random numbers, and each rater has an order of their own, so that neither says where a text
    comes from.

    Args:
        folder: The folder, which must not hold sheets yet.
        texts: The texts by identifier.
        question: The name of the column to fill in.
        n_raters: The number of raters.
        rng: The generator of the numbers and orders.

    Raises:
        Unwritable: A file exists, or cannot be written.
    """
    paths = [folder / f"rater-{number + 1}.csv" for number in range(n_raters)]
    for path in (*paths, folder / KEY_FILE):
        if path.exists():
            remedy = "give another folder: a filled sheet is never overwritten"
            raise Unwritable("exists and is not overwritten", where=str(path), remedy=remedy)
    width = len(str(len(texts)))
    items = [f"item-{number + 1:0{width}}" for number in rng.permutation(len(texts))]
    rows = [
        (item, " ".join(text.split()), "")
        for item, text in zip(items, texts.values(), strict=True)
    ]
    key = [{ITEM: item, "id": identifier} for item, identifier in zip(items, texts, strict=True)]
    write_json_lines(folder / KEY_FILE, key)
    for path in paths:
        write_sheet(
            path, (ITEM, TEXT, question), [rows[row] for row in rng.permutation(len(rows))]
        )
    return paths


def read_sheets(
    paths: Sequence[Path], key: Path, question: str, answers: Mapping[str, float] = YES_NO
) -> Annotations:
    """Return the answers on the sheets of the raters.

    Args:
        paths: The sheets, one per rater; a sheet may lack items.
        key: The file ``key.jsonl`` that was written with them.
        question: The column of the answers.
        answers: The number of each answer, in lower case.

    Raises:
        MissingFile: A file does not exist.
        UnknownColumn: A sheet has no column ``item`` or of the question.
        MalformedLine: An item is unknown or occurs twice, or a cell is no answer.
    """
    items = read_text_table(key)
    items.need(ITEM, "id")
    positions = {item: row for row, item in enumerate(items.ids(ITEM))}
    ratings = np.full((len(paths), len(positions)), np.nan)
    for rater, path in enumerate(paths):
        sheet = read_text_table(path)
        sheet.need(ITEM, question)
        _fill_row(ratings[rater], sheet, positions, question, answers)
    return Annotations(tuple(items.ids("id")), ratings)


def _fill_row(
    ratings: FloatArray,
    sheet: TextTable,
    positions: Mapping[str, int],
    question: str,
    answers: Mapping[str, float],
) -> None:
    """Write the answers of one sheet into the row of its rater."""
    items = [str(item).strip() for item in sheet.ids(ITEM)]
    sheet.refuse_repeats(np.array(items), lambda row: f"{items[row]!r} has two rows")
    for row, (item, cell) in enumerate(zip(items, sheet.texts(question), strict=True)):
        answer = cell.strip().lower()
        if item not in positions:
            remedy = "use the sheets and the key of the same folder"
            raise MalformedLine(
                f"{item!r} is not in the key", where=sheet.place(row), remedy=remedy
            )
        if answer and answer not in answers:
            remedy = f"write one of {', '.join(answers)}, or leave the cell empty"
            message = f"{question} is {cell!r}"
            raise MalformedLine(message, where=sheet.place(row), remedy=remedy)
        if answer:
            ratings[positions[item]] = answers[answer]
