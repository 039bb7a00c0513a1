"""Goodreads (UCSD Book Graph): shelves, ratings, books and reviews, by genre."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.arrays import Codes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MalformedLine
from recbias.core.stage_context import warn
from recbias.data.datasets.dataset_folder import Folder, require_files
from recbias.data.datasets.goodreads_fields import (
    AUTHOR,
    BOOK,
    BOOK_MAP,
    INTERACTION,
    INTERACTIONS_CSV,
    REVIEW,
    USER_MAP,
    build_book_columns,
)
from recbias.formats.delimited import BadLines
from recbias.formats.encode_ids import align_columns, encode, scatter
from recbias.formats.json_files import to_times, validate_unique_lines

Genre: TypeAlias = Literal[
    "all",
    "children",
    "comics_graphic",
    "fantasy_paranormal",
    "history_biography",
    "mystery_thriller_crime",
    "poetry",
    "romance",
    "young_adult",
]
"""A genre that is published separately; ``all`` is the full graph."""


@dataclass(frozen=True, kw_only=True)
class Goodreads:
    """Goodreads (UCSD Book Graph): books that readers shelved and rated, of one genre or all.

    Items have ``title``, ``description``, ``year``, ``num_pages``, ``language``, ``publisher``,
    ``average_rating``, ``ratings_count``, ``shelves`` (the ten most frequent shelves of the book,
    as ``a|b``) and ``author_ids``, or ``authors`` with the side table. A rating of 0 means that a
    book was shelved but not rated. Interactions with books that the file of books lacks are
    excluded and counted.

    Args:
        genre: The genre: ``children``, ``poetry`` and so on, or ``all``.
        form: The file of interactions: ``json`` has times; ``csv`` is the summary of the full
            graph, restricted to the books of the genre.
        unrated: Rows with rating 0: ``drop`` excludes and counts them, ``keep`` keeps them with
            the value 0 (a threshold filter then drops them; ``at_least: 0`` makes every shelved
            book a positive).
        side: ``authors`` reads the authors' names, ``reviews`` the review texts.
        bad_lines: ``error`` stops at a malformed line, ``skip`` skips and counts it.

    Raises:
        MissingFile: A file is missing; ``recbias data fetch goodreads`` downloads it.
        MalformedLine: A line does not have the published layout.

    Source:
        Wan and McAuley, "Item Recommendation on Monotonic Behavior Chains", RecSys 2018; Wan,
        Misra, Nakashole and McAuley, "Fine-Grained Spoiler Detection from Large-Scale Review
        Corpora", ACL 2019.
    """

    genre: Genre = "children"
    form: Literal["json", "csv"] = "json"
    unrated: Literal["drop", "keep"] = "drop"
    side: tuple[Literal["authors", "reviews"], ...] = ()
    bad_lines: BadLines = "error"

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return frozenset({"train", "items"} | ({"reviews"} & set(self.side)))

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        folder, sources = data / "goodreads", self._list_files()
        return [require_files([folder / name], fetch=fetch)[0] for name, fetch in sources.values()]

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        self.files(data)
        folder = Folder(data / "goodreads", self.bad_lines)
        names = {key: name for key, (name, _) in self._list_files().items()}
        books = folder.read(names["books"], BOOK).table
        item_ids, (book_codes,) = encode(books["book_id"])
        validate_unique_lines(book_codes, item_ids, folder.path / names["books"])
        row_filter = _RowFilter(item_ids, drop_unrated=self.unrated == "drop")
        read_rows = _read_csv if self.form == "csv" else _read_json
        rows = read_rows(folder, names, row_filter)
        authors = None
        if "authors" in names:
            authors = folder.read(names["authors"], AUTHOR).table
        items = align_columns(book_codes, build_book_columns(books, authors), item_ids, "item")
        reviews = _read_reviews(folder, names["reviews"], rows) if "reviews" in names else None
        counts = folder.counts | row_filter.report(names["interactions"])
        return Dataset(rows, items=items, reviews=reviews, counts=counts)

    def _list_files(self) -> dict[str, tuple[str, str]]:
        """Return the name of each file, and the name under which it is fetched."""
        suffix = "" if self.genre == "all" else f"_{self.genre}"
        rows_suffix = suffix or "_dedup"
        fetch = "goodreads" if self.genre == "children" else f"goodreads-{self.genre}"
        names = {"books": (f"goodreads_books{suffix}.json.gz", fetch)}
        if self.form == "csv":
            names["interactions"] = ("goodreads_interactions.csv", "goodreads-csv")
            names["user_map"] = ("user_id_map.csv", "goodreads-csv")
            names["book_map"] = ("book_id_map.csv", "goodreads-csv")
        else:
            names["interactions"] = (f"goodreads_interactions{rows_suffix}.json.gz", fetch)
        if "reviews" in self.side:
            names["reviews"] = (f"goodreads_reviews{rows_suffix}.json.gz", fetch)
        if "authors" in self.side:
            names["authors"] = ("goodreads_book_authors.json.gz", "goodreads-authors")
        return names


@dataclass
class _RowFilter:
    """Selects rows block by block and counts the excluded rows."""

    items: Vocabulary
    drop_unrated: bool
    n_unknown: int = 0
    n_unrated: int = 0

    def filter_rows(self, table: Any, is_known: Any) -> Any:
        """Return the rows of known books, without unrated rows if those are dropped."""
        rows = table.filter(is_known)
        self.n_unknown += table.num_rows - rows.num_rows
        if self.drop_unrated:
            is_rated = rows["rating"].to_numpy() > 0
            self.n_unrated += int(rows.num_rows - is_rated.sum())
            rows = rows.filter(is_rated)
        return rows

    def report(self, name: str) -> dict[str, int]:
        if self.n_unknown:
            warn(f"{name}: excluded {self.n_unknown:,} row(s) of books not in the file of books")
        if self.n_unrated:
            warn(f"{name}: excluded {self.n_unrated:,} row(s) without a rating")
        return {"interactions_of_unknown_books": self.n_unknown, "unrated": self.n_unrated}


def _read_json(folder: Folder, names: dict[str, str], row_filter: _RowFilter) -> Interactions:
    name = names["interactions"]
    known_ids = pa.array(row_filter.items.ids, pa.string())

    def filter_ids(table: Any) -> Any:
        return row_filter.filter_rows(table, pc.is_in(table["book_id"], value_set=known_ids))

    table = folder.read(name, INTERACTION, keep=filter_ids).table
    user_ids, (users,) = encode(table["user_id"])
    items = row_filter.items.find(np.asarray(table["book_id"].to_numpy(), dtype=object))
    values = table["rating"].to_numpy().astype(np.float32)
    times = to_times(table["date_added"], name)
    return Interactions(users, items, values, times, user_ids, row_filter.items)


def _read_csv(folder: Folder, names: dict[str, str], row_filter: _RowFilter) -> Interactions:
    """Return the interactions of the CSV form, which maps numbers to identifiers."""
    books = folder.read(names["book_map"], BOOK_MAP)
    numbers = books.numbers("book_id_csv")
    codes = np.full(int(numbers.max(initial=-1)) + 2, -1, dtype=np.int32)
    codes[numbers] = row_filter.items.find(books.texts("book_id"))

    def filter_numbers(table: Any) -> Any:
        book_numbers = np.minimum(table["book_id"].to_numpy(), codes.size - 1)
        return row_filter.filter_rows(table, codes[book_numbers] >= 0)

    rows = folder.read(names["interactions"], INTERACTIONS_CSV, keep=filter_numbers)
    user_ids, users = _map_users(folder, names["user_map"], rows.table["user_id"])
    items = codes[rows.numbers("book_id")]
    return Interactions(users, items, rows.numbers("rating"), None, user_ids, row_filter.items)


def _map_users(folder: Folder, name: str, users: Any) -> tuple[Vocabulary, Codes]:
    """Return the identifiers of the users, and the code of each row."""
    user_map = folder.read(name, USER_MAP)
    numbers, (codes, map_codes) = encode(users, user_map.table["user_id_csv"])
    ids = scatter(map_codes, user_map.texts("user_id"), len(numbers))
    used_codes = np.unique(codes)
    if unnamed := [code for code in used_codes if ids[code] is None]:
        message = f"there is no user with the number {numbers.ids[unnamed[0]]}"
        raise MalformedLine(message, where=str(folder.path / name))
    return Vocabulary.ordered(ids[used_codes], np.searchsorted(used_codes, codes))


def _read_reviews(folder: Folder, name: str, rows: Interactions) -> Reviews:
    table = folder.read(name, REVIEW).table
    texts = np.asarray(table["review_text"].fill_null("").to_numpy(), dtype=object)
    users = rows.user_ids.find(np.asarray(table["user_id"].to_numpy(), dtype=object))
    items = rows.item_ids.find(np.asarray(table["book_id"].to_numpy(), dtype=object))
    is_known = (users >= 0) & (items >= 0)
    if n_excluded := int((~is_known).sum()):
        warn(f"{name}: excluded {n_excluded:,} review(s) by other users or of other books")
    return Reviews(users[is_known], items[is_known], texts[is_known])
