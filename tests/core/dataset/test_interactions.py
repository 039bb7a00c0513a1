from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.worlds import rows


def test_arrays_are_frozen() -> None:
    interactions = rows([(0, 0)], times=[5])
    assert interactions.times is not None
    for array in (interactions.users, interactions.items, interactions.values, interactions.times):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_counts_include_users_and_items_without_a_row() -> None:
    interactions = rows([(0, 1), (2, 1), (2, 0)], n_users=4, n_items=3)
    assert interactions.user_counts().tolist() == [1, 0, 2, 0]
    assert interactions.item_counts().tolist() == [1, 2, 0]
    assert (len(interactions), interactions.n_users, interactions.n_items) == (3, 4, 3)


@pytest.mark.parametrize("kept", [np.array([True, False, True]), np.array([0, 2])])
def test_taking_rows_keeps_the_vocabularies(kept: np.ndarray) -> None:
    interactions = rows([(0, 0), (1, 1), (2, 0)], values=[1, 2, 3], times=[7, 8, 9])
    taken = interactions.take(kept)
    assert taken.users.tolist() == [0, 2]
    assert taken.values.tolist() == [1.0, 3.0]
    assert taken.times is not None
    assert taken.times.tolist() == [7, 9]
    assert taken.user_ids is interactions.user_ids


def test_matrices_of_repeated_pairs() -> None:
    # (0, 1) twice with 2 and 3: one in the binary matrix, 5 in the weighted one
    interactions = rows([(1, 0), (0, 1), (0, 1)], values=[4, 2, 3])
    assert interactions.binary.toarray().tolist() == [[0, 1], [1, 0]]
    assert interactions.weighted.toarray().tolist() == [[0, 5], [4, 0]]
    assert interactions.binary.dtype == np.float32
    assert interactions.binary.has_sorted_indices


pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=15)


@given(pairs)
def test_compacting_keeps_the_rows_and_drops_what_does_not_occur(
    world: list[tuple[int, int]],
) -> None:
    interactions = rows(world, n_users=7, n_items=7)
    compact = interactions.compacted()
    users = compact.user_ids.ids[compact.users].tolist()
    items = compact.item_ids.ids[compact.items].tolist()
    assert users == [f"u{user}" for user, _ in world]
    assert items == [f"i{item}" for _, item in world]
    assert compact.user_ids.ids.tolist() == [f"u{each}" for each in sorted({u for u, _ in world})]
    assert compact.n_items == len({item for _, item in world})
    assert compact.users.dtype == np.int32
