"""goodbooks-10k, Goodreads (UCSD Book Graph) and Yelp."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import annotated_types
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.context import warn
from recbias.core.dataset import SEPARATOR, AnyArray, Attributes
from recbias.core.errors import NothingLeft
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
        names = folder.read("tags.csv", _TAGS).cells.to_pandas().drop_duplicates("tag_id")
        frame["tag"] = frame["tag_id"].map(names.set_index("tag_id")["tag_name"])
        frame["tag"] = frame["tag"].str.replace(SEPARATOR, "/", regex=False)
        frame = frame.dropna().sort_values("count", ascending=False, kind="stable")
        frame = frame.drop_duplicates(["goodreads_book_id", "tag"])
        top = frame.groupby("goodreads_book_id").head(self.top_tags)
        return {"tags": _join(top.groupby("goodreads_book_id")["tag"], books)}


def _join(groups: Any, keys: Any) -> AnyArray:
    """Return the values of the group of each key as ``a|b``, None for a key without any."""
    joined: pd.Series[Any] = groups.agg(SEPARATOR.join).reindex(keys)
    return joined.where(joined.notna(), None).to_numpy(dtype=object)


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
    unrated: Literal["drop", "keep"] = "drop"
    side: tuple[Literal["authors", "reviews"], ...] = ()

    def list_files(self) -> list[str]:
        """Return the names of the files that the settings need."""
        return [*super().list_files(), *([_AUTHORS] if "authors" in self.side else ())]

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        fetch = "goodreads" if self.genre == "children" else f"goodreads-{self.genre}"
        paths = {data / "goodreads" / name: fetch for name in self.list_files()}
        paths |= {path: "goodreads-authors" for path in paths if path.name == _AUTHORS}
        return [require_files([path], fetch=source)[0] for path, source in paths.items()]

    def read_tables(self) -> dict[str, Any]:
        """Return the tables of the genre."""
        suffix = "" if self.genre == "all" else f"_{self.genre}"
        ends = {"<books>": suffix, "<rows>": suffix or "_dedup"}
        tables = super().read_tables()
        for name, table in tables.items():
            (file,) = table.files
            for mark, end in ends.items():
                file = file.replace(mark, end)
            tables[name] = replace(table, files=(file,))
        return tables

    def keep_rows(self, rows: Any) -> Any:
        """Return the rows with a rating, unless all are kept."""
        return rows if self.unrated == "keep" else rows.filter(pc.greater(rows["rating"], 0))

    def read_columns(
        self, folder: Folder, data: Path, items: Attributes
    ) -> Mapping[str, AnyArray]:
        """Return the names of the authors, which take the place of their identifiers."""
        if "authors" not in self.side:
            return {}
        rows = folder.read(_AUTHORS, _AUTHOR, needed=["author_id"])
        authors = rows.cells.to_pandas().drop_duplicates("author_id")
        names = authors.set_index("author_id")["name"].str.replace(SEPARATOR, "/", regex=False)
        ids = items.frame.pop("author_ids").str.split(SEPARATOR, regex=False).explode().dropna()
        named = ids.map(names).astype(object)
        unnamed = ids[named.isna()].unique()
        if unnamed.size:
            example = f"({unnamed[0]} for example)"
            message = f"the file of authors lacks {unnamed.size:,} of the authors {example}"
            warn(f"{message}: their identifiers stand for their names")
        return {"authors": _join(named.fillna(ids).groupby(level=0), items.frame.index)}


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
        wanted = {"city": self.city and (self.city,), "categories": self.categories}
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
