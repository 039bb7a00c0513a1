"""The settings of the demo dataset that plant a difference: what they change and what they do not.

Their effects on the picks are measured in ``test_demo_effects``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.core.dataset import AnyArray, Dataset, FloatArray, Odds, Queries, Split
from recbias.core.errors import OutOfRange, UserError
from recbias.data import demo
from recbias.data.demo import (
    CATEGORIES,
    GENRES,
    PREFERRED,
    Demo,
    encode_favourites,
    encode_genres,
    sample_without_replacement,
)
from recbias.data.splits import RandomHoldout
from recbias.registry import REGISTRIES
from support.specs import make_small_spec


def sample_demo(seed: int = 1, **settings: Any) -> Dataset:
    return Demo(**settings).load(Path(), np.random.default_rng(seed))


def test_the_share_of_stereotyped_items_is_exact_and_shown_in_cast_and_overview() -> None:
    items = sample_demo().items
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


def test_cohort_b_has_its_share_of_users_and_shorter_histories() -> None:
    world = sample_demo(n_users=4001, n_items=400, cohort_length=0.7, cohort_share=0.25)
    in_b = world.users.frame["cohort"].to_numpy() == "B"
    assert in_b.sum() == 1000
    counts = world.interactions.user_counts()
    assert counts[in_b].mean() / counts[~in_b].mean() == pytest.approx(np.exp(-0.7), rel=0.05)


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"n_items": 40, "stereotyped": 0.01}, "stereotyped"),  # round(0.4) = 0 items
        ({"n_items": 40, "stereotyped": 0.99}, "stereotyped"),
        ({"n_items": 40, "misleading": 0.01}, "misleading"),
    ],
)
def test_a_share_of_no_item_or_of_every_item_is_refused(
    settings: dict[str, Any], where: str, tmp_path: Path
) -> None:
    with pytest.raises(OutOfRange) as caught:
        Demo(**settings)
    assert caught.value.where == where
    assert caught.value.remedy
    spec = make_small_spec(dataset={"name": "demo", **settings})
    with pytest.raises(UserError, match=rf"dataset\.{where}: "):
        recbias.plan(spec, out=tmp_path)


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Return the values of a world without differences, of one with them, and of pure noise."""
    world = {"name": "demo", "n_users": 400, "n_items": 100, "per_user": 12}
    dials = {"provider": 1.5, "cohort_noise": 0.8, "misleading": 0.25}
    spec = make_small_spec(
        dataset=[
            {**world, "label": "none"},
            {**world, "label": "planted", **dials},
            {**world, "label": "noise", "noise": 1.0},
        ],
        models=["EASE", "Random"],
        labels=[{"name": "ngim", "detector": "names", "from": "cast"}],
        metrics=[
            {"name": "EXP", "attribute": "studio_group", "label": "parity"},
            {"name": "nDCG", "by": "cohort", "gap": "difference", "label": "gap"},
            {"name": "nDCG", "label": "accuracy"},
            {"name": "label_accuracy", "a": "ngim.gender", "b": "stereotype", "label": "labels"},
        ],
        tests=None,
    )
    run = recbias.run(spec, out=tmp_path_factory.mktemp("run"), progress=False)
    rows = run.metrics[run.metrics["dataset"] != "all"]
    return rows.set_index(["dataset", "model", "metric"])[["value", "ci_low", "ci_high"]]


def select_row(values: pd.DataFrame, *keys: str) -> pd.Series[Any]:
    """Return the row of a dataset, a model and a metric."""
    (row,) = (row for index, row in values.iterrows() if index == keys)
    return row


def test_the_planted_gap_between_cohorts_is_seen_and_none_where_none_is(
    values: pd.DataFrame,
) -> None:
    assert select_row(values, "none", "EASE", "gap").ci_low == 0
    assert select_row(values, "planted", "EASE", "gap").ci_low > 0.2
    assert (
        select_row(values, "planted", "Random", "gap").ci_low == 0
    )  # it learns nothing from the picks


def test_the_planted_gap_between_providers_is_seen_and_none_where_none_is(
    values: pd.DataFrame,
) -> None:
    # Random shows both groups of studios equally often in every world
    for dataset in ("none", "planted", "noise"):
        parity = select_row(values, dataset, "Random", "parity")
        assert parity.ci_low < 1 <= parity.ci_high
    planted, none = (select_row(values, name, "EASE", "parity") for name in ("planted", "none"))
    assert planted.ci_high < none.ci_low


def test_misleading_texts_lower_the_agreement_of_a_perfect_detector_by_their_share(
    values: pd.DataFrame,
) -> None:
    accuracy = values.xs(("(dataset)", "labels"), level=("model", "metric"))["value"]
    assert accuracy.to_dict() == {"none": 1.0, "planted": 0.75, "noise": 1.0}


def sample_demo_effects(**settings: Any) -> Dataset:
    return Demo(**settings).load(Path(), np.random.default_rng(1))


def count_single_picks(world: Dataset, cohorts: str = "AB") -> tuple[AnyArray, FloatArray]:
    """Count the users of some cohorts who picked only one item, and return their terms.

    Returns:
        Counts ``[n_types, n_items]`` of the 12 user types (gender, favourite) and the five terms
        ``[n_types, n_items, 5]`` of popularity, taste, preference, prominence and provider.
    """
    users, items, rows = world.users, world.items, world.interactions
    woman = (users.frame["gender"] == "F").to_numpy()
    assert users is not None
    types = encode_favourites(users) + 6 * woman
    is_member = users.frame["cohort"].isin(list(cohorts)).to_numpy()
    single = ((rows.user_counts() == 1) & is_member)[rows.users]
    counts = np.zeros((12, rows.n_items))
    np.add.at(counts, (types[rows.users[single]], rows.items[single]), 1)
    terms = np.zeros((2, 6, rows.n_items, 5))
    terms[..., 0] = -np.log(items.numbers("popularity_rank"))
    assert items is not None
    terms[..., 1] = encode_genres(items)
    terms[1, ..., 2] = encode_genres(items)[GENRES.index(PREFERRED)]
    terms[..., 3] = items.numbers("stereotype")
    terms[..., 4] = items.frame["studio_group"] == "major"
    return counts, terms.reshape(12, -1, 5)


def fit_conditional_logit(counts: AnyArray, terms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fit the weights of the terms by maximum likelihood with Newton's method, steps of 1 at most.

    Returns:
        The weights and their standard errors.
    """
    weights = np.zeros(terms.shape[2])
    information = np.eye(weights.size)
    total = counts.sum(axis=1)
    for _ in range(25):
        odds = terms @ weights
        probability = np.exp(odds - odds.max(axis=1, keepdims=True))
        probability /= probability.sum(axis=1, keepdims=True)
        mean = np.einsum("ki,kit->kt", probability, terms)
        gradient = np.einsum("ki,kit->t", counts - total[:, None] * probability, terms)
        second_moment = np.einsum("k,ki,kit,kis->ts", total, probability, terms, terms)
        information = second_moment - np.einsum("k,kt,ks->ts", total, mean, mean)
        step = np.linalg.solve(information, gradient)
        weights = weights + step / max(1.0, np.abs(step).max())
    return weights, np.sqrt(np.diag(np.linalg.inv(information)))


@pytest.mark.parametrize(
    "effects",
    [
        {"popularity": 0.8, "taste": 3.5, "preference": 1.0, "prominence": 0.7, "provider": 0.9},
        {"popularity": 0.0, "taste": 0.0, "preference": 0.0, "prominence": 0.0, "provider": 0.0},
        {
            "popularity": 1.2,
            "taste": 1.0,
            "preference": -1.5,
            "prominence": -0.5,
            "provider": -1.0,
        },
    ],
)
def test_a_fitted_model_recovers_the_planted_effects(effects: dict[str, Any]) -> None:
    # A user's only pick has the probability of the docstring: a conditional logit model of the
    # users with one pick must recover the five effects within its standard errors.
    world = sample_demo_effects(n_users=30_000, n_items=60, per_user=1, **effects)
    weights, errors = fit_conditional_logit(*count_single_picks(world))
    assert (errors < 0.05).all()
    assert (np.abs(weights - list(effects.values())) < 4 * errors).all()


def test_pairs_of_picks_have_the_probabilities_of_the_model(rng: np.random.Generator) -> None:
    # weights 1, 2, 3, two picks: P(1 and 2) = 1/6 * 2/5 + 2/6 * 1/4 = 0.15,
    # P(1 and 3) = 1/6 * 3/5 + 3/6 * 1/3 = 0.26667, P(2 and 3) = 2/6 * 3/4 + 3/6 * 2/3 = 0.58333
    n = 20_000
    odds = Odds(np.log([[1.0, 2.0, 3.0]]), np.zeros(n, dtype=np.int64))
    users, items = sample_without_replacement(odds, np.full(n, 2), rng)
    np.testing.assert_array_equal(users, np.repeat(np.arange(n), 2))
    pairs = items.reshape(n, 2).sum(axis=1)
    expected = n * np.array([0.15, 0.26666667, 0.58333333])
    counts = np.bincount(pairs, minlength=4)[1:]
    # chi-square with 2 degrees of freedom exceeds 13.8 with probability 0.001
    assert ((counts - expected) ** 2 / expected).sum() < 13.8
