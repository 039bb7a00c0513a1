from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from recbias.core.dataset.split import TrainingData
from recbias.core.errors import UnknownIdentifier
from recbias.formats.lists import encode_rows, validate_queries
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

WORLD = TrainingData(make_interactions([(0, 5)], n_users=3, n_items=6))


def check(queries: list[str], items: list[str], query_ids: list[str]) -> None:
    columns = {"query_id": pa.chunked_array([queries]), "item_id": pa.chunked_array([items])}
    lists = encode_rows(columns, Path("mine.csv"), lambda row: f"mine.csv:{row + 2}")
    validate_queries(lists, make_queries(query_ids, [-1] * len(query_ids)), WORLD)


@pytest.mark.parametrize(
    ("queries", "items", "query_ids", "remedy"),
    [
        (["i1", "i2"], ["p7", "u1"], ["p7"], "its columns of queries and items look swapped"),
        ([" p7 ", "p8 "], ["i1", "i1"], ["p7", "p9"], "spaces around them"),
        (["7.0", "8.0"], ["i1", "i1"], ["7"], "decimal numbers"),
        (["007", "008"], ["i1", "i1"], ["7", "9"], "begin with zeros"),
        (["prompt_7", "x"], ["i1", "i1"], ["prompt-7"], "did you mean prompt-7?"),
        (["1", "2"], ["i1", "i1"], ["ana", "ben"], "not the internal numbers of a tool"),
    ],
)
def test_the_most_likely_explanation_is_given(
    queries: list[str], items: list[str], query_ids: list[str], remedy: str
) -> None:
    with pytest.raises(UnknownIdentifier) as caught:
        check(queries, items, query_ids)
    assert remedy in caught.value.remedy
    assert caught.value.where == "mine.csv:2"


def test_the_ids_of_the_file_and_of_the_queries_are_listed() -> None:
    with pytest.raises(UnknownIdentifier) as caught:
        check(list("abcd"), ["i1"] * 4, ["x", "y"])
    assert caught.value.message == (
        "none of the 4 queries of mine.csv is evaluated: "
        "it has 'a', 'b', 'c', ..., the queries are 'x', 'y'"
    )


def test_a_single_known_query_is_enough() -> None:
    check(["p1", "x"], ["i1", "i1"], ["p1", "p2"])


def test_users_of_the_dataset_are_known() -> None:
    check(["u1"], ["i1"], ["u0"])


def test_a_file_without_rows_is_valid() -> None:
    columns = {name: pa.chunked_array([[]], pa.string()) for name in ("query_id", "item_id")}
    lists = encode_rows(columns, Path("mine.csv"), str)
    validate_queries(lists, make_queries(["x"], [-1]), WORLD)
