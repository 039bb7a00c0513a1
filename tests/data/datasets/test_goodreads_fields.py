from __future__ import annotations

from datetime import datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.data.books_yelp import BOOK, build_book_columns, parse_dates


@given(
    date=st.datetimes(datetime(1971, 1, 1), datetime(2037, 1, 1)),  # noqa: DTZ001  a local time
    minutes=st.sampled_from([0, -420, 330, -720, 840]),
)
def test_dates_are_parsed_with_their_utc_offset(date: datetime, minutes: int) -> None:
    date = date.replace(tzinfo=timezone(timedelta(minutes=minutes)), microsecond=0)
    text = date.strftime("%a %b %d %H:%M:%S %z %Y")
    assert parse_dates(pa.chunked_array([[text]])).to_pylist() == [int(date.timestamp())]


@pytest.mark.parametrize(
    "text", ["", "Fri Sep 08 2017", "Fri Foo 08 10:44:24 -0700 2017", "2017-09-08 10:44:24"]
)
def test_text_that_is_not_a_date_becomes_null(text: str) -> None:
    dates = pa.chunked_array([[text, "Thu Jan 01 00:00:01 +0000 1970"]])
    assert parse_dates(dates).to_pylist() == [None, 1]


def test_book_columns_are_built_from_the_json_fields() -> None:
    records = [
        {
            "book_id": "1",
            "title": "One",
            "description": "",
            "publication_year": "1999",
            "num_pages": "",
            "average_rating": "4.03",
            "popular_shelves": [{"name": f"s{number}"} for number in range(12)],
            "authors": [{"author_id": "7"}, {"author_id": "8"}],
        },
        {"book_id": "2", "popular_shelves": [], "authors": None, "publication_year": "soon"},
        {"book_id": "3", "popular_shelves": [{"name": "a|b"}], "authors": [{"author_id": "9"}]},
    ]
    books = pa.Table.from_pylist(records, schema=BOOK.schema)
    columns = build_book_columns(books, None)
    assert columns["title"].tolist() == ["One", None, None]
    assert columns["description"].tolist() == [None, None, None]
    np.testing.assert_array_equal(columns["year"], [1999, np.nan, np.nan])
    assert columns["shelves"].tolist() == [
        "|".join(f"s{number}" for number in range(10)),
        None,
        "a/b",
    ]
    assert columns["author_ids"].tolist() == ["7|8", None, "9"]
    authors = pa.table({"author_id": ["8", "7"], "name": ["Eight", "Seven"]})
    with pytest.warns(UserWarning, match=r"^the file of authors lacks 1 of the authors \(9 for"):
        columns = build_book_columns(books, authors)
    assert columns["authors"].tolist() == ["Seven|Eight", None, "9"]
