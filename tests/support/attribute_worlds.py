"""Small worlds whose items are described."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.split import Split, TrainingData
from recbias.data.datasets.demo import Demo
from recbias.data.splits.random_holdout import RandomHoldout
from support.recommending import random_world
from support.worlds import rows


def described(
    pairs: list[tuple[int, int]], columns: dict[str, list[Any]], **more: Any
) -> TrainingData:
    """Training rows of (user, item), and the columns of the items."""
    n_items = len(next(iter(columns.values())))
    train = rows(pairs, n_items=n_items, **more)
    return TrainingData(train, items=Attributes(train.item_ids, pd.DataFrame(columns), "item"))


def random_described(rng: np.random.Generator) -> TrainingData:
    """A random world whose items have up to three of six genres, some of them none."""
    data = random_world(rng)
    cells = ["|".join(f"g{each}" for each in range(6) if rng.random() < 0.3) for _ in range(45)]
    frame = pd.DataFrame({"genres": [each or None for each in cells]})
    return replace(data, items=Attributes(data.train.item_ids, frame, "item"))


def demo() -> tuple[Split, TrainingData]:
    """The demo world, whose users have a favourite genre, and what training sees of it."""
    rng = np.random.default_rng(5)
    world = Demo(n_users=300, n_items=200, popularity=0).load(Path(), rng)
    split = RandomHoldout(test=0.2).split(world, 0, rng)
    return split, split.training_data(items=world.items)
