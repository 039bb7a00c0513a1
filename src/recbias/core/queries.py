"""Queries: users, prompts, or the sentences of a dataset, with their labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from recbias.core.dataset import AnyArray, Attributes, Codes, Ids, Sentences, Vocabulary
from recbias.core.errors import NothingLeft

SAMPLE = "sample"
"""The label of prompts that are sent several times: 0, or 1, 2, ... where a prompt is repeated."""


@dataclass(frozen=True, eq=False)
class Queries:
    """The queries that a model recommends for.

    Args:
        labels: The labels of the queries (age, gender, template, name, ...), aligned to ``ids``.
        users: The user code of each query, -1 where the query is not a user, ``int32[q]``.
        texts: The prompt of each query, or None if queries are users.
        unit: The unit of statistics: ``user`` or ``prompt``.
    """

    ids: Vocabulary
    labels: Attributes
    users: Codes
    texts: Ids | None = None
    unit: str = "user"

    @classmethod
    def of_prompts(cls, table: pd.DataFrame) -> Queries:
        """Return the prompts of a table: ``id``, ``text``, and the other columns as labels."""
        ids = Vocabulary(table.pop("id").to_numpy(dtype=object).copy())
        texts = table.pop("text").to_numpy(dtype=object)
        users = np.full(len(ids), -1, dtype=np.int32)
        return cls(ids, Attributes(ids, table, "query"), users, texts, "prompt")

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.ids)

    def take(self, rows: AnyArray) -> Queries:
        """Return some of the queries, by position."""
        rows = np.asarray(rows)
        ids = self.ids.take(rows)
        texts = None if self.texts is None else self.texts[rows]
        return Queries(ids, self.labels.take(rows, ids), self.users[rows], texts, self.unit)


def make_sentence_queries(sentences: Sentences, part: str) -> Queries:
    """Return the sentences of a part as queries, the sentences of a pair one after another.

    Labels are ``pair_id``, ``group`` and the labels of the sentences.

    >>> rows = [("a", "test", "1", "old", "He is 80."), ("b", "test", "1", "young", "He is 20.")]
    >>> frame = pd.DataFrame(rows, columns=["id", "part", "pair_id", "group", "text"])
    >>> make_sentence_queries(Sentences(frame), "test").labels.frame["group"].tolist()
    ['old', 'young']

    Raises:
        NothingLeft: The part has no sentences.
    """
    return Queries.of_prompts(tabulate_part(sentences, part))


def tabulate_part(sentences: Sentences, part: str) -> pd.DataFrame:
    """Return the rows of a part for ``Queries.of_prompts``, pair by pair.

    Raises:
        NothingLeft: The part has no sentences.
    """
    frame = sentences.take_part(part).frame.drop(columns="part")
    if frame.empty:
        parts = [str(name) for name in sentences.frame["part"].unique()]
        remedy = f"the dataset has sentences for {', '.join(parts)}" if parts else ""
        raise NothingLeft(f"there are no sentences for {part}", where="part", remedy=remedy)
    positions = pd.Series(range(len(frame)), dtype=int)
    first_of_pair = positions.groupby(frame["pair_id"].to_numpy()).transform("min")
    order = first_of_pair.fillna(positions).sort_values(kind="stable").index
    return frame.iloc[order].reset_index(drop=True)
