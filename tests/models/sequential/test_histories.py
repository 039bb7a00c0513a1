from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recbias.models.sequential import Histories, UnseenItems
from support.models import recommending
from support.models.sequence_worlds import set_times
from support.worlds.small_worlds import make_interactions


def test_histories_are_in_the_order_of_time_and_ties_in_that_of_the_file() -> None:
    rows = make_interactions([(1, 3), (0, 2), (0, 1), (0, 0), (1, 3)], n_users=3)
    histories = Histories.from_interactions(set_times(rows, np.array([9, 5, 5, 1, 2])))
    assert histories.items.tolist() == [0, 2, 1, 3, 3]
    assert histories.starts.tolist() == [0, 3, 5, 5]


@given(
    counts=st.lists(st.integers(0, 12), min_size=1, max_size=5),
    length=st.integers(2, 6),
    least=st.sampled_from([1, 2]),
    seed=st.none() | st.integers(0, 99),
)
def test_windows_have_every_successor_or_every_item_once(
    counts: list[int], length: int, least: int, seed: int | None
) -> None:
    histories = Histories(np.arange(sum(counts)), np.append(0, np.cumsum(counts)))
    rng = None if seed is None else np.random.default_rng(seed)
    users, firsts, sizes = histories.cut_windows(length, least, rng)
    assert ((sizes >= least) & (sizes <= length)).all()
    offset = least - 1
    covered = [
        (user, position)
        for user, first, size in zip(users, firsts, sizes, strict=True)
        for position in range(first + offset, first + size)
    ]
    expected = [
        (user, histories.starts[user] + position)
        for user, count in enumerate(counts)
        for position in range(offset, count)
    ]
    assert sorted(covered) == expected


def test_negatives_are_uniform_over_the_items_that_a_user_lacks(rng: np.random.Generator) -> None:
    train = recommending.make_random_data(rng, n_users=6, n_items=9).train
    unseen = UnseenItems.from_interactions(train, "cpu")
    users = torch.arange(6)
    sampled = unseen.sample(users, 20_000, torch.Generator().manual_seed(3)).numpy()
    has_item = train.binary.toarray() > 0
    for user in range(6):
        shares = np.bincount(sampled[user], minlength=9) / 20_000
        expected = ~has_item[user] / (~has_item[user]).sum()
        assert shares == pytest.approx(expected, abs=0.02)
        assert (shares[has_item[user]] == 0).all()
