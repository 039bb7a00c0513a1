"""goodbooks-10k: ratings of the 10,000 most rated books on Goodreads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import annotated_types
import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Ids
from recbias.core.dataset.attributes import SEPARATOR
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.data.datasets.dataset_folder import Folder, find_folder, require_files
from recbias.formats.delimited import BadLines, Layout, Rows, refuse_repeats
from recbias.formats.encode_ids import align_columns, encode

NAME = "goodbooks-10k"
RATINGS = Layout(columns={"user_id": "int32", "book_id": "int32", "rating": "float32"})
BOOKS = Layout(
    columns={
        "book_id": "int32",
        "goodreads_book_id": "int32",
        "authors": "text",
        "original_publication_year": "float64",
        "original_title": "text",
        "title": "text",
        "language_code": "text",
        "average_rating": "float64",
        "ratings_count": "float64",
    },
    quoted=True,
)
BOOK_TAGS = Layout(columns={"goodreads_book_id": "int32", "tag_id": "int32", "count": "int32"})
TAGS = Layout(columns={"tag_id": "int32", "tag_name": "text"}, quoted=True)


@dataclass(frozen=True, kw_only=True)
class Goodbooks10K:
    """goodbooks-10k: 5,976,479 ratings of 10,000 books by 53,424 users.

    Items have ``title``, ``original_title``, ``authors`` (``A|B``), ``year``, ``language``,
    ``average_rating`` and ``ratings_count``. The ratings have no times.

    Args:
        side: ``tags`` adds the most frequent tags of each book, as ``a|b``.
        top_tags: Number of tags of a book.
        bad_lines: ``error`` stops at a malformed line, ``skip`` skips and counts it.

    Raises:
        MissingFile: A file is missing; ``recbias data fetch goodbooks-10k`` downloads it.
        MalformedLine: A line does not have the published layout.

    Source:
        Zajac, "Goodbooks-10k: a new dataset for book recommendations", FastML, 2017.
    """

    side: tuple[Literal["tags"], ...] = ()
    top_tags: Annotated[int, annotated_types.Gt(0)] = 10
    bad_lines: BadLines = "error"

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return frozenset({"train", "items"})

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        names = ["ratings.csv", "books.csv", *(("book_tags.csv", "tags.csv") if self.side else ())]
        return require_files([_find_folder(data) / name for name in names], fetch=NAME)

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        self.files(data)
        folder = Folder(_find_folder(data), self.bad_lines)
        ratings = folder.read("ratings.csv", RATINGS)
        books = folder.read("books.csv", BOOKS)
        user_ids, (users,) = encode(ratings.table["user_id"])
        item_ids, (items, book_codes) = encode(ratings.table["book_id"], books.table["book_id"])
        refuse_repeats(folder.path / "books.csv", BOOKS, book_codes, item_ids)
        columns = _build_columns(books)
        if self.side:
            columns["tags"] = _read_tags(folder, books.numbers("goodreads_book_id"), self.top_tags)
        attributes = align_columns(book_codes, columns, item_ids, "item")
        values = ratings.numbers("rating")
        rows = Interactions(users, items, values, None, user_ids, item_ids)
        return Dataset(rows, items=attributes, counts=folder.counts)


def _find_folder(data: Path) -> Path:
    return find_folder(NAME, data, holds="ratings.csv", inner=NAME)


def _build_columns(books: Rows) -> dict[str, AnyArray]:
    authors = pd.Series(books.texts("authors"), dtype=object)
    return {
        "title": books.texts("title"),
        "original_title": books.texts("original_title"),
        "authors": authors.str.replace(r", *", SEPARATOR, regex=True).to_numpy(dtype=object),
        "year": books.numbers("original_publication_year"),
        "language": books.texts("language_code"),
        "average_rating": books.numbers("average_rating"),
        "ratings_count": books.numbers("ratings_count"),
    }


def _read_tags(folder: Folder, books: AnyArray, n_tags: int) -> Ids:
    """Return the ``n_tags`` most frequent tags of each book, the most frequent first."""
    frame: pd.DataFrame = folder.read("book_tags.csv", BOOK_TAGS).table.to_pandas()
    rows = folder.read("tags.csv", TAGS)
    tags = pd.Series(rows.texts("tag_name"), index=rows.numbers("tag_id"), dtype=object)
    frame["tag"] = frame["tag_id"].map(tags[~tags.index.duplicated()]).astype(object)
    frame["tag"] = frame["tag"].str.replace(SEPARATOR, "/", regex=False)
    frame = frame.dropna().sort_values("count", ascending=False, kind="stable")
    frame = frame.drop_duplicates(["goodreads_book_id", "tag"])
    top = frame.groupby("goodreads_book_id").head(n_tags).groupby("goodreads_book_id")["tag"]
    joined: pd.Series[Any] = top.agg(SEPARATOR.join).reindex(books)
    return joined.where(joined.notna(), None).to_numpy(dtype=object)
