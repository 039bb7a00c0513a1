"""A world of five items for tests of popularity metrics.

item:        0  1  2  3  4
popularity:  4  2  1  1  0
histories:   u0 {0, 1, 2}, u1 {0, 1}, u2 {0}, u3 {0, 3}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset.attributes import Attributes
from recbias.core.outputs.evidence import Evidence
from support.evidence_worlds import evidence, ranked, words
from support.worlds import rows

TRAIN = rows([(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (0, 2), (3, 3)], n_items=5)


def facts(lists: Sequence[Sequence[int]], **others: Any) -> Evidence:
    """The evidence of lists over the five items; code 5 is an item outside the catalogue."""
    return evidence(ranked(lists, outside=["new"]), **{"n_items": 5, "train": TRAIN, **others})


def values(metric: Any, of: Evidence) -> list[float]:
    """The value of each query."""
    (found,) = metric.measure(of)
    return found.units.values.tolist()  # type: ignore[no-any-return]


def counted(column: Sequence[float | None]) -> Attributes:
    """Items with a column of popularities, ``n_ratings``."""
    frame = pd.DataFrame({"n_ratings": column}, dtype=np.float64)
    return Attributes(words("i", len(column)), frame)


def of_two_sets(metric: Any, given: Sequence[float], chosen: Sequence[float]) -> float:
    """The figure of one user with items of these popularities in the list and in the history."""
    n = len(given) + len(chosen)
    items = counted([*given, *chosen])
    train = rows([(0, item) for item in range(len(given), n)], n_items=n)
    of = evidence(ranked([list(range(len(given)))]), n_items=n, train=train, items=items)
    return values(metric, of)[0]
