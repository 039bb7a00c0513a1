from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.errors import NothingLeft
from recbias.core.stage_context import collect_warnings
from recbias.data.filters import (
    Deduplicate,
    KCore,
    MinReviews,
    SampleUsers,
    Threshold,
    core_rows,
    largest_k,
)
from support.worlds import rows

NO_CHANCE = np.random.default_rng(0)


def pairs_of(dataset: Dataset) -> list[tuple[str, str]]:
    left = dataset.interactions
    users, items = left.user_ids.ids[left.users], left.item_ids.ids[left.items]
    return list(zip(users.tolist(), items.tolist(), strict=True))


def test_threshold_makes_high_ratings_positive_and_drops_the_others() -> None:
    world = Dataset(rows([(0, 0), (0, 1), (1, 1), (2, 2)], values=[4.0, 3.5, 5.0, 1.0]))
    left = Threshold(at_least=4).apply(world, NO_CHANCE)
    assert pairs_of(left) == [("u0", "i0"), ("u1", "i1")]
    assert left.interactions.values.tolist() == [1.0, 1.0]
    assert left.counts == {"interactions_before_threshold": 4}
    assert len(Threshold(at_least=3.5).apply(world, NO_CHANCE).interactions) == 3


def test_threshold_that_leaves_nothing_names_the_highest_rating() -> None:
    world = Dataset(rows([(0, 0), (0, 1)], values=[4.0, 3.5]))
    with pytest.raises(
        NothingLeft, match=r"threshold 4\.5 left 0 of the 2 interactions"
    ) as caught:
        Threshold(at_least=4.5).apply(world, NO_CHANCE)
    assert caught.value.remedy == "the highest rating is 4"
    with pytest.raises(NothingLeft, match="of the 0 interactions"):
        Threshold(at_least=1).apply(Dataset(rows([])), NO_CHANCE)


def test_k_core_is_repeated_until_nothing_changes() -> None:
    # u2 has one row and goes; then i2 has one row (u1's) and goes; then all have two
    world = Dataset(rows([(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 2)]))
    left = KCore(k=2).apply(world, NO_CHANCE)
    assert pairs_of(left) == [("u0", "i0"), ("u0", "i1"), ("u1", "i0"), ("u1", "i1")]
    assert left.counts == {"interactions_before_k_core": 6}


def test_k_core_counts_rows_not_pairs() -> None:
    world = Dataset(rows([(0, 0), (0, 0), (1, 1)]))
    assert pairs_of(KCore(k=2).apply(world, NO_CHANCE)) == [("u0", "i0")] * 2


def test_k_core_that_leaves_nothing_names_the_largest_that_does() -> None:
    # a 3 x 3 block of all pairs is a 3-core; nothing is denser
    block = [(user, item) for user in range(3) for item in range(3)]
    world = Dataset(rows([*block, (3, 0), (3, 1)]))
    with pytest.raises(NothingLeft, match="k_core 4 left 0 of the 11 interactions") as caught:
        KCore(k=4).apply(world, NO_CHANCE)
    assert caught.value.remedy == "the largest k that leaves any is 3"
    assert largest_k(rows([])) == 0


def plain_core(pairs: list[tuple[int, int]], k: int) -> list[tuple[int, int]]:
    while True:
        users, items = [user for user, _ in pairs], [item for _, item in pairs]
        kept = [each for each in pairs if min(users.count(each[0]), items.count(each[1])) >= k]
        if kept == pairs:
            return pairs
        pairs = kept


many = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=30)


@given(many, st.integers(1, 5))
def test_the_core_is_that_of_the_plain_definition(pairs: list[tuple[int, int]], k: int) -> None:
    world = rows(pairs, n_users=6, n_items=6)
    kept = [pair for pair, core in zip(pairs, core_rows(world, k), strict=True) if core]
    assert kept == plain_core(pairs, k)
    largest = largest_k(world)
    assert plain_core(pairs, largest) or not pairs
    assert not plain_core(pairs, largest + 1)


@pytest.mark.parametrize(
    ("keep", "times", "values"),
    [
        # the pair u0, i0 stands at rows 0, 2 and 3 with values 3, 5, 5 and times 7, 9, 1
        ("first", [7, 8, 9, 1], [4.0, 5.0]),
        ("last", [7, 8, 9, 1], [4.0, 5.0]),
        ("max", [7, 8, 9, 1], [4.0, 5.0]),
    ],
)
def test_deduplicate_keeps_one_row_of_each_pair(
    keep: str, times: list[int], values: list[float]
) -> None:
    world = rows([(0, 0), (1, 0), (0, 0), (0, 0)], values=[3, 4, 5, 5], times=times)
    left = Deduplicate(keep=keep).apply(Dataset(world), NO_CHANCE)  # type: ignore[arg-type]
    assert sorted(left.interactions.values.tolist()) == values
    assert left.interactions.times is not None
    # first by time is 1 (row 3); last by time 9 (row 2); of the two highest, row 2 is the first
    kept = {"first": [8, 1], "last": [8, 9], "max": [8, 9]}[keep]
    assert left.interactions.times.tolist() == kept
    assert left.counts == {"interactions_before_deduplicate": 4}


@pytest.mark.parametrize(("keep", "value"), [("first", 3.0), ("last", 2.0), ("max", 5.0)])
@pytest.mark.parametrize("times", [None, [6, 6, 6]])
def test_without_times_the_order_of_rows_decides(
    keep: str, value: float, times: list[int] | None
) -> None:
    world = rows([(0, 0), (0, 0), (0, 0)], values=[3, 5, 2], times=times)
    left = Deduplicate(keep=keep).apply(Dataset(world), NO_CHANCE)  # type: ignore[arg-type]
    assert left.interactions.values.tolist() == [value]


@given(many, st.sampled_from(["first", "last", "max"]))
def test_deduplicate_leaves_every_pair_once_in_its_order(
    pairs: list[tuple[int, int]], keep: str
) -> None:
    if not pairs:
        return
    world = rows(pairs, values=[float(each) for each in range(len(pairs))])
    left = Deduplicate(keep=keep).apply(Dataset(world), NO_CHANCE)  # type: ignore[arg-type]
    values = left.interactions.values.tolist()
    assert values == sorted(values)
    wanted = {pair: place for place, pair in enumerate(pairs)}
    if keep == "first":
        wanted = {pair: pairs.index(pair) for pair in pairs}
    assert sorted(values) == sorted(wanted.values())


def test_sample_users_keeps_all_rows_of_the_users_drawn(rng: np.random.Generator) -> None:
    pairs = [(user, item) for user in range(20) for item in range(3)]
    world = Dataset(rows(pairs, n_users=25))
    left = SampleUsers(n=4).apply(world, rng)
    assert left.interactions.n_users == 4
    assert left.interactions.user_counts().tolist() == [3, 3, 3, 3]
    again = SampleUsers(n=4).apply(world, np.random.default_rng(20261121))
    assert again.user_ids.ids.tolist() == left.user_ids.ids.tolist()


def test_users_without_rows_are_not_drawn_and_too_few_are_all_kept(
    rng: np.random.Generator,
) -> None:
    world = Dataset(rows([(3, 0), (7, 1)], n_users=10))
    with collect_warnings() as notes:
        assert SampleUsers(n=2).apply(world, rng).interactions.n_users == 2
    assert notes == []
    with collect_warnings() as notes:
        assert SampleUsers(n=3).apply(world, rng).interactions.n_users == 2
    assert notes == ["sample_users 3: there are only 2 users, all are kept"]


def test_every_user_is_drawn_as_often(rng: np.random.Generator) -> None:
    world = Dataset(rows([(0, 0), (1, 0), (2, 0), (3, 0)]))
    drawn = [SampleUsers(n=1).apply(world, rng).user_ids.ids[0] for _ in range(800)]
    # 200 each; chi-square with 3 degrees of freedom is below 16.3 but once in 1,000
    assert sum((drawn.count(f"u{each}") - 200) ** 2 / 200 for each in range(4)) < 16.3


def test_min_reviews_counts_review_texts_where_there_are_any() -> None:
    interactions = rows([(0, 0), (1, 0), (0, 1), (1, 1)])
    reviews = Reviews(
        np.array([0, 1, 0], dtype=np.int32),
        np.array([0, 0, 1], dtype=np.int32),
        np.array(["a", "", "b"], dtype=object),
    )
    left = MinReviews(n=2).apply(Dataset(interactions, reviews=reviews), NO_CHANCE)
    assert pairs_of(left) == [("u0", "i0"), ("u1", "i0")]
    assert left.reviews is not None
    assert left.reviews.texts.tolist() == ["a", ""]
    # without texts both items have two interactions
    assert len(MinReviews(n=2).apply(Dataset(interactions), NO_CHANCE).interactions) == 4


def test_min_reviews_that_leaves_nothing_names_the_most() -> None:
    with pytest.raises(NothingLeft, match="min_reviews 3 left 0") as caught:
        MinReviews(n=3).apply(Dataset(rows([(0, 0), (1, 0)])), NO_CHANCE)
    assert caught.value.remedy == "the most that an item has is 2"


@pytest.mark.parametrize(
    "each",
    [Threshold(at_least=2), KCore(k=1), Deduplicate(), SampleUsers(n=9), MinReviews(n=1)],
    ids=lambda each: type(each).__name__,
)
def test_tables_stay_aligned_and_nothing_at_all_is_an_error(each: KCore) -> None:
    interactions = rows([(0, 0), (1, 1), (2, 2)], values=[1, 2, 3])
    users = Attributes(interactions.user_ids, pd.DataFrame({"n": [0.0, 1.0, 2.0]}), "user")
    items = Attributes(interactions.item_ids, pd.DataFrame({"n": [0.0, 1.0, 2.0]}), "item")
    left = each.apply(Dataset(interactions, users, items, counts={"bad_lines": 1}), NO_CHANCE)
    assert left.users is not None
    assert left.items is not None
    assert [f"u{number:g}" for number in left.users.frame["n"]] == left.user_ids.ids.tolist()
    assert [f"i{number:g}" for number in left.items.frame["n"]] == left.item_ids.ids.tolist()
    assert left.counts["bad_lines"] == 1
    with pytest.raises(NothingLeft, match="left 0 of the 0 interactions"):
        each.apply(Dataset(rows([])), NO_CHANCE)


@pytest.mark.real_data
def test_movielens_1m_has_the_published_size_after_its_filters(real_data: Path) -> None:
    from recbias.data.datasets.movielens import MovieLens1M

    world = MovieLens1M().load(real_data, NO_CHANCE)
    left = KCore(k=10).apply(Threshold(at_least=4).apply(world, NO_CHANCE), NO_CHANCE)
    kept = left.interactions
    assert (kept.n_users, kept.n_items, len(kept)) == (5949, 2810, 571_531)
    assert left.counts["interactions_before_threshold"] == 1_000_209
    assert left.counts["interactions_before_k_core"] == 575_281
    assert left.users is not None
    assert left.users.numbers("age").size == 5949
