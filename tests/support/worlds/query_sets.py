"""Queries for tests of models."""

from __future__ import annotations

import numpy as np
import pandas as pd

from recbias.core.dataset import Attributes, Queries, Vocabulary


def make_queries(ids: list[str], users: list[int] | None = None) -> Queries:
    """Return queries with the identifiers; their user codes count from 0 if None."""
    vocabulary = Vocabulary(np.array(ids, dtype=object))
    codes = np.arange(len(ids)) if users is None else np.array(users)
    labels = Attributes(vocabulary, pd.DataFrame(index=range(len(ids))), "query")
    return Queries(vocabulary, labels, codes.astype(np.int32))
