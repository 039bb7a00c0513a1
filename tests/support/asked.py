"""Queries for tests of models."""

from __future__ import annotations

import numpy as np
import pandas as pd

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.queries.queries import Queries


def asked(ids: list[str], users: list[int] | None = None) -> Queries:
    """Queries with these identifiers; the user code of each, from 0 unless given."""
    names = Vocabulary(np.array(ids, dtype=object))
    codes = np.arange(len(ids)) if users is None else np.array(users)
    labels = Attributes(names, pd.DataFrame(index=range(len(ids))), "query")
    return Queries(names, labels, codes.astype(np.int32))
