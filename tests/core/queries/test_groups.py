from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import Attributes, Vocabulary
from recbias.core.errors import NothingLeft, UnknownColumn, UnknownName, WrongType
from recbias.core.queries import group_by


def make_labels(**columns: list[object]) -> Attributes:
    n = len(next(iter(columns.values())))
    ids = Vocabulary.of([str(row) for row in range(n)])
    return Attributes(ids, pd.DataFrame(columns), "query")


def test_the_values_of_a_column_are_the_groups_in_natural_order() -> None:
    groups = group_by(make_labels(race=["white", "black", None, "white"]), "race")
    assert groups.names == ("race=black", "race=white")
    assert groups.codes.tolist() == [1, 0, -1, 1]
    assert groups.counts.tolist() == [1, 2]
    assert groups.missing == 1
    assert groups.values == (("black",), ("white",))


def test_numbers_are_formatted_without_needless_digits_and_sorted_by_size() -> None:
    groups = group_by(make_labels(age=[35.0, 1.0, 18.5, np.nan]), "age")
    assert groups.names == ("age=1", "age=18.5", "age=35")
    assert groups.codes.tolist() == [2, 0, 1, -1]


def test_a_crossing_has_a_group_for_each_combination_that_occurs() -> None:
    labels = make_labels(race=["w", "b", "w", "b"], gender=["F", "F", "M", None])
    groups = group_by(labels, "race & gender")
    assert groups.names == ("race=b&gender=F", "race=w&gender=F", "race=w&gender=M")
    assert groups.codes.tolist() == [1, 0, 2, -1]


def test_a_condition_gives_two_groups_and_a_missing_cell_is_in_neither() -> None:
    groups = group_by(make_labels(age=[12.0, 40.0, np.nan]), "age < 18")
    assert groups.names == ("age < 18", "not age < 18")
    assert groups.codes.tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("by", "error", "text"),
    [
        ("gneder", UnknownColumn, "gneder"),
        ("gender&", WrongType, "blank"),
        ("gender ~ 3", WrongType, "condition"),
        ("empty", NothingLeft, "empty"),
        ("age < 5", NothingLeft, "no query meets 'age < 5'"),
    ],
)
def test_a_grouping_without_queries_is_an_error(
    by: str, error: type[Exception], text: str
) -> None:
    labels = make_labels(gender=["F", "M"], empty=[None, None], age=[20.0, 30.0])
    with pytest.raises(error, match=text):
        group_by(labels, by)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), min_size=1))
def test_a_crossing_is_finer_than_its_parts(rows: list[tuple[str, str]]) -> None:
    labels = make_labels(race=[race for race, _ in rows], age=[age for _, age in rows])
    crossed, groups = group_by(labels, "race&age"), group_by(labels, "race")
    assert len(crossed.names) == len(set(rows))
    for group in range(len(crossed.names)):
        assert len(set(groups.codes[crossed.codes == group])) == 1
    assert crossed.counts.sum() == len(rows)


def test_a_row_is_in_the_group_of_each_value_of_its_cell() -> None:
    labels = make_labels(lang=["en|de", "de", None, "|", "en|en"], row=["a", "a", "a", "b", "b"])
    groups = group_by(labels, "lang & row", split_cells=True)
    assert groups.names == ("lang=de&row=a", "lang=en&row=a", "lang=en&row=b")
    assert [groups.find_rows(code).tolist() for code in range(3)] == [[0, 1], [0], [4]]
    assert (groups.missing, groups.overlap, groups.counts.tolist()) == (2, True, [2, 1, 1])
    assert group_by(labels, "lang").names == ("lang=de", "lang=en|de", "lang=en|en", "lang=|")


def test_a_group_is_found_by_its_name_or_its_labels() -> None:
    groups = group_by(make_labels(g=["F", "M"], age=[1.0, 2.0]), "g & age")
    assert groups.find_code("g=M&age=2") == groups.find_code("M&2") == 1
    with pytest.raises(UnknownName, match="no group of 'g & age' is called 'M'") as error:
        groups.find_code("M")
    assert "M&2" in error.value.remedy
