from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import Dataset
from recbias.core.errors import NothingLeft
from recbias.data.books_yelp import Goodbooks10K, Goodreads, Yelp
from support.files.review_files import BUSINESS, REVIEW_YELP


@pytest.fixture
def world(tmp_path: Path) -> Path:
    folder = tmp_path / "goodbooks-10k"
    folder.mkdir()
    (folder / "ratings.csv").write_text("user_id,book_id,rating\n1,258,5\n2,4081,4\n2,258,1\n")
    header = (
        "book_id,goodreads_book_id,isbn,authors,original_publication_year,original_title,title,"
        "language_code,average_rating,ratings_count,image_url\n"
    )
    (folder / "books.csv").write_text(
        header
        + '258,70,043,"Homer, Robert Fagles",-720.0,Ὀδύσσεια,"The Odyssey, new",eng,3.7,9,\n'
        '4081,71,,Anon,,,"A ""Title""",,4,8,y\n',
        encoding="utf-8",
    )
    (folder / "book_tags.csv").write_text(
        "goodreads_book_id,tag_id,count\n70,1,5\n70,2,50\n70,3,-1\n70,2,50\n99,1,1\n"
    )
    (folder / "tags.csv").write_text('tag_id,tag_name\n1,epic\n2,"to|read"\n3,lost\n')
    return tmp_path


def test_books_and_ratings_are_read(world: Path, rng: np.random.Generator) -> None:
    data = Goodbooks10K().load(world, rng)
    rows = data.interactions
    assert (rows.users.tolist(), rows.items.tolist()) == ([0, 1, 1], [0, 1, 0])
    assert (rows.values.tolist(), rows.times) == ([5, 4, 1], None)
    frame = data.items.frame
    assert frame["title"].tolist() == ["The Odyssey, new", 'A "Title"']
    assert frame["authors"].tolist() == ["Homer|Robert Fagles", "Anon"]
    np.testing.assert_array_equal(frame["year"], [-720, np.nan])
    assert frame["language"].tolist() == ["eng", None]
    assert frame["ratings_count"].tolist() == [9, 8]


@pytest.mark.parametrize(
    ("n_tags", "tags"), [(1, "to/read"), (2, "to/read|epic"), (9, "to/read|epic|lost")]
)
def test_the_most_frequent_tags_of_a_book_are_read(
    world: Path, rng: np.random.Generator, n_tags: int, tags: str
) -> None:
    source = Goodbooks10K(side=("tags",), top_tags=n_tags)
    data = source.load(world, rng)
    assert data.items.frame["tags"].tolist() == [tags, None]
    assert [path.name for path in source.files(world)] == [
        "ratings.csv",
        "books.csv",
        "book_tags.csv",
        "tags.csv",
    ]


@pytest.mark.real_data
def test_the_published_books_are_read(
    real_data: Path, tmp_path: Path, rng: np.random.Generator
) -> None:
    folder = tmp_path / "goodbooks-10k"
    shutil.copytree(real_data / "goodbooks-10k" / "samples", folder)
    for name in ("books.csv", "tags.csv"):
        shutil.copyfile(real_data / "goodbooks-10k" / name, folder / name)
    data = Goodbooks10K(side=("tags",)).load(tmp_path, rng)
    assert (len(data.interactions), len(data.item_ids)) == (99, 10_000)
    n_present = data.items.frame.notna().sum()
    assert n_present[["title", "authors", "year"]].tolist() == [10_000, 10_000, 9_979]


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
def world_goodreads(tmp_path: Path) -> Path:
    folder = tmp_path / "goodreads"
    folder.mkdir()
    write(folder / "goodreads_books_children.json.gz", BOOKS)
    write(folder / "goodreads_interactions_children.json.gz", SHELVES)
    write(folder / "goodreads_reviews_children.json.gz", REVIEWS)
    write(folder / "goodreads_book_authors.json.gz", [{"author_id": "7", "name": "Ann|e"}])
    return tmp_path


def test_shelved_books_are_interactions(world_goodreads: Path, rng: np.random.Generator) -> None:
    with collect_warnings() as warnings:
        data = Goodreads().load(world_goodreads, rng)
    rows = data.interactions
    assert rows.item_ids.ids.tolist() == ["3", "5", "20"]
    assert rows.user_ids.ids.tolist() == ["u1", "u2"]
    assert (rows.users.tolist(), rows.items.tolist()) == ([0, 1], [0, 2])
    assert rows.values.tolist() == [5.0, 3.0]
    assert data.counts["unrated"] == 1
    assert any("excluded 1 row(s): unrated" in warning for warning in warnings)
    assert any("interactions of unknown books" in warning for warning in warnings)
    assert rows.times.tolist() == [86_400, 86_400]


def test_unrated_rows_are_kept_on_request(world_goodreads: Path, rng: np.random.Generator) -> None:
    with collect_warnings():
        rows = Goodreads(unrated="keep").load(world_goodreads, rng).interactions
    assert rows.user_ids.ids.tolist() == ["u0", "u1", "u2"]
    assert rows.values.tolist() == [5.0, 0.0, 3.0]


def test_books_and_their_side_tables_are_read(
    world_goodreads: Path, rng: np.random.Generator
) -> None:
    source = Goodreads(side=("authors", "reviews"))
    with collect_warnings():
        data = source.load(world_goodreads, rng)
    frame = data.items.frame
    assert frame["title"].tolist() == ["A", "C, unread", "B"]
    assert frame["authors"].tolist() == ["Ann/e", None, None]
    np.testing.assert_array_equal(frame["num_pages"], [np.nan, np.nan, 24])
    assert data.reviews.texts.tolist() == ["schön 📚"]
    assert (data.reviews.users.tolist(), data.reviews.items.tolist()) == ([1], [2])
    assert source.gives() == {"train", "items", "reviews"}
    assert Goodreads().gives() == {"train", "items"}
    assert len(source.files(world_goodreads)) == 4


@pytest.mark.parametrize(
    ("date", "time"),
    [
        ("Fri Sep 08 10:44:24 -0700 2017", 1504892664),
        ("Thu Jan 01 05:30:01 +0530 1970", 1),
        ("Tue Feb 29 23:59:59 +0000 2000", 951868799),
    ],
)
def test_dates_are_read_with_their_utc_offset(
    world_goodreads: Path, rng: np.random.Generator, date: str, time: int
) -> None:
    path = world_goodreads / "goodreads" / "goodreads_interactions_children.json.gz"
    write(path, [SHELVES[0] | {"date_added": date}])
    rows = Goodreads().load(world_goodreads, rng).interactions
    assert rows.times.tolist() == [time]


def test_columns_of_books_are_built_from_the_json_fields(
    world_goodreads: Path, rng: np.random.Generator
) -> None:
    shelves = [{"name": f"s{number}"} for number in range(12)]
    authors = [{"author_id": "7"}, {"author_id": "8"}]
    books: list[dict[str, Any]] = [
        {"book_id": "3", "title": "One", "description": "", "publication_year": "1999"},
        {"book_id": "5", "popular_shelves": [], "authors": None, "publication_year": "soon"},
        {"book_id": "20", "popular_shelves": [{"name": "a|b"}], "average_rating": "4.03"},
    ]
    books[0] |= {"num_pages": "", "popular_shelves": shelves, "authors": authors}
    write(world_goodreads / "goodreads" / "goodreads_books_children.json.gz", books)
    with collect_warnings() as warnings:
        plain = Goodreads().load(world_goodreads, rng)
        named = Goodreads(side=("authors",)).load(world_goodreads, rng)
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


BUSINESSES: list[dict[str, Any]] = [
    {
        "business_id": "b1",
        "name": "Café, „Zur Ecke“",
        "city": "Austin",
        "stars": 4.5,
        "attributes": {"RestaurantsPriceRange2": "2", "WiFi": "u'free'"},
        "categories": "Restaurants, Asian Fusion, Bars",
    },
    {"business_id": "b2", "city": "austin", "attributes": None, "categories": None},
    {
        "business_id": "b3",
        "city": "Boston",
        "attributes": {"RestaurantsPriceRange2": "None"},
        "categories": "Shopping",
    },
    {"business_id": "b4", "city": "Boston", "attributes": {"RestaurantsPriceRange2": "u'4'"}},
]
YELP_REVIEWS: list[dict[str, Any]] = [
    {
        "user_id": "u2",
        "business_id": "b1",
        "stars": 5,
        "date": "1970-01-01 00:01:00",
        "text": "👍",
    },
    {
        "user_id": "u1",
        "business_id": "b3",
        "stars": 1.0,
        "date": "1970-01-02 00:00:00",
        "text": "",
    },
    {
        "user_id": "u1",
        "business_id": "b9",
        "stars": 3.0,
        "date": "1970-01-02 00:00:00",
        "text": "x",
    },
    {"user_id": "u1", "business_id": "b1", "stars": None, "date": "", "text": "no stars"},
]


@pytest.fixture
def world_yelp(tmp_path: Path) -> Path:
    folder = tmp_path / "yelp"
    folder.mkdir()
    for name, records in ((BUSINESS, BUSINESSES), (REVIEW_YELP, YELP_REVIEWS)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / name).write_text(lines, encoding="utf-8")
    return tmp_path


def load(source: Yelp, data: Path) -> Dataset:
    return source.load(data, np.random.default_rng(1))


def get_items(data: Dataset) -> pd.DataFrame:
    return data.items.frame


def test_missing_prices_and_categories_are_missing_cells(world_yelp: Path) -> None:
    with collect_warnings():
        frame = get_items(load(Yelp(), world_yelp))
    assert frame["price"].tolist() == ["$$", None, None, "$$$$"]
    np.testing.assert_array_equal(frame["price_level"], [2, np.nan, np.nan, 4])
    assert frame["categories"].tolist() == [
        "Restaurants|Asian Fusion|Bars",
        None,
        "Shopping",
        None,
    ]
    assert frame["name"].tolist() == ["Café, „Zur Ecke“", None, None, None]


def test_reviews_are_interactions_and_texts(world_yelp: Path) -> None:
    with collect_warnings() as warnings:
        data = load(Yelp(), world_yelp)
    rows = data.interactions
    assert rows.user_ids.ids.tolist() == ["u1", "u2"]
    assert rows.item_ids.ids.tolist() == ["b1", "b2", "b3", "b4"]
    assert (rows.users.tolist(), rows.items.tolist()) == ([1, 0], [0, 2])
    assert rows.values.tolist() == [5.0, 1.0]
    assert rows.times.tolist() == [60, 86_400]
    assert data.reviews.texts.tolist() == ["👍", "", "no stars"]
    assert data.reviews.items.tolist() == [0, 2, 0]
    assert data.counts == {
        "bad_lines": 0,
        "reviews_of_unknown_businesses": 1,
        "reviews_without_stars": 1,
    }
    assert warnings == [f"{REVIEW_YELP}: excluded 1 row(s): reviews of unknown businesses"]


@pytest.mark.parametrize(
    ("source", "items"),
    [
        (Yelp(city="Austin"), ["b1", "b2"]),
        (Yelp(categories=("restaurants",)), ["b1"]),
        (Yelp(categories=("Bars", "Shopping")), ["b1", "b3"]),
        (Yelp(city="boston", categories=("Shopping",)), ["b3"]),
    ],
)
def test_items_are_restricted_to_a_city_and_categories(
    world_yelp: Path, source: Yelp, items: list[str]
) -> None:
    with collect_warnings() as warnings:
        assert load(source, world_yelp).item_ids.ids.tolist() == items
    assert warnings == []


@pytest.mark.parametrize(
    ("source", "message", "remedy"),
    [
        (Yelp(city="Austen"), "city 'Austen'", "did you mean austin"),
        (Yelp(categories=("Restaurant",)), "category 'Restaurant'", "did you mean Restaurants"),
        (Yelp(city="Boston", categories=("Bars",)), "category 'Bars'", "Shopping"),
    ],
)
def test_a_city_or_category_without_businesses_is_refused(
    world_yelp: Path, source: Yelp, message: str, remedy: str
) -> None:
    with pytest.raises(NothingLeft, match=message) as caught:
        load(source, world_yelp)
    assert remedy in caught.value.remedy


@pytest.mark.real_data
def test_the_published_layout_is_read(real_data: Path) -> None:
    data = load(Yelp(folder="yelp-layout", city="Hyderabad"), real_data)
    assert data.reviews is not None
    assert (len(data.reviews), len(data.item_ids)) == (9_955, 100)
    assert len(data.interactions) == 9_950  # five reviews have no stars
    prices = get_items(data)["price"].value_counts().to_dict()
    assert prices == {"$$": 43, "$$$": 31, "$": 16, "$$$$": 10}


@pytest.mark.real_data
def test_the_published_sample_is_read(real_data: Path) -> None:
    with collect_warnings():
        data = load(Yelp(folder="yelp-open-sample"), real_data)
    assert (len(data.interactions), len(data.item_ids)) == (77, 1_000)
    assert data.counts["reviews_of_unknown_businesses"] == 922
    # 577 businesses have the attribute, one of them with the text None
    assert int(get_items(data)["price_level"].notna().sum()) == 576
    restaurants = load(Yelp(folder="yelp-open-sample", categories=("Restaurants",)), real_data)
    assert len(restaurants.item_ids) == 332
