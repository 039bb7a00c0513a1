"""Data of five items for tests of popularity metrics.

item:        0  1  2  3  4
popularity:  4  2  1  1  0
histories:   u0 {0, 1, 2}, u1 {0, 1}, u2 {0}, u3 {0, 3}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset import Attributes
from recbias.core.evidence import Evidence
from support.worlds.evidence_worlds import make_evidence, make_lists, make_vocabulary
from support.worlds.small_worlds import make_interactions

TRAIN = make_interactions(
    [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (0, 2), (3, 3)], n_items=5
)


def make_popularity_evidence(lists: Sequence[Sequence[int]], **fields: Any) -> Evidence:
    """Return evidence with lists of the five items; code 5 is outside the catalogue."""
    return make_evidence(
        make_lists(lists, outside=["new"]), **{"n_items": 5, "train": TRAIN, **fields}
    )


def make_item_counts(column: Sequence[float | None]) -> Attributes:
    """Return items with a popularity column, ``n_ratings``."""
    frame = pd.DataFrame({"n_ratings": column}, dtype=np.float64)
    return Attributes(make_vocabulary("i", len(column)), frame)
