from __future__ import annotations

import numpy as np
import pytest

from recbias.core.errors import Contradiction, Leakage, NothingLeft
from recbias.data.splits.masks import (
    check_shares,
    divided,
    kept_for_training,
    places_within_users,
    shuffled_within_users,
)
from support.worlds import rows

WORLD = rows([(1, 0), (0, 1), (1, 2), (3, 0), (0, 3)], n_users=5, n_items=4)


def test_places_count_within_each_user_in_the_order_given() -> None:
    # users of the rows: 1 0 1 3 0; in the order 4 1 | 0 2 | 3 the places are 0 1 | 0 1 | 0
    places = places_within_users(WORLD, np.array([4, 1, 0, 2, 3]))
    assert places.tolist() == [0, 1, 1, 0, 0]


def test_shuffling_within_users_keeps_the_users_in_order(rng: np.random.Generator) -> None:
    order = shuffled_within_users(WORLD, rng)
    assert WORLD.users[order].tolist() == [0, 0, 1, 1, 3]
    assert sorted(order.tolist()) == [0, 1, 2, 3, 4]


def test_every_order_within_a_user_is_as_likely(rng: np.random.Generator) -> None:
    three = rows([(0, 0), (0, 1), (0, 2)])
    orders = [tuple(shuffled_within_users(three, rng).tolist()) for _ in range(3000)]
    counts = [orders.count(each) for each in sorted(set(orders))]
    # 6 orders, 500 each: chi-square with 5 degrees of freedom is below 20.5 but once in 1,000
    assert len(counts) == 6
    assert sum((count - 500) ** 2 / 500 for count in counts) < 20.5


@pytest.mark.parametrize(
    ("count", "left_out", "kept"),
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
def test_the_training_share_is_rounded_down_but_at_least_one(
    count: int, left_out: float, kept: int
) -> None:
    assert kept_for_training(np.array([count]), left_out).tolist() == [kept]


@pytest.mark.parametrize(("test", "validation"), [(0.5, 0.5), (0.9, 0.1), (0.7, 0.6)])
def test_shares_that_leave_nothing_to_train_on_are_refused(test: float, validation: float) -> None:
    with pytest.raises(Contradiction, match="leave nothing to train on") as caught:
        check_shares(test, validation)
    assert caught.value.where == "validation"


def test_masks_become_parts_over_the_same_vocabularies() -> None:
    test = np.array([True, False, False, False, False])
    split = divided(WORLD, test, np.array([False, True, False, False, False]), "it")
    assert split.train.users.tolist() == [1, 3, 0]
    assert split.test is not None
    assert split.test.users.tolist() == [1]
    assert split.validation is not None
    assert split.validation.items.tolist() == [1]
    assert split.train.user_ids is split.test.user_ids is WORLD.user_ids


@pytest.mark.parametrize(
    ("test", "validation", "name"),
    [([1, 1], None, "train"), ([0, 0], None, "test"), ([0, 1], [0, 0], "validation")],
)
def test_an_empty_part_is_refused(
    test: list[int], validation: list[int] | None, name: str
) -> None:
    two = rows([(0, 0), (0, 1)])
    tuned = None if validation is None else np.array(validation, dtype=bool)
    with pytest.raises(NothingLeft, match=f"it of 2 interactions leaves the {name} part empty"):
        divided(two, np.array(test, dtype=bool), tuned, "it")


def test_a_pair_in_two_parts_is_refused() -> None:
    with pytest.raises(Leakage, match="both train and test"):
        divided(rows([(0, 0), (0, 0)]), np.array([True, False]), None, "it")
