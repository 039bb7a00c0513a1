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
