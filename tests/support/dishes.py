"""Reviews that name a dish among words that say nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from recbias.core.arrays import Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Reviews
from recbias.core.dataset.split import TrainingData
from recbias.core.queries.queries import Queries
from support.asked import asked
from support.worlds import rows

DISHES = {0: "soup", 2: "bread", 3: "tea"}
"""What the reviews of these items are about; item 1 has none."""


def texts(*each: str) -> Ids:
    """Texts as an array."""
    return np.array(each, dtype=object)


def reviewed(n: int = 90) -> TrainingData:
    """Return ``n`` training reviews; the items 0 and 2 are cheap, 3 is dear, 1 has no price."""
    rng = np.random.default_rng(4)
    items = rng.choice(list(DISHES), n).astype(np.int32)
    noise = rng.choice(["good", "bad", "very", "the"], (n, 3))
    said = [f"{a} {b} {DISHES[i]} {c}" for (a, b, c), i in zip(noise, items.tolist(), strict=True)]
    train = rows(list(zip(range(n), items.tolist(), strict=True)), n_items=4)
    reviews = Reviews(np.arange(n, dtype=np.int32), items, texts(*said))
    prices = pd.DataFrame({"price_level": [1.0, np.nan, 1.0, 3.0]})
    return TrainingData(train, items=Attributes(train.item_ids, prices), reviews=reviews)


def prompts(*each: str) -> Queries:
    """Queries with these texts."""
    ids = [f"p{place}" for place in range(len(each))]
    return replace(asked(ids, [-1] * len(each)), texts=texts(*each), unit="prompt")
