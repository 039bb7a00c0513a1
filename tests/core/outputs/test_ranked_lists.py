from __future__ import annotations

import numpy as np
import pytest

from recbias.core.evidence import RankedLists, make_empty_ids


def make_lists(items: list[list[int]]) -> RankedLists:
    codes = np.array(items, dtype=np.int32)
    scores = np.where(codes >= 0, -np.arange(codes.shape[1]), np.nan).astype(np.float32)
    return RankedLists(codes, scores)


def test_the_length_is_the_number_of_queries_and_k_the_width() -> None:
    lists = make_lists([[4, 2, -1], [1, -1, -1]])
    assert len(lists) == 2
    assert lists.k == 3


def test_filled_marks_the_positions_with_an_item() -> None:
    assert make_lists([[4, 2, -1], [-1, -1, -1]]).filled.tolist() == [
        [True, True, False],
        [False, False, False],
    ]


@pytest.mark.parametrize(("k", "expected"), [(1, [[4]]), (2, [[4, 2]]), (5, [[4, 2, 0]])])
def test_truncated_lists_keep_the_first_positions(k: int, expected: list[list[int]]) -> None:
    assert make_lists([[4, 2, 0]]).truncate(k).items.tolist() == expected


def test_truncated_lists_keep_the_names_of_outside_items() -> None:
    lists = RankedLists(
        np.array([[5, 6]], dtype=np.int32),
        np.array([[2.0, 1.0]], dtype=np.float32),
        np.array(["x", "y"], dtype=object),
    )
    assert lists.truncate(1).outside.tolist() == ["x", "y"]


def test_arrays_cannot_be_written() -> None:
    lists = make_lists([[4, 2]])
    with pytest.raises(ValueError, match="read-only"):
        lists.items[0, 0] = 9
    with pytest.raises(ValueError, match="read-only"):
        lists.scores[0, 0] = 9.0


def test_empty_ids_have_no_element() -> None:
    assert make_empty_ids().size == 0
    assert make_empty_ids().dtype == object
