"""What a metric is handed; reading what the experiment does not make is an error."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import BoolArray, FloatArray, Matrix
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MissingEvidence
from recbias.core.outputs.predictions import Predictions
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.outputs.sentences import Responses, SentenceScores
from recbias.core.queries.queries import Queries

REMEDIES = {
    "lists": "choose a model that provides lists",
    "test": "give the experiment a split with a test part",
    "train": "give the dataset interactions",
    "items": "give the dataset an items table",
    "users": "give the dataset a users table",
    "embeddings": "choose a model that provides embeddings",
    "sentence_scores": "choose a model that provides sentence_scores",
    "responses": "choose a model that provides responses",
    "predictions": "choose a model that names the items of reviews, and a split with a test part",
}
"""Each kind of evidence, and what makes it."""


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Vectors of a latent-factor model, over the codes of the dataset.

    Args:
        users: ``float32 (n_users, d)``; a row of NaN where a user has none. None without users.
        items: ``float32 (n_items, d)``; a row of NaN where an item has none. None without items.
    """

    users: npt.NDArray[np.float32] | None
    items: npt.NDArray[np.float32] | None


@dataclass(frozen=True, eq=False)
class Evidence:
    """The facts of one model's answers.

    Args:
        queries: Who was asked.
        item_ids: The catalogue; item codes are over it.
        lists: The model's lists, one a query, in the order of ``queries``.
        relevant: CSR (q, n_items) of 0/1: the test items of each query. None without a test part.
        train: The training interactions (all interactions where there is no split).
        items: What is known of the items.
        users: What is known of the users.
        embeddings: The model's vectors.
        sentence_scores: How likely sentences are to the model.
        responses: What the model wrote.
        predictions: The items that the model names for the test reviews.
        candidates: Which items could be recommended, ``bool[n_items]``.
        bootstrap_seed: The seed of the samples of set-level metrics: one for every model, seed and
            fold that asks the same queries.
        n_bootstrap: How many samples those metrics draw.
    """

    queries: Queries
    item_ids: Vocabulary
    lists: RankedLists | None = None
    relevant: Matrix | None = None
    train: Interactions | None = None
    items: Attributes | None = None
    users: Attributes | None = None
    embeddings: Embeddings | None = None
    sentence_scores: SentenceScores | None = None
    responses: Responses | None = None
    predictions: Predictions | None = None
    candidates: BoolArray | None = None
    bootstrap_seed: int = 0
    n_bootstrap: int = 1000
    metric: str = field(default="", compare=False)

    def need(self, kind: str) -> None:
        """Raise MissingEvidence unless the field ``kind`` (``test`` is ``relevant``) is here."""
        field_name = "relevant" if kind == "test" else kind
        if getattr(self, field_name) is None:
            found = f"{self.metric or 'the metric'} needs {kind}, which this experiment lacks"
            raise MissingEvidence(found, remedy=REMEDIES.get(kind, ""))

    @cached_property
    def ranked(self) -> RankedLists:
        """The lists; an error where there are none."""
        self.need("lists")
        return self.lists  # type: ignore[return-value]

    @cached_property
    def in_catalogue(self) -> BoolArray:
        """Which places of the lists hold an item of the catalogue, ``bool[q, k]``."""
        items = self.ranked.items
        return (items >= 0) & (items < len(self.item_ids))

    def rng(self) -> np.random.Generator:
        """Return the generator of this measurement: the same for every model that is asked so."""
        return np.random.default_rng(self.bootstrap_seed)

    @property
    def _relevant(self) -> Any:
        return self.relevant

    @cached_property
    def n_relevant(self) -> npt.NDArray[np.int64]:
        """The number of test items of each query, ``int64[q]``."""
        self.need("test")
        counts: npt.NDArray[np.int64] = np.diff(self._relevant.indptr).astype(np.int64)
        return counts

    @cached_property
    def hits(self) -> BoolArray:
        """Which places of the lists hold a test item of their query, ``bool[q, k]``."""
        self.need("test")
        return mark_contained(self._relevant, self.ranked)

    @cached_property
    def popularity(self) -> FloatArray:
        """The number of training interactions of each item, ``float64[n_items]``."""
        self.need("train")
        return self.train.item_counts().astype(np.float64)  # type: ignore[union-attr]


def mark_contained(matrix: Matrix, lists: RankedLists) -> BoolArray:
    """Return which places of the lists are stored in the row of their query, ``bool[q, k]``.

    Blocks of queries are marked in a small table of (query, item) that fits the processor's
    cache, read at the places of the lists, and wiped: time grows with the rows of ``matrix`` and
    the places of the lists, memory with neither.

    Args:
        matrix: CSR (q, n_items); every stored entry counts.
        lists: Lists of the same queries, in the same order.
    """
    n_queries, n_items = matrix.shape
    width = n_items + int(lists.outside.size) + 1  # the last cell of a row is never marked
    size = min(max(1, _TABLE_CELLS // width), max(n_queries, 1))
    marked = np.zeros(size * width, dtype=bool)
    starts = np.arange(size) * width
    found: BoolArray = np.empty(lists.items.shape, dtype=bool)
    for first in range(0, n_queries, size):
        ends = matrix.indptr[first : first + size + 1]
        block = starts[: ends.size - 1]
        keys = matrix.indices[ends[0] : ends[-1]] + np.repeat(block, np.diff(ends))
        marked[keys] = True
        wanted = lists.items[first : first + size] + block[:, None]
        found[first : first + size] = marked[wanted]  # -1 reads the last cell of the row above
        marked[keys] = False
    return found


_TABLE_CELLS = 2**23
"""Bytes of the table of ``mark_contained``."""
