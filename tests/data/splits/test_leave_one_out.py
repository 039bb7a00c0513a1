from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import Dataset, Interactions
from recbias.core.errors import NothingLeft
from recbias.data.splits import LeaveOneOut
from support.worlds.small_worlds import make_interactions


def list_items(part: Interactions | None) -> list[list[int]]:
    assert part is not None
    return [part.items[part.users == user].tolist() for user in range(part.n_users)]


def test_the_last_row_by_time_is_held_out_with_ties_by_row_order() -> None:
    # user 0: items 0 1 2 at times 5 9 7 -> 1; user 1: items 3 4 5 at 2 8 8 -> 5, the later row;
    # user 2 has one row, which is a training row
    pairs = [(0, 0), (0, 1), (0, 2), (1, 3), (1, 4), (1, 5), (2, 0)]
    world = Dataset(make_interactions(pairs, times=[5, 9, 7, 2, 8, 8, 1]))
    split = LeaveOneOut().split(world, 0, np.random.default_rng(0))
    assert list_items(split.test) == [[1], [5], []]
    assert list_items(split.train) == [[0, 2], [3, 4], [0]]
    validated = LeaveOneOut(validation=1).split(world, 0, np.random.default_rng(0))
    assert list_items(validated.test) == list_items(split.test)
    assert list_items(validated.validation) == [[2], [4], []]
    assert list_items(validated.train) == [[0], [3], [0]]


def test_rows_are_held_out_but_at_least_one_is_for_training() -> None:
    # n = 2 of users with 4, 2 and 1 rows: 2, 1 and 0 are tested
    pairs = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (2, 0)]
    world = Dataset(make_interactions(pairs, times=list(range(7))))
    split = LeaveOneOut(n=2, validation=3).split(world, 0, np.random.default_rng(0))
    assert list_items(split.test) == [[2, 3], [1], []]
    assert list_items(split.validation) == [[1], [], []]
    assert list_items(split.train) == [[0], [0], [0]]


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=6),
    st.integers(1, 3),
    st.integers(0, 3),
    st.integers(0, 99),
)
def test_the_number_of_random_test_rows_is_that_of_the_formula(
    lengths: list[int], n: int, validation: int, seed: int
) -> None:
    pairs = [(user, item) for user, length in enumerate(lengths) for item in range(length)]
    world = Dataset(make_interactions(pairs))
    splitter = LeaveOneOut(which="random", n=n, validation=validation)
    try:
        split = splitter.split(world, 0, np.random.default_rng(seed))
    except NothingLeft:
        return
    assert split.test is not None
    counts = world.interactions.user_counts()
    assert split.test.user_counts().tolist() == np.minimum(n, counts - 1).tolist()
    assert (split.train.user_counts() >= 1).all()
    unvalidated = LeaveOneOut(which="random", n=n).split(world, 0, np.random.default_rng(seed))
    assert list_items(unvalidated.test) == list_items(split.test)
