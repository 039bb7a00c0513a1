"""Small answers of models for tests of metrics: lists, what is relevant, and who asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.ranked_lists import RankedLists, no_ids
from recbias.core.queries.queries import Queries


def words(prefix: str, n: int) -> Vocabulary:
    return Vocabulary(np.array([f"{prefix}{each}" for each in range(n)], dtype=object))


def ranked(items: Sequence[Sequence[int]], *, outside: Sequence[str] = ()) -> RankedLists:
    """Lists of item codes, padded with -1 to the longest; the scores fall by 1 a rank."""
    k = max((len(each) for each in items), default=0)
    codes = np.full((len(items), k), -1, dtype=np.int32)
    for row, each in enumerate(items):
        codes[row, : len(each)] = each
    scores = np.where(codes >= 0, -np.arange(k), np.nan).astype(np.float32)
    names = np.array(outside, dtype=object) if outside else no_ids()
    return RankedLists(codes, scores, names)


def rows_of(items: Sequence[Sequence[int]], n_items: int) -> Any:
    """A CSR matrix whose rows hold the items given."""
    starts = np.cumsum([0, *(len(each) for each in items)])
    columns = np.array([item for each in items for item in sorted(each)], dtype=np.int32)
    ones = np.ones(columns.size, dtype=np.float32)
    return csr_array((ones, columns, starts), shape=(len(items), n_items))


def asked(n: int, *, users: Sequence[int] | None = None) -> Queries:
    """Users as queries; by default query u is user u."""
    ids = words("u", n)
    codes = np.array(range(n) if users is None else users, dtype=np.int32)
    return Queries(ids, Attributes(ids, pd.DataFrame(index=range(n)), "query"), codes)


def evidence(
    lists: RankedLists,
    relevant: Sequence[Sequence[int]] | None = None,
    *,
    n_items: int = 10,
    train: Interactions | None = None,
    queries: Queries | None = None,
    **others: Any,
) -> Evidence:
    """Evidence of lists; ``relevant`` has the test items of each query."""
    return Evidence(
        queries=queries or asked(len(lists)),
        item_ids=words("i", n_items),
        lists=lists,
        relevant=None if relevant is None else rows_of(relevant, n_items),
        train=train,
        metric="the metric",
        **others,
    )
