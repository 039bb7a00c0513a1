from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import Attributes, Vocabulary
from recbias.core.errors import OutOfRange, WrongType
from recbias.core.queries import list_condition_columns, match_rows

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
    ("condition", "ids"),
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
def test_a_condition_matches_its_rows(condition: str, ids: list[int]) -> None:
    mask = match_rows(condition, USERS)
    assert mask.dtype == bool
    assert (np.flatnonzero(mask) + 1).tolist() == ids


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        # 3 has no age, 4 no gender: a comparison with a missing cell is neither true nor false
        ("not age < 18", [2]),
        ("not (age >= 18)", [1, 4]),
        ("age < 18 or gender == 'F'", [1, 3, 4]),
        ("not (age < 18 or gender == 'F')", [2]),
        # 3: (unknown age) and (false: not M) is false, so its negation is true
        ("not (age < 18 and gender == 'M')", [1, 2, 3]),
        ("age < 18 or not age < 18", [1, 2, 4]),
        ("blank == 'x'", []),
        ("blank != 3", []),
        ("not blank < 3", []),
        ("age == age", [1, 2, 4]),
    ],
)
def test_a_missing_cell_is_neither_true_nor_false(condition: str, ids: list[int]) -> None:
    assert (np.flatnonzero(match_rows(condition, USERS)) + 1).tolist() == ids


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
def test_comparing_text_with_numbers_is_an_error(condition: str) -> None:
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
def test_other_expressions_are_an_error(condition: str) -> None:
    with pytest.raises(WrongType) as caught:
        match_rows(condition, USERS)
    assert caught.value.remedy
    with pytest.raises(WrongType):
        list_condition_columns(condition)


def test_a_condition_that_is_nested_too_deeply_is_an_error() -> None:
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


NUMBERS = st.one_of(st.none(), st.integers(-3, 3))


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20), st.integers(-3, 3))
def test_de_morgan_holds_with_missing_cells(
    cells: list[tuple[int | None, int | None]], limit: int
) -> None:
    ids = Vocabulary.of([str(row) for row in range(len(cells))])
    table = Attributes(ids, pd.DataFrame(cells, columns=["a", "b"], dtype=np.float64))
    negated_and = match_rows(f"not (a < {limit} and b >= {limit})", table)
    or_of_negations = match_rows(f"not a < {limit} or not b >= {limit}", table)
    assert negated_and.tolist() == or_of_negations.tolist()
    below, not_below = match_rows(f"a < {limit}", table), match_rows(f"not a < {limit}", table)
    assert (below ^ not_below).tolist() == [a is not None for a, _ in cells]
    assert not (below & not_below).any()


@pytest.mark.parametrize(
    "condition",
    ["30 < age < 18", "age > 30 and age < 18", "x == 1 or (3 <= a and a <= -2)", "18 >= a >= 30"],
)
def test_an_empty_range_is_an_error_without_a_table(condition: str) -> None:
    with pytest.raises(OutOfRange, match="above"):
        list_condition_columns(condition)
