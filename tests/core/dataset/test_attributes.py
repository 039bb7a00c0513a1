from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes, Vocabulary
from recbias.core.errors import UnknownColumn, WrongType


def make_films() -> Attributes:
    ids = Vocabulary.of(["1", "2", "3", "4"])
    frame = pd.DataFrame(
        {
            "genres": ["Drama|Comedy", None, "Comedy", "Comedy|Comedy|"],
            "year": [1995.0, np.nan, 2001.0, 1995.0],
            "n_ratings": [1234567.0, 1234568.0, 2.5, np.nan],
            "price": ["1", "2.5", None, "3"],
        }
    )
    return Attributes(ids, frame)


def test_numbers_with_fractions_are_no_categories() -> None:
    films = make_films()
    assert films.categories("year").values == ("1995", "2001")
    assert films.categories("genres").values == films.membership("genres").values
    with pytest.raises(WrongType, match="'n_ratings' holds numbers that are no categories"):
        films.categories("n_ratings")


def test_a_column_is_read_by_name() -> None:
    assert make_films().names == ["genres", "year", "n_ratings", "price"]
    with pytest.raises(UnknownColumn, match="the items have no column 'genre'") as caught:
        make_films().column("genre")
    assert caught.value.remedy == "did you mean genres?"


def test_numbers_are_read_from_numbers_and_from_text() -> None:
    np.testing.assert_array_equal(make_films().numbers("year"), [1995, np.nan, 2001, 1995])
    np.testing.assert_array_equal(make_films().numbers("price"), [1, 2.5, np.nan, 3])
    with pytest.raises(UnknownColumn, match="'genres' of the items is not numeric: 'Drama"):
        make_films().numbers("genres")


def test_a_multi_valued_cell_has_all_its_values() -> None:
    membership = make_films().membership("genres")
    assert membership.values == ("Comedy", "Drama")
    assert membership.matrix.toarray().astype(int).tolist() == [[1, 1], [0, 0], [1, 0], [1, 0]]


@pytest.mark.parametrize(
    ("name", "values"),
    [("year", ("1995", "2001")), ("n_ratings", ("1234567", "1234568", "2.5"))],
)
def test_numbers_are_distinct_values(name: str, values: tuple[str, ...]) -> None:
    assert make_films().membership(name).values == values


def test_an_empty_column_has_no_value() -> None:
    ids = Vocabulary.of(["1", "2"])
    membership = Attributes(ids, pd.DataFrame({"a": [None, None]})).membership("a")
    assert membership.values == ()
    assert membership.matrix.shape == (2, 0)


def test_unknown_identifiers_have_missing_cells() -> None:
    aligned = make_films().align(Vocabulary.of(["3", "9", "1"]))
    assert aligned.ids.ids.tolist() == ["1", "3", "9"]
    assert aligned.frame["genres"].tolist() == ["Drama|Comedy", "Comedy", None]
    np.testing.assert_array_equal(aligned.frame["year"], [1995, 2001, np.nan])
    assert aligned.kind == "item"


def test_rows_are_rows_in_the_given_order() -> None:
    rows = make_films().take(np.array([3, 0]), Vocabulary(np.array(["4", "1"], dtype=object)))
    assert rows.frame["price"].tolist() == ["3", "1"]
    assert rows.frame.index.tolist() == [0, 1]


def test_a_table_without_columns_can_be_aligned() -> None:
    empty = Attributes(Vocabulary.of(["1", "2"]), pd.DataFrame(index=range(2)))
    assert empty.align(Vocabulary.of(["2", "7"])).frame.shape == (2, 0)
