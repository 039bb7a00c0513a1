from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from recbias.core.dataset import AnyArray, Interactions
from recbias.models.sgd import Sampler, shuffle_rows
from support.worlds.small_worlds import make_interactions

WORLD = make_interactions(
    [(0, 1), (0, 3), (1, 0), (1, 1), (1, 2), (2, 3), (2, 3)], n_users=4, n_items=5
)
"""User 0 has items 1, 3; user 1 has 0, 1, 2; user 2 has 3 (twice). User 3 and item 4 have none."""

N = 60_000


def is_seen(train: Interactions, users: AnyArray, items: AnyArray) -> AnyArray:
    mask: AnyArray = train.binary.toarray()[users, items] > 0
    return mask


def matches_shares(counts: AnyArray, shares: list[float]) -> bool:
    """Test by chi-square whether counts are consistent with these shares."""
    expected = np.array(shares) / np.sum(shares) * counts.sum()
    return bool(chisquare(counts, expected).pvalue > 0.001)


def test_positive_pairs_are_sampled_uniformly(rng: np.random.Generator) -> None:
    users, items = Sampler.from_interactions(WORLD).sample_positives(N, rng)
    assert is_seen(WORLD, users, items).all()
    # the repeated pair counts once: 6 pairs
    pairs = np.bincount(users * 5 + items, minlength=20)
    assert matches_shares(pairs[pairs > 0], [1] * 6)


def test_unseen_items_are_sampled_uniformly(rng: np.random.Generator) -> None:
    users = np.repeat(np.arange(4, dtype=np.int32), N // 4)
    items = Sampler.from_interactions(WORLD).sample_unseen(users, rng)
    assert not is_seen(WORLD, users, items).any()
    for user, unseen_items in enumerate([[0, 2, 4], [3, 4], [0, 1, 2, 4], [0, 1, 2, 3, 4]]):
        counts = np.bincount(items[users == user], minlength=5)
        assert matches_shares(counts[unseen_items], [1] * len(unseen_items))


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_popularity_weights_are_powers_of_the_row_counts(
    power: float, rng: np.random.Generator
) -> None:
    # rows of the items 0 to 4: 1, 2, 1, 3, 0
    sampler = Sampler.from_interactions(WORLD, popularity=power)
    weights = np.array([1, 2, 1, 3]) ** power
    counts = np.bincount(sampler.sample_items(N, rng), minlength=5)
    assert counts[4] == 0
    assert matches_shares(counts[:4], weights.tolist())
    items = sampler.sample_unseen(np.full(N, 2, dtype=np.int32), rng)
    assert matches_shares(np.bincount(items, minlength=5)[:3], weights[:3].tolist())
    assert items.max() == 2


def test_very_large_power_samples_the_most_popular_item(
    rng: np.random.Generator,
) -> None:
    sampler = Sampler.from_interactions(WORLD, popularity=1e4)
    counts = np.bincount(sampler.sample_items(N, rng), minlength=5)
    assert counts[3] > 0.999 * N
    assert counts[4] == 0
    assert not is_seen(
        WORLD, np.zeros(N, "i4"), sampler.sample_unseen(np.zeros(N, "i4"), rng)
    ).any()


def test_items_are_sampled_uniformly(rng: np.random.Generator) -> None:
    assert matches_shares(
        np.bincount(Sampler.from_interactions(WORLD).sample_items(N, rng)), [1] * 5
    )


def test_triples_have_a_seen_and_an_unseen_item(rng: np.random.Generator) -> None:
    users, positives, negatives = Sampler.from_interactions(WORLD).sample_triples(N, rng)
    assert is_seen(WORLD, users, positives).all()
    assert not is_seen(WORLD, users, negatives).any()
    assert matches_shares(np.bincount(users), [2, 3, 1])


def test_triples_by_user_sample_users_uniformly(rng: np.random.Generator) -> None:
    users, positives, negatives = Sampler.from_interactions(WORLD).sample_triples(
        N, rng, by_user=True
    )
    assert is_seen(WORLD, users, positives).all()
    assert not is_seen(WORLD, users, negatives).any()
    assert matches_shares(np.bincount(users), [1, 1, 1])
    assert matches_shares(np.bincount(positives[users == 1]), [1, 1, 1])


def test_coin_pairs_are_balanced(rng: np.random.Generator) -> None:
    users, items, labels = Sampler.from_interactions(WORLD).sample_coin_pairs(N, rng)
    np.testing.assert_array_equal(is_seen(WORLD, users, items), labels == 1)
    assert matches_shares(np.bincount(users), [1, 1, 1])
    assert matches_shares(np.bincount(labels.astype(int)), [1, 1])
    assert labels.dtype == np.float32


@pytest.mark.parametrize("unseen", [True, False])
def test_each_positive_is_followed_by_its_negatives(
    unseen: bool, rng: np.random.Generator
) -> None:
    users, items, labels = Sampler.from_interactions(WORLD).sample_with_negatives(
        3, rng, unseen=unseen
    )
    assert users.dtype == items.dtype == np.int32
    np.testing.assert_array_equal(labels, np.tile([1, 0, 0, 0], 6))
    positives = set(zip(users[::4].tolist(), items[::4].tolist(), strict=True))
    assert positives == {(0, 1), (0, 3), (1, 0), (1, 1), (1, 2), (2, 3)}
    assert (users.reshape(6, 4) == users[::4, None]).all()
    if unseen:
        assert not is_seen(WORLD, users, items)[labels == 0].any()


def test_negatives_follow_the_shuffled_order_of_the_pairs() -> None:
    sampler = Sampler.from_interactions(WORLD)
    users, items, _ = sampler.sample_with_negatives(2, np.random.default_rng(3), unseen=True)
    rng = np.random.default_rng(3)
    order = rng.permutation(6)
    users_of_negatives = np.repeat(sampler.users[order], 2)
    np.testing.assert_array_equal(users.reshape(6, 3)[:, 1:].ravel(), users_of_negatives)
    expected = sampler.sample_unseen(users_of_negatives, rng)
    np.testing.assert_array_equal(items.reshape(6, 3)[:, 1:].ravel(), expected)


def test_all_row_orders_are_equally_likely(rng: np.random.Generator) -> None:
    users, items = np.tile(np.arange(3, dtype=np.int32), (2, 1))
    positions = np.zeros((3, 3), dtype=int)
    for _ in range(3000):
        shuffled = shuffle_rows(users, items, items + 0.5, rng)
        np.testing.assert_array_equal(shuffled[0], shuffled[1])
        np.testing.assert_array_equal(shuffled[0] + 0.5, shuffled[2])
        positions[np.arange(3), shuffled[0]] += 1
    assert matches_shares(positions.ravel(), [1] * 9)


def test_zero_negatives_gives_each_positive_once(rng: np.random.Generator) -> None:
    users, _, labels = Sampler.from_interactions(WORLD).sample_with_negatives(0, rng)
    assert users.size == 6
    assert labels.all()


def test_users_with_every_item_have_no_negatives(rng: np.random.Generator) -> None:
    full = make_interactions([(0, 0), (0, 1), (1, 0)])
    users, _, negatives = Sampler.from_interactions(full).sample_triples(100, rng)
    assert set(users) == {1}
    assert set(negatives) == {1}
    assert Sampler.from_interactions(full).sample_with_negatives(1, rng, unseen=True)[
        0
    ].tolist() == [1, 1]
    users, _, labels = Sampler.from_interactions(full).sample_coin_pairs(100, rng)
    assert labels[users == 0].all()


def test_one_item_gives_no_triples(rng: np.random.Generator) -> None:
    expected = Sampler.from_interactions(make_interactions([(0, 0), (1, 0)]))
    assert all(array.size == 0 for array in expected.sample_triples(2, rng))


def test_no_rows_give_no_samples(rng: np.random.Generator) -> None:
    empty = Sampler.from_interactions(make_interactions([], n_users=2, n_items=3))
    assert all(array.size == 0 for array in empty.sample_triples(0, rng))
    assert all(array.size == 0 for array in empty.sample_coin_pairs(0, rng))
    assert all(array.size == 0 for array in empty.sample_with_negatives(2, rng))


@given(
    pairs=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1),
    popularity=st.sampled_from([0.0, 0.75, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_sampled_negatives_are_never_training_items(
    pairs: set[tuple[int, int]], popularity: float, seed: int
) -> None:
    train = make_interactions(sorted(pairs), n_users=6, n_items=8)
    sampler = Sampler.from_interactions(train, popularity=popularity)
    users, positives, negatives = sampler.sample_triples(200, np.random.default_rng(seed))
    assert is_seen(train, users, positives).all()
    assert not is_seen(train, users, negatives).any()
    if popularity:
        assert (train.item_counts()[negatives] > 0).all()


def test_large_user_and_item_counts_do_not_overflow(rng: np.random.Generator) -> None:
    # users * items is far beyond 2**31
    train = make_interactions([(199_999, 99_998)], n_users=200_000, n_items=100_000)
    users, _, negatives = Sampler.from_interactions(train).sample_triples(1000, rng)
    assert set(users) == {199_999}
    assert negatives.min() >= 0
    assert not (negatives == 99_998).any()
    assert matches_shares(np.histogram(negatives, bins=4, range=(0, 100_000))[0], [1] * 4)


def test_items_of_one_weight_are_sampled_as_by_their_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    users = np.random.default_rng(5).integers(0, 4, 500).astype(np.int32)
    samples = []
    for is_uniform in (True, False):
        monkeypatch.setattr(Sampler, "is_uniform", is_uniform)
        sampler = Sampler.from_interactions(WORLD)
        samples.append(sampler.sample_unseen(users, np.random.default_rng(6)).tolist())
    assert samples[0] == samples[1]


HISTORIES = {
    "none": [],
    "first items": range(150),
    "last items": range(50, 200),
    "all but one": [item for item in range(200) if item != 77],
    "every other": range(0, 200, 2),
    "two groups": [*range(40, 80), *range(190, 200)],
    "few": [3, 150],
}


def test_each_point_is_the_unseen_item_with_so_many_before_it() -> None:
    pairs = [(user, item) for user, items in enumerate(HISTORIES.values()) for item in items]
    train = make_interactions(pairs, n_users=len(HISTORIES), n_items=200)
    is_unseen = train.binary.toarray() == 0
    points = [np.arange(n) for n in is_unseen.sum(1)]

    class Points:
        """A generator whose numbers are known."""

        def integers(self, _: AnyArray) -> AnyArray:
            return np.concatenate(points)

    users = np.repeat(np.arange(len(HISTORIES), dtype=np.int32), is_unseen.sum(1))
    found = Sampler.from_interactions(train).sample_unseen(users, Points())  # type: ignore[arg-type]
    np.testing.assert_array_equal(found, np.nonzero(is_unseen)[1])
