from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from recbias.core.dataset import AnyArray, Interactions
from recbias.models.sgd import Sampler
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
