from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import OutOfRange, UnknownColumn, WrongType
from recbias.core.queries.conditions import list_condition_columns, match_rows

USERS = Attributes(
    Vocabulary.of(["1", "2", "3", "4"]),
    pd.DataFrame(
        {
            "age": [1.0, 25.0, np.nan, 17.0],
            "gender": ["F", "M", "F", None],
            "zip": ["01", "2", "3", "4"],
            "blank": [None, None, None, None],
            "member": [True, False, True, True],
        }
    ),
    "user",
)


@pytest.mark.parametrize(
    ("condition", "who"),
    [
        ("age < 18", [1, 4]),
        ("age <= 17 and gender == 'F'", [1]),
        ("18 > age", [1, 4]),
        ("10 < age < 18", [4]),
        ("30 > age >= 17", [2, 4]),
        ("age in [1, 17]", [1, 4]),
        ("age not in (1, 17)", [2]),
        ("gender in ['F']", [1, 3]),
        ("gender not in ['F']", [2]),
        ("gender != 'F'", [2]),
        ("zip == '01'", [1]),
        ("age > -1", [1, 2, 4]),
        ("age > --1", [2, 4]),
        ("age == 2.5e1", [2]),
        ("member == 1", [1, 3, 4]),
        ("age in []", []),
        ("age < " + "9" * 400, [1, 2, 4]),
        ("  age < 18\n", [1, 4]),
    ],
)
def test_a_condition_finds_its_rows(condition: str, who: list[int]) -> None:
    found = match_rows(condition, USERS)
    assert found.dtype == bool
    assert (np.flatnonzero(found) + 1).tolist() == who


@pytest.mark.parametrize(
    ("condition", "who"),
    [
        # 3 has no age, 4 no gender: a comparison with a missing cell is neither true nor false
        ("not age < 18", [2]),
        ("not (age >= 18)", [1, 4]),
        ("age < 18 or gender == 'F'", [1, 3, 4]),
        ("not (age < 18 or gender == 'F')", [2]),
        # 3: (age is open) and (M is false) is false, so its denial is true
        ("not (age < 18 and gender == 'M')", [1, 2, 3]),
        ("age < 18 or not age < 18", [1, 2, 4]),
        ("blank == 'x'", []),
        ("blank != 3", []),
        ("not blank < 3", []),
        ("age == age", [1, 2, 4]),
    ],
)
def test_a_missing_cell_is_neither_true_nor_false(condition: str, who: list[int]) -> None:
    assert (np.flatnonzero(match_rows(condition, USERS)) + 1).tolist() == who


@pytest.mark.parametrize(
    "condition",
    [
        "age == '18'",
        "age != '18'",
        "gender == 1",
        "gender < 3",
        "zip in [1]",
        "age in ['1', 2]",
        "age == gender",
    ],
)
def test_text_and_numbers_are_never_compared(condition: str) -> None:
    with pytest.raises(WrongType, match="cannot be compared") as caught:
        match_rows(condition, USERS)
    assert "quotes" in caught.value.remedy


@pytest.mark.parametrize(
    "condition",
    [
        "",
        "age",
        "age = 18",
        "1 < 2",
        "age < 18 and",
        "age.real < 3",
        "age < abs(3)",
        "__import__('os').system('true') == 1",
        "age < (lambda: 3)()",
        "(other := age) < 3",
        "age + 1 < 3",
        "age[0] < 3",
        "age is 3",
        "age == None",
        "age == True",
        "age < 1j",
        "age < -gender",
        "age < -'a'",
        "age in 3",
        "gender in 'FM'",
        "gender in ('F')",
        "'F' in gender",
        "age in [age]",
        "age in [[1]]",
        "[1] < age",
        "age in {1, 2}",
        "f'{age}' == 'a'",
        "age < 18\0",
        "first name == 'a'",
        "not " * 5000 + "age < 1",
        "(" * 500 + "age < 1" + ")" * 500,
        "age < " + "9" * 5000,
    ],
)
def test_anything_else_is_refused(condition: str) -> None:
    with pytest.raises(WrongType) as caught:
        match_rows(condition, USERS)
    assert caught.value.remedy
    with pytest.raises(WrongType):
        list_condition_columns(condition)


def test_a_condition_that_is_nested_too_deeply_is_refused() -> None:
    deepest = 0
    for depth in range(100, 1000, 100):
        try:
            assert match_rows("not " * depth + "age < 18", USERS).tolist() == [
                True,
                False,
                False,
                True,
            ]
            deepest = depth
        except WrongType:
            break
    assert deepest >= 100


def test_text_without_quotes_is_told_from_a_column() -> None:
    with pytest.raises(UnknownColumn) as caught:
        match_rows("gender == F", USERS)
    assert "no column 'F'" in str(caught.value)
    assert "put it in quotes: 'F'" in caught.value.remedy


def test_cells_that_are_neither_text_nor_numbers_are_refused() -> None:
    mixed = Attributes(Vocabulary.of(["1", "2"]), pd.DataFrame({"a": ["x", 3]}))
    with pytest.raises(WrongType, match="mixed"):
        match_rows("a == 'x'", mixed)


@pytest.mark.parametrize("dtype", ["category", "string"])
def test_other_kinds_of_text_columns_are_text(dtype: str) -> None:
    cells = pd.Series(["F", None, "M"], dtype=dtype)
    table = Attributes(Vocabulary.of(["1", "2", "3"]), pd.DataFrame({"gender": cells}))
    assert match_rows("gender != 'F'", table).tolist() == [False, False, True]


def test_whole_numbers_with_missing_cells_are_numbers() -> None:
    cells = pd.Series([1, None, 3], dtype="Int64")
    table = Attributes(Vocabulary.of(["1", "2", "3"]), pd.DataFrame({"n": cells}))
    assert match_rows("n > 1", table).tolist() == [False, False, True]


def test_an_empty_table_has_no_matching_row() -> None:
    none = Attributes(Vocabulary.of([]), pd.DataFrame({"age": pd.Series([], dtype=np.float64)}))
    assert match_rows("age < 18", none).size == 0


def test_columns_of_names_each_column_once() -> None:
    assert list_condition_columns("age < 18 and (age > 3 or gender in ['F'])") == {"age", "gender"}
    with pytest.raises(WrongType):
        list_condition_columns("age <")


numbers = st.one_of(st.none(), st.integers(-3, 3))


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=20), st.integers(-3, 3))
def test_de_morgan_holds_with_missing_cells(
    cells: list[tuple[int | None, int | None]], limit: int
) -> None:
    ids = Vocabulary.of([str(each) for each in range(len(cells))])
    table = Attributes(ids, pd.DataFrame(cells, columns=["a", "b"], dtype=np.float64))
    left = match_rows(f"not (a < {limit} and b >= {limit})", table)
    right = match_rows(f"not a < {limit} or not b >= {limit}", table)
    assert left.tolist() == right.tolist()
    sides = match_rows(f"a < {limit}", table).astype(int) + match_rows(f"not a < {limit}", table)
    assert sides.tolist() == [int(first is not None) for first, _ in cells]


@pytest.mark.parametrize(
    "condition",
    ["30 < age < 18", "age > 30 and age < 18", "x == 1 or (3 <= a and a <= -2)", "18 >= a >= 30"],
)
def test_a_range_that_holds_no_number_is_refused_without_a_table(condition: str) -> None:
    with pytest.raises(OutOfRange, match="above"):
        list_condition_columns(condition)


@pytest.mark.parametrize(
    "condition",
    [
        "18 < age < 30",
        "age > 30 or age < 18",
        "a > 30 and b < 18",
        "-5 < a < -2",
        "a > 1 and 3 > a",
    ],
)
def test_other_ranges_are_let_pass(condition: str) -> None:
    assert list_condition_columns(condition)
