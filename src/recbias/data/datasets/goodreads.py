"""Goodreads (UCSD Book Graph): shelves, ratings, books and reviews, by genre."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.arrays import Codes
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MalformedLine
from recbias.core.stage_context import warn
from recbias.data.datasets.dataset_folder import Folder, present
from recbias.data.datasets.goodreads_fields import (
    BOOK_MAP,
    INTERACTIONS_CSV,
    USER_MAP,
    author_fields,
    book_columns,
    book_fields,
    interaction_fields,
    review_fields,
)
from recbias.formats.delimited.layout import BadLines
from recbias.formats.encode_ids import encode, spread
from recbias.formats.json_lines import refuse_two_lines, times_of

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
"""A part of the graph that is published by itself; ``all`` is the whole."""


@dataclass(frozen=True, kw_only=True)
class Goodreads:
    """Goodreads (UCSD Book Graph): what readers shelved and rated, of one genre or of all.

    Items have ``title``, ``description``, ``year``, ``num_pages``, ``language``, ``publisher``,
    ``average_rating``, ``ratings_count``, ``shelves`` (the ten on which most readers put the
    book, as ``a|b``) and ``author_ids``, or ``authors`` with the side table. A rating of 0 means
    that a book was shelved and not rated. Interactions of books that are not in the file of books
    are left out and counted.

    Args:
        genre: Which part: ``children``, ``poetry`` and so on, or ``all``.
        form: Which file of interactions: ``json`` has times; ``csv`` is the summary of the whole
            graph, of which the genre's books are taken.
        unrated: Rows with rating 0: ``drop`` leaves them out and counts them, ``keep`` keeps them
            with the value 0 (a threshold filter then drops them; ``at_least: 0`` makes every
            shelved book a positive).
        side: ``authors`` reads the authors' names, ``reviews`` the review texts.
        bad_lines: ``error`` stops at a malformed line, ``skip`` leaves it out and counts it.

    Raises:
        MissingFile: ``recbias data fetch goodreads`` was not done.
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
        folder, sources = data / "goodreads", self._names()
        return [present([folder / name], fetch=fetch)[0] for name, fetch in sources.values()]

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        self.files(data)
        folder = Folder(data / "goodreads", self.bad_lines)
        names = {key: name for key, (name, _) in self._names().items()}
        books = folder.read_json(names["books"], book_fields()).table
        item_ids, (places,) = encode(books["book_id"])
        refuse_two_lines(places, item_ids, folder.path / names["books"])
        kept = _Kept(item_ids, drop_unrated=self.unrated == "drop")
        read = _summary if self.form == "csv" else _shelves
        rows = read(folder, names, kept)
        authors = None
        if "authors" in names:
            authors = folder.read_json(names["authors"], author_fields()).table
        columns = book_columns(books, authors)
        frame = {name: spread(places, each, len(item_ids)) for name, each in columns.items()}
        items = Attributes(item_ids, pd.DataFrame(frame), "item")
        reviews = None
        if "reviews" in names:
            reviews = _reviews(folder, names["reviews"], rows)
        kept.say(names["interactions"])
        return Dataset(rows, items=items, reviews=reviews, counts={**folder.counts, **kept.counts})

    def _names(self) -> dict[str, tuple[str, str]]:
        """Return each file's name, and the name under which it is fetched."""
        part = "" if self.genre == "all" else f"_{self.genre}"
        whole = "_dedup" if self.genre == "all" else part
        fetch = "goodreads" if self.genre == "children" else f"goodreads-{self.genre}"
        names = {"books": (f"goodreads_books{part}.json.gz", fetch)}
        if self.form == "csv":
            names["interactions"] = ("goodreads_interactions.csv", "goodreads-csv")
            names["user_map"] = ("user_id_map.csv", "goodreads-csv")
            names["book_map"] = ("book_id_map.csv", "goodreads-csv")
        else:
            names["interactions"] = (f"goodreads_interactions{whole}.json.gz", fetch)
        if "reviews" in self.side:
            names["reviews"] = (f"goodreads_reviews{whole}.json.gz", fetch)
        if "authors" in self.side:
            names["authors"] = ("goodreads_book_authors.json.gz", "goodreads-authors")
        return names


@dataclass
class _Kept:
    """Chooses the rows to keep, block by block, and counts the others."""

    items: Vocabulary
    drop_unrated: bool
    unknown: int = 0
    unrated: int = 0

    def of(self, table: Any) -> Any:
        """Return the rows of known books."""
        import pyarrow as pa
        import pyarrow.compute as pc

        known = pc.is_in(table["book_id"], value_set=pa.array(self.items.ids, pa.string()))
        return self.rated(table, known)

    def rated(self, table: Any, known: Any) -> Any:
        """Return the rows of books that are known, without the unrated ones if asked to."""
        kept = table.filter(known)
        self.unknown += table.num_rows - kept.num_rows
        if self.drop_unrated:
            rated = kept["rating"].to_numpy() > 0
            self.unrated += int(kept.num_rows - rated.sum())
            kept = kept.filter(rated)
        return kept

    @property
    def counts(self) -> dict[str, int]:
        return {"interactions_of_unknown_books": self.unknown, "unrated": self.unrated}

    def say(self, name: str) -> None:
        if self.unknown:
            warn(f"{name}: {self.unknown:,} row(s) of books outside the file of books left out")
        if self.unrated:
            warn(f"{name}: {self.unrated:,} row(s) without a rating left out")


def _shelves(folder: Folder, names: dict[str, str], kept: _Kept) -> Interactions:
    """Return the interactions of the JSON form."""
    name = names["interactions"]
    table = folder.read_json(name, interaction_fields(), keep=kept.of).table
    user_ids, (users,) = encode(table["user_id"])
    items = kept.items.find(np.asarray(table["book_id"].to_numpy(), dtype=object))
    values = table["rating"].to_numpy().astype(np.float32)
    times = times_of(table["date_added"], name)
    return Interactions(users, items, values, times, user_ids, kept.items)


def _summary(folder: Folder, names: dict[str, str], kept: _Kept) -> Interactions:
    """Return the interactions of the CSV form, whose numbers stand for identifiers."""
    books = folder.read(names["book_map"], BOOK_MAP)
    code_of = np.full(int(books.numbers("book_id_csv").max(initial=-1)) + 2, -1, dtype=np.int32)
    code_of[books.numbers("book_id_csv")] = kept.items.find(books.texts("book_id"))

    def known(table: Any) -> Any:
        numbers = np.minimum(table["book_id"].to_numpy(), code_of.size - 1)
        return kept.rated(table, code_of[numbers] >= 0)

    rows = folder.read(names["interactions"], INTERACTIONS_CSV, keep=known)
    user_ids, users = _named_users(folder, names, rows.table["user_id"])
    items = code_of[rows.numbers("book_id")]
    return Interactions(users, items, rows.numbers("rating"), None, user_ids, kept.items)


def _named_users(folder: Folder, names: dict[str, str], rows: Any) -> tuple[Vocabulary, Codes]:
    users = folder.read(names["user_map"], USER_MAP)
    numbers, (codes, places) = encode(rows, users.table["user_id_csv"])
    named = spread(places, users.texts("user_id"), len(numbers))
    used = np.unique(codes)
    if any(named[each] is None for each in used):
        first = next(numbers.ids[each] for each in used if named[each] is None)
        where = str(folder.path / names["user_map"])
        raise MalformedLine(f"there is no user with the number {first}", where=where)
    return Vocabulary.ordered(named[used], np.searchsorted(used, codes))


def _reviews(folder: Folder, name: str, rows: Interactions) -> Reviews:
    """Return the reviews by users, and of books, of the interactions."""
    table = folder.read_json(name, review_fields()).table
    texts = np.asarray(table["review_text"].fill_null("").to_numpy(), dtype=object)
    users, items = (
        ids.find(np.asarray(table[key].to_numpy(), dtype=object))
        for ids, key in ((rows.user_ids, "user_id"), (rows.item_ids, "book_id"))
    )
    both = (users >= 0) & (items >= 0)
    if not both.all():
        warn(f"{name}: {int((~both).sum()):,} review(s) by others or of other books left out")
    return Reviews(users[both], items[both], texts[both])
