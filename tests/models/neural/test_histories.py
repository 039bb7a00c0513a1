from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from recbias.models.multivae import _Histories, unit_rows
from support.worlds.small_worlds import make_interactions

CPU = torch.device("cpu")
PAIRS = [(0, 1), (0, 3), (2, 0), (2, 0), (2, 2), (2, 4), (4, 3)]
"""Users 1 and 3 have no history; a pair is repeated."""


def test_histories_by_hand() -> None:
    histories = _Histories.from_interactions(make_interactions(PAIRS, n_users=6, n_items=5), CPU)
    np.testing.assert_array_equal(histories.active, [0, 2, 4])
    rows, items, counts = histories.look_up(torch.tensor([4, 1, 2, 2], dtype=torch.int32))
    assert counts.tolist() == [1, 0, 3, 3]
    assert rows.tolist() == [0, 2, 2, 2, 3, 3, 3]
    assert items.tolist() == [3, 0, 2, 4, 0, 2, 4]


def test_histories_without_interactions_are_empty() -> None:
    histories = _Histories.from_interactions(make_interactions([], n_users=2, n_items=3), CPU)
    assert histories.active.size == 0
    assert [len(array) for array in histories.look_up(torch.tensor([], dtype=torch.int32))] == [
        0,
        0,
        0,
    ]
    assert [len(array) for array in histories.look_up(torch.tensor([1]))] == [0, 0, 1]


def test_unit_rows_have_norm_1() -> None:
    train = make_interactions(PAIRS, n_users=6, n_items=5)
    rows = unit_rows(train, np.array([2, 1, 0], dtype=np.int32)).toarray()
    third, half = 3**-0.5, 2**-0.5
    expected = np.array([[third, 0, third, 0, third], [0] * 5, [0, half, 0, half, 0]])
    np.testing.assert_allclose(rows, expected, rtol=1e-6)
    assert set(train.binary.data.tolist()) == {1.0}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1, max_size=30))
def test_histories_are_rows_of_the_interaction_matrix(pairs: list[tuple[int, int]]) -> None:
    train = make_interactions(pairs, n_users=6, n_items=8)
    rows, items, counts = _Histories.from_interactions(train, CPU).look_up(torch.arange(6))
    matrix = np.zeros((6, 8), dtype=np.float32)
    matrix[rows.numpy(), items.numpy()] = 1
    np.testing.assert_array_equal(matrix, train.binary.toarray())
    np.testing.assert_array_equal(counts.numpy(), train.binary.toarray().sum(axis=1))
