from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from recbias.core.dataset import AnyArray, Interactions, TrainingData
from recbias.models import sgd
from recbias.models.factorization import BPRMF
from recbias.models.sgd import Sampler, UserBlocks
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
