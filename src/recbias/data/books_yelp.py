"""goodbooks-10k, Goodreads (UCSD Book Graph) and Yelp."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import annotated_types
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.context import warn
from recbias.core.dataset import SEPARATOR, AnyArray, Attributes, Dataset, Reviews
from recbias.core.errors import MalformedLine, NothingLeft
from recbias.core.text import suggest
from recbias.data.declared import Declared, Folder, require_files
from recbias.formats.delimited import Layout

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
        books = items.frame.pop("goodreads_book_id")
        if not self.side:
            return {}
        frame: pd.DataFrame = folder.read("book_tags.csv", _BOOK_TAGS).cells.to_pandas()
        rows = folder.read("tags.csv", _TAGS)
        tags = pd.Series(rows.optional("tag_name"), index=rows.numbers("tag_id"), dtype=object)
        frame["tag"] = frame["tag_id"].map(tags[~tags.index.duplicated()]).astype(object)
        frame["tag"] = frame["tag"].str.replace(SEPARATOR, "/", regex=False)
        frame = frame.dropna().sort_values("count", ascending=False, kind="stable")
        frame = frame.drop_duplicates(["goodreads_book_id", "tag"])
        groups = frame.groupby("goodreads_book_id").head(self.top_tags)
        joined: pd.Series[Any] = groups.groupby("goodreads_book_id")["tag"].agg(SEPARATOR.join)
        joined = joined.reindex(books)
        return {"tags": joined.where(joined.notna(), None).to_numpy(dtype=object)}


_MAPS = ("user_id", "book_id")
"""The columns of the files that map the numbers of the CSV form to identifiers."""
_REVIEW = pa.schema(dict.fromkeys(("user_id", "book_id", "review_text"), pa.string()))
_AUTHOR = pa.schema(dict.fromkeys(("author_id", "name"), pa.string()))
_AUTHORS = "goodreads_book_authors.json.gz"

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
class Goodreads(Declared, declaration="goodreads"):
    """Goodreads."""

    genre: _Genre = "children"
    form: Literal["json", "csv"] = "json"
    unrated: Literal["drop", "keep"] = "drop"
    side: tuple[Literal["authors", "reviews"], ...] = ()

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return super().gives() | ({"reviews"} & set(self.side))

    def list_files(self) -> list[str]:
        """Return the names of the files that the settings need."""
        maps = [f"{name}_map.csv" for name in _MAPS] if self.form == "csv" else []
        sides = {"authors": _AUTHORS, "reviews": self._name("goodreads_reviews<rows>.json.gz")}
        return [*super().list_files(), *maps, *(sides[name] for name in self.side)]

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        fetch = "goodreads" if self.genre == "children" else f"goodreads-{self.genre}"
        sources = {_AUTHORS: "goodreads-authors"} | {
            name: "goodreads-csv" for name in self.list_files() if name.endswith(".csv")
        }
        return [
            require_files([data / "goodreads" / name], fetch=sources.get(name, fetch))[0]
            for name in self.list_files()
        ]

    def read_tables(self) -> dict[str, Any]:
        """Return the tables of the genre."""
        tables = super().read_tables()
        return {
            name: replace(table, files=tuple(map(self._name, table.files)))
            for name, table in tables.items()
        }

    def _name(self, file: str) -> str:
        suffix = "" if self.genre == "all" else f"_{self.genre}"
        return file.replace("<books>", suffix).replace("<rows>", suffix or "_dedup")

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        dataset = super().load(data, rng)
        if "reviews" not in self.side:
            return dataset
        folder, rows = Folder(data / "goodreads", self.bad_lines), dataset.interactions
        name = self._name("goodreads_reviews<rows>.json.gz")
        table = folder.read(name, _REVIEW, needed=_REVIEW.names[:2]).cells
        users = rows.user_ids.find(np.asarray(table["user_id"].to_numpy(), dtype=object))
        items = rows.item_ids.find(np.asarray(table["book_id"].to_numpy(), dtype=object))
        known = np.flatnonzero((users >= 0) & (items >= 0))
        if n_excluded := users.size - known.size:
            warn(f"{name}: excluded {n_excluded:,} review(s) by other users or of other books")
        texts = np.asarray(table["review_text"].fill_null("").to_numpy(), dtype=object)
        reviews = Reviews(users[known], items[known], texts[known])
        n_bad = dataset.counts["bad_lines"] + folder.counts["bad_lines"]
        return replace(dataset, reviews=reviews, counts=dataset.counts | {"bad_lines": n_bad})

    def read_rows(self, table: Any, folder: Folder, items: Any) -> tuple[Any, dict[str, int]]:
        """Return the interactions; in the CSV form, numbers stand for the identifiers."""
        if self.form == "json":
            return super().read_rows(table, folder, items)
        users, books = (_read_map(folder, name) for name in _MAPS)
        listed = books.filter(pc.is_in(books["id"], value_set=pc.unique(items["item_id"])))
        numbers = pa.table({"item_id": listed["number"]})
        rows, counts = super().read_rows(table, folder, numbers)
        named = {}
        for name, ids in (("user_id", users), ("item_id", books)):
            position = pc.index_in(rows[name], value_set=ids["number"])
            if position.null_count:
                number = rows[name].filter(position.is_null())[0]
                message = f"there is no user with the number {number}"
                raise MalformedLine(message, where=str(folder.path / "user_id_map.csv"))
            named[name] = pa.DictionaryArray.from_arrays(
                position.combine_chunks(), ids["id"].combine_chunks()
            )
        return pa.table({**named, "rating": rows["rating"]}), counts

    def keep_rows(self, rows: Any, counts: dict[str, int]) -> Any:
        """Return the rows with a rating, unless all are kept."""
        counts.setdefault("unrated", 0)
        if self.unrated == "keep":
            return rows
        kept = rows.filter(pc.greater(rows["rating"], 0))
        counts["unrated"] += rows.num_rows - kept.num_rows
        return kept

    def read_columns(self, folder: Folder, data: Path, items: Attributes) -> dict[str, AnyArray]:
        """Return the names of the authors, which take the place of their identifiers."""
        if "authors" not in self.side:
            return {}
        table = (
            folder.read(_AUTHORS, _AUTHOR, needed=["author_id"])
            .cells.to_pandas()
            .drop_duplicates("author_id")
        )
        names = table.set_index("author_id")["name"].str.replace(SEPARATOR, "/", regex=False)
        ids = items.frame.pop("author_ids").str.split(SEPARATOR, regex=False).explode().dropna()
        named = ids.map(names).astype(object)
        unnamed = ids[named.isna()].unique()
        if unnamed.size:
            message = (
                f"the file of authors lacks {unnamed.size:,} of the authors ({unnamed[0]} for"
            )
            remedy = "their identifiers stand for their names, which descriptions may hold"
            warn(f"{message} example): {remedy}")
        cells = named.fillna(ids).groupby(level=0).agg(SEPARATOR.join).reindex(items.frame.index)
        return {"authors": cells.where(cells.notna(), None).to_numpy(dtype=object)}


def _read_map(folder: Folder, name: str) -> Any:
    """Return the identifiers of the CSV form, with the ``number`` of each."""
    layout = Layout(columns={f"{name}_csv": "int32", name: "id"})
    return folder.read(f"{name}_map.csv", layout).cells.rename_columns(["number", "id"])


SIGNS = np.array([None, "$", "$$", "$$$", "$$$$"], dtype=object)
"""The price by its level; none for 0."""


@dataclass(frozen=True, kw_only=True)
class Yelp(Declared, declaration="yelp"):
    """Yelp."""

    city: str | None = None
    categories: tuple[str, ...] | None = None
    reviews: bool = True
    folder: str = "yelp"

    def list_sides(self) -> tuple[str, ...]:
        """Return the names of the optional columns that are read."""
        return ("reviews",) if self.reviews else ()

    def select_items(self, items: Any) -> Any:
        """Return the businesses of the city and the categories."""
        wanted = {"city": self.city and [self.city], "categories": self.categories}
        for column, names in wanted.items():
            if names is None:
                continue
            cells = items[column].to_pandas().str.split(SEPARATOR, regex=False).explode()
            folded = {name.casefold() for name in names}
            rows = cells.index[cells.str.casefold().isin(folded)].unique()
            if rows.empty:
                noun, value = "city" if column == "city" else "category", " or ".join(names)
                remedy = suggest(value, cells.dropna().unique().tolist())
                raise NothingLeft(f"no business has the {noun} {value!r}", remedy=remedy)
            items = items.take(rows.to_numpy())
        return items

    def read_columns(self, folder: Folder, data: Path, items: Attributes) -> dict[str, AnyArray]:
        """Return the price as signs."""
        levels = items.frame["price_level"].fillna(0).astype(int)
        return {"price": SIGNS[levels.to_numpy()]}
