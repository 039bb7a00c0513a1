"""Write files in the layout and size of the children's books of Goodreads, with generated content.

The files are ``goodreads_books_children.json.gz``, ``goodreads_interactions_children.json.gz`` and
``goodreads_book_authors.json.gz``, with every field of the published lines, so that reading,
filtering and training can be measured without the real files. Readers shelve books of their own
reading age more often than others, and books in order of a Zipf-like popularity; a share of the
shelved books is not rated. Descriptions are made of invented sentences with first names.

    python benchmarks/goodreads_files.py FOLDER [--scale 1.0] [--seed 1]

FOLDER/goodreads receives the files, so that FOLDER is what ``--data`` takes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

READERS, BOOKS, SHELVED = 542_145, 124_082, 10_059_349
AUTHORS = 55_000
AGES = 12
"""The reading ages; a reader's books are mostly of the reader's own age."""

RATINGS = np.array([0.27, 0.01, 0.03, 0.14, 0.23, 0.32])
"""The shares of the ratings 0 (shelved only) to 5."""

SHIFT, EXPONENT, MOST_SHELVED = 20.0, 1.4, 5_000
"""The distribution of popularity, and the most books of a reader.

They are chosen so that ratings of 4 and 5 in the 20-core come close to the published counts:
43,294 users, 14,935 books, 2,483,230 interactions.
"""

BLOCK = 250_000
FIRST_NAMES = (
    *("Anna", "Emily", "Clara", "Betty", "Laura", "Maria", "Sophie", "Julia", "Rosa", "Ellen"),
    *("Tom", "Peter", "Henry", "Jack", "Oscar", "Felix", "Arthur", "David", "Simon", "Walter"),
)
SURNAMES = ("Berg", "Marsh", "Holt", "Lund", "Vance", "Pryor", "Quill", "Dunn", "Thorne", "Wray")
THINGS = ("a lantern", "a map", "an old kite", "the lost boat", "a drum", "seven eggs", "a bell")
PLACES = ("the harbour", "the attic", "a quiet hill", "the mill", "the orchard", "the station")
DATES = tuple(
    f"{weekday} {month} {day:02d} 12:34:56 -0800 {year}"
    for year in range(2008, 2018)
    for month, day, weekday in (("Jan", 7, "Mon"), ("Mar", 5, "Sun"), ("Aug", 19, "Fri"))
)


def draw_activity(rng: np.random.Generator, readers: int, shelved: int, most: int) -> np.ndarray:
    """Return how many books each reader shelves; most have few, and all together ``shelved``."""
    weights = rng.lognormal(0.0, 1.8, readers)
    counts = 1 + np.floor(weights / weights.sum() * (shelved - readers)).astype(np.int64)
    counts = np.minimum(counts, most)
    while missing := shelved - int(counts.sum()):
        np.add.at(counts, rng.integers(0, readers, missing), 1)
    return counts


def draw_books(rng: np.random.Generator, ages: np.ndarray, books: int) -> np.ndarray:
    """Return a book for each shelved book; two of three are of the reader's age."""
    per_age = books // AGES
    is_own = rng.random(ages.size) < 2 / 3
    age = np.where(is_own, ages, rng.integers(0, AGES, ages.size))
    # ranks with P(rank) ~ (rank + SHIFT)^-EXPONENT, by the inverse of the distribution function
    power = 1.0 - EXPONENT
    low, high = SHIFT**power, (per_age + SHIFT) ** power
    rank = (low + rng.random(ages.size) * (high - low)) ** (1.0 / power) - SHIFT
    return np.minimum(rank.astype(np.int64), per_age - 1) * AGES + age


def iterate_interactions(
    rng: np.random.Generator, readers: int, books: int, shelved: int
) -> Iterator[str]:
    """Yield the lines, reader by reader; no reader shelves a book twice."""
    ages = rng.integers(0, AGES, readers)
    activity = draw_activity(rng, readers, shelved, min(MOST_SHELVED, books // 4))
    users = np.repeat(np.arange(readers), activity)
    chosen = draw_books(rng, ages[users], books)
    for _ in range(50):
        keys = users * books + chosen
        order = np.argsort(keys, kind="stable")
        repeated = order[1:][keys[order][1:] == keys[order][:-1]]
        if not repeated.size:
            break
        chosen[repeated] = rng.integers(0, books, repeated.size)
    ratings = rng.choice(RATINGS.size, users.size, p=RATINGS)
    columns = zip(users.tolist(), chosen.tolist(), ratings.tolist(), strict=True)
    for user, book, rating in columns:
        date = DATES[(user + book) % len(DATES)]
        is_read = "true" if rating else "false"
        yield (
            f'{{"user_id": "{user * 2654435761 % 2**32:08x}{user:024x}", "book_id": "{book + 1}", '
            f'"review_id": "{book:08x}{user:024x}", "is_read": {is_read}, "rating": {rating}, '
            f'"review_text_incomplete": "", "date_added": "{date}", "date_updated": "{date}", '
            f'"read_at": "", "started_at": ""}}\n'
        )


def describe_book(rng: np.random.Generator, author: str) -> str:
    """Return a description of a few sentences with first names, and at times the author's name."""
    names = [FIRST_NAMES[code] for code in rng.integers(0, len(FIRST_NAMES), 3)]
    things = [THINGS[code] for code in rng.integers(0, len(THINGS), 3)]
    places = [PLACES[code] for code in rng.integers(0, len(PLACES), 3)]
    sentences = [
        f"{names[0]} finds {things[0]} at {places[0]}.",
        f"With {names[1]} the search for {things[1]} begins, from {places[1]} to {places[2]}.",
        f"Only {names[2]} {SURNAMES[rng.integers(len(SURNAMES))]} knows why {things[2]} is there.",
        f"A story by {author} for young readers.",
    ]
    return " ".join(sentences[: rng.integers(0, len(sentences) + 1)])


def iterate_books(rng: np.random.Generator, books: int, authors: list[str]) -> Iterator[str]:
    """Yield the lines of the books, with the published fields."""
    for book in range(books):
        code = int(rng.integers(len(authors)))
        record: dict[str, Any] = {
            "isbn": f"{book:010d}",
            "text_reviews_count": "7",
            "series": [],
            "country_code": "US",
            "language_code": "eng",
            "popular_shelves": [
                {"count": str(90 - shelf), "name": f"shelf-{(book + 7 * shelf) % 60}"}
                for shelf in range(12)
            ],
            "asin": "",
            "is_ebook": "false",
            "average_rating": "4.03",
            "kindle_asin": "",
            "similar_books": [str(book + 2), str(book + 3)],
            "description": describe_book(rng, authors[code]),
            "format": "Hardcover",
            "link": f"https://www.example.org/book/{book + 1}",
            "authors": [{"author_id": str(code + 1), "role": ""}],
            "publisher": "",
            "num_pages": "32",
            "publication_day": "1",
            "isbn13": f"{book:013d}",
            "publication_month": "9",
            "edition_information": "",
            "publication_year": str(1950 + book % 68),
            "url": f"https://www.example.org/book/{book + 1}",
            "image_url": "",
            "book_id": str(book + 1),
            "ratings_count": "120",
            "work_id": str(book + 1),
            "title": f"Book {book + 1}",
            "title_without_series": f"Book {book + 1}",
        }
        yield json.dumps(record) + "\n"


def write_lines(path: Path, lines: Iterator[str]) -> None:
    with gzip.open(path, "wb", compresslevel=1) as stream:
        block: list[str] = []
        for line in lines:
            block.append(line)
            if len(block) == BLOCK:
                stream.write("".join(block).encode())
                block.clear()
        stream.write("".join(block).encode())


def write_files(data: Path, scale: float, seed: int) -> None:
    """Write the three files; ``scale`` multiplies the numbers of readers, books and lines."""
    folder = data / "goodreads"
    folder.mkdir(parents=True, exist_ok=True)
    readers, books, shelved = (max(AGES, round(scale * n)) for n in (READERS, BOOKS, SHELVED))
    rng = np.random.default_rng(seed)
    authors = [
        f"{FIRST_NAMES[code % len(FIRST_NAMES)]} {SURNAMES[code % len(SURNAMES)]}son {code}"
        for code in range(max(1, round(scale * AUTHORS)))
    ]
    write_lines(
        folder / "goodreads_book_authors.json.gz",
        (
            json.dumps({"author_id": str(code + 1), "name": name, "ratings_count": "9"}) + "\n"
            for code, name in enumerate(authors)
        ),
    )
    write_lines(folder / "goodreads_books_children.json.gz", iterate_books(rng, books, authors))
    lines = iterate_interactions(rng, readers, books, shelved)
    write_lines(folder / "goodreads_interactions_children.json.gz", lines)
    print(f"{readers:,} readers, {books:,} books, {shelved:,} shelved books in {folder}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    began = time.perf_counter()
    write_files(arguments.folder, arguments.scale, arguments.seed)
    print(f"written in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
