from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.worlds.small_worlds import make_interactions


@pytest.mark.parametrize("positions", [np.array([True, False, True]), np.array([0, 2])])
def test_taking_rows_keeps_the_vocabularies(positions: np.ndarray) -> None:
    interactions = make_interactions([(0, 0), (1, 1), (2, 0)], values=[1, 2, 3], times=[7, 8, 9])
    selected = interactions.take(positions)
    assert selected.users.tolist() == [0, 2]
    assert selected.values.tolist() == [1.0, 3.0]
    assert selected.times is not None
    assert selected.times.tolist() == [7, 9]
    assert selected.user_ids is interactions.user_ids


def test_repeated_pairs_count_once_in_the_binary_and_add_up_in_the_weighted_matrix() -> None:
    # (0, 1) twice with 2 and 3: one in the binary matrix, 5 in the weighted one
    interactions = make_interactions([(1, 0), (0, 1), (0, 1)], values=[4, 2, 3])
    assert interactions.binary.toarray().tolist() == [[0, 1], [1, 0]]
    assert interactions.weighted.toarray().tolist() == [[0, 5], [4, 0]]
    assert interactions.binary.dtype == np.float32
    assert interactions.binary.has_sorted_indices


PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=15)


@given(PAIRS)
def test_dropping_unused_ids_keeps_the_rows(
    pairs: list[tuple[int, int]],
) -> None:
    interactions = make_interactions(pairs, n_users=7, n_items=7)
    compact = interactions.drop_unused_ids()
    users = compact.user_ids.ids[compact.users].tolist()
    items = compact.item_ids.ids[compact.items].tolist()
    assert users == [f"u{user}" for user, _ in pairs]
    assert items == [f"i{item}" for _, item in pairs]
    assert compact.user_ids.ids.tolist() == [
        f"u{user}" for user in sorted({user for user, _ in pairs})
    ]
    assert compact.n_items == len({item for _, item in pairs})
    assert compact.users.dtype == np.int32
