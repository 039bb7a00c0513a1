from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from recbias.core.dataset import Matrix
from recbias.core.errors import BrokenContract
from recbias.core.evidence import RankedLists, check_lists

NAN = float("nan")


def make_lists(
    items: list[list[int]], scores: list[list[float]] | None = None, outside: int = 0
) -> RankedLists:
    codes = np.array(items, dtype=np.int32)
    values = np.full(codes.shape, np.nan) if scores is None else np.array(scores)
    names = np.array([f"x{item}" for item in range(outside)], dtype=object)
    return RankedLists(codes, values.astype(np.float32), names)


def make_history(rows: list[list[int]], n_items: int = 5) -> Matrix:
    dense = np.zeros((len(rows), n_items), dtype=np.float32)
    for row, items in enumerate(rows):
        dense[row, items] = 1.0
    return csr_array(dense)


def check(lists: RankedLists, *, n_queries: int | None = None, seen: Matrix | None = None) -> None:
    n_lists = len(lists) if n_queries is None else n_queries
    check_lists(lists, n_queries=n_lists, seen=seen, n_items=5, model="mine")


@pytest.mark.parametrize(
    "lists",
    [
        make_lists([[0, 1, 2]], [[3, 2, 1]]),
        make_lists([[0, 1, 2]], [[1, 1, 1]]),
        make_lists([[0, 1, -1]], [[3, 2, NAN]]),
        make_lists([[-1, -1, -1]]),
        make_lists([[0, 1, -1]]),
        make_lists([[0, 1], [2, 3]], [[2, 1], [NAN, NAN]]),
        make_lists([[0, 5, 6]], outside=2),
        make_lists([[4]], [[-np.inf]]),
        RankedLists(np.empty((0, 3), np.int32), np.empty((0, 3), np.float32)),
        RankedLists(np.empty((2, 0), np.int32), np.empty((2, 0), np.float32)),
    ],
)
def test_valid_lists_pass(lists: RankedLists) -> None:
    check(lists, seen=make_history([[3]] * len(lists)) if len(lists) == 1 else None)


@pytest.mark.parametrize(
    ("lists", "violation"),
    [
        (make_lists([[0, 1, 0]]), "an item twice in 1 lists, the first for query 0"),
        (make_lists([[0, 1], [2, 2], [3, 3]]), "an item twice in 2 lists, the first for query 1"),
        (make_lists([[0, -1, 1]]), "an item after an empty position"),
        (make_lists([[0, 5]]), "codes outside -1 to 4"),
        (make_lists([[0, 7]], outside=2), "codes outside -1 to 6"),
        (make_lists([[0, -2]]), "codes outside -1 to 4"),
        (make_lists([[0, 1, 2]], [[3, NAN, 1]]), "a score of NaN"),
        (make_lists([[0, 1, -1]], [[NAN, 1, NAN]]), "a score of NaN"),
        (make_lists([[0, 1, 2]], [[1, 3, 2]]), "scores that increase"),
    ],
)
def test_a_violation_is_named(lists: RankedLists, violation: str) -> None:
    with pytest.raises(BrokenContract) as caught:
        check(lists)
    assert violation in str(caught.value)
    assert str(caught.value).startswith("mine returned ")
    assert caught.value.remedy


def test_another_number_of_lists_is_a_violation() -> None:
    with pytest.raises(BrokenContract, match="2 lists for 3 queries"):
        check(make_lists([[0], [1]]), n_queries=3)


@pytest.mark.parametrize(
    "lists",
    [
        RankedLists(np.zeros((1, 2), np.int32), np.zeros((1, 3), np.float32)),
        RankedLists(np.zeros((1, 2), np.float32), np.zeros((1, 2), np.float32)),
        RankedLists(np.zeros(2, np.int32), np.zeros(2, np.float32)),
    ],
)
def test_arrays_of_another_shape_or_type_are_a_violation(lists: RankedLists) -> None:
    with pytest.raises(BrokenContract, match="returned items"):
        check_lists(lists, n_queries=1, seen=None, n_items=5, model="mine")


@given(
    st.lists(
        st.lists(st.integers(0, 4), unique=True, max_size=4),
        min_size=1,
        max_size=6,
    ),
    st.lists(st.sets(st.integers(0, 4)), min_size=6, max_size=6),
)
def test_training_items_are_found_at_every_position(
    rows: list[list[int]], histories: list[set[int]]
) -> None:
    lists = make_lists([[*row, *[-1] * (4 - len(row))] for row in rows])
    seen = make_history([sorted(items) for items in histories[: len(rows)]])
    if any(set(row) & items for row, items in zip(rows, histories, strict=False)):
        with pytest.raises(BrokenContract, match="a training item of the query"):
            check(lists, seen=seen)
    else:
        check(lists, seen=seen)
