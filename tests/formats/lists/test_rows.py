from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recbias.core.errors import MalformedLine, UnknownIdentifier
from recbias.formats.lists import ListRows, encode_column, encode_rows


def locate_row(row: int) -> str:
    return f"a:{row}"


def encode_lists(**columns: list[Any]) -> ListRows:
    chunks = {name: pa.chunked_array([values]) for name, values in columns.items()}
    return encode_rows(chunks, Path("a"), locate_row)


def test_ids_are_in_order_of_appearance_and_text() -> None:
    lists = encode_lists(query_id=[7, 3, 7], item_id=["b", "b", "a"], score=[3, 2, 1])
    assert lists.query_ids.ids.tolist() == ["7", "3"]
    assert lists.queries.tolist() == [0, 1, 0]
    assert lists.items.tolist() == [0, 0, 1]
    assert lists.ranks is None
    assert lists.scores is not None
    assert lists.scores.tolist() == [3.0, 2.0, 1.0]


def test_numbers_may_be_text_with_spaces_around() -> None:
    lists = encode_lists(query_id=["q"], item_id=["i"], rank=[" 2 "], score=["-inf"])
    assert lists.ranks is not None
    assert lists.ranks.tolist() == [2.0]
    assert lists.scores is not None
    assert lists.scores.tolist() == [float("-inf")]


def test_dictionary_columns_are_decoded() -> None:
    column = pa.chunked_array([pa.array(["x", "y"]).dictionary_encode()])
    ids, codes = encode_column(column, "query_id", locate_row)
    assert ids.ids[codes].tolist() == ["x", "y"]


def test_selected_rows_keep_their_line() -> None:
    lists = encode_lists(query_id=["q", "r", "s"], item_id=["i", "j", "k"], rank=[1, 1, 1])
    subset = lists.take(np.array([2, 0]))
    assert subset.query_ids.ids[subset.queries].tolist() == ["s", "q"]
    assert [subset.place(0), subset.place(1)] == ["a:2", "a:0"]
    assert subset.scores is None


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"query_id": ["q", ""], "item_id": ["i", "i"]}, "an empty query_id"),
        ({"query_id": ["q", "q"], "item_id": ["i", None]}, "an empty item_id"),
        ({"query_id": ["q", "q"], "item_id": ["i", "j"], "rank": ["1", "x"]}, "the rank 'x'"),
    ],
)
def test_malformed_content_is_reported_with_its_line(
    columns: dict[str, list[Any]], message: str
) -> None:
    with pytest.raises(MalformedLine, match=message) as caught:
        encode_lists(**columns)
    assert caught.value.where == "a:1"


def test_rows_of_a_dataset_have_only_its_ids() -> None:
    lists = encode_lists(
        query_id=["q", "r", "q"], item_id=["a", "b", "c"], dataset=["X", "Y", "X"]
    )
    subset = lists.of_dataset("X")
    assert subset.query_ids.ids.tolist() == ["q"]
    assert subset.item_ids.ids.tolist() == ["a", "c"]
    assert subset.items.tolist() == [0, 1]
    assert subset.place(1) == "a:2"
    assert lists.of_dataset("") is lists
    with pytest.raises(UnknownIdentifier, match="'Z': its column 'dataset' has 'X', 'Y'"):
        lists.of_dataset("Z")


def test_selected_rows_keep_their_dataset() -> None:
    lists = encode_lists(
        query_id=["q", "r", "q"], item_id=["a", "b", "c"], dataset=["X", "Y", "X"]
    )
    subset = lists.take(np.array([1, 2])).of_dataset("X")
    assert subset.item_ids.ids.tolist() == ["c"]


def test_an_empty_dataset_label_is_an_error() -> None:
    with pytest.raises(MalformedLine, match="an empty dataset") as caught:
        encode_lists(query_id=["q", "r"], item_id=["a", "b"], dataset=["X", ""])
    assert caught.value.where == "a:1"
