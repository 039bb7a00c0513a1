from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import NothingLeft, UnknownColumn, WrongType
from recbias.core.queries.groups import group_by, split_crossing, validate_by


def table(**columns: list[object]) -> Attributes:
    n = len(next(iter(columns.values())))
    ids = Vocabulary.of([str(each) for each in range(n)])
    return Attributes(ids, pd.DataFrame(columns), "query")


def test_the_values_of_a_column_are_the_groups_in_order() -> None:
    found = group_by(table(race=["white", "black", None, "white"]), "race")
    assert found.names == ("race=black", "race=white")
    assert found.codes.tolist() == [1, 0, -1, 1]
    assert found.counts.tolist() == [1, 2]
    assert found.missing == 1
    assert found.values == (("black",), ("white",))


def test_numbers_are_written_as_people_do_and_sorted_by_size() -> None:
    found = group_by(table(age=[35.0, 1.0, 18.5, np.nan]), "age")
    assert found.names == ("age=1", "age=18.5", "age=35")
    assert found.codes.tolist() == [2, 0, 1, -1]


def test_a_crossing_has_a_group_for_each_pair_that_occurs() -> None:
    labels = table(race=["w", "b", "w", "b"], gender=["F", "F", "M", None])
    found = group_by(labels, "race & gender")
    assert found.names == ("race=b&gender=F", "race=w&gender=F", "race=w&gender=M")
    assert found.codes.tolist() == [1, 0, 2, -1]


def test_a_condition_makes_two_groups_and_a_missing_cell_is_in_neither() -> None:
    found = group_by(table(age=[12.0, 40.0, np.nan]), "age < 18")
    assert found.names == ("age < 18", "not age < 18")
    assert found.codes.tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("by", "kind", "words"),
    [
        ("gneder", UnknownColumn, "gneder"),
        ("gender&", WrongType, "blank"),
        ("gender ~ 3", WrongType, "condition"),
        ("empty", NothingLeft, "empty"),
        ("age < 5", NothingLeft, "no query meets 'age < 5'"),
    ],
)
def test_what_no_query_carries_is_refused(by: str, kind: type[Exception], words: str) -> None:
    labels = table(gender=["F", "M"], empty=[None, None], age=[20.0, 30.0])
    with pytest.raises(kind, match=words):
        group_by(labels, by)


def test_an_unknown_label_is_helped_by_the_nearest() -> None:
    with pytest.raises(UnknownColumn) as caught:
        group_by(table(gender=["F"]), "gneder")
    assert "gender" in caught.value.remedy


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), min_size=1))
def test_a_crossing_is_finer_than_its_parts(rows: list[tuple[str, str]]) -> None:
    labels = table(one=[each for each, _ in rows], two=[each for _, each in rows])
    crossed, one = group_by(labels, "one&two"), group_by(labels, "one")
    assert len(crossed.names) == len(set(rows))
    for group in range(len(crossed.names)):
        assert len(set(one.codes[crossed.codes == group])) == 1
    assert crossed.counts.sum() == len(rows)


def test_parts_are_read_without_their_spaces() -> None:
    assert split_crossing("a&  b < 3 ") == ("a", "b < 3")


@pytest.mark.parametrize(
    "by", ["gender", "gender & age < 25", "home town", "income>50K", "race in"]
)
def test_what_may_be_a_column_or_is_a_condition_is_let_pass(by: str) -> None:
    validate_by(by)


@pytest.mark.parametrize("by", ["age <", "gender&age <", "< 3", "age < < 3", "age in [1", "a &"])
def test_what_is_neither_is_refused_without_a_table(by: str) -> None:
    with pytest.raises(WrongType):
        validate_by(by)
