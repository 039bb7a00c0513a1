"""The queries that a model of sentences answers: sentences about groups, and dialogues."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Ids
from recbias.core.errors import UnknownColumn
from recbias.core.queries.queries import Queries

TEXT, PAIR, GROUP = "text", "pair_id", "group"
CONTEXT, REFERENCE = "context", "reference"
COLUMNS = (TEXT, PAIR, GROUP, CONTEXT, REFERENCE)
"""The labels of queries that have a meaning; all others are labels of the sentences."""


@dataclass(frozen=True, eq=False)
class SentenceQueries:
    """Queries with texts: sentences, or contexts of a dialogue.

    Args:
        ids: The identifiers of the queries.
        cells: The columns ``text``, ``pair_id``, ``group``, ``context`` and ``reference`` as text,
            None where missing.
        labels: The other labels.
    """

    ids: Ids
    cells: dict[str, Ids]
    labels: pd.DataFrame

    @classmethod
    def read(cls, queries: Queries) -> SentenceQueries:
        """Return the texts of queries, in the column ``text`` of a table where they have none."""
        frame = queries.labels.frame.reset_index(drop=True)
        cells = {name: _read_texts(frame, name) for name in COLUMNS}
        if queries.texts is not None:
            cells[TEXT] = queries.texts
        labels = frame.drop(columns=[name for name in COLUMNS if name in frame])
        return cls(queries.ids.ids, cells, labels)

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.ids)

    def take_sentences(self) -> SentenceQueries:
        """Return the queries about a group.

        Raises:
            UnknownColumn: They have no texts.
        """
        return _require_texts(self._take(_has_value(self.cells[GROUP])), TEXT)

    def take_dialogues(self) -> SentenceQueries:
        """Return the queries with a context or a reference; the context may be the text.

        Raises:
            UnknownColumn: They have no texts.
        """
        has_context, has_reference = (
            _has_value(self.cells[name]) for name in (CONTEXT, REFERENCE)
        )
        dialogues = self._take(has_context | has_reference)
        cells = dialogues.cells
        contexts = np.where(_has_value(cells[CONTEXT]), cells[CONTEXT], cells[TEXT])
        cells = {**cells, CONTEXT: contexts}
        return _require_texts(replace(dialogues, cells=cells), CONTEXT)

    def take_none(self) -> SentenceQueries:
        """Return no query, with the same columns."""
        return self._take(np.zeros(len(self), dtype=bool))

    def _take(self, is_taken: AnyArray) -> SentenceQueries:
        rows = np.flatnonzero(is_taken)
        cells = {name: column[rows] for name, column in self.cells.items()}
        return SentenceQueries(
            self.ids[rows], cells, self.labels.iloc[rows].reset_index(drop=True)
        )


def _require_texts(queries: SentenceQueries, name: str) -> SentenceQueries:
    if len(queries) and not _has_value(queries.cells[name]).any():
        message = f"none of the {len(queries):,} queries has a {name}"
        remedy = "use queries with texts, or add a column `text` to the table of queries"
        raise UnknownColumn(message, where="queries", remedy=remedy)
    return queries


def _read_texts(frame: pd.DataFrame, name: str) -> Ids:
    """Return a column as text, None where missing; a number as it is written."""
    if name not in frame:
        return np.full(len(frame), None, dtype=object)
    return np.array([_write(cell) for cell in frame[name]], dtype=object)


def _write(cell: Any) -> str | None:
    if isinstance(cell, float):
        return None if np.isnan(cell) else np.format_float_positional(cell, trim="-")
    return None if cell is None else str(cell)


def _has_value(column: Ids) -> AnyArray:
    return np.array([cell is not None and bool(cell.strip()) for cell in column], dtype=bool)
