"""Reviews that name a dish among uninformative words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from recbias.core.dataset import Attributes, Ids, Queries, Reviews, TrainingData
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

DISHES = {0: "soup", 2: "bread", 3: "tea"}
"""The dish in the reviews of each item; item 1 has no review."""


def make_texts(*texts: str) -> Ids:
    """Return the texts as an array."""
    return np.array(texts, dtype=object)


def make_review_data(n: int = 90) -> TrainingData:
    """Return ``n`` training reviews; items 0 and 2 are cheap, 3 is expensive, 1 has no price."""
    rng = np.random.default_rng(4)
    items = rng.choice(list(DISHES), n).astype(np.int32)
    noise = rng.choice(["good", "bad", "very", "the"], (n, 3))
    texts = [
        f"{a} {b} {DISHES[item]} {c}"
        for (a, b, c), item in zip(noise, items.tolist(), strict=True)
    ]
    train = make_interactions(list(zip(range(n), items.tolist(), strict=True)), n_items=4)
    reviews = Reviews(np.arange(n, dtype=np.int32), items, make_texts(*texts))
    prices = pd.DataFrame({"price_level": [1.0, np.nan, 1.0, 3.0]})
    return TrainingData(train, items=Attributes(train.item_ids, prices), reviews=reviews)


def make_prompts(*texts: str) -> Queries:
    """Return queries with the texts."""
    ids = [f"p{number}" for number in range(len(texts))]
    return replace(make_queries(ids, [-1] * len(texts)), texts=make_texts(*texts), unit="prompt")
