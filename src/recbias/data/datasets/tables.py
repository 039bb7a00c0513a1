"""Your own tables: interactions, items, users and reviews, each in a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from recbias.core.arrays import Codes
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MalformedLine, NothingLeft
from recbias.core.protocols import InputFile
from recbias.core.stage_context import warn
from recbias.formats.delimited.layout import BadLines
from recbias.formats.encode_ids import encode, repeats, spread
from recbias.formats.tables import TableFile, Wanted, named_file, read_file, typed
from recbias.formats.timestamps import is_blank, to_seconds
from recbias.formats.tool_tables import read_interactions

INTERACTIONS = Wanted(
    needed={"user_id": "id", "item_id": "id"},
    optional={"rating": "float32", "timestamp": "text"},
)
USERS = Wanted(needed={"user_id": "id"}, others=True)
ITEMS = Wanted(needed={"item_id": "id"}, others=True)
REVIEWS = Wanted(needed={"user_id": "id", "item_id": "id", "text": "text"})
Reader = Callable[..., TableFile]


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Your own data: tables of interactions, items, users and reviews; any may be left out.

    Tables are ``.csv``, ``.tsv`` (also with ``.gz``) or ``.parquet``, in UTF-8. Identifiers are
    kept exactly as written. The users and items of the dataset are those of the interactions,
    users and items together.

    Reviews by other users, or of other items, are left out and counted. A model learns from those
    whose user has an interaction with the item in the training part. Where no interactions are
    named the reviews are the interactions, each of which counts 1, and their users and items are
    the dataset's: so it is for reviews by people of whom nothing else is known.

    Interactions may also be a file of RecBole's, whose header names types (``user_id:token``), or
    of Elliot's: user, item, rating and perhaps timestamp between tabs, without a header. The first
    line shows it.

    Args:
        interactions: ``user_id``, ``item_id`` and, where there are any, ``rating`` and
            ``timestamp`` (seconds since 1970, or ISO 8601). Without a rating each row counts 1.
        items: ``item_id`` and any columns: a column of numbers is numeric, any other is text, in
            which ``a|b|c`` holds several values. Codes with leading zeros are text.
        users: ``user_id`` and any columns, likewise.
        reviews: ``user_id``, ``item_id`` and ``text``; an empty text is an empty review.
        bad_lines: ``error`` stops at a malformed line, ``skip`` leaves it out and counts it.

    Raises:
        MissingFile: A table is not there.
        UnknownColumn: A table lacks the column of its identifiers, or reviews that of their text.
        MalformedLine: A row does not fit, or an item or user has two rows.
        NothingLeft: Every review is by a user or of an item that the other tables do not have.
    """

    interactions: InputFile | None = None
    items: InputFile | None = None
    users: InputFile | None = None
    reviews: InputFile | None = None
    bad_lines: BadLines = "error"

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads: those whose table is named."""
        parts = {
            "train": self.interactions or self.reviews,
            "items": self.items,
            "users": self.users,
            "reviews": self.reviews,
        }
        return frozenset(name for name, path in parts.items() if path is not None)

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        paths = (self.interactions, self.items, self.users, self.reviews)
        return [named_file(each) for each in paths if each is not None]

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the tables."""
        given = self._read(self.interactions, INTERACTIONS, read_interactions)
        users, items = self._read(self.users, USERS), self._read(self.items, ITEMS)
        reviews = self._read(self.reviews, REVIEWS)
        times = None
        if given and "timestamp" in given.rows.table.column_names:
            given, times = _timed(given, self.bad_lines)
        rows = given or reviews
        user_ids, by, user_places = _codes(rows, users, "user_id")
        item_ids, of, item_places = _codes(rows, items, "item_id")
        read = [each for each in (given, users, items, reviews) if each]
        return Dataset(
            Interactions(by, of, _values(rows, by.size), times, user_ids, item_ids),
            _attributes(users, user_places, user_ids),
            _attributes(items, item_places, item_ids),
            _reviews(reviews, user_ids, item_ids),
            counts={"bad_lines": sum(each.rows.bad_lines for each in read)},
        )

    def _read(
        self, path: Path | None, wanted: Wanted, read: Reader = read_file
    ) -> TableFile | None:
        if path is None:
            return None
        table = read(path, wanted, bad_lines=self.bad_lines)
        if not len(table.rows):
            warn(f"{path.name} has no rows")
        return table


def _timed(
    table: TableFile, bad_lines: BadLines
) -> tuple[TableFile, npt.NDArray[np.int64] | None]:
    """Return the rows that have a time, and the times; None where no row of the column has one."""
    stamps = table.rows.table["timestamp"]
    if is_blank(stamps):
        return table, None
    times, wrong = to_seconds(stamps)
    problem = "timestamp is neither seconds since 1970 nor an ISO 8601 date"
    return table.without(wrong, problem, bad_lines), times[~wrong]


def _codes(
    rows: TableFile | None, about: TableFile | None, name: str
) -> tuple[Vocabulary, Codes, Codes]:
    """Return the identifiers of both tables, the code of each interaction and of each row."""
    import pyarrow as pa

    none = pa.array([], pa.string())
    columns = [table.rows.table[name] if table else none for table in (rows, about)]
    ids, (codes, places) = encode(*columns)
    if about:
        first, again = repeats(places)
        if again >= 0:
            found = f"{name} {str(ids.ids[places[again]])!r} has a row already"
            remedy = f"keep one row; the other is at {about.where(first)}"
            raise MalformedLine(found, where=about.where(again), remedy=remedy)
    return ids, codes, places


def _values(rows: TableFile | None, n: int) -> npt.NDArray[np.float32]:
    if rows and "rating" in rows.rows.table.column_names:
        return rows.rows.numbers("rating")
    return np.ones(n, dtype=np.float32)


def _attributes(table: TableFile | None, places: Codes, ids: Vocabulary) -> Attributes | None:
    """Return what a table of users or items says of each identifier."""
    if table is None:
        return None
    key, *names = table.rows.table.column_names
    columns: dict[str, Any] = {
        name: spread(places, typed(table.rows.table[name]), len(ids)) for name in names
    }
    frame = pd.DataFrame(columns, index=range(len(ids)))
    return Attributes(ids, frame, key.removesuffix("_id"))


def _reviews(
    table: TableFile | None, user_ids: Vocabulary, item_ids: Vocabulary
) -> Reviews | None:
    """Return the reviews by users, and of items, of the dataset."""
    import pyarrow as pa

    if table is None:
        return None
    by, of, texts = (table.rows.table[name] for name in REVIEWS.needed)
    if not pa.types.is_string(texts.type):
        found, where = "is a column of numbers, not of text", f"{table.path}: text"
        raise MalformedLine(found, where=where, remedy="write the reviews as text")
    users = user_ids.find(np.asarray(by.to_numpy(), dtype=object))
    items = item_ids.find(np.asarray(of.to_numpy(), dtype=object))
    both = (users >= 0) & (items >= 0)
    if both.size and not both.any():
        found = "every review is by a user, or of an item, that the other tables do not have"
        remedy = (
            "compare the identifiers, or leave interactions out: reviews then are interactions"
        )
        raise NothingLeft(found, where=f"{table.path}", remedy=remedy)
    if not both.all():
        left_out = int(np.count_nonzero(~both))
        warn(f"{table.path.name}: {left_out:,} review(s) by others or of other items left out")
    return Reviews(users[both], items[both], np.asarray(texts.to_numpy(), dtype=object)[both])
