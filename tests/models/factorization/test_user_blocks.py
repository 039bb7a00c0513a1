from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from recbias.core.dataset import AnyArray, Interactions, TrainingData
from recbias.models import sgd
from recbias.models.factorization import BPRMF
from recbias.models.sgd import Sampler, UserBlocks, create_triple_sampler
from support.worlds.small_worlds import make_interactions

DENSE = 40
"""Items of user 0, who has half of the 80; others have few."""


def make_world(n_users: int = 30, n_items: int = 80) -> Interactions:
    rng = np.random.default_rng(7)
    pairs = [(0, item) for item in range(0, 2 * DENSE, 2)]
    for user in range(1, n_users):
        size = int(rng.integers(0, 12))
        pairs += [(user, int(item)) for item in rng.choice(n_items, size, replace=False)]
    return make_interactions(pairs, n_users=n_users, n_items=n_items)


def sample_many(blocks: UserBlocks, n_epochs: int) -> tuple[AnyArray, ...]:
    rng = np.random.default_rng(3)
    epochs = [blocks.sample(rng) for _ in range(n_epochs)]
    return tuple(np.concatenate(arrays) for arrays in zip(*epochs, strict=True))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_pairs_and_unseen_items_are_sampled_uniformly(size: int) -> None:
    train = make_world()
    sampler = Sampler.from_interactions(train)
    users, positives, negatives = sample_many(UserBlocks(sampler, size), 400)
    assert users.size == 400 * sampler.users.size
    is_seen = train.binary.toarray() > 0
    assert is_seen[users, positives].all()
    assert not is_seen[users, negatives].any()
    drawn = np.bincount(users * 80 + positives, minlength=30 * 80).reshape(30, 80)
    assert chisquare(drawn[is_seen]).pvalue > 0.001
    unseen = np.bincount(users * 80 + negatives, minlength=30 * 80).reshape(30, 80)
    for user in (0, 1, 2):
        assert chisquare(unseen[user][~is_seen[user]]).pvalue > 0.001


def test_negatives_do_not_depend_on_the_positives() -> None:
    sampler = Sampler.from_interactions(make_world())
    users, positives, negatives = sample_many(UserBlocks(sampler, 10), 3000)
    is_late = (np.stack([positives, negatives])[:, users == 0] >= DENSE).astype(int)
    table = np.bincount(2 * is_late[0] + is_late[1], minlength=4).reshape(2, 2)
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    assert ((table - expected) ** 2 / expected).sum() < 10.8  # 0.1% of one degree of freedom


def test_users_of_a_block_are_together_in_random_order() -> None:
    sampler = Sampler.from_interactions(make_world(n_users=60))
    users, _, _ = UserBlocks(sampler, 20).sample(np.random.default_rng(0))
    distinct = np.unique(users)
    firsts = np.array([np.flatnonzero(users == user)[0] for user in distinct])
    lasts = np.array([np.flatnonzero(users == user)[-1] for user in distinct])
    starts = [place for place in firsts if not ((firsts < place) & (lasts >= place)).any()]
    assert len(starts) == round(distinct.size / 20)
    assert np.count_nonzero(np.diff(users)) > 0.7 * users.size


def test_each_epoch_has_other_blocks() -> None:
    sampler = Sampler.from_interactions(make_world(n_users=200))
    blocks, rng = UserBlocks(sampler, 50), np.random.default_rng(0)
    first, second = (set(blocks.sample(rng)[0][:200].tolist()) for _ in range(2))
    assert 0.1 < len(first & second) / len(first | second) < 0.5


def test_the_order_depends_on_the_generator_only() -> None:
    blocks = UserBlocks(Sampler.from_interactions(make_world()), 10)
    first, again, other = (blocks.sample(np.random.default_rng(seed)) for seed in (1, 1, 2))
    for one, same in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, same)
    assert not np.array_equal(first[0], other[0])


def test_users_without_pairs_or_with_every_item_are_left_out() -> None:
    full = make_interactions([(0, 0), (0, 1), (2, 0)], n_users=3)
    users, positives, negatives = UserBlocks(Sampler.from_interactions(full)).sample(
        np.random.default_rng(0)
    )
    assert (users.tolist(), positives.tolist(), negatives.tolist()) == ([2], [0], [1])
    none = Sampler.from_interactions(make_interactions([], n_users=2, n_items=3))
    assert all(array.size == 0 for array in UserBlocks(none).sample(np.random.default_rng(0)))


@given(
    pairs=st.sets(st.tuples(st.integers(0, 9), st.integers(0, 7)), min_size=1),
    size=st.integers(1, 12),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_triple_has_a_seen_and_an_unseen_item(
    pairs: set[tuple[int, int]], size: int, seed: int
) -> None:
    train = make_interactions(sorted(pairs), n_users=10, n_items=8)
    blocks = UserBlocks(Sampler.from_interactions(train), size)
    users, positives, negatives = blocks.sample(np.random.default_rng(seed))
    is_seen = train.binary.toarray() > 0
    assert is_seen[users, positives].all()
    assert not is_seen[users, negatives].any()


def test_histories_of_every_length_are_recognised() -> None:
    pairs = [(user, item) for user in range(300) for item in range(user)]
    train = make_interactions(pairs, n_users=300, n_items=300)
    users, positives, negatives = UserBlocks(Sampler.from_interactions(train), 64).sample(
        np.random.default_rng(0)
    )
    assert (positives < users).all()
    assert (negatives >= users).all()
    assert users.size == 300 * 299 / 2


def test_few_users_gpus_and_weighted_negatives_keep_the_order_of_independent_triples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    train = make_world()
    plain, weighted = (Sampler.from_interactions(train, popularity=p) for p in (0, 1))

    def is_plain(sampler: Sampler, *, in_blocks: bool) -> bool:
        sample = create_triple_sampler(sampler, in_blocks=in_blocks)
        expected = sampler.sample_triples(sampler.users.size, np.random.default_rng(1))
        return np.array_equal(sample(np.random.default_rng(1)), expected)

    assert is_plain(plain, in_blocks=True)
    monkeypatch.setattr(sgd, "MANY_USERS", 30)
    assert is_plain(plain, in_blocks=False)
    assert is_plain(weighted, in_blocks=True)
    assert not is_plain(plain, in_blocks=True)


def test_a_model_of_many_users_learns_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    # users of even numbers have items below 20, others those from 20 on
    rng = np.random.default_rng(0)
    pairs = {
        (user, 20 * (user % 2) + int(item))
        for user in range(200)
        for item in rng.choice(20, 8, replace=False)
    }
    train = make_interactions(sorted(pairs), n_users=200, n_items=40)
    monkeypatch.setattr(sgd, "MANY_USERS", 200)
    monkeypatch.setattr(sgd.UserBlocks.__init__, "__defaults__", (20,))
    model = BPRMF(embedding_size=8, epochs=60, device="cpu")
    fitted = model.fit(TrainingData(train), np.random.default_rng(0))
    assert fitted.item_bias is not None
    scores = fitted.user_factors @ fitted.item_factors.T + fitted.item_bias
    scores[train.users, train.items] = -np.inf
    best = scores.argsort(axis=1)[:, -5:]
    assert (best // 20 == np.arange(200)[:, None] % 2).mean() > 0.95
