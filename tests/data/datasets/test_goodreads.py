from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import MalformedLine
from recbias.data.books_yelp import Goodreads

BOOKS: list[dict[str, Any]] = [
    {"book_id": "20", "title": "B", "description": "Über b", "num_pages": "24", "authors": []},
    {"book_id": "3", "title": "A", "authors": [{"author_id": "7", "role": ""}]},
    {"book_id": "5", "title": "C, unread"},
]
DATE = "Fri Jan 02 00:00:00 +0000 1970"
SHELVES = [
    {"user_id": "u1", "book_id": "3", "rating": 5, "is_read": True, "date_added": DATE},
    {"user_id": "u0", "book_id": "3", "rating": 0, "is_read": False, "date_added": DATE},
    {"user_id": "u2", "book_id": "20", "rating": 3, "is_read": True, "date_added": DATE},
    {"user_id": "u2", "book_id": "999", "rating": 3, "is_read": True, "date_added": DATE},
]
REVIEWS = [
    {"user_id": "u2", "book_id": "20", "rating": 3, "review_text": "schön 📚"},
    {"user_id": "u9", "book_id": "20", "rating": 3, "review_text": "by another"},
    {"user_id": "u1", "book_id": "999", "rating": 3, "review_text": "of another book"},
]


def write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_bytes(
        gzip.compress("".join(json.dumps(record) + "\n" for record in records).encode())
    )


@pytest.fixture
def world(tmp_path: Path) -> Path:
    folder = tmp_path / "goodreads"
    folder.mkdir()
    write(folder / "goodreads_books_children.json.gz", BOOKS)
    write(folder / "goodreads_interactions_children.json.gz", SHELVES)
    write(folder / "goodreads_reviews_children.json.gz", REVIEWS)
    write(folder / "goodreads_book_authors.json.gz", [{"author_id": "7", "name": "Ann|e"}])
    (folder / "goodreads_interactions.csv").write_text(
        "user_id,book_id,is_read,rating,is_reviewed\n"
        "0,0,1,5,0\n1,0,0,0,0\n2,1,1,3,1\n2,2,1,3,0\n2,77,1,3,0\n"
    )
    (folder / "book_id_map.csv").write_text("book_id_csv,book_id\n0,3\n1,20\n2,999\n")
    (folder / "user_id_map.csv").write_text("user_id_csv,user_id\n2,u2\n0,u1\n1,u0\n7,u7\n")
    return tmp_path


@pytest.mark.parametrize("form", ["json", "csv"])
def test_both_forms_have_the_same_interactions(
    world: Path, rng: np.random.Generator, form: Any
) -> None:
    with collect_warnings() as warnings:
        data = Goodreads(form=form).load(world, rng)
    rows = data.interactions
    assert rows.item_ids.ids.tolist() == ["3", "5", "20"]
    assert rows.user_ids.ids.tolist() == ["u1", "u2"]
    assert (rows.users.tolist(), rows.items.tolist()) == ([0, 1], [0, 2])
    assert rows.values.tolist() == [5.0, 3.0]
    assert data.counts["unrated"] == 1
    assert any("excluded 1 row(s): unrated" in warning for warning in warnings)
    assert any("interactions of unknown books" in warning for warning in warnings)
    if form == "json":
        assert rows.times is not None
        assert rows.times.tolist() == [86_400, 86_400]
    else:
        assert rows.times is None


@pytest.mark.parametrize("form", ["json", "csv"])
def test_unrated_rows_are_kept_on_request(
    world: Path, rng: np.random.Generator, form: Any
) -> None:
    with collect_warnings():
        rows = Goodreads(form=form, unrated="keep").load(world, rng).interactions
    assert rows.user_ids.ids.tolist() == ["u0", "u1", "u2"]
    assert rows.values.tolist() == [5.0, 0.0, 3.0]


def test_books_and_their_side_tables_are_read(world: Path, rng: np.random.Generator) -> None:
    source = Goodreads(side=("authors", "reviews"))
    with collect_warnings():
        data = source.load(world, rng)
    assert data.items is not None
    frame = data.items.frame
    assert frame["title"].tolist() == ["A", "C, unread", "B"]
    assert frame["authors"].tolist() == ["Ann/e", None, None]
    np.testing.assert_array_equal(frame["num_pages"], [np.nan, np.nan, 24])
    assert data.reviews is not None
    assert data.reviews.texts.tolist() == ["schön 📚"]
    assert (data.reviews.users.tolist(), data.reviews.items.tolist()) == ([1], [2])
    assert source.gives() == {"train", "items", "reviews"}
    assert Goodreads().gives() == {"train", "items"}
    assert len(source.files(world)) == 4


@pytest.mark.parametrize(
    ("date", "time"),
    [
        ("Fri Sep 08 10:44:24 -0700 2017", 1504892664),
        ("Thu Jan 01 05:30:01 +0530 1970", 1),
        ("Tue Feb 29 23:59:59 +0000 2000", 951868799),
    ],
)
def test_dates_are_read_with_their_utc_offset(
    world: Path, rng: np.random.Generator, date: str, time: int
) -> None:
    path = world / "goodreads" / "goodreads_interactions_children.json.gz"
    write(path, [SHELVES[0] | {"date_added": date}])
    rows = Goodreads().load(world, rng).interactions
    assert rows.times is not None
    assert rows.times.tolist() == [time]


@pytest.mark.parametrize("date", ["Fri Sep 08 2017", "2017-09-08 10:44:24"])
def test_text_that_is_not_a_date_is_refused(
    world: Path, rng: np.random.Generator, date: str
) -> None:
    path = world / "goodreads" / "goodreads_interactions_children.json.gz"
    write(path, [SHELVES[0] | {"date_added": date}])
    with pytest.raises(MalformedLine, match="date_added is not a time"):
        Goodreads().load(world, rng)


def test_columns_of_books_are_built_from_the_json_fields(
    world: Path, rng: np.random.Generator
) -> None:
    shelves = [{"name": f"s{number}"} for number in range(12)]
    authors = [{"author_id": "7"}, {"author_id": "8"}]
    books: list[dict[str, Any]] = [
        {"book_id": "3", "title": "One", "description": "", "publication_year": "1999"},
        {"book_id": "5", "popular_shelves": [], "authors": None, "publication_year": "soon"},
        {"book_id": "20", "popular_shelves": [{"name": "a|b"}], "average_rating": "4.03"},
    ]
    books[0] |= {"num_pages": "", "popular_shelves": shelves, "authors": authors}
    write(world / "goodreads" / "goodreads_books_children.json.gz", books)
    with collect_warnings() as warnings:
        plain = Goodreads().load(world, rng)
        named = Goodreads(side=("authors",)).load(world, rng)
    assert plain.items is not None
    assert named.items is not None
    frame = plain.items.frame
    assert frame["title"].tolist() == ["One", None, None]
    assert frame["description"].tolist() == [None, None, None]
    np.testing.assert_array_equal(frame["year"], [1999, np.nan, np.nan])
    np.testing.assert_array_equal(frame["average_rating"], [np.nan, np.nan, 4.03])
    assert frame["shelves"].tolist() == ["|".join(f"s{i}" for i in range(10)), None, "a/b"]
    assert frame["author_ids"].tolist() == ["7|8", None, None]
    assert named.items.frame["authors"].tolist() == ["Ann/e|8", None, None]
    assert "author_ids" not in named.items.frame
    assert any("lacks 1 of the authors (8 for example)" in message for message in warnings)
