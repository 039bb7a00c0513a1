"""The lists of the LMRec authors' release, measured as if one of our models had made them."""

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
"""The column of the dataset's users with each sentence's list, and what is between its items."""


@dataclass(frozen=True, kw_only=True)
class LMRecLists:
    """Measure the lists that the LMRec authors published, from the dataset ``lmrec-release``.

    The lists are in the order of the published ranks and have no scores. A query that is none of
    the sentences of the dataset gets an empty list, which a warning counts.

    Raises:
        MissingEvidence: The dataset is another one.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended Bias in Language Model-driven
        Conversational Recommendation", 2022; github.com/TinaBBB/Unintended-Bias-LMRec.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"users", "items"})
    libraries: ClassVar[tuple[str, ...]] = ()

    def fit(self, data: TrainingData, rng: np.random.Generator) -> PublishedLists:
        """Look up the lists; there is nothing to learn."""
        if data.users is None or LIST not in data.users.names:
            remedy = "name the dataset lmrec-release, or another model"
            raise MissingEvidence("the dataset has no published lists", remedy=remedy)
        return PublishedLists(data.users.frame[LIST].to_numpy(dtype=object))


@dataclass(frozen=True, eq=False)
class PublishedLists:
    """The lists of the sentences of a dataset.

    Args:
        lists: The items of each sentence, joined, in the order of the dataset's users.
    """

    lists: Ids

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the first ``k`` items of each query's list."""
        rows = data.train.user_ids.find(queries.ids.ids)
        lacking = int((rows < 0).sum())
        if lacking:
            warn(f"{lacking:,} of {rows.size:,} queries have no published list: they are empty")
        written = pd.Series(self.lists).reindex(rows).reset_index(drop=True)
        names = written.str.split(SEPARATOR).explode().dropna()
        at = names.index.to_numpy()
        place = names.groupby(level=0).cumcount().to_numpy()
        items = np.full((rows.size, k), -1, dtype=np.int32)
        fits = place < k
        codes = data.train.item_ids.codes(names.to_numpy(dtype=object), kind="item")
        items[at[fits], place[fits]] = codes[fits]
        return RankedLists(items, np.full(items.shape, np.nan, dtype=np.float32))
