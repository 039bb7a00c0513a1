"""The side table of a MovieLens dataset: cast, directors and overviews from IMDb or TMDB."""

from __future__ import annotations

import json
import math
import shutil
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.context import report_progress
from recbias.core.dataset import SEPARATOR, Ids
from recbias.core.errors import (
    Contradiction,
    DownloadFailed,
    MissingFile,
    NothingLeft,
    UnknownName,
)
from recbias.core.files import has_file
from recbias.core.text import normalize_name, suggest
from recbias.data.fetch import fetch_text, transfer, wrap_write_errors
from recbias.data.movielens import MovieLens
from recbias.formats.delimited import Layout, read_table
from recbias.formats.tables import read_text_table

_RELEASES = {cls.declaration["name"]: cls() for cls in MovieLens.__subclasses__()}


@dataclass(frozen=True)
class _SideTable:
    """A side table that was written: its path, and how many of the films have each column."""

    path: Path
    n_films: int
    counts: dict[str, int]


def build_side_table(
    name: str, data: Path, source: Imdb | Tmdb, *, links: Path | None = None, replace: bool = False
) -> _SideTable:
    """Write the side table of the films of a MovieLens dataset.

    The links are copied beside the table, so that ``side: [links]`` finds them.

    Args:
        name: The dataset: ``ml-1m``.
        data: The data folder.
        source: Where the facts are from.
        links: A MovieLens file of links; by default that of the dataset, or beside its side table.
        replace: Whether an existing table is replaced.

    Raises:
        UnknownName: It is not a MovieLens dataset.
        MissingFile: The dataset or the links do not exist.
        Contradiction: The table exists.
        NothingLeft: No film of the dataset is linked to the source.
        DownloadFailed: A server does not have a file or refuses the key.
        Unwritable: The table cannot be written.
    """
    releases = {normalize_name(key): release for key, release in _RELEASES.items()}
    if (release := releases.get(normalize_name(name))) is None:
        message = f"no MovieLens dataset is called {name!r}"
        raise UnknownName(message, remedy=suggest(name, _RELEASES))
    name = release.declaration["name"]
    folder = data / f"{name}-side"
    target = folder / "items.csv.gz"
    if has_file(target) and not replace:
        message = "there is a side table already"
        raise Contradiction(message, where=str(target), remedy="use it, or add --replace")
    item_ids = release.read_item_ids(data)
    links = links or release.find_links(data)
    if not has_file(links):
        message = f"{name} has no file of links"
        remedy = "recbias data fetch ml-25m, then --links with its links.csv: the ids are the same"
        raise MissingFile(message, where=str(links), remedy=remedy)
    rows = read_text_table(links)
    rows.need("movieId", source.link)
    known = pd.Series(rows.optional(source.link), rows.ids("movieId"), dtype=object)
    known = known[~known.index.duplicated()].reindex(item_ids.astype(str))
    numbers = known.where(known.notna(), None).to_numpy(dtype=object)
    if not any(numbers):
        message = f"no film of {name} has a number of {source.name}"
        raise NothingLeft(message, where=str(links), remedy="name another file: --links")
    with wrap_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    facts = source.fetch_facts(numbers, folder)
    table = pd.concat([pd.Series(item_ids, name="item_id"), facts], axis=1)
    part = target.with_name(f"{target.name}.part")
    gzip: Any = {"method": "gzip", "mtime": 0}
    with wrap_write_errors(folder):
        table.to_csv(part, index=False, lineterminator="\n", compression=gzip)
        part.replace(target)
        if links.resolve() != (folder / "links.csv").resolve():
            shutil.copyfile(links, folder / "links.csv")
    counts = {str(column): int(facts[column].notna().sum()) for column in facts}
    return _SideTable(target, len(table), counts)


URL = "https://datasets.imdbws.com/"
PRINCIPALS, CREW, NAMES = "title.principals.tsv.gz", "title.crew.tsv.gz", "name.basics.tsv.gz"
_ACTORS = ("actor", "actress", "self")  # the categories of people in the cast
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
    terms: ClassVar[str] = (
        "IMDb: the files are for personal and non-commercial use; no redistribution. Information "
        "courtesy of IMDb (https://www.imdb.com). Used with permission."
    )
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
        with wrap_write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        for name in (PRINCIPALS, CREW, NAMES):
            if not has_file(self.folder / name):
                transfer(f"{self.url.rstrip('/')}/{name}", self.folder / name)
        titles = pd.Series([_format_title_id(number) for number in numbers], dtype=object)
        keys = pa.array(sorted(set(titles.dropna())), pa.string())
        cast = _read_cast(self.folder / PRINCIPALS, keys, self.n_cast)
        directors = _read_directors(self.folder / CREW, keys)
        if cast.empty and directors.empty:
            remedy = "check the IMDb ids of the links"
            raise NothingLeft("has none of the films", where=str(self.folder), remedy=remedy)
        names = _read_names(self.folder / NAMES, {*cast["person"], *directors["person"]})
        facts = [titles.map(_join_names(people, names)) for people in (cast, directors)]
        table = pd.concat(facts, axis=1).set_axis(["cast", "director"], axis=1).astype(object)
        return table.where(table.notna(), None)


def _read_rows(path: Path, columns: tuple[str, ...], key: str, keys: Any) -> pd.DataFrame:
    layout = Layout(columns=dict.fromkeys(columns, "text"), delimiter="\t")

    def keep(table: Any) -> Any:
        return table.filter(pc.is_in(table[key], value_set=keys))

    rows = read_table(path, layout, keep=keep)
    return pd.DataFrame({name: rows.optional(name) for name in columns})


def _read_cast(path: Path, keys: Any, n_cast: int) -> pd.DataFrame:
    rows = _read_rows(path, ("tconst", "ordering", "nconst", "category"), "tconst", keys)
    rows = rows[rows["category"].isin(_ACTORS) & rows["nconst"].notna()]
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


def _format_title_id(number: str | None) -> str | None:
    """Return the identifier of a title from the number of MovieLens; None without one.

    >>> _format_title_id("0114709"), _format_title_id("1234567890"), _format_title_id(None)
    ('tt0114709', 'tt1234567890', None)
    """
    text = (number or "").strip()
    return f"tt{text.zfill(7)}" if text.isdigit() else None


URL_TMDB = "https://api.themoviedb.org/3/"
_TMDB_COLUMNS = ("overview", "cast", "director")


@dataclass(frozen=True)
class Tmdb:
    """The service of The Movie Database.

    Args:
        key: An API key, or a read access token, which contains full stops; never printed.
        url: Its address.
        language: The language of the overviews: ``en-US``.
        n_cast: The length of the cast, in the order of the credits.
    """

    name: ClassVar[str] = "TMDB"
    terms: ClassVar[str] = (
        "TMDB: the API is for non-commercial use, with your own key and with attribution. This "
        "product uses the TMDB API but is not endorsed or certified by TMDB."
    )
    link: ClassVar[str] = "tmdbId"

    key: str = field(repr=False)
    url: str = URL_TMDB
    language: str = "en-US"
    n_cast: int = 5

    def fetch_facts(self, numbers: Ids, side_folder: Path) -> pd.DataFrame:
        """Return the facts of films, in the order of their ids; each film is requested once.

        Args:
            numbers: The numbers of the films in TMDB; None without one.
            side_folder: Its file ``tmdb.jsonl`` stores each film as it arrives; the next call
                requests the others only.

        Returns:
            ``overview``, ``cast`` and ``director``, None where TMDB has none.

        Raises:
            DownloadFailed: The key is refused, the service fails, or its answer is not a film.
            NothingLeft: The service has none of the films.
            Unwritable: The file cannot be written.
        """
        replies = side_folder / "tmdb.jsonl"
        films = self._load_replies(replies)
        linked = list(dict.fromkeys(str(number) for number in numbers if number))
        missing = [number for number in linked if number not in films]
        with wrap_write_errors(replies), replies.open("a", encoding="utf-8") as stream:
            for position, number in enumerate(missing):
                films[number] = self._fetch_film(number)
                line = {"id": number, "language": self.language, **films[number]}
                stream.write(json.dumps(line, ensure_ascii=False) + "\n")
                stream.flush()
                report_progress("fetch films", position + 1, len(missing))
        if not any(films[number] for number in linked):
            message = "has none of the films"
            raise NothingLeft(message, where=self.url, remedy="check the TMDB ids of the links")
        facts = [films.get(str(number), {}) if number else {} for number in numbers]
        return pd.DataFrame([self._select(film) for film in facts], columns=list(_TMDB_COLUMNS))

    def _load_replies(self, path: Path) -> dict[str, dict[str, Any]]:
        """Return the stored films in this language; a line that was cut off is not one."""
        if not path.exists():
            return {}
        films = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                film = json.loads(line)
            except ValueError:
                continue
            if film.pop("language", None) == self.language:
                films[str(film.pop("id"))] = film
        return films

    def _fetch_film(self, number: str) -> dict[str, Any]:
        """Return the overview, the cast and the directors; empty if TMDB lacks the film."""
        is_token = "." in self.key
        query = {"language": self.language, "append_to_response": "credits"}
        address = f"{self.url.rstrip('/')}/movie/{urllib.parse.quote(number, safe='')}"
        headers = {"Authorization": f"Bearer {self.key}"} if is_token else {}
        secret = {} if is_token else {"api_key": self.key}
        url = f"{address}?{urllib.parse.urlencode({**query, **secret})}"
        try:
            text = fetch_text(url, headers)
        except DownloadFailed as error:
            status = getattr(error, "status", 0)
            if status == HTTPStatus.NOT_FOUND:
                return {}
            message, remedy = error.message, "run it again, which resumes"
            if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
                message = f"the server answers {status}: the key is refused"
                remedy = "check the environment variable of the key: --key-env"
            raise DownloadFailed(message, where=address, remedy=remedy) from None  # without a key
        return _parse_film(text, address)

    def _select(self, film: Mapping[str, Any]) -> dict[str, str | None]:
        return {
            "overview": film.get("overview") or None,
            "cast": SEPARATOR.join(film.get("cast", [])[: self.n_cast]) or None,
            "director": SEPARATOR.join(film.get("director", [])) or None,
        }


def _parse_film(text: str, address: str) -> dict[str, Any]:
    """Return the parts of an answer that are stored."""
    try:
        film = json.loads(text)
        cast = sorted(film["credits"]["cast"], key=lambda person: person.get("order", math.inf))
        crew = [person for person in film["credits"]["crew"] if person.get("job") == "Director"]
        overview = " ".join((film.get("overview") or "").split())
        return {"overview": overview, "cast": _list_names(cast), "director": _list_names(crew)}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"the answer is not a film with credits: {text[:80]!r}"
        remedy = "check the address: --url"
        raise DownloadFailed(message, where=address, remedy=remedy) from error


def _list_names(people: list[Mapping[str, Any]]) -> list[str]:
    names = dict.fromkeys(str(person["name"]).strip() for person in people)
    return [name.replace(SEPARATOR, "/") for name in names if name]
