from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from recbias.models.neural.histories import Histories, unit_rows
from support.worlds import make_interactions

CPU = torch.device("cpu")
PAIRS = [(0, 1), (0, 3), (2, 0), (2, 0), (2, 2), (2, 4), (4, 3)]
"""Users 1 and 3 have nothing; a pair is repeated."""


def test_histories_by_hand() -> None:
    found = Histories.of(make_interactions(PAIRS, n_users=6, n_items=5), CPU)
    np.testing.assert_array_equal(found.active, [0, 2, 4])
    places, items, counts = found.of_users(torch.tensor([4, 1, 2, 2], dtype=torch.int32))
    assert counts.tolist() == [1, 0, 3, 3]
    assert places.tolist() == [0, 2, 2, 2, 3, 3, 3]
    assert items.tolist() == [3, 0, 2, 4, 0, 2, 4]


def test_nobody_has_nothing() -> None:
    found = Histories.of(make_interactions([], n_users=2, n_items=3), CPU)
    assert found.active.size == 0
    assert [len(each) for each in found.of_users(torch.tensor([], dtype=torch.int32))] == [0, 0, 0]
    assert [len(each) for each in found.of_users(torch.tensor([1]))] == [0, 0, 1]


def test_rows_have_length_1() -> None:
    train = make_interactions(PAIRS, n_users=6, n_items=5)
    found = unit_rows(train, np.array([2, 1, 0], dtype=np.int32)).toarray()
    third, half = 3**-0.5, 2**-0.5
    expected = np.array([[third, 0, third, 0, third], [0] * 5, [0, half, 0, half, 0]])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert set(train.binary.data.tolist()) == {1.0}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1, max_size=30))
def test_every_history_is_a_row_of_the_matrix(pairs: list[tuple[int, int]]) -> None:
    train = make_interactions(pairs, n_users=6, n_items=8)
    places, items, counts = Histories.of(train, CPU).of_users(torch.arange(6))
    found = np.zeros((6, 8), dtype=np.float32)
    found[places.numpy(), items.numpy()] = 1
    np.testing.assert_array_equal(found, train.binary.toarray())
    np.testing.assert_array_equal(counts.numpy(), train.binary.toarray().sum(axis=1))
