"""Small evidence for tests of metrics: lists, relevant items and queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from recbias.core.dataset import Attributes, Interactions, Queries, Vocabulary
from recbias.core.evidence import Evidence, RankedLists
from recbias.core.measures import Measurement


def make_vocabulary(prefix: str, n: int) -> Vocabulary:
    return Vocabulary(np.array([f"{prefix}{number}" for number in range(n)], dtype=object))


def make_lists(items: Sequence[Sequence[int]], *, outside: Sequence[str] = ()) -> RankedLists:
    """Return lists of item codes, padded with -1; the score of rank r (from 0) is -r."""
    k = max((len(row) for row in items), default=0)
    codes = np.full((len(items), k), -1, dtype=np.int32)
    for row, listed in enumerate(items):
        codes[row, : len(listed)] = listed
    scores = np.where(codes >= 0, -np.arange(k), np.nan).astype(np.float32)
    names = np.array(outside, dtype=object)
    return RankedLists(codes, scores, names)


def make_csr(items: Sequence[Sequence[int]], n_items: int) -> Any:
    """Return a CSR matrix whose rows hold the items."""
    starts = np.cumsum([0, *(len(row) for row in items)])
    columns = np.array([item for row in items for item in sorted(row)], dtype=np.int32)
    ones = np.ones(columns.size, dtype=np.float32)
    return csr_array((ones, columns, starts), shape=(len(items), n_items))


def make_user_queries(n: int, *, users: Sequence[int] | None = None) -> Queries:
    """Return users as queries; query u is user u by default."""
    ids = make_vocabulary("u", n)
    codes = np.array(range(n) if users is None else users, dtype=np.int32)
    return Queries(ids, Attributes(ids, pd.DataFrame(index=range(n)), "query"), codes)


def make_evidence(
    lists: RankedLists,
    relevant: Sequence[Sequence[int]] | None = None,
    *,
    n_items: int = 10,
    train: Interactions | None = None,
    queries: Queries | None = None,
    **fields: Any,
) -> Evidence:
    """Return evidence with lists; ``relevant`` holds the test items of each query."""
    return Evidence(
        queries=queries or make_user_queries(len(lists)),
        item_ids=make_vocabulary("i", n_items),
        lists=lists,
        relevant=None if relevant is None else make_csr(relevant, n_items),
        train=train,
        metric="the metric",
        **fields,
    )


def measure_one(metric: Any, evidence: Evidence) -> Measurement:
    """Return the only row of a metric."""
    (measurement,) = metric.measure(evidence)
    assert isinstance(measurement, Measurement)
    return measurement


def measure_queries(metric: Any, evidence: Evidence) -> list[float]:
    """Return the value of each query."""
    units = measure_one(metric, evidence).units
    return units.values.tolist()  # type: ignore[no-any-return]
