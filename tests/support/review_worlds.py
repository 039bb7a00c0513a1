"""Small worlds of reviews, and of the items that a model names for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset.attributes import Attributes
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.predictions import Predictions
from support.evidence_worlds import asked, words


def reviewed(
    items: Any,
    ranked: Any,
    *,
    categories: Sequence[Any] | None = None,
    n_items: int = 5,
    **others: Any,
) -> Evidence:
    """Evidence of reviews: the item of each, and the ranking of all items that a model gives."""
    codes = np.array(ranked, dtype=np.int32)
    ids = words("r", len(items)).ids
    table = None
    if categories is not None:
        n_items = len(categories)
        frame = pd.DataFrame({"categories": pd.Series(categories, dtype=object)})
        table = Attributes(words("i", n_items), frame)
    return Evidence(
        queries=asked(1),
        item_ids=words("i", n_items),
        items=table,
        predictions=Predictions(ids, np.array(items, dtype=np.int32), codes),
        **{"metric": "the metric", "n_bootstrap": 20, **others},
    )


def drawn(seed: int, n: int, n_items: int, *, skill: float = 1.0) -> tuple[Any, Any]:
    """The items of n reviews, some more often than others, and scores of all items for each.

    The item reviewed has ``skill`` more than a normal draw; no two scores are alike.
    """
    rng = np.random.default_rng(seed)
    chances = 1 / np.arange(1, n_items + 1)
    items = rng.choice(n_items, n, p=chances / chances.sum())
    scores = rng.normal(size=(n, n_items))
    scores[np.arange(n), items] += skill
    return items, scores


def best_first(scores: Any) -> Any:
    """The items of each row of scores, the highest first."""
    return np.argsort(-scores, axis=1)
