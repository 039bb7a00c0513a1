from __future__ import annotations

import numpy as np
import pytest

from recbias.core.errors import Contradiction, Leakage, NothingLeft
from recbias.data.splits import (
    count_training_rows,
    rank_within_groups,
    shuffle_within_users,
    split_by_masks,
    validate_shares,
)
from support.worlds.small_worlds import make_interactions

INTERACTIONS = make_interactions([(1, 0), (0, 1), (1, 2), (3, 0), (0, 3)], n_users=5, n_items=4)


def test_rows_are_ranked_within_each_user_in_a_given_order() -> None:
    # users of the rows: 1 0 1 3 0; in the order 4 1 | 0 2 | 3 the ranks are 0 1 | 0 1 | 0
    ranks = rank_within_groups(np.array([4, 1, 0, 2, 3]), INTERACTIONS.user_counts())
    assert ranks.tolist() == [0, 1, 1, 0, 0]


def test_shuffling_within_users_keeps_the_users_in_order(rng: np.random.Generator) -> None:
    order = shuffle_within_users(INTERACTIONS, rng)
    assert INTERACTIONS.users[order].tolist() == [0, 0, 1, 1, 3]
    assert sorted(order.tolist()) == [0, 1, 2, 3, 4]


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


@pytest.mark.parametrize(("test", "validation"), [(0.5, 0.5), (0.9, 0.1), (0.7, 0.6)])
def test_shares_that_leave_nothing_to_train_on_are_refused(test: float, validation: float) -> None:
    with pytest.raises(Contradiction, match="leave nothing to train on") as caught:
        validate_shares(test, validation)
    assert caught.value.where == "validation"


def test_the_parts_of_masks_share_the_vocabularies() -> None:
    test = np.array([True, False, False, False, False])
    split = split_by_masks(
        INTERACTIONS, test, np.array([False, True, False, False, False]), "a split"
    )
    assert split.train.users.tolist() == [1, 3, 0]
    assert split.test is not None
    assert split.test.users.tolist() == [1]
    assert split.validation is not None
    assert split.validation.items.tolist() == [1]
    assert split.train.user_ids is split.test.user_ids is INTERACTIONS.user_ids


@pytest.mark.parametrize(
    ("test", "validation", "name"),
    [([1, 1], None, "train"), ([0, 0], None, "test"), ([0, 1], [0, 0], "validation")],
)
def test_an_empty_part_is_refused(
    test: list[int], validation: list[int] | None, name: str
) -> None:
    interactions = make_interactions([(0, 0), (0, 1)])
    validation_mask = None if validation is None else np.array(validation, dtype=bool)
    with pytest.raises(
        NothingLeft, match=f"a split of 2 interactions leaves the {name} part empty"
    ):
        split_by_masks(interactions, np.array(test, dtype=bool), validation_mask, "a split")


def test_a_pair_in_two_parts_is_refused() -> None:
    with pytest.raises(Leakage, match="both train and test"):
        split_by_masks(
            make_interactions([(0, 0), (0, 0)]), np.array([True, False]), None, "a split"
        )
