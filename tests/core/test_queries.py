from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes, Queries, Vocabulary
from recbias.core.errors import (
    Contradiction,
    NothingLeft,
    OutOfRange,
    UnknownColumn,
    UnknownName,
    UserError,
    WrongType,
)
from recbias.core.grouping import (
    group_by,
    list_condition_columns,
    match_rows,
    order_labels,
    read_uncertain_groups,
    validate_grouping,
)

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


PEOPLE = Attributes(
    Vocabulary.of([str(person) for person in range(1, 9)]),
    pd.DataFrame(
        {
            "age": [15.0, 18, 24, 25, 40, 60, np.nan, 3],
            "share": [0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9],
            "band": ["18-24", "50+", "under 18", "18-24", "9-12", None, "50+", "50+"],
            "change": [-5.0, -4, -1, 0, 1, 2, 3, 4],
            "gender": list("MFMFMFMF"),
        }
    ),
    "query",
)


@pytest.mark.parametrize(
    ("by", "names", "codes"),
    [
        ("age in [18, 25, 50]", ["under 18", "18-24", "25-49", "50+"], [0, 1, 1, 2, 2, 3, -1, 0]),
        ("age in (18, 19)", ["under 18", "18", "19+"], [0, 1, 2, 2, 2, 2, -1, 0]),
        ("share in [0.25, 0.5]", ["under 0.25", "0.25 to under 0.5", "0.5+"], [0, 0, 1, *[2] * 5]),
        ("change in [-4, 0]", ["under -4", "-4 to -1", "0+"], [0, 1, 1, *[2] * 5]),
        (
            "share in 4 quantiles",
            [f"quantile {rank} of 4" for rank in range(1, 5)],
            [0, 0, 1, 1, 2, 2, 3, 3],
        ),
        ("gender & age in [18]", [], [2, 1, 3, 1, 3, 1, -1, 0]),
        ("gender in ['F']", [], [1, 0, 1, 0, 1, 0, 1, 0]),
        ("band", ["9-12", "under 18", "18-24", "50+"], [2, 3, 1, 2, 0, -1, 3, 3]),
    ],
)
def test_numbers_are_divided_into_bins_in_their_order(
    by: str, names: list[str], codes: list[int]
) -> None:
    groups = group_by(PEOPLE, by)
    assert groups.codes.tolist() == codes
    if names:
        assert [name.partition("=")[2] for name in groups.names] == names
        assert order_labels(names) == list(range(len(names)))
        assert groups.find_code(names[-1]) == len(names) - 1


@pytest.mark.parametrize(
    ("by", "error", "message"),
    [
        ("age in [25, 18]", OutOfRange, "the edges of the bins of 'age' do not increase"),
        ("age in [18, 18]", OutOfRange, "do not increase"),
        ("age in 1 quantiles", OutOfRange, "must have 2 to 100 quantiles"),
        ("gender in [1, 2]", WrongType, "'gender' holds text, and only numbers have bins"),
        ("gender in 4 quantiles", WrongType, "'gender' holds text"),
        ("height in [1, 2]", UnknownColumn, "no column 'height'"),
    ],
)
def test_bins_that_cannot_be_are_refused(by: str, error: type[UserError], message: str) -> None:
    with pytest.raises(error, match=message):
        group_by(PEOPLE, by)
    if error is OutOfRange:
        with pytest.raises(error, match=message):
            validate_grouping(by)


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("age < 18", [1, 4]),
        ("age <= 17 and gender == 'F'", [1]),
        ("10 < age < 18", [4]),
        ("age in [1, 17]", [1, 4]),
        ("age not in (1, 17)", [2]),
        ("gender not in ['F']", [2]),
        ("gender != 'F'", [2]),
        ("zip == '01'", [1]),
        ("age > -1", [1, 2, 4]),
        ("age == 2.5e1", [2]),
        ("member == 1", [1, 3, 4]),
        ("age in []", []),
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


@pytest.mark.parametrize("condition", ["age == '18'", "age != '18'", "gender == 1", "zip in [1]"])
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
        "age < abs(3)",
        "age is 3",
        "age == True",
        "age < -gender",
        "age in 3",
        "gender in 'FM'",
        "'F' in gender",
        "age in [age]",
        "age in [[1]]",
    ],
)
def test_other_expressions_are_an_error(condition: str) -> None:
    with pytest.raises(WrongType) as caught:
        match_rows(condition, USERS)
    assert caught.value.remedy
    with pytest.raises(WrongType):
        list_condition_columns(condition)


def make_labels(**columns: list[object]) -> Attributes:
    n = len(next(iter(columns.values())))
    ids = Vocabulary.of([str(row) for row in range(n)])
    return Attributes(ids, pd.DataFrame(columns), "query")


def test_a_crossing_has_a_group_for_each_combination_that_occurs() -> None:
    labels = make_labels(race=["w", "b", "w", "b"], gender=["F", "F", "M", None])
    groups = group_by(labels, "race & gender")
    assert groups.names == ("race=b&gender=F", "race=w&gender=F", "race=w&gender=M")
    assert groups.codes.tolist() == [1, 0, 2, -1]


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


def test_a_row_is_in_the_group_of_each_value_of_its_cell() -> None:
    labels = make_labels(lang=["en|de", "de", None, "|", "en|en"], row=["a", "a", "a", "b", "b"])
    groups = group_by(labels, "lang & row", split_cells=True)
    assert groups.names == ("lang=de&row=a", "lang=en&row=a", "lang=en&row=b")
    assert [groups.find_rows(code).tolist() for code in range(3)] == [[0, 1], [0], [4]]
    assert (groups.missing, groups.overlap, groups.counts.tolist()) == (2, True, [2, 1, 1])
    assert group_by(labels, "lang").names == ("lang=de", "lang=en|de", "lang=en|en", "lang=|")


def make_prompts() -> Queries:
    ids = Vocabulary(np.array(["q9", "q1", "q5"], dtype=object))
    labels = Attributes(ids, pd.DataFrame({"race": ["a", "b", None]}), "query")
    texts = np.array(["one", "two", "three"], dtype=object)
    return Queries(ids, labels, np.array([-1, 4, 2], dtype=np.int32), texts, "prompt")


@pytest.mark.parametrize("rows", [np.array([2, 0]), [2, 0]])
def test_taking_queries_keeps_labels_users_and_texts_aligned(rows: object) -> None:
    queries = make_prompts().take(np.asarray(rows))
    assert len(queries) == 2
    assert queries.ids.ids.tolist() == ["q5", "q9"]
    assert queries.users.tolist() == [2, -1]
    assert queries.labels.frame["race"].tolist() == [None, "a"]
    assert queries.labels.ids is queries.ids
    assert queries.texts.tolist() == ["three", "one"]
    assert queries.unit == "prompt"


def make_labels_of_uncertain_groups(**columns: list[float | str | None]) -> Attributes:
    n = len(next(iter(columns.values())))
    ids = Vocabulary.of([f"u{row}" for row in range(n)])
    return Attributes(ids, pd.DataFrame(columns), "user")


def test_one_column_has_the_group_and_its_complement() -> None:
    labels = make_labels_of_uncertain_groups(p=[1.0, 0.25, None, 0.75, 0.5, 0.5])
    groups = read_uncertain_groups(labels, "probability of p")
    assert groups.names == ("p", "not p")
    assert groups.probabilities[[0, 1, 3]].tolist() == [[1.0, 0.0], [0.25, 0.75], [0.75, 0.25]]
    assert groups.missing == 1
    assert (groups.find_code("not p"), groups.assumption) == (1, "probability")


def test_information_is_the_share_of_the_variance_of_a_label() -> None:
    # mean 0.5, variance 0.09; that of a certain label is 0.25
    groups = read_uncertain_groups(
        make_labels_of_uncertain_groups(p=[0.8, 0.8, 0.2, 0.2]), "probability of p"
    )
    assert groups.information.tolist() == pytest.approx([0.36, 0.36])
    certain = read_uncertain_groups(
        make_labels_of_uncertain_groups(p=[1.0, 1.0, 0.0, 0.0]), "probability of p"
    )
    assert certain.information.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("columns", "by", "kind", "message"),
    [
        (
            {"p": [0.2, 45.0, 0.1]},
            "probability of p",
            OutOfRange,
            "'p' has 1 of 3 values outside 0 to 1, such as 45 of user u1",
        ),
        ({"p": [0.2, -0.1, 0.1]}, "weight of p", OutOfRange, "such as -0.1 of user u1"),
        (
            {"a": [0.5, 0.6, 0.5], "b": [0.5, 0.3, 0.5]},
            "probability of a + b",
            OutOfRange,
            "a + b is not 1 for 1 queries, such as 0.9 for user u1",
        ),
        (
            {"p": [0.4, 0.4, None]},
            "probability of p",
            NothingLeft,
            "every query has the same p, 0.4, which does not tell the groups apart",
        ),
        (
            {"p": [0.1, 0.2, 0.3]},
            "weight of p",
            NothingLeft,
            "0.6 queries are expected in p, fewer",
        ),
        (
            {"a": [0.5, 0.2, 0.4] * 5, "b": [0.25, 0.4, 0.3] * 5, "c": [0.25, 0.4, 0.3] * 5},
            "probability of a + b + c",
            Contradiction,
            "depend on each other",
        ),
        ({"p": [None, None]}, "probability of p", NothingLeft, "no query carries the label"),
        ({"p": ["high", "low"]}, "probability of p", UnknownColumn, "not numeric: 'high'"),
        ({"p": [0.5, 0.6]}, "probability of q", UnknownColumn, "no query carries the label 'q'"),
    ],
)
def test_probabilities_that_cannot_be_used_are_refused(
    columns: dict[str, list[float | str | None]], by: str, kind: type[UserError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        read_uncertain_groups(make_labels_of_uncertain_groups(**columns), by)
    assert message in caught.value.message
    assert caught.value.remedy


CODED = replace(
    PEOPLE.take(np.arange(3), Vocabulary.of(["1", "2", "3"])),
    frame=pd.DataFrame({"age": [1.0, 18, 56]}),
    value_labels={"age": {"1": "under 18", "18": "18-55", "56": "56+"}},
)


@pytest.mark.parametrize(
    "by",
    [
        *("age in [20]", "age < 20", "20 > age", "age <= 18", "18 >= age", "not age == 20"),
        *("age in 2 quantiles", "age in [18, 20] or age == 1"),
    ],
)
def test_codes_are_divided_where_they_begin_only(by: str) -> None:
    with pytest.raises(WrongType, match="'age' holds codes, 1 means under 18, 18 means") as info:
        group_by(CODED, by)
    assert info.value.remedy == "write age in [18, 56], age < 18 or age alone"


@pytest.mark.parametrize(
    ("by", "codes"),
    [
        *[("age in [18, 56]", [0, 1, 2]), ("age < 18", [0, 1, 1]), ("18 <= age", [1, 0, 0])],
        *[("age <= 55", [0, 0, 1]), ("age in [1, 56] or age == 1", [0, 1, 0])],
    ],
)
def test_edges_that_are_codes_divide_them(by: str, codes: list[int]) -> None:
    assert group_by(CODED, by).codes.tolist() == codes


def test_groups_of_codes_are_called_as_reports_do() -> None:
    groups = group_by(CODED, "age")
    names = ["under 18", "18-55", "56", "age=56", "age=56+"]
    assert [groups.find_code(name) for name in names] == [0, 1, 2, 2, 2]
    with pytest.raises(UnknownName) as info:
        groups.find_code("18-24")
    assert "18-55" in info.value.remedy
