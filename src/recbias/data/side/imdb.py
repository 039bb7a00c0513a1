"""Cast and directors of films from the public files of IMDb."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.arrays import Ids
from recbias.core.dataset.attributes import SEPARATOR
from recbias.core.errors import NothingLeft
from recbias.core.input_files import has_file
from recbias.data.fetch.transfer import transfer, wrap_write_errors
from recbias.formats.delimited import Layout, read_table

URL = "https://datasets.imdbws.com/"
TERMS = (
    "IMDb: the files are for personal and non-commercial use; no redistribution. Information "
    "courtesy of IMDb (https://www.imdb.com). Used with permission."
)

PRINCIPALS, CREW, NAMES = "title.principals.tsv.gz", "title.crew.tsv.gz", "name.basics.tsv.gz"
COLUMNS = ("cast", "director")
ACTORS = ("actor", "actress", "self")
"""The categories of people in the cast."""

MAX_BYTES = 3 * 10**9
"""The maximum size of a file; the largest had about 700 MB in 2025."""

_NOBODY = "\\N"


@dataclass(frozen=True)
class Imdb:
    """The public files of IMDb.

    Args:
        folder: The folder of the files; those that it lacks are downloaded.
        url: Their address.
        n_cast: The length of the cast, in the order of IMDb.
    """

    name: ClassVar[str] = "IMDb"
    terms: ClassVar[str] = TERMS
    link: ClassVar[str] = "imdbId"

    folder: Path
    url: str = URL
    n_cast: int = 5

    def fetch_facts(self, numbers: Ids, side_folder: Path) -> pd.DataFrame:
        """Return the cast and the directors of films; the files are read in blocks.

        Args:
            numbers: The numbers of the films in IMDb as MovieLens has them; None without one.
            side_folder: Not used.

        Returns:
            ``cast`` and ``director`` in the order of ``numbers``, as ``a|b``; None without any.

        Raises:
            DownloadFailed: The server does not have a file, or the network failed too often.
            Unwritable: The folder cannot be written.
            MalformedLine: A line does not have the published layout.
            UnknownColumn: A file lacks a column.
            NothingLeft: IMDb has none of the films.
        """
        self._fetch_files()
        titles = pd.Series([format_title_id(number) for number in numbers], dtype=object)
        keys = pa.array(sorted(set(titles.dropna())), pa.string())
        cast = _read_cast(self.folder / PRINCIPALS, keys, self.n_cast)
        directors = _read_directors(self.folder / CREW, keys)
        if cast.empty and directors.empty:
            remedy = "check the IMDb ids of the links"
            raise NothingLeft("has none of the films", where=str(self.folder), remedy=remedy)
        names = _read_names(self.folder / NAMES, {*cast["person"], *directors["person"]})
        facts = [titles.map(_join_names(people, names)) for people in (cast, directors)]
        table = pd.concat(facts, axis=1).set_axis(list(COLUMNS), axis=1).astype(object)
        return table.where(table.notna(), None)

    def _fetch_files(self) -> None:
        with wrap_write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        for name in (PRINCIPALS, CREW, NAMES):
            if not has_file(self.folder / name):
                url = f"{self.url.rstrip('/')}/{name}"
                transfer(url, self.folder / name, max_bytes=MAX_BYTES)


def _read_rows(path: Path, columns: tuple[str, ...], key: str, keys: Any) -> pd.DataFrame:
    layout = Layout(columns=dict.fromkeys(columns, "text"), delimiter="\t")

    def keep(table: Any) -> Any:
        return table.filter(pc.is_in(table[key], value_set=keys))

    rows = read_table(path, layout, keep=keep)
    return pd.DataFrame({name: rows.texts(name) for name in columns})


def _read_cast(path: Path, keys: Any, n_cast: int) -> pd.DataFrame:
    rows = _read_rows(path, ("tconst", "ordering", "nconst", "category"), "tconst", keys)
    rows = rows[rows["category"].isin(ACTORS) & rows["nconst"].notna()]
    rows = rows.assign(rank=pd.to_numeric(rows["ordering"], errors="coerce"))
    rows = rows.sort_values(["tconst", "rank"], kind="stable")
    rows = rows.drop_duplicates(["tconst", "nconst"])
    first = rows[rows.groupby("tconst").cumcount() < n_cast]
    return first[["tconst", "nconst"]].set_axis(["title", "person"], axis=1)


def _read_directors(path: Path, keys: Any) -> pd.DataFrame:
    rows = _read_rows(path, ("tconst", "directors"), "tconst", keys).dropna()
    people = rows.assign(person=rows["directors"].str.split(",")).explode("person")
    people = people[people["person"] != _NOBODY]
    return people[["tconst", "person"]].set_axis(["title", "person"], axis=1)


def _read_names(path: Path, people: set[Any]) -> dict[str, str]:
    keys = pa.array(sorted(people), pa.string())
    rows = _read_rows(path, ("nconst", "primaryName"), "nconst", keys).dropna()
    names = rows["primaryName"].str.replace(SEPARATOR, "/", regex=False)
    return dict(zip(rows["nconst"], names, strict=True))


def _join_names(people: pd.DataFrame, names: dict[str, str]) -> dict[str, str]:
    """Return the names of the people of each title, as ``a|b``."""
    named = people.assign(name=people["person"].map(names).astype(object)).dropna()
    joined = named.groupby("title", sort=False)["name"].agg(SEPARATOR.join)
    return {str(title): str(cell) for title, cell in joined.items()}


def format_title_id(number: str | None) -> str | None:
    """Return the identifier of a title from the number of MovieLens; None without one.

    >>> format_title_id("0114709"), format_title_id("1234567890"), format_title_id(None)
    ('tt0114709', 'tt1234567890', None)
    """
    text = (number or "").strip()
    return f"tt{text.zfill(7)}" if text.isdigit() else None
