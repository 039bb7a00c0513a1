from __future__ import annotations

import pytest

from recbias.core.errors import MalformedLine, UnknownColumn
from recbias.formats.lists.columns import roles_of


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        ("query_id item_id rank score", "query_id item_id rank score"),
        ("user_id item_id rank score", "user_id item_id rank score"),  # LensKit, RecTools
        ("userId itemId rank rating", "userId itemId rank rating"),
        ("q_id doc_id rank score", "q_id doc_id rank score"),  # ranx
        ("User Item rank Prediction", "User Item rank Prediction"),
        # a column that has the name of its role is taken, whatever else is there
        ("user_id query_id item item_id rank score rating", "query_id item_id rank score"),
        ("timestamp user item_id rank score", "user item_id rank score"),
    ],
)
def test_columns_are_known_by_their_names(names: str, taken: str) -> None:
    roles = roles_of(names.split(), "a.csv:1")
    assert list(roles) == ["query_id", "item_id", "rank", "score"]
    assert list(roles.values()) == taken.split()


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("user userId item_id rank", "'user' and 'userId' may each be the query_id"),
        ("query_id item doc_id rank", "'item' and 'doc_id' may each be the item_id"),
        ("user item rating prediction", "'rating' and 'prediction' may each be the score"),
        ("query_id item_id score score", "two columns are called 'score'"),
    ],
)
def test_an_ambiguous_header_names_both(names: str, found: str) -> None:
    with pytest.raises(MalformedLine, match=found) as caught:
        roles_of(names.split(), "a.csv:1")
    assert caught.value.where == "a.csv:1"
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("names", "found", "remedy"),
    [
        ("usr item_id rank", "no column 'query_id'", "rename"),
        ("query_id movie rank", "no column 'item_id'", "rename"),
        ("query_id item_id", "neither", "layout: recbole"),
    ],
)
def test_an_absent_column_is_named(names: str, found: str, remedy: str) -> None:
    with pytest.raises(UnknownColumn, match=found) as caught:
        roles_of(names.split(), "a.csv:1")
    assert remedy in caught.value.remedy


def test_lines_in_order_need_neither_rank_nor_score() -> None:
    assert roles_of(["user", "item"], "", ordered=True) == {"query_id": "user", "item_id": "item"}
