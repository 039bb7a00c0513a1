"""The query source of the sentences of a dataset, and of dialogues."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import (
    Contradiction,
    MalformedLine,
    MissingEvidence,
    NothingLeft,
    WrongType,
)
from recbias.core.protocols import InputFile
from recbias.core.queries.conditions import list_condition_columns, match_rows
from recbias.core.queries.queries import Queries
from recbias.core.queries.sentence_queries import tabulate_part
from recbias.formats.tables import find_suffix, read_text_table

CONTEXT, REFERENCE = "context", "reference"
"""The labels of a dialogue: its turns, one per line, and the answer to compare with."""


@dataclass(frozen=True, kw_only=True)
class SentenceQueries:
    """Query with the sentences of the dataset, and with contexts of dialogues to answer.

    A language model scores the sentences and answers the dialogues. The labels of a sentence are
    ``pair_id``, ``group`` and its other labels, such as ``category``; sentences of a pair follow
    one another. A dialogue has no group; its labels are ``context``, the turns, one per line, and
    ``reference``.

    The part chooses the sentences that results are reported on. A search (``tune:``) never reads
    the test part, whatever the part is.

    Args:
        part: The part of the sentences: ``test``, ``validation`` or ``train``.
        where: A condition on the labels, as in ``category == 'gender'``; see ``users``.
        dialogues: A ``.jsonl``, ``.csv``, ``.tsv`` (also with ``.gz``) or ``.parquet`` file with
            ``context`` (in JSON and Parquet a list of turns, else one turn per line of the cell),
            optionally ``reference`` and ``id``, and any labels.

    Raises:
        MissingEvidence: The dataset has no sentences, and there are no dialogues.
        NothingLeft: The part has no sentences, or none satisfies ``where``.
        WrongType: ``where`` is not a condition.
        UnknownColumn: The sentences have no column that ``where`` names, or the dialogues lack
            ``context``.
        MalformedLine: A dialogue has an empty context, or its ``id`` is in use.
        Contradiction: The dialogues have a column ``group``, ``pair_id`` or ``text``.
    """

    part: Literal["test", "validation", "train"] = "test"
    where: str | None = None
    dialogues: InputFile | None = None

    def __post_init__(self) -> None:
        """Validate the condition, and the suffix of the file."""
        if self.dialogues is not None:
            try:
                find_suffix(self.dialogues)
            except WrongType as error:
                raise WrongType(error.message, where="dialogues", remedy=error.remedy) from error
        if self.where is not None:
            try:
                list_condition_columns(self.where)
            except WrongType as error:
                raise WrongType(error.message, where="where", remedy=error.remedy) from error

    def ask(self, dataset: Dataset, rng: np.random.Generator) -> Queries:
        """Return a query for each sentence, then one for each dialogue."""
        tables = []
        if dataset.sentences is not None:
            tables.append(self._select(tabulate_part(dataset.sentences, self.part)))
        elif self.dialogues is None:
            remedy = "use chbias, redditbias, crows_pairs or sentence_tables as dataset"
            raise MissingEvidence("the dataset has no sentences", remedy=remedy)
        if self.dialogues is not None:
            used = set(tables[0]["id"]) if tables else set()
            tables.append(read_dialogues(self.dialogues, used))
        table = pd.concat(tables, ignore_index=True).astype(object)
        return Queries.of_prompts(table.where(table.notna(), None))

    def _select(self, table: pd.DataFrame) -> pd.DataFrame:
        if self.where is None:
            return table
        labels = table.drop(columns=["id", "text"])
        ids = Vocabulary(table["id"].to_numpy(dtype=object).copy())
        rows = np.flatnonzero(match_rows(self.where, Attributes(ids, labels, "sentence")))
        if not rows.size:
            message = f"none of the {len(table):,} sentences satisfies {self.where!r}"
            remedy = f"the sentences have the labels {', '.join(map(str, labels.columns))}"
            raise NothingLeft(message, where="where", remedy=remedy)
        return table.iloc[rows].reset_index(drop=True)


def read_dialogues(path: Path, used: set[str] | None = None) -> pd.DataFrame:
    """Return the dialogues of a file: ``id``, ``text`` and ``context``, ``reference``, labels.

    Args:
        path: The file.
        used: Identifiers of other queries, which no dialogue may have.

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: It has no column ``context``.
        MalformedLine: A context is empty, or an ``id`` occurs twice or is in use.
        Contradiction: It has a column of sentences.
    """
    table = read_text_table(path)
    table.need(CONTEXT)
    for name in ("group", "pair_id", "text"):
        if name in table.columns:
            remedy = "rename the column; sentences to score belong to the dataset"
            raise Contradiction(f"dialogues have no {name}", where=str(path), remedy=remedy)
    contexts = [
        "\n".join(turn.strip() for turn in text.splitlines() if turn.strip())
        for text in table.texts(CONTEXT)
    ]
    if "" in contexts:
        location = table.place(contexts.index(""))
        raise MalformedLine("an empty context", where=location, remedy="write at least one turn")
    has_ids = "id" in table.columns
    ids = table.ids("id") if has_ids else [f"dialogue-{row + 1}" for row in range(len(table))]
    seen = set(used or ())
    for row, identifier in enumerate(ids):
        if identifier in seen:
            message = f"another query has the id {identifier!r}"
            raise MalformedLine(message, where=table.place(row), remedy="give each its own id")
        seen.add(identifier)
    texts = {"id": ids, "text": contexts, CONTEXT: contexts, REFERENCE: table.optional(REFERENCE)}
    labels = table.labels(("id", CONTEXT, REFERENCE))
    return pd.concat([pd.DataFrame(texts, dtype=object), labels], axis=1)
