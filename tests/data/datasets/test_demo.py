from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.split import Split
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.queries.queries import Queries
from recbias.data.datasets import demo_text
from recbias.data.datasets.demo import (
    CATEGORIES,
    GENRES,
    PREFERRED,
    Demo,
    Odds,
    drawn_without_repeats,
    favourites_of,
    genres_of,
)
from recbias.data.splits.random_holdout import RandomHoldout
from recbias.registry import REGISTRIES


def made(seed: int = 1, **settings: Any) -> Dataset:
    return Demo(**settings).load(Path(), np.random.default_rng(seed))


def single_picks(world: Dataset) -> tuple[AnyArray, FloatArray]:
    """Counts of the users who picked one item only, and what their odds are made of.

    Returns:
        Counts ``[kinds, n_items]`` of the 12 kinds (gender, favourite) and the four terms
        ``[kinds, n_items, 4]`` of popularity, taste, preference and prominence.
    """
    users, items, rows = world.users, world.items, world.interactions
    assert users is not None
    assert items is not None
    woman = (users.frame["gender"] == "F").to_numpy()
    kinds = favourites_of(users) + 6 * woman
    single = (rows.user_counts() == 1)[rows.users]
    counts = np.zeros((12, rows.n_items))
    np.add.at(counts, (kinds[rows.users[single]], rows.items[single]), 1)
    terms = np.zeros((2, 6, rows.n_items, 4))
    terms[..., 0] = -np.log(items.numbers("popularity_rank"))
    terms[..., 1] = genres_of(items)
    terms[1, ..., 2] = genres_of(items)[GENRES.index(PREFERRED)]
    terms[..., 3] = items.numbers("stereotype")
    return counts, terms.reshape(12, -1, 4)


def conditional_logit(counts: AnyArray, terms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The maximum-likelihood weights of the terms and their standard errors, by Newton's steps."""
    weights = np.zeros(terms.shape[2])
    information = np.eye(weights.size)
    total = counts.sum(axis=1)
    for _ in range(25):
        odds = terms @ weights
        chance = np.exp(odds - odds.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
        mean = np.einsum("ki,kit->kt", chance, terms)
        gradient = np.einsum("ki,kit->t", counts - total[:, None] * chance, terms)
        second = np.einsum("k,ki,kit,kis->ts", total, chance, terms, terms)
        information = second - np.einsum("k,kt,ks->ts", total, mean, mean)
        weights = weights + np.linalg.solve(information, gradient)
    return weights, np.sqrt(np.diag(np.linalg.inv(information)))


@pytest.mark.parametrize(
    "planted",
    [
        {"popularity": 0.8, "taste": 3.5, "preference": 1.0, "prominence": 0.7},
        {"popularity": 0.0, "taste": 0.0, "preference": 0.0, "prominence": 0.0},
        {"popularity": 1.2, "taste": 1.0, "preference": -1.5, "prominence": -0.5},
    ],
)
def test_what_was_planted_comes_back(planted: dict[str, Any]) -> None:
    # A user's only pick is of an item with the chance of the docstring: a conditional logit model
    # of the users with one pick must give back the four sizes, within its standard errors.
    world = made(n_users=30_000, n_items=60, per_user=1, **planted)
    weights, errors = conditional_logit(*single_picks(world))
    assert (errors < 0.05).all()
    assert (np.abs(weights - list(planted.values())) < 4 * errors).all()


def test_the_odds_of_a_preferred_pick_are_multiplied_by_what_was_planted() -> None:
    # the plain odds ratio of women to men within one favourite genre, without any model
    counts, _ = single_picks(made(n_users=30_000, n_items=60, per_user=1, preference=1.0))
    items = made(n_users=30_000, n_items=60, per_user=1, preference=1.0).items
    assert items is not None
    preferred = genres_of(items)[0]
    inside = counts[:, preferred].sum(axis=1).reshape(2, 6)
    outside = counts[:, ~preferred].sum(axis=1).reshape(2, 6)
    ratio = np.log(inside[1] / outside[1]) - np.log(inside[0] / outside[0])
    variance = (1 / inside + 1 / outside).sum(axis=0)
    pooled = (ratio / variance).sum() / (1 / variance).sum()
    assert abs(pooled - 1.0) < 4 * np.sqrt(1 / (1 / variance).sum())


def test_picks_without_repeats_follow_the_plackett_luce_model(rng: np.random.Generator) -> None:
    # weights 1, 2, 3, two picks: P(1 and 2) = 1/6 * 2/5 + 2/6 * 1/4 = 0.15,
    # P(1 and 3) = 1/6 * 3/5 + 3/6 * 1/3 = 0.26667, P(2 and 3) = 2/6 * 3/4 + 3/6 * 2/3 = 0.58333
    n = 20_000
    odds = Odds(np.log([[1.0, 2.0, 3.0]]), np.zeros(n, dtype=np.int64))
    users, items = drawn_without_repeats(odds, np.full(n, 2), rng)
    np.testing.assert_array_equal(users, np.repeat(np.arange(n), 2))
    pairs = items.reshape(n, 2).sum(axis=1)
    expected = n * np.array([0.15, 0.26666667, 0.58333333])
    found = np.bincount(pairs, minlength=4)[1:]
    # chi-square with 2 degrees of freedom is below 13.8 but once in 1,000
    assert ((found - expected) ** 2 / expected).sum() < 13.8


def test_odds_out_of_all_proportion_still_give_the_number_asked_for(
    rng: np.random.Generator,
) -> None:
    odds = Odds(np.array([[0.0, -500.0, -900.0, -1000.0]]), np.zeros(50, dtype=np.int64))
    users, items = drawn_without_repeats(odds, np.full(50, 2), rng)
    assert np.bincount(users).tolist() == [2] * 50
    assert (np.bincount(items)[0]) == 50


def test_the_share_of_stereotyped_items_is_exact_and_all_signs_agree() -> None:
    items = made().items
    assert items is not None
    planted = items.numbers("stereotype") == 1
    assert planted.sum() == 90  # 0.3 of 300
    told = [
        any(story in text for story in demo_text.STEREOTYPED) for text in items.frame["overview"]
    ]
    np.testing.assert_array_equal(told, planted)
    men = items.frame["cast"].map(
        lambda cast: sum(person.split()[0] in set(demo_text.MEN) for person in cast.split("|"))
    )
    np.testing.assert_array_equal(men > 2, planted)


@pytest.mark.parametrize(("share", "n"), [(0.0, 0), (1.0, 40), (0.333, 13)])
def test_the_share_may_be_anything(share: float, n: int) -> None:
    items = made(n_users=10, n_items=40, per_user=4, stereotyped=share).items
    assert items is not None
    assert items.numbers("stereotype").sum() == n


def test_stereotyped_items_are_picked_more_often() -> None:
    for prominence, favoured in ((1.5, True), (-1.5, False)):
        world = made(prominence=prominence, popularity=0.0)
        assert world.items is not None
        counts = world.interactions.item_counts()
        planted = world.items.numbers("stereotype") == 1
        assert (counts[planted].mean() > counts[~planted].mean()) == favoured


def same(first: Dataset, second: Dataset) -> bool:
    for mine, theirs in ((first.users, second.users), (first.items, second.items)):
        assert mine is not None
        assert theirs is not None
        if not mine.frame.equals(theirs.frame):
            return False
    one, two = first.interactions, second.interactions
    pairs = ((one.users, two.users), (one.items, two.items), (one.values, two.values))
    return all(np.array_equal(*pair) for pair in pairs) and np.array_equal(one.times, two.times)  # type: ignore[arg-type]


def test_one_seed_is_one_world() -> None:
    assert same(made(7), made(7))
    assert not same(made(7), made(8))


def test_reviews_and_users_do_not_change_the_rest_of_the_world() -> None:
    assert same(made(7), made(7, reviews=True))
    few, many = made(7).items, made(7, n_users=700).items
    assert few is not None
    assert many is not None
    assert few.frame.equals(many.frame)


def test_the_parts_and_columns_are_those_promised() -> None:
    world = made(reviews=True)
    rows, users, items, reviews = world.interactions, world.users, world.items, world.reviews
    assert users is not None
    assert items is not None
    assert reviews is not None
    assert (rows.n_users, rows.n_items) == (600, 300)
    assert len(reviews) == len(rows)
    assert users.names == ["age", "gender", "race", "occupation", "favourite"]
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


def test_users_have_about_as_many_interactions_as_asked_for_and_none_twice() -> None:
    rows = made().interactions
    counts = rows.user_counts()
    # log-normal with spread 0.5: standard deviation 40 sqrt(e^0.25 - 1) = 21.3, of the mean 0.87;
    # the bounds of 10 and 150 move the mean by less than 0.3
    assert abs(counts.mean() - 40) < 4 * 0.87 + 0.3
    assert counts.min() >= 10
    assert counts.max() <= 150
    assert rows.binary.nnz == len(rows)


def test_ratings_are_one_higher_for_the_favourite_genre() -> None:
    world = made(n_users=2000)
    rows = world.interactions
    assert world.users is not None
    assert world.items is not None
    liked = genres_of(world.items)[favourites_of(world.users)[rows.users], rows.items]
    # rounding keeps the mean, clipping to 1..5 takes a little off: N(4, 1) to about 3.90
    assert abs(rows.values[~liked].mean() - 3.0) < 0.05
    assert abs(rows.values[liked].mean() - 3.9) < 0.05


def test_numbers_of_users_and_items_as_text_sort_as_in_any_vocabulary() -> None:
    rows = made(n_users=12, n_items=11, per_user=3).interactions
    assert rows.user_ids.digest == Vocabulary.of(rows.user_ids.ids).digest


@pytest.mark.parametrize(
    "settings",
    [
        {"n_users": 1, "n_items": 2, "per_user": 1},
        {"n_users": 3, "n_items": 4, "per_user": 1000},
        {"n_users": 5, "n_items": 9, "taste": 1e6, "preference": -1e6, "popularity": 1e6},
    ],
)
def test_worlds_at_the_edge_can_be_made(settings: dict[str, Any]) -> None:
    rows = made(**settings).interactions
    assert rows.user_counts().min() >= 1
    assert rows.user_counts().max() <= settings["n_items"] // 2


def test_large_worlds_are_drawn_in_blocks() -> None:
    # 3,000 users x 1,500 items are three blocks of 2^21 cells
    rows = made(n_users=3000, n_items=1500).interactions
    assert rows.user_counts().min() >= 10
    assert (np.diff(rows.users.astype(np.int64) * 1500 + rows.items) > 0).all()


def test_what_it_says_of_itself() -> None:
    assert Demo().gives() == {"train", "users", "items"}
    assert Demo(reviews=True).gives() == {"train", "users", "items", "reviews"}
    assert not Demo().files(Path())


def ndcg(name: str, world: Dataset, split: Split) -> float:
    """nDCG@10 with the default settings, over the users with a test item (all have one)."""
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
def test_taste_beats_popularity_beats_chance(seed: int) -> None:
    world = made(seed)
    split = RandomHoldout().split(world, 0, np.random.default_rng(seed))
    chance, popular = ndcg("Random", world, split), ndcg("MostPop", world, split)
    assert popular > 2 * chance
    for name in ("ItemKNN", "UserKNN", "PureSVD", "EASE"):
        assert ndcg(name, world, split) > 1.3 * popular, name
