from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recbias.core.errors import MalformedLine, UnknownIdentifier
from recbias.formats.lists.rows import ListRows, encoded, rows_of


def place(row: int) -> str:
    return f"a:{row}"


def rows(**columns: list[Any]) -> ListRows:
    chunks = {name: pa.chunked_array([values]) for name, values in columns.items()}
    return rows_of(chunks, Path("a"), place)


def test_ids_are_in_order_of_appearance_and_text() -> None:
    made = rows(query_id=[7, 3, 7], item_id=["b", "b", "a"], score=[3, 2, 1])
    assert made.query_ids.ids.tolist() == ["7", "3"]
    assert made.queries.tolist() == [0, 1, 0]
    assert made.items.tolist() == [0, 0, 1]
    assert made.ranks is None
    assert made.scores is not None
    assert made.scores.tolist() == [3.0, 2.0, 1.0]


def test_numbers_may_be_text_with_spaces_around() -> None:
    made = rows(query_id=["q"], item_id=["i"], rank=[" 2 "], score=["-inf"])
    assert made.ranks is not None
    assert made.ranks.tolist() == [2.0]
    assert made.scores is not None
    assert made.scores.tolist() == [float("-inf")]


def test_categories_are_their_values() -> None:
    column = pa.chunked_array([pa.array(["x", "y"]).dictionary_encode()])
    ids, codes = encoded(column, "query_id", place)
    assert ids.ids[codes].tolist() == ["x", "y"]


def test_taken_rows_keep_their_place() -> None:
    made = rows(query_id=["q", "r", "s"], item_id=["i", "j", "k"], rank=[1, 1, 1])
    taken = made.take(np.array([2, 0]))
    assert taken.query_ids.ids[taken.queries].tolist() == ["s", "q"]
    assert [taken.place(0), taken.place(1)] == ["a:2", "a:0"]
    assert taken.scores is None


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"query_id": ["q", ""], "item_id": ["i", "i"]}, "an empty query_id"),
        ({"query_id": ["q", "q"], "item_id": ["i", None]}, "an empty item_id"),
        ({"query_id": ["q", "q"], "item_id": ["i", "j"], "rank": ["1", "x"]}, "the rank 'x'"),
    ],
)
def test_what_does_not_fit_is_named(columns: dict[str, list[Any]], found: str) -> None:
    with pytest.raises(MalformedLine, match=found) as caught:
        rows(**columns)
    assert caught.value.where == "a:1"


def test_rows_of_a_dataset_are_over_their_own_ids() -> None:
    made = rows(query_id=["q", "r", "q"], item_id=["a", "b", "c"], dataset=["X", "Y", "X"])
    own = made.of_dataset("X")
    assert own.query_ids.ids.tolist() == ["q"]
    assert own.item_ids.ids.tolist() == ["a", "c"]
    assert own.items.tolist() == [0, 1]
    assert own.place(1) == "a:2"
    assert made.of_dataset("") is made
    with pytest.raises(UnknownIdentifier, match="'Z': its column 'dataset' has 'X', 'Y'"):
        made.of_dataset("Z")


def test_rows_taken_before_keep_their_dataset() -> None:
    made = rows(query_id=["q", "r", "q"], item_id=["a", "b", "c"], dataset=["X", "Y", "X"])
    own = made.take(np.array([1, 2])).of_dataset("X")
    assert own.item_ids.ids.tolist() == ["c"]


def test_an_empty_dataset_is_a_fault() -> None:
    with pytest.raises(MalformedLine, match="an empty dataset") as caught:
        rows(query_id=["q", "r"], item_id=["a", "b"], dataset=["X", ""])
    assert caught.value.where == "a:1"
