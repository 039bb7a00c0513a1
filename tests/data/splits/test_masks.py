from __future__ import annotations

import numpy as np
import pytest

from recbias.data.splits import count_training_rows, shuffle_within_users
from support.worlds.small_worlds import make_interactions


def test_all_orders_within_a_user_are_equally_likely(rng: np.random.Generator) -> None:
    interactions = make_interactions([(0, 0), (0, 1), (0, 2)])
    orders = [tuple(shuffle_within_users(interactions, rng).tolist()) for _ in range(3000)]
    counts = [orders.count(order) for order in sorted(set(orders))]
    # 6 orders, expected 500 each: chi-square (5 d.f.) exceeds 20.5 with probability 0.001
    assert len(counts) == 6
    assert sum((count - 500) ** 2 / 500 for count in counts) < 20.5


@pytest.mark.parametrize(
    ("count", "test_share", "n_train"),
    [
        (10, 0.2, 8),
        (9, 0.2, 7),
        (4, 0.2, 3),
        (2, 0.2, 1),
        (1, 0.2, 1),
        (3, 0.99, 1),
        (20, 0.9, 2),  # in binary, (1 - 0.9) * 20 is a little less than 2
    ],
)
def test_the_training_rows_are_rounded_down_to_at_least_one(
    count: int, test_share: float, n_train: int
) -> None:
    assert count_training_rows(np.array([count]), test_share).tolist() == [n_train]
