"""Small evidence of reviews, and of the items that a model predicts for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset import Attributes
from recbias.core.evidence import Evidence, Predictions
from support.worlds.evidence_worlds import make_user_queries, make_vocabulary


def make_review_evidence(
    items: Any,
    ranked: Any,
    *,
    categories: Sequence[Any] | None = None,
    n_items: int = 5,
    **fields: Any,
) -> Evidence:
    """Return evidence with the items of reviews, and a ranking of all items for each."""
    codes = np.array(ranked, dtype=np.int32)
    ids = make_vocabulary("r", len(items)).ids
    table = None
    if categories is not None:
        n_items = len(categories)
        frame = pd.DataFrame({"categories": pd.Series(categories, dtype=object)})
        table = Attributes(make_vocabulary("i", n_items), frame)
    return Evidence(
        queries=make_user_queries(1),
        item_ids=make_vocabulary("i", n_items),
        items=table,
        predictions=Predictions(ids, np.array(items, dtype=np.int32), codes),
        **{"metric": "the metric", "n_bootstrap": 20, **fields},
    )


def sample_reviews(seed: int, n: int, n_items: int, *, skill: float = 1.0) -> tuple[Any, Any]:
    """Sample the items of n reviews by a power law, and scores of all items for each.

    Scores are standard normal; that of the reviewed item is ``skill`` higher.
    """
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, n_items + 1)
    items = rng.choice(n_items, n, p=weights / weights.sum())
    scores = rng.normal(size=(n, n_items))
    scores[np.arange(n), items] += skill
    return items, scores


def rank_items(scores: Any) -> Any:
    """Return the items of each row in order of decreasing score."""
    return np.argsort(-scores, axis=1)
