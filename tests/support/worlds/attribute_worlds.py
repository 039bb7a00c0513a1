"""Small data with attributes of the items."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset import Attributes, TrainingData
from support.models.recommending import make_random_data
from support.worlds.small_worlds import make_interactions


def make_item_data(
    pairs: list[tuple[int, int]], columns: dict[str, list[Any]], **options: Any
) -> TrainingData:
    """Return training rows of (user, item) pairs, and items with the columns."""
    n_items = len(next(iter(columns.values())))
    train = make_interactions(pairs, n_items=n_items, **options)
    return TrainingData(train, items=Attributes(train.item_ids, pd.DataFrame(columns), "item"))


def make_random_item_data(rng: np.random.Generator) -> TrainingData:
    """Return random data whose items have some of six genres, or none."""
    data = make_random_data(rng)
    cells = ["|".join(f"g{genre}" for genre in range(6) if rng.random() < 0.3) for _ in range(45)]
    frame = pd.DataFrame({"genres": [cell or None for cell in cells]})
    return replace(data, items=Attributes(data.train.item_ids, frame, "item"))
