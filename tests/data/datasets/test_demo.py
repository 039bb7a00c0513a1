from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Dataset, Split
from recbias.core.queries import Queries
from recbias.data import demo
from recbias.data.demo import CATEGORIES, GENRES, Demo
from recbias.data.splits import RandomHoldout
from recbias.registry import REGISTRIES


def sample_demo(seed: int = 1, **settings: Any) -> Dataset:
    return Demo(**settings).load(Path(), np.random.default_rng(seed))


def test_the_share_of_stereotyped_items_is_exact_and_shown_in_cast_and_overview() -> None:
    items = sample_demo().items
    assert items is not None
    planted = items.numbers("stereotype") == 1
    assert planted.sum() == 90  # 0.3 of 300
    has_stereotype = [
        any(story in text for story in demo.STEREOTYPED) for text in items.frame["overview"]
    ]
    np.testing.assert_array_equal(has_stereotype, planted)
    men = items.frame["cast"].map(
        lambda cast: sum(person.split()[0] in set(demo.MEN) for person in cast.split("|"))
    )
    np.testing.assert_array_equal(men > 2, planted)


def test_parts_and_columns_are_as_documented() -> None:
    world = sample_demo(reviews=True)
    rows, users, items, reviews = world.interactions, world.users, world.items, world.reviews
    assert users is not None
    assert items is not None
    assert reviews is not None
    assert (rows.n_users, rows.n_items) == (600, 300)
    assert len(reviews) == len(rows)
    assert users.names == ["age", "gender", "race", "occupation", "favourite", "cohort"]
    assert users.numbers("age").min() >= 8
    assert users.numbers("age").max() <= 70
    assert set(users.frame["gender"]) == {"F", "M"}
    assert set(users.frame["race"]) == {"white", "black"}
    assert set(items.membership("genres").values) == set(GENRES)
    assert set(items.membership("categories").values) == set(CATEGORIES)
    assert items.frame["price"].str.len().tolist() == items.numbers("price_level").tolist()
    assert set(items.frame["price"]) == {"$", "$$", "$$$", "$$$$"}
    assert sorted(items.numbers("popularity_rank")) == list(range(1, 301))
    assert set(np.unique(rows.values)) == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert rows.times is not None
    assert pd.to_datetime(rows.times, unit="s").year.isin([2020, 2021]).all()
    for frame in (users.frame, items.frame):
        assert set(frame.dtypes) == {np.dtype(object), np.dtype(np.float64)}
        assert frame.notna().all(axis=None)


def compute_ndcg(name: str, world: Dataset, split: Split) -> float:
    """Compute nDCG@10 with the default settings; every user has a test item."""
    data = split.training_data(users=world.users, items=world.items)
    assert world.users is not None
    assert split.test is not None
    codes = np.arange(split.train.n_users, dtype=np.int32)
    queries = Queries(split.train.user_ids, world.users, codes)
    model: Any = REGISTRIES["models"].load(name)()
    lists = model.fit(data, np.random.default_rng(0)).recommend(queries, 10, data)
    hits = split.test.binary.toarray()[codes[:, None], lists.items]
    discount = 1 / np.log2(np.arange(2, 12))
    ideal = np.cumsum(discount)[np.minimum(split.test.user_counts(), 10) - 1]
    return float(((hits * discount).sum(axis=1) / ideal).mean())


@pytest.mark.parametrize("seed", [1, 42])
def test_collaborative_filtering_beats_popularity_and_popularity_beats_chance(seed: int) -> None:
    world = sample_demo(seed)
    split = RandomHoldout().split(world, 0, np.random.default_rng(seed))
    random, popular = (compute_ndcg(name, world, split) for name in ("Random", "MostPop"))
    assert popular > 2 * random
    for name in ("ItemKNN", "UserKNN", "PureSVD", "EASE"):
        assert compute_ndcg(name, world, split) > 1.3 * popular, name


def are_equal(first_world: Dataset, second_world: Dataset) -> bool:
    tables = ((first_world.users, second_world.users), (first_world.items, second_world.items))
    for first_table, second_table in tables:
        assert first_table is not None
        assert second_table is not None
        if not first_table.frame.equals(second_table.frame):
            return False
    first, second = first_world.interactions, second_world.interactions
    pairs = (
        (first.users, second.users),
        (first.items, second.items),
        (first.values, second.values),
        (first.times, second.times),
    )
    return all(np.array_equal(*pair) for pair in pairs)


def test_the_seed_determines_the_dataset() -> None:
    assert are_equal(sample_demo(7), sample_demo(7))
    assert not are_equal(sample_demo(7), sample_demo(8))
