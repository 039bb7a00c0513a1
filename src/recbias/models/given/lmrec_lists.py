"""The recommendation lists published by the authors of LMRec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from recbias.core.arrays import Ids
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import MissingEvidence
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import Output
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn

LIST, SEPARATOR = "recommended", "\x1f"
"""The column of the users table with the list of each sentence, and the separator of its items."""


@dataclass(frozen=True, kw_only=True)
class LMRecLists:
    """Measure the lists published by the LMRec authors, from the dataset ``lmrec-release``.

    The lists are in the order of the published ranks and have no scores. A query that is not a
    sentence of the dataset has an empty list, and a warning reports the number of such queries.

    Raises:
        MissingEvidence: The dataset has no published lists.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended Bias in Language Model-driven
        Conversational Recommendation", 2022; github.com/TinaBBB/Unintended-Bias-LMRec.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"users", "items"})
    libraries: ClassVar[tuple[str, ...]] = ()

    def fit(self, data: TrainingData, rng: np.random.Generator) -> PublishedLists:
        """Read the lists from the users table; nothing is trained."""
        if data.users is None or LIST not in data.users.names:
            remedy = "choose the dataset lmrec-release, or another model"
            raise MissingEvidence("the dataset has no published lists", remedy=remedy)
        return PublishedLists(data.users.frame[LIST].to_numpy(dtype=object))


@dataclass(frozen=True, eq=False)
class PublishedLists:
    """The lists of the sentences of a dataset."""

    lists: Ids  # The items of each sentence, joined by ``SEPARATOR``, in the order of the users

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the first ``k`` items of the list of each query."""
        codes = data.train.user_ids.find(queries.ids.ids)
        n_missing = int((codes < 0).sum())
        if n_missing:
            warn(f"{n_missing:,} of {codes.size:,} queries have no published list: empty lists")
        lists = pd.Series(self.lists).reindex(codes).reset_index(drop=True)
        names = lists.str.split(SEPARATOR).explode().dropna()
        rows = names.index.to_numpy()
        ranks = names.groupby(level=0).cumcount().to_numpy()
        item_codes = data.train.item_ids.codes(names.to_numpy(dtype=object), kind="item")
        is_listed = ranks < k
        items = np.full((codes.size, k), -1, dtype=np.int32)
        items[rows[is_listed], ranks[is_listed]] = item_codes[is_listed]
        return RankedLists(items, np.full(items.shape, np.nan, dtype=np.float32))
