from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from recbias.core.arrays import AnyArray
from recbias.core.dataset.interactions import Interactions
from recbias.models.training.samplers import Sampler, shuffled
from support.worlds import rows

WORLD = rows([(0, 1), (0, 3), (1, 0), (1, 1), (1, 2), (2, 3), (2, 3)], n_users=4, n_items=5)
"""User 0 has items 1 and 3, user 1 has 0 to 2, user 2 has 3 (twice), user 3 none; none has 4."""

N = 60_000


def has(train: Interactions, users: AnyArray, items: AnyArray) -> AnyArray:
    owned: AnyArray = train.binary.toarray()[users, items] > 0
    return owned


def alike(counts: AnyArray, shares: list[float]) -> bool:
    """Whether counts are as these shares would have them, by the chi-square test."""
    expected = np.array(shares) / np.sum(shares) * counts.sum()
    return bool(chisquare(counts, expected).pvalue > 0.001)


def test_positives_are_all_pairs_alike(rng: np.random.Generator) -> None:
    users, items = Sampler.of(WORLD).positives(N, rng)
    assert has(WORLD, users, items).all()
    # the repeated pair counts once: 6 pairs
    pairs = np.bincount(users * 5 + items, minlength=20)
    assert alike(pairs[pairs > 0], [1] * 6)


def test_negatives_are_the_items_a_user_lacks_alike(rng: np.random.Generator) -> None:
    users = np.repeat(np.arange(4, dtype=np.int32), N // 4)
    items = Sampler.of(WORLD).unseen(users, rng)
    assert not has(WORLD, users, items).any()
    for user, lacking in enumerate([[0, 2, 4], [3, 4], [0, 1, 2, 4], [0, 1, 2, 3, 4]]):
        counts = np.bincount(items[users == user], minlength=5)
        assert alike(counts[lacking], [1] * len(lacking))


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_popular_negatives_are_as_the_power_of_their_rows(
    power: float, rng: np.random.Generator
) -> None:
    # rows of the items 0 to 4: 1, 2, 1, 3, 0
    sampler = Sampler.of(WORLD, popularity=power)
    weights = np.array([1, 2, 1, 3]) ** power
    counts = np.bincount(sampler.any_items(N, rng), minlength=5)
    assert counts[4] == 0
    assert alike(counts[:4], weights.tolist())
    lacked = sampler.unseen(np.full(N, 2, dtype=np.int32), rng)
    assert alike(np.bincount(lacked, minlength=5)[:3], weights[:3].tolist())
    assert lacked.max() == 2


def test_a_power_too_large_for_numbers_draws_the_most_popular_item(
    rng: np.random.Generator,
) -> None:
    sampler = Sampler.of(WORLD, popularity=1e4)
    counts = np.bincount(sampler.any_items(N, rng), minlength=5)
    assert counts[3] > 0.999 * N
    assert counts[4] == 0
    assert not has(WORLD, np.zeros(N, "i4"), sampler.unseen(np.zeros(N, "i4"), rng)).any()


def test_all_items_alike_whoever_has_them(rng: np.random.Generator) -> None:
    assert alike(np.bincount(Sampler.of(WORLD).any_items(N, rng)), [1] * 5)


def test_triples_hold_true_positives_and_true_negatives(rng: np.random.Generator) -> None:
    users, positives, negatives = Sampler.of(WORLD).triples(N, rng)
    assert has(WORLD, users, positives).all()
    assert not has(WORLD, users, negatives).any()
    assert alike(np.bincount(users), [2, 3, 1])


def test_triples_by_user_draw_users_alike(rng: np.random.Generator) -> None:
    users, positives, negatives = Sampler.of(WORLD).triples(N, rng, by_user=True)
    assert has(WORLD, users, positives).all()
    assert not has(WORLD, users, negatives).any()
    assert alike(np.bincount(users), [1, 1, 1])
    assert alike(np.bincount(positives[users == 1]), [1, 1, 1])


def test_coin_pairs_are_fair(rng: np.random.Generator) -> None:
    users, items, labels = Sampler.of(WORLD).coin_pairs(N, rng)
    np.testing.assert_array_equal(has(WORLD, users, items), labels == 1)
    assert alike(np.bincount(users), [1, 1, 1])
    assert alike(np.bincount(labels.astype(int)), [1, 1])
    assert labels.dtype == np.float32


@pytest.mark.parametrize("unseen", [True, False])
def test_every_positive_stands_before_its_negatives(
    unseen: bool, rng: np.random.Generator
) -> None:
    users, items, labels = Sampler.of(WORLD).with_negatives(3, rng, unseen=unseen)
    assert users.dtype == items.dtype == np.int32
    np.testing.assert_array_equal(labels, np.tile([1, 0, 0, 0], 6))
    firsts = set(zip(users[::4].tolist(), items[::4].tolist(), strict=True))
    assert firsts == {(0, 1), (0, 3), (1, 0), (1, 1), (1, 2), (2, 3)}
    assert (users.reshape(6, 4) == users[::4, None]).all()
    if unseen:
        assert not has(WORLD, users, items)[labels == 0].any()


def test_negatives_of_pairs_are_as_those_of_their_users_in_that_order() -> None:
    sampler = Sampler.of(WORLD)
    users, items, _ = sampler.with_negatives(2, np.random.default_rng(3), unseen=True)
    draws = np.random.default_rng(3)
    order = draws.permutation(6)
    others = np.repeat(sampler.users[order], 2)
    np.testing.assert_array_equal(users.reshape(6, 3)[:, 1:].ravel(), others)
    alone = sampler.unseen(others, draws)
    np.testing.assert_array_equal(items.reshape(6, 3)[:, 1:].ravel(), alone)


def test_rows_are_shuffled_together_and_all_orders_alike(rng: np.random.Generator) -> None:
    users, items = np.tile(np.arange(3, dtype=np.int32), (2, 1))
    places = np.zeros((3, 3), dtype=int)
    for _ in range(3000):
        found = shuffled(users, items, items + 0.5, rng)
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0] + 0.5, found[2])
        places[np.arange(3), found[0]] += 1
    assert alike(places.ravel(), [1] * 9)


def test_no_negatives_is_every_positive_once(rng: np.random.Generator) -> None:
    users, _, labels = Sampler.of(WORLD).with_negatives(0, rng)
    assert users.size == 6
    assert labels.all()


def test_who_has_every_item_has_no_negative(rng: np.random.Generator) -> None:
    full = rows([(0, 0), (0, 1), (1, 0)])
    users, _, negatives = Sampler.of(full).triples(100, rng)
    assert set(users) == {1}
    assert set(negatives) == {1}
    assert Sampler.of(full).with_negatives(1, rng, unseen=True)[0].tolist() == [1, 1]
    users, _, labels = Sampler.of(full).coin_pairs(100, rng)
    assert labels[users == 0].all()


def test_one_item_leaves_nothing_to_draw(rng: np.random.Generator) -> None:
    alone = Sampler.of(rows([(0, 0), (1, 0)]))
    assert all(each.size == 0 for each in alone.triples(2, rng))


def test_no_rows_give_nothing(rng: np.random.Generator) -> None:
    nothing = Sampler.of(rows([], n_users=2, n_items=3))
    assert all(each.size == 0 for each in nothing.triples(0, rng))
    assert all(each.size == 0 for each in nothing.coin_pairs(0, rng))
    assert all(each.size == 0 for each in nothing.with_negatives(2, rng))


@given(
    pairs=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1),
    popularity=st.sampled_from([0.0, 0.75, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_drawn_negative_is_never_a_training_item(
    pairs: set[tuple[int, int]], popularity: float, seed: int
) -> None:
    train = rows(sorted(pairs), n_users=6, n_items=8)
    sampler = Sampler.of(train, popularity=popularity)
    users, positives, negatives = sampler.triples(200, np.random.default_rng(seed))
    assert has(train, users, positives).all()
    assert not has(train, users, negatives).any()
    if popularity:
        assert (train.item_counts()[negatives] > 0).all()


def test_many_users_and_items_do_not_overflow(rng: np.random.Generator) -> None:
    # users * items is far beyond 2**31
    train = rows([(199_999, 99_998)], n_users=200_000, n_items=100_000)
    users, _, negatives = Sampler.of(train).triples(1000, rng)
    assert set(users) == {199_999}
    assert negatives.min() >= 0
    assert not (negatives == 99_998).any()
    assert alike(np.histogram(negatives, bins=4, range=(0, 100_000))[0], [1] * 4)
