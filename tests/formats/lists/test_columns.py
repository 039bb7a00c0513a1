from __future__ import annotations

import pytest

from recbias.core.errors import MalformedLine, UnknownColumn
from recbias.formats.lists import assign_roles


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        ("query_id item_id rank score", "query_id item_id rank score"),
        ("user_id item_id rank score", "user_id item_id rank score"),  # LensKit, RecTools
        ("userId itemId rank rating", "userId itemId rank rating"),
        ("q_id doc_id rank score", "q_id doc_id rank score"),  # ranx
        ("User Item rank Prediction", "User Item rank Prediction"),
        # a column that has the name of its role comes first
        ("user_id query_id item item_id rank score rating", "query_id item_id rank score"),
        ("timestamp user item_id rank score", "user item_id rank score"),
    ],
)
def test_roles_are_assigned_by_column_name(names: str, columns: str) -> None:
    roles = assign_roles(names.split(), "a.csv:1")
    assert list(roles) == ["query_id", "item_id", "rank", "score"]
    assert list(roles.values()) == columns.split()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("user userId item_id rank", "'user' and 'userId' may each be the query_id"),
        ("query_id item doc_id rank", "'item' and 'doc_id' may each be the item_id"),
        ("user item rating prediction", "'rating' and 'prediction' may each be the score"),
        ("query_id item_id score score", "two columns are called 'score'"),
    ],
)
def test_two_columns_for_the_same_role_are_an_error(names: str, message: str) -> None:
    with pytest.raises(MalformedLine, match=message) as caught:
        assign_roles(names.split(), "a.csv:1")
    assert caught.value.where == "a.csv:1"
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("names", "message", "remedy"),
    [
        ("usr item_id rank", "no column 'query_id'", "rename"),
        ("query_id movie rank", "no column 'item_id'", "rename"),
        ("query_id item_id", "neither", "layout: recbole"),
    ],
)
def test_a_missing_column_is_an_error(names: str, message: str, remedy: str) -> None:
    with pytest.raises(UnknownColumn, match=message) as caught:
        assign_roles(names.split(), "a.csv:1")
    assert remedy in caught.value.remedy


def test_ordered_lists_need_neither_rank_nor_score() -> None:
    assert assign_roles(["user", "item"], "", ordered=True) == {
        "query_id": "user",
        "item_id": "item",
    }
