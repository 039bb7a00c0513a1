"""Small worlds for measures of exposure, and the measures as plain loops over their definitions.

item:        0     1     2     3     4     5
maker:       a     a     b     a|b   -     b
candidate:   yes   yes   yes   yes   yes   no (no training interaction)
histories:   u0 {1}, u1 {2}; code 6 is outside the catalogue
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset import Attributes
from recbias.core.evidence import Evidence
from support.worlds.evidence_worlds import make_evidence, make_lists, make_vocabulary
from support.worlds.small_worlds import make_interactions

MAKERS = ["a", "a", "b", "a|b", None, "b"]
CANDIDATES = np.array([True, True, True, True, True, False])
LISTS = [[0, 2, 3], [3, 1]]
RELEVANT = [[2, 4], [0, 3]]


def make_makers(makers: Sequence[str | None]) -> Attributes:
    frame = pd.DataFrame({"maker": np.array(makers, dtype=object)})
    return Attributes(make_vocabulary("i", len(makers)), frame)


def make_exposure_evidence(
    lists: Sequence[Sequence[int]] = LISTS,
    relevant: Sequence[Sequence[int]] | None = RELEVANT,
    **fields: Any,
) -> Evidence:
    """Return lists of the six items; other users than u0 and u1 have no history."""
    n_users = max(len(lists), 2)
    train = make_interactions([(0, 1), (1, 2)], n_users=n_users, n_items=6)
    defaults = {"items": make_makers(MAKERS), "candidates": CANDIDATES, "train": train}
    return make_evidence(
        make_lists(lists, outside=["new"]), relevant, **{"n_items": 6, **defaults, **fields}
    )


def make_random_world(seed: int, *, n_queries: int = 5, n_items: int = 9) -> Evidence:
    """Return random lists, histories, makers, of which some are missing, and test items."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(n_items) for _ in range(n_queries)]
    lists = [order[: rng.integers(1, 6)].tolist() for order in orders]
    histories = [(user, int(order[-1])) for user, order in enumerate(orders)]
    last = np.array([True] * (n_items - 1) + [rng.random() < 0.5])
    relevant = [
        [item for item in order[:-1].tolist() if last[item] and rng.random() < 0.4]
        for order in orders
    ]
    values = ["a", "b", "c", "a|b", "b|c", None]
    makers = ["a", "b", *(values[code] for code in rng.integers(0, 6, n_items - 2))]
    return make_evidence(
        make_lists(lists),
        relevant,
        n_items=n_items,
        items=make_makers(makers),
        candidates=last,
        train=make_interactions(histories, n_users=n_queries, n_items=n_items),
        n_bootstrap=4,
    )


def weigh(browsing: str, gamma: float, rank: int) -> float:
    """Return the exposure of a rank, from 1."""
    return float(gamma ** (rank - 1) if browsing == "rbp" else 1.0 / np.log2(rank + 1))


def list_exposures(
    items: Sequence[int], browsing: str = "rbp", gamma: float = 0.8
) -> Mapping[int, float]:
    return {item: weigh(browsing, gamma, rank) for rank, item in enumerate(items, 1)}


def list_candidates(evidence: Evidence, query: int) -> list[int]:
    """Return the items that a query may be recommended."""
    train: Any = evidence.train
    history = set(train.items[train.users == query].tolist())
    candidates: Any = evidence.candidates
    return [item for item in np.flatnonzero(candidates).tolist() if item not in history]


def list_relevant(evidence: Evidence, query: int) -> list[int]:
    relevant: Any = evidence.relevant
    row = relevant[[query]].toarray()[0]
    candidates: Any = evidence.candidates
    return np.flatnonzero((row > 0) & candidates).tolist()


def average_ideal_rankings(
    candidates: Sequence[int], relevant: Sequence[int], browsing: str, gamma: float
) -> Mapping[int, float]:
    """Return the mean exposure of each item over all rankings with the relevant items first."""
    exposure: dict[int, float] = defaultdict(float)
    for part, start in ((relevant, 1), (sorted({*candidates} - {*relevant}), 1 + len(relevant))):
        weights = [weigh(browsing, gamma, start + position) for position in range(len(part))]
        orders = [*permutations(range(len(part)))] if len(part) < 5 else []
        for order in orders:
            for position, at in enumerate(order):
                exposure[part[at]] += weights[position] / len(orders)
        if not orders:  # every item is at each rank equally often
            exposure.update(dict.fromkeys(part, float(np.mean(weights))))
    return exposure


def split_makers(evidence: Evidence, item: int, multiple: str = "split") -> Mapping[str, float]:
    """Return the part of an item in each group: a maker with an item that may be recommended."""
    items: Any = evidence.items
    cells = [cell.split("|") if cell else [] for cell in items.frame["maker"]]
    candidates: Any = evidence.candidates
    known = {maker for row in np.flatnonzero(candidates) for maker in cells[row]}
    makers = [maker for maker in cells[item] if maker in known]
    return {maker: 1.0 / len(makers) if multiple == "split" else 1.0 for maker in makers}


def sum_makers(
    exposures: Mapping[int, float], evidence: Evidence, multiple: str = "split"
) -> Mapping[str, float]:
    totals: dict[str, float] = defaultdict(float)
    for item, exposure in exposures.items():
        for maker, part in split_makers(evidence, item, multiple).items():
            totals[maker] += part * exposure
    return totals


def list_items(evidence: Evidence, query: int) -> list[int]:
    """Return the list of a query."""
    row = evidence.ranked.items[query]
    return row[row >= 0].tolist()  # type: ignore[no-any-return]
