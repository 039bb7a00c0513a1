"""Queries: users or prompts, with their labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Codes, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.vocabulary import Vocabulary

SAMPLE = "sample"
"""The label of prompts that are sent several times: 0, or 1, 2, ... where a prompt is repeated."""


@runtime_checkable
class AsksInFolds(Protocol):
    """A query source whose queries are disjoint samples, which become folds of the results.

    ``ask`` returns ``folds`` samples of the same size, one after another. Models are trained once.
    """

    folds: int


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
