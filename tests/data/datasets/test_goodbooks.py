from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from recbias.data.books_yelp import Goodbooks10K


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
    assert data.items is not None
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
    assert data.items is not None
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
    assert data.items is not None
    n_present = data.items.frame.notna().sum()
    assert n_present[["title", "authors", "year"]].tolist() == [10_000, 10_000, 9_979]
