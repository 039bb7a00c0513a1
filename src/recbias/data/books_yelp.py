"""goodbooks-10k, Goodreads (UCSD Book Graph) and Yelp."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import annotated_types
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.context import warn
from recbias.core.dataset import (
    SEPARATOR,
    AnyArray,
    Attributes,
    Codes,
    Dataset,
    Ids,
    Interactions,
    Reviews,
    Vocabulary,
)
from recbias.core.errors import MalformedLine, NothingLeft
from recbias.core.text import suggest
from recbias.data.declared import Declared, Folder, find_packed, join_lists, require_files
from recbias.formats.delimited import (
    BadLines,
    Layout,
    align_columns,
    encode,
    scatter,
)
from recbias.formats.json_files import (
    Fields,
    to_texts,
    to_times,
    validate_unique_lines,
)

_BOOK_TAGS = Layout(columns={"goodreads_book_id": "int32", "tag_id": "int32", "count": "int32"})
_TAGS = Layout(columns={"tag_id": "int32", "tag_name": "text"}, quoted=True)


@dataclass(frozen=True, kw_only=True)
class Goodbooks10K(Declared, declaration="goodbooks-10k"):
    """goodbooks-10k."""

    side: tuple[Literal["tags"], ...] = ()
    top_tags: Annotated[int, annotated_types.Gt(0)] = 10

    def list_files(self) -> list[str]:
        """Return the names of the files that the settings need."""
        return [*super().list_files(), *(("book_tags.csv", "tags.csv") if self.side else ())]

    def read_columns(self, folder: Folder, data: Path, items: Attributes) -> dict[str, AnyArray]:
        """Return the ``top_tags`` most frequent tags of each book, the most frequent first."""
        if not self.side:
            return {}
        frame: pd.DataFrame = folder.read("book_tags.csv", _BOOK_TAGS).table.to_pandas()
        rows = folder.read("tags.csv", _TAGS)
        tags = pd.Series(rows.texts("tag_name"), index=rows.numbers("tag_id"), dtype=object)
        frame["tag"] = frame["tag_id"].map(tags[~tags.index.duplicated()]).astype(object)
        frame["tag"] = frame["tag"].str.replace(SEPARATOR, "/", regex=False)
        frame = frame.dropna().sort_values("count", ascending=False, kind="stable")
        frame = frame.drop_duplicates(["goodreads_book_id", "tag"])
        groups = frame.groupby("goodreads_book_id").head(self.top_tags)
        joined: pd.Series[Any] = groups.groupby("goodreads_book_id")["tag"].agg(SEPARATOR.join)
        joined = joined.reindex(items.frame["goodreads_book_id"])
        return {"tags": joined.where(joined.notna(), None).to_numpy(dtype=object)}


_INTERACTIONS_CSV = Layout(columns={"user_id": "int32", "book_id": "int32", "rating": "float32"})
_USER_MAP = Layout(columns={"user_id_csv": "int32", "user_id": "id"})
_BOOK_MAP = Layout(columns={"book_id_csv": "int32", "book_id": "id"})

_BOOK_TEXTS = ("title", "description", "publisher", "language_code")
_BOOK_NUMBERS = ("publication_year", "num_pages", "average_rating", "ratings_count")
"""Numbers that are published as text, empty if unknown."""
_RENAMED = {"publication_year": "year", "language_code": "language"}
_N_SHELVES = 10

_DATE = r"^[A-Z][a-z]{2} [A-Z][a-z]{2} \d{2} \d{2}:\d{2}:\d{2} [+-]\d{4} \d{4}$"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def parse_dates(dates: Any) -> Any:
    """Parse ``Fri Sep 08 10:44:24 -0700 2017`` to seconds since 1970; other text becomes null.

    >>> import pyarrow as pa
    >>> parse_dates(pa.chunked_array([["Thu Jan 01 01:00:05 +0100 1970", "x"]])).to_pylist()
    [5, None]
    """
    is_date = pc.match_substring_regex(dates, _DATE)
    texts = pc.if_else(is_date, dates, pa.scalar(None, pa.string()))

    def cut(start: int, stop: int) -> Any:
        return pc.utf8_slice_codeunits(texts, start, stop)

    numbers = pa.array([f"{month:02d}" for month in range(1, 13)])
    month = numbers.take(pc.index_in(cut(4, 7), value_set=pa.array(_MONTHS)).combine_chunks())
    iso = pc.binary_join_element_wise(cut(26, 30), month, cut(8, 10), cut(11, 19), "-")
    times = pc.strptime(iso, format="%Y-%m-%d-%H:%M:%S", unit="s", error_is_null=True)
    hours, minutes = (cut(start, start + 2).cast(pa.int64()) for start in (21, 23))
    offset = pc.add(pc.multiply(hours, 3600), pc.multiply(minutes, 60))
    signed_offset = pc.if_else(pc.equal(cut(20, 21), "-"), pc.negate(offset), offset)
    return pc.subtract(times.cast(pa.int64()), signed_offset)


BOOK = Fields(
    types={
        **dict.fromkeys(("book_id", *_BOOK_TEXTS, *_BOOK_NUMBERS), pa.string()),
        "popular_shelves": pa.list_(pa.struct([("name", pa.string())])),
        "authors": pa.list_(pa.struct([("author_id", pa.string())])),
    },
    needed=("book_id",),
)
_INTERACTION = Fields(
    types={
        **dict.fromkeys(("user_id", "book_id", "date_added"), pa.string()),
        "rating": pa.float64(),
    },
    needed=("user_id", "book_id", "rating"),
    times={"date_added": parse_dates},
)
_REVIEW = Fields(
    types=dict.fromkeys(("user_id", "book_id", "review_text"), pa.string()),
    needed=("user_id", "book_id"),
)
_AUTHOR = Fields(types=dict.fromkeys(("author_id", "name"), pa.string()), needed=("author_id",))


def build_book_columns(books: Any, authors: Any) -> dict[str, AnyArray]:
    """Return the columns of the table of items, without ``authors`` with their identifiers.

    Authors that the table of authors lacks are counted in a warning.
    """
    columns = {name: to_texts(books[name]) for name in _BOOK_TEXTS}
    for name in _BOOK_NUMBERS:
        texts = pd.Series(to_texts(books[name]), dtype=object)
        columns[name] = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64)
    columns["shelves"] = _join_field(books["popular_shelves"], "name")
    if authors is None:
        columns["author_ids"] = _join_field(books["authors"], "author_id")
    else:
        columns["authors"] = _join_field(books["authors"], "author_id", authors)
    return {_RENAMED.get(name, name): column for name, column in columns.items()}


def _join_field(lists: Any, name: str, names: Any = None) -> Ids:
    """Join a field of the first ten records of each list as ``a|b``."""
    records = pc.list_slice(pc.fill_null(lists.combine_chunks(), []), 0, _N_SHELVES)
    cells = pc.struct_field(records.flatten(), name)
    if names is not None:
        positions = pc.index_in(cells, value_set=names["author_id"].combine_chunks())
        _warn_about_unnamed(cells.filter(positions.is_null()).drop_null())
        cells = pc.coalesce(names["name"].combine_chunks().take(positions), cells)
    return to_texts(join_lists(cells, pc.list_value_length(records)))


def _warn_about_unnamed(author_ids: Any) -> None:
    if n_unnamed := len(author_ids.unique()):
        example = author_ids[0].as_py()
        message = f"the file of authors lacks {n_unnamed:,} of the authors ({example} for example)"
        warn(f"{message}: their identifiers stand for their names, which descriptions may hold")


_Genre: TypeAlias = Literal[
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

    genre: _Genre = "children"
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
            authors = folder.read(names["authors"], _AUTHOR).table
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

    table = folder.read(name, _INTERACTION, keep=filter_ids).table
    user_ids, (users,) = encode(table["user_id"])
    items = row_filter.items.find(np.asarray(table["book_id"].to_numpy(), dtype=object))
    values = table["rating"].to_numpy().astype(np.float32)
    times = to_times(table["date_added"], name)
    return Interactions(users, items, values, times, user_ids, row_filter.items)


def _read_csv(folder: Folder, names: dict[str, str], row_filter: _RowFilter) -> Interactions:
    """Return the interactions of the CSV form, which maps numbers to identifiers."""
    books = folder.read(names["book_map"], _BOOK_MAP)
    numbers = books.numbers("book_id_csv")
    codes = np.full(int(numbers.max(initial=-1)) + 2, -1, dtype=np.int32)
    codes[numbers] = row_filter.items.find(books.texts("book_id"))

    def filter_numbers(table: Any) -> Any:
        book_numbers = np.minimum(table["book_id"].to_numpy(), codes.size - 1)
        return row_filter.filter_rows(table, codes[book_numbers] >= 0)

    rows = folder.read(names["interactions"], _INTERACTIONS_CSV, keep=filter_numbers)
    user_ids, users = _map_users(folder, names["user_map"], rows.table["user_id"])
    items = codes[rows.numbers("book_id")]
    return Interactions(users, items, rows.numbers("rating"), None, user_ids, row_filter.items)


def _map_users(folder: Folder, name: str, users: Any) -> tuple[Vocabulary, Codes]:
    """Return the identifiers of the users, and the code of each row."""
    user_map = folder.read(name, _USER_MAP)
    numbers, (codes, map_codes) = encode(users, user_map.table["user_id_csv"])
    ids = scatter(map_codes, user_map.texts("user_id"), len(numbers))
    used_codes = np.unique(codes)
    if unnamed := [code for code in used_codes if ids[code] is None]:
        message = f"there is no user with the number {numbers.ids[unnamed[0]]}"
        raise MalformedLine(message, where=str(folder.path / name))
    return Vocabulary.ordered(ids[used_codes], np.searchsorted(used_codes, codes))


def _read_reviews(folder: Folder, name: str, rows: Interactions) -> Reviews:
    table = folder.read(name, _REVIEW).table
    texts = np.asarray(table["review_text"].fill_null("").to_numpy(), dtype=object)
    users = rows.user_ids.find(np.asarray(table["user_id"].to_numpy(), dtype=object))
    items = rows.item_ids.find(np.asarray(table["book_id"].to_numpy(), dtype=object))
    is_known = (users >= 0) & (items >= 0)
    if n_excluded := int((~is_known).sum()):
        warn(f"{name}: excluded {n_excluded:,} review(s) by other users or of other books")
    return Reviews(users[is_known], items[is_known], texts[is_known])


BUSINESS = "yelp_academic_dataset_business.json"
REVIEW_YELP = "yelp_academic_dataset_review.json"
_PRICE = r"^u?'?([1-4])'?$"
"""The price level as published: ``2``, or ``'2'`` in quotes."""

_BUSINESS_FIELDS = Fields(
    types={
        **dict.fromkeys(("business_id", "name", "city", "state", "categories"), pa.string()),
        **dict.fromkeys(("stars", "review_count"), pa.float64()),
        "attributes": pa.struct([("RestaurantsPriceRange2", pa.string())]),
    },
    needed=("business_id",),
)

_SIGNS = np.array([None, "$", "$$", "$$$", "$$$$"], dtype=object)


@dataclass(frozen=True, kw_only=True)
class Yelp:
    """Yelp Open Dataset: star ratings and reviews of businesses, with price levels.

    A review is an interaction (its stars are the value) and a review text. Items have ``name``,
    ``city``, ``state``, ``price`` (``$`` to ``$$$$``), ``price_level`` (1 to 4), ``categories``
    (``A|B``), ``stars`` and ``review_count``; a missing price or category is a missing cell.
    Reviews of businesses that the file of businesses lacks are excluded and counted. A review
    without stars is a review text but not an interaction.

    Args:
        city: Only businesses of this city; None for all.
        categories: Only businesses with at least one of these categories (``Restaurants``); None
            for all.
        reviews: Whether the review texts are read; without them much less memory is needed.
        folder: The folder below the data folder.
        bad_lines: ``error`` stops at a malformed line, ``skip`` skips and counts it.

    Raises:
        MissingFile: A file is missing; ``recbias data fetch yelp`` explains how to get it.
        NothingLeft: No business has the city or a category.
        MalformedLine: A line does not have the published layout.

    Source:
        Yelp Open Dataset, https://www.yelp.com/dataset (academic use, requires consent to terms).
    """

    city: str | None = None
    categories: tuple[str, ...] | None = None
    reviews: bool = True
    folder: str = "yelp"
    bad_lines: BadLines = "error"

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return frozenset({"train", "items", *(["reviews"] if self.reviews else [])})

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads: as published, or with ``.gz``."""
        paths = [find_packed(data / self.folder / name) for name in (BUSINESS, REVIEW_YELP)]
        return require_files(paths, fetch="yelp")

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        business, review = self.files(data)
        folder = Folder(business.parent, self.bad_lines)
        rows = folder.read(business.name, _BUSINESS_FIELDS)
        all_ids, (codes,) = encode(rows.table["business_id"])
        validate_unique_lines(codes, all_ids, business)
        items = self._select_businesses(_build_item_columns(rows.table), business)
        ids = rows.table["business_id"].take(items.index.to_numpy())
        n_excluded = 0

        def filter_reviews(table: Any) -> Any:
            nonlocal n_excluded
            retained = table.filter(pc.is_in(table["business_id"], value_set=ids))
            n_excluded += table.num_rows - retained.num_rows
            return retained

        fields = _list_review_fields(texts=self.reviews)
        reviews = folder.read(review.name, fields, keep=filter_reviews)
        counts = folder.counts
        if self.city is None and self.categories is None:
            counts["reviews_of_unknown_businesses"] = n_excluded
            if n_excluded:
                message = f"excluded {n_excluded:,} review(s) of businesses that are not listed"
                warn(f"{review.name}: {message}")
        return _build_dataset(reviews.table, ids, items, counts)

    def _select_businesses(self, items: pd.DataFrame, path: Path) -> pd.DataFrame:
        if self.city is not None:
            rows = items["city"].str.casefold() == self.city.casefold()
            if not rows.any():
                raise _refuse("city", self.city, items["city"], path)
            items = items[rows.to_numpy()]
        if self.categories is not None:
            cells = items["categories"].str.split(SEPARATOR, regex=False).explode()
            names = {name.casefold() for name in self.categories}
            index = cells.index[cells.str.casefold().isin(names)].unique()
            if index.empty:
                raise _refuse("category", " or ".join(self.categories), cells, path)
            items = items.loc[index]
        return items


def _refuse(column: str, value: str, cells: pd.Series[Any], path: Path) -> NothingLeft:
    remedy = suggest(value, cells.dropna().unique().tolist())
    return NothingLeft(f"no business has the {column} {value!r}", where=str(path), remedy=remedy)


def _list_review_fields(*, texts: bool) -> Fields:
    names = ("user_id", "business_id", "date", *(("text",) if texts else ()))
    return Fields(
        types={**dict.fromkeys(names, pa.string()), "stars": pa.float64()},
        needed=("user_id", "business_id"),
        times={"date": _parse_dates},
    )


def _parse_dates(dates: Any) -> Any:
    """Parse ``2019-05-25 15:54:00`` (UTC) to seconds since 1970; other text becomes null."""
    times = pc.strptime(dates, format="%Y-%m-%d %H:%M:%S", unit="s", error_is_null=True)
    return times.cast(pa.int64())


def _build_item_columns(table: Any) -> pd.DataFrame:
    texts = {name: to_texts(table[name]) for name in ("name", "city", "state", "categories")}
    prices = to_texts(pc.struct_field(table["attributes"], "RestaurantsPriceRange2"))
    level = pd.Series(prices, dtype=object).str.extract(_PRICE, expand=False).astype(float)
    categories = pd.Series(texts["categories"], dtype=object)
    categories = categories.str.replace(r",\s*", SEPARATOR, regex=True)
    columns = {
        **{name: texts[name] for name in ("name", "city", "state")},
        "price": _SIGNS[level.fillna(0).astype(int).to_numpy()],
        "price_level": level.to_numpy(),
        "categories": categories.where(categories.notna(), None),
        **{name: table[name].to_numpy() for name in ("stars", "review_count")},
    }
    return pd.DataFrame(columns)


def _build_dataset(reviews: Any, ids: Any, items: pd.DataFrame, counts: dict[str, int]) -> Dataset:
    user_ids, (users,) = encode(reviews["user_id"])
    item_ids, (reviewed, item_codes) = encode(reviews["business_id"], ids)
    rated = np.flatnonzero(reviews["stars"].is_valid().to_numpy())
    stars = reviews["stars"].to_numpy()[rated].astype(np.float32)
    times = to_times(reviews["date"].take(rated), "date")
    counts["reviews_without_stars"] = reviews.num_rows - rated.size
    columns = {str(name): items[name].to_numpy() for name in items}
    attributes = align_columns(item_codes, columns, item_ids, "item")
    review_texts = None
    if "text" in reviews.column_names:
        texts = np.asarray(reviews["text"].fill_null("").to_numpy(), dtype=object)
        review_texts = Reviews(users, reviewed, texts)
    rows = Interactions(users[rated], reviewed[rated], stars, times, user_ids, item_ids)
    return Dataset(rows, items=attributes, reviews=review_texts, counts=counts)
