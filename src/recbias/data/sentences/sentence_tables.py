"""Your own sentences about groups, in a table for each part."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.sentences import KEYS, SENTENCE_PARTS
from recbias.core.errors import Contradiction, MalformedLine, MissingFile
from recbias.core.protocols import InputFile
from recbias.data.sentences.sentence_sets import Overlap, make_dataset
from recbias.formats.tables import TextTable, find_suffix, read_text_table
from recbias.formats.text_files import require_file

NAME = "sentence_tables"
COLUMNS = tuple(name for name in KEYS if name != "part")
"""The columns of a table that are not labels."""


@dataclass(frozen=True, kw_only=True)
class SentenceTables:
    """Your own sentences: a table for each of training, validation and test; all are optional.

    Tables are ``.csv``, ``.tsv``, ``.jsonl`` (also with ``.gz``) or ``.parquet``, in UTF-8, with
    the columns ``id`` and ``text``; ``pair_id``, shared by the versions of one sentence and empty
    for a sentence without counterpart; ``group``, the group that a sentence is about; and any
    labels, such as ``category``. Training sentences need neither ``pair_id`` nor ``group``.

    Pairs with the same text for both groups are kept, counted and warned about, and so are
    sentences of validation and test that are also training sentences.

    Args:
        train: The sentences that a model may be trained on.
        validation: The pairs to choose settings on.
        test: The pairs to report on; no training or search can read them.
        overlap: ``drop`` excludes training sentences that are also in validation or test.

    Raises:
        MissingFile: A table does not exist, or none is given.
        WrongType: A file has another suffix.
        UnknownColumn: A table has no column ``id``, ``text``, or ``group`` where it is needed.
        MalformedLine: An ``id`` occurs twice, a text is empty, a sentence of a pair has no group,
            or a pair has one sentence only, or two of the same group.
        Contradiction: A table has a column ``part``.
    """

    train: InputFile | None = None
    validation: InputFile | None = None
    test: InputFile | None = None
    overlap: Overlap = "keep"

    def __post_init__(self) -> None:
        """Refuse files that are no tables."""
        for path in self._paths.values():
            find_suffix(path)

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return frozenset({"sentences"})

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        if not self._paths:
            message = "there is no table of sentences"
            raise MissingFile(message, remedy="add test: sentences.csv")
        return [require_file(path) for path in self._paths.values()]

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the tables."""
        self.files(data)
        tables = {part: read_text_table(path) for part, path in self._paths.items()}
        frame = pd.concat(
            [_read_part(table, part) for part, table in tables.items()], ignore_index=True
        )
        _refuse_repeated_ids(frame["id"].to_list(), list(tables.values()))
        return make_dataset(frame.astype(object).where(frame.notna(), None), NAME, self.overlap)

    @property
    def _paths(self) -> dict[str, Path]:
        paths = {part: getattr(self, part) for part in SENTENCE_PARTS}
        return {part: path for part, path in paths.items() if path is not None}


def _read_part(table: TextTable, part: str) -> pd.DataFrame:
    table.need("id", "text")
    if "part" in table.columns:
        message = "has a column 'part', but the part is that of the setting"
        remedy = f"write one table per part, and remove the column; this one is the {part} table"
        raise Contradiction(message, where=str(table.path), remedy=remedy)
    pairs, groups = table.optional("pair_id"), table.optional("group")
    has_pair = np.array([pair is not None for pair in pairs], dtype=bool)
    if part != "train" or has_pair.any():
        table.need("group")
    texts = [text.strip() for text in table.ids("text")]
    for row, text in enumerate(texts):
        if not text:
            raise MalformedLine("an empty text", where=table.place(row), remedy="remove the row")
        if has_pair[row] and groups[row] is None:
            message = f"the sentence of pair {pairs[row]!r} has no group"
            raise MalformedLine(message, where=table.place(row), remedy="write its group")
    _refuse_odd_pairs(table, pairs.tolist(), groups.tolist())
    keys = pd.DataFrame(
        {"id": table.ids("id"), "part": part, "pair_id": pairs, "group": groups, "text": texts},
        dtype=object,
    )
    return pd.concat([keys, table.labels(COLUMNS)], axis=1)


def _refuse_odd_pairs(table: TextTable, pairs: list[str | None], groups: list[str | None]) -> None:
    """Raise MalformedLine if a pair has one sentence only, or two of the same group."""
    rows_of: dict[str, dict[str | None, int]] = {}
    for row, (pair, group) in enumerate(zip(pairs, groups, strict=True)):
        if pair is None:
            continue
        rows = rows_of.setdefault(pair, {})
        if group in rows:
            message = f"pair {pair!r} already has a sentence of the group {group!r}"
            remedy = f"keep one of the rows; the other is at {table.place(rows[group])}"
            raise MalformedLine(message, where=table.place(row), remedy=remedy)
        rows[group] = row
    for pair, rows in rows_of.items():
        if len(rows) == 1:
            ((group, row),) = rows.items()
            message = f"pair {pair!r} has a sentence of the group {group!r} only"
            remedy = "add its counterpart, or leave pair_id empty for a sentence without one"
            raise MalformedLine(message, where=table.place(row), remedy=remedy)


def _refuse_repeated_ids(ids: list[str], tables: list[TextTable]) -> None:
    places = [(table, row) for table in tables for row in range(len(table))]
    first_rows: dict[str, int] = {}
    for row, identifier in enumerate(ids):
        first = first_rows.setdefault(identifier, row)
        if first != row:
            (table, table_row), (other, other_row) = places[row], places[first]
            remedy = f"give each sentence its own id; the other is at {other.place(other_row)}"
            message = f"two sentences have the id {identifier!r}"
            raise MalformedLine(message, where=table.place(table_row), remedy=remedy)
